"""`probe plugins run`: one prober in this process, each value as it is yielded, then the merge.

For its author. A prober runs here as any code of his does: prints appear at once, `breakpoint()`
has the terminal, and no deadline ends it.
"""

from __future__ import annotations

import os
import sys

from probe_core.cli import plugins_run_text as text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.commands import Context
    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc
    from probe_core.registry.prober import Prober
    from probe_core.registry.select import Decision
    from probe_core.testing.rehearsal import Item, Rehearsal

__all__ = ["run"]

INTERRUPTED = 130
"""128 + SIGINT, as shells write a death by signal."""

_REFUSALS = ("trust", "sealed", "active", "rejected")
"""Causes for which the prober must not run: rules of safety, which a command does not lift."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Run the prober at `args.name`; 0 for a valid answer, 1 for anything refused or raised."""
    from probe_core.commands import CommandError
    from probe_core.commands.options import settings_of
    from probe_core.config import ConfigError, load_config
    from probe_core.testing.target import BadTarget, prober_at

    try:
        config, _ = load_config(settings_of(args), context.environ, args.config)
        prober = prober_at(args.name)
    except (BadTarget, ConfigError) as error:
        raise CommandError(str(error)) from None
    if args.machine is None:
        from probe_core.machine import Machine

        return _run(prober, Machine(environ=context.environ), config, context)
    from probe_core.commands.recorded import opened

    with opened(args.machine) as machine:
        return _run(prober, machine, config, context)


def _run(prober: Prober, machine: Machine, config: Config, context: Context) -> int:
    from probe_core.testing.rehearsal import Rehearsal, bus_sightings

    bus = bus_sightings(machine)
    decision = _decision(prober, machine, config, bus)
    args = context.args
    assert args is not None
    as_json, isolated = bool(args.json), bool(args.isolated)
    show, announce = (_ignore, _ignore) if as_json else _printers(context)
    rehearsal = Rehearsal(prober, show, announce)
    if not as_json:
        _print(context, text.head(prober, decision, isolated))
    if isolated:
        _perform_isolated(rehearsal, machine, config, bus)
    else:
        _perform(rehearsal, machine, config, bus, as_json)
    if rehearsal.interrupted:
        _show_error(rehearsal, context)
        return INTERRUPTED
    report = _report_with(rehearsal, machine, config)
    if as_json:
        context.json(text.document(rehearsal, decision, report))
    _show_error(rehearsal, context)
    if not as_json:
        _print(context, text.end(rehearsal, report, context.width))
    return 0 if _is_sound(rehearsal) else 1


def _is_sound(rehearsal: Rehearsal) -> bool:
    """Return whether the answer is a valid one, and nothing of it or its manifest was refused."""
    from probe_core.model.statuses import FAILURES

    refused = any(item.rejected or item.refused for item in rehearsal.items)
    return rehearsal.run.status not in FAILURES and not refused and not rehearsal.prober.problems


def _decision(
    prober: Prober, machine: Machine, config: Config, bus: Sequence[Mapping[str, Any]]
) -> Decision:
    """Return whether a report would run it; raises `CommandError` where it must not run at all."""
    from probe_core.commands import CommandError
    from probe_core.registry.select import select

    ids = [(sighting.get("pci") or {}).get("id", "") for sighting in bus]
    (decision,) = select([prober], config, machine, {ident[:4] for ident in ids if ident})
    if decision.cause in _REFUSALS:
        raise CommandError(f"{prober.target} is not run: {decision.reason}")
    return decision


def _perform(
    rehearsal: Rehearsal,
    machine: Machine,
    config: Config,
    bus: Sequence[Mapping[str, Any]],
    as_json: bool,
) -> None:
    import gc

    gc.enable()  # `probe` turns it off for its own short life
    restore = _prints_to_stderr() if as_json else None
    try:
        rehearsal.perform(machine, bus, config.active)
    finally:
        if restore is not None:
            restore()


def _perform_isolated(
    rehearsal: Rehearsal, machine: Machine, config: Config, bus: Sequence[Mapping[str, Any]]
) -> None:
    from probe_core.commands import CommandError

    if problem := rehearsal.cannot_isolate():
        raise CommandError(f"--isolated: {problem}")
    rehearsal.perform_isolated(machine, bus, config.active)


def _prints_to_stderr() -> Any:
    """Send what the prober prints to standard error; returns what undoes that.

    Also what a C library prints, which knows descriptors only.
    """
    stdout = sys.stdout
    stdout.flush()
    sys.stdout = sys.stderr
    try:
        copy = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one of them is closed
        copy = -1

    def restore() -> None:
        sys.stdout = stdout
        if copy >= 0:
            os.dup2(copy, 1)
            os.close(copy)

    return restore


def _report_with(rehearsal: Rehearsal, machine: Machine, config: Config) -> ReportDoc:
    """Return the report in which this run stands for the prober's, and no other plugin runs."""
    from probe_core.config import load_config
    from probe_core.machine import Machine
    from probe_core.pipeline.answers import answer_of
    from probe_core.pipeline.run import run_pipeline

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
        _print(context, text.item(item, counts[item.noun], context.width))

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
