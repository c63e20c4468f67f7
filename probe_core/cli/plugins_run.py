"""What `probe plugins run` prints: each value, what became of it, and where it went."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext

from probe_core.commands.text import wrapped
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.commands import Context
    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.registry.prober import Decision, Prober
    from probe_core.testing.rehearsal import Item, Rehearsal


_SHOWN_ALREADY = ("value-rejected", "prober-failed", "prober-unavailable")
"""Codes of findings that repeat what the run showed."""

_NAME_WIDTH = 16


def head(prober: Prober, decision: Decision, isolated: bool) -> Iterator[str]:
    """Yield what runs, each mistake of its manifest, and why a report would not run it."""
    place = "in a child, as in a report" if isolated else "in this process, without a deadline"
    yield f"prober {prober.name!r} ({prober.target}), {place}"
    if prober.manifest is None:
        yield "note: no manifest lies beside it; the defaults hold"
    for mistake in prober.problems:
        yield f"manifest refused: {clean_text(mistake.reason, 400)}"
    if decision.reason:
        yield f"note: a report would not run it here: {decision.reason}"
    yield ""


def item_lines(value: Item, number: int, width: int) -> Iterator[str]:
    """Yield the lines of one yielded value."""
    yield f"{value.noun} {number}: {_verdict(value)}"
    if value.sighting is not None:
        for name, field in _fields(value):
            yield from _row(name, field, width)
    elif value.finding is not None:
        for name in ("code", "what", "why", "fix"):
            yield from _row(name, value.finding[name], width)  # type: ignore[literal-required]
    for problem in value.rejected:
        yield from _row("refused", problem, width)


def _verdict(value: Item) -> str:
    if value.refused:
        return "refused"
    count = len(value.rejected)
    return f"accepted, {counted(count, 'value')} refused" if count else "accepted"


def _fields(value: Item) -> Iterator[tuple[str, str]]:
    """Yield what was kept of a device; the reason of a refused value is its refusal."""
    sighting = dict(value.sighting or {})
    unknown: Mapping[str, str] = sighting.pop("unknown", {})  # type: ignore[assignment]
    yield from _flat(sighting)
    for path, reason in unknown.items():
        if f"{path}: {reason}" not in value.rejected:
            yield path, f"unknown: {reason}"


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield (``memory.total``, its value as text) for each value that was kept."""
    for name, value in table.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{path}.")
        elif isinstance(value, list) and all(isinstance(part, str) for part in value):
            yield path, ", ".join(value)
        else:
            yield path, _shown(path, value)


def _shown(path: str, value: object) -> str:
    if path.startswith("memory.") and type(value) is int:
        from probe_core.sizes import format_size

        return f"{value} ({format_size(value, decimals=1)})"
    if isinstance(value, (dict, list)):
        from probe_core.jsontext import write

        return write(value)
    return str(value)


def _row(name: str, value: str, width: int) -> Iterator[str]:
    label = f"  {name:<{_NAME_WIDTH}}"
    lines = wrapped(value, max(20, width - _NAME_WIDTH - 3)) or [""]
    yield f"{label} {lines[0]}".rstrip()
    yield from (" " * (_NAME_WIDTH + 3) + line for line in lines[1:])


def end(rehearsal: Rehearsal, report: ReportDoc, width: int) -> Iterator[str]:
    """Yield what merging makes of it, what the report says of the prober, and the summary."""
    name = rehearsal.prober.name
    devices = _merged(report, name)
    for line in rehearsal.run.stderr_tail():
        yield f"  | {line}"
    if rehearsal.items:
        yield ""
    if devices:
        yield "merged with what the built-in probers report:"
    for device in devices:
        yield from _device(device, report, name, width)
    for finding in report["findings"]:
        if finding["prober"] == name and finding["code"] not in _SHOWN_ALREADY:
            sentence = f"{finding['severity']}: {finding['what']}: {finding['why']}"
            yield from wrapped(sentence, width)
    for sentence in _summary(rehearsal):
        yield from wrapped(sentence, width)


def _merged(report: ReportDoc, name: str) -> list[DeviceDoc]:
    return [device for device in report["devices"] if name in device["seen_by"]]


def _device(device: DeviceDoc, report: ReportDoc, name: str, width: int) -> Iterator[str]:
    primary = ", the primary device" if device["id"] == report["primary"] else ""
    yield f"  {device['id']}  {device['name'] or '(no name)'}{primary}"
    for prober in device["seen_by"]:
        fields = [path for path, source in device["sources"].items() if source == prober]
        yield from _row(f"  from {prober}", ", ".join(fields) or "nothing", width)
    for path, values in device["others"].items():
        if any(other["prober"] == name for other in values):
            winner = device["sources"].get(path, "a prober of higher priority")
            yield from _row("  not used", f"{path}: that of {winner} counts", width)
    chip = device["chip"]["id"] if device["chip"] else None
    reason = device["unknown"].get("chip", "it has none")
    yield from _row("  chip", chip or f"unknown: {reason}", width)


def _summary(rehearsal: Rehearsal) -> Iterator[str]:
    run, deadline_s, spent = rehearsal.run, rehearsal.prober.deadline_s, rehearsal.seconds
    yield f"{run.status}: {run.reason}" if run.reason else str(run.status)
    devices = sum(not value.is_finding for value in rehearsal.items)
    refused = sum(max(len(value.rejected), value.refused) for value in rehearsal.items)
    counts = f"{counted(devices, 'device')}, {counted(refused, 'value')} refused"
    late = "; a report would have ended it" if run.status == "ok" and spent > deadline_s else ""
    yield f"{counts}, {spent * 1000:.1f} ms (deadline {deadline_s:g} s){late}"


def document(rehearsal: Rehearsal, decision: Decision, report: ReportDoc) -> dict[str, object]:
    """Return all of it as plain data."""
    run, prober = rehearsal.run, rehearsal.prober
    return {
        "prober": prober.name,
        "target": prober.target,
        "manifest": prober.manifest,
        "manifest_problems": [mistake.reason for mistake in prober.problems],
        "would_run": decision.cause is None,
        "would_run_reason": decision.reason,
        "status": run.status,
        "reason": run.reason,
        "code": run.details.get("code"),
        "fix": run.details.get("fix"),
        "stderr": run.stderr_tail(),
        "elapsed_ms": round(rehearsal.seconds * 1000, 3),
        "deadline_s": prober.deadline_s,
        "items": [
            {
                "accepted": not value.refused,
                "device": value.sighting,
                "finding": value.finding,
                "refused": value.rejected,
            }
            for value in rehearsal.items
        ],
        "merged": _merged(report, prober.name),
        "primary": report["primary"],
    }


# `probe plugins run`: one prober in this process, each value as it is yielded, then the merge.
#
# For its author. A prober runs here as any code of his does: prints appear at once, `breakpoint()`
# has the terminal, and no deadline ends it.

INTERRUPTED = 130
"""128 + SIGINT, as shells write a death by signal."""

_REFUSALS = ("trust", "sealed", "active", "rejected")
"""Causes for which the prober must not run: rules of safety, which a command does not lift."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Run the prober at `args.name`; 0 for a valid answer, 1 for anything refused or raised."""
    from probe_core.commands import CommandError
    from probe_core.testing.target import BadTarget, prober_at

    config = context.config()
    try:
        prober = prober_at(args.name)
    except BadTarget as error:
        raise CommandError(str(error)) from None
    if args.machine is None:
        from probe_core.machine import Machine

        return _run(prober, Machine(environ=context.environ), config, context)
    from probe_core.commands.recorded import opened

    with opened(args.machine) as machine:
        return _run(prober, machine, config, context)


def _run(prober: Prober, machine: Machine, config: Config, context: Context) -> int:
    from probe_core.commands import CommandError
    from probe_core.testing.rehearsal import Rehearsal, bus_sightings

    bus = bus_sightings(machine)
    decision = _decision(prober, machine, config, bus)
    args = context.args
    assert args is not None
    as_json, isolated = bool(args.json), bool(args.isolated)
    show, announce = (_ignore, _ignore) if as_json else _printers(context)
    rehearsal = Rehearsal(prober, show, announce)
    if not as_json:
        _print(context, head(prober, decision, isolated))
    if isolated:
        from probe_core.isolation.launch import cannot_start

        if problem := cannot_start():
            raise CommandError(f"--isolated: {problem}")
        rehearsal.perform_isolated(machine, bus, config.active)
    else:
        import gc

        gc.enable()  # `probe` turns it off for its own short life
        with _prints_to_stderr() if as_json else nullcontext():
            rehearsal.perform(machine, bus, config.active)
    if rehearsal.interrupted:
        _show_error(rehearsal, context)
        return INTERRUPTED
    report = _report_with(rehearsal, machine, config)
    if as_json:
        context.json(document(rehearsal, decision, report))
    _show_error(rehearsal, context)
    if not as_json:
        _print(context, end(rehearsal, report, context.width))
    return 0 if _is_sound(rehearsal) else 1


def _is_sound(rehearsal: Rehearsal) -> bool:
    """Return whether the answer is a valid one, and nothing of it or its manifest was refused."""
    from probe_core.model.ids import FAILURES

    refused = any(item.rejected or item.refused for item in rehearsal.items)
    return rehearsal.run.status not in FAILURES and not refused and not rehearsal.prober.problems


def _decision(
    prober: Prober, machine: Machine, config: Config, bus: Sequence[Mapping[str, Any]]
) -> Decision:
    """Return whether a report would run it; raises `CommandError` where it must not run at all."""
    from probe_core.commands import CommandError
    from probe_core.model.ids import pci_vendor
    from probe_core.registry.prober import select

    vendors = {vendor for sighting in bus if (vendor := pci_vendor(sighting))}
    (decision,) = select([prober], config, machine, vendors)
    if decision.cause in _REFUSALS:
        raise CommandError(f"{prober.target} is not run: {decision.reason}")
    return decision


@contextmanager
def _prints_to_stderr() -> Iterator[None]:
    """Send what the prober prints to standard error: of a C library, too, by the descriptors."""
    stdout = sys.stdout
    stdout.flush()
    sys.stdout = sys.stderr
    try:
        copy = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one of them is closed
        copy = -1
    try:
        yield
    finally:
        sys.stdout = stdout
        if copy >= 0:
            os.dup2(copy, 1)
            os.close(copy)


def _report_with(rehearsal: Rehearsal, machine: Machine, config: Config) -> ReportDoc:
    """Return the report in which this run stands for the prober's, and no other plugin runs."""
    from probe_core.machine import Machine
    from probe_core.pipeline.answers import answer_of
    from probe_core.pipeline.run import run_pipeline
    from probe_core.setting_values import load_config

    name = rehearsal.prober.name
    answers = {name: answer_of(rehearsal.run)}
    place = machine.root, machine.environ, machine.os, machine.arch
    # Settings of the environment that would skip it have been told of before.
    alone, _ = load_config({"only": (name,), "chipdb": config.chipdb}, {})
    return run_pipeline(Machine(*place, machine.access, answers), alone)


def _printers(context: Context) -> tuple[Any, Any]:
    counts = {"device": 0, "finding": 0}

    def show(item: Item) -> None:
        counts[item.noun] += 1
        _print(context, item_lines(item, counts[item.noun], context.width))

    def announce(device: str) -> None:
        _print(context, [f"touching {device}"])

    return show, announce


def _ignore(value: object) -> None:
    """Show nothing: JSON has it all at the end."""


def _print(context: Context, lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        context.out(line)
    # A breakpoint, a crash of a C library or its own prints may come next.
    sys.stdout.flush()


def _show_error(rehearsal: Rehearsal, context: Context) -> None:
    """Print what the prober raised, from its author's first frame on; open pdb for `--debug`."""
    error = rehearsal.mistake
    if error is None:
        return
    import traceback

    from probe_core.testing.rehearsal import author_frames

    trace = author_frames(error)
    traceback.print_exception(type(error), error, trace, file=sys.stderr)
    sys.stderr.flush()
    if trace is None or rehearsal.interrupted:
        return
    if context.args is not None and context.args.debug:
        import pdb

        pdb.post_mortem(trace)
    else:
        context.err("`--debug` opens pdb at that line.")
