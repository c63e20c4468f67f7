"""`probe check`: some seconds a GPU say whether it computes rightly and moves data as it should."""

from __future__ import annotations

from probe_bench.bench_command import (
    LEAST_SECONDS,
    MOST_SECONDS,
    Saved,
    devices_named,
    measured_here,
)
from probe_core.commands import CommandError, Option, probe_options, seconds_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from probe_bench.measuring import Outcome
    from probe_bench.verdicts import VerdictDoc
    from probe_core.commands import Context
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, ReportDoc

HELP = (
    "Compute products whose results are known on each GPU, under a lease, and compare the bandwidth"
    " of its memory and link with its equals and with what was kept. The verdict is ok, slow or"
    " wrong. Some seconds show an error that is frequent; they prove no device sound. Exit status:"
    " 0 where all are ok, 1 otherwise, 2 usage."
)
EXAMPLES = (
    ("probe check", "every GPU that is ready, some seconds each"),
    ("probe check --save", "keep the figures, to compare with later"),
    ("probe check --device 01:00.0 --seconds 20 --json", "one device for longer, for a script"),
)

NO_PROOF = "No error in some seconds is no proof that a device is sound."


ARGUMENTS = (
    Option("seconds", "N", "time of each device, 0.1 to 25 (default: 4)", absent="4"),
    Option("device", "ID", "this device alone (an id, or part of it)"),
    Option("save", "", "keep the figures of what is ok"),
    Option("json", "", "print one JSON document"),
    *probe_options(),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Check, print, and say by the exit status whether all is well."""
    for option in ("machine", "static"):
        if getattr(args, option) is not None:
            raise CommandError(f"check computes on this computer; leave out --{option}")
    seconds = seconds_of("seconds", args.seconds, LEAST_SECONDS, MOST_SECONDS)
    return context.examined(lambda machine, report: _check(seconds, args, context, machine, report))


def _check(
    seconds: float, args: argparse.Namespace, context: Context, machine: Machine, report: ReportDoc
) -> int:
    from probe_bench.tasks import check_tasks, obstacle
    from probe_bench.verdicts import judged, to_repeat, with_repeat

    devices = devices_named(report, args.device)
    if args.device is None:
        devices = [device for device in devices if device["kind"] == "gpu"]

    def outcome(device: DeviceDoc, *, again: bool = False) -> Outcome:
        """Compute on a device; `again` measures what moves alone."""
        own = [task for task in check_tasks(device) if not again or task["kind"] != "matmul"]
        refusal = obstacle(device, args.device is not None)
        return measured_here(device, own, refusal, seconds, machine, report, context)

    pairs = [(device, outcome(device)) for device in devices]
    for place, verdict in enumerate(judged(pairs)):
        if to_repeat(verdict):
            device, first = pairs[place]
            pairs[place] = device, with_repeat(first, outcome(device, again=True))
    verdicts = judged(pairs)
    saved = Saved()
    if args.save:
        for verdict in verdicts:
            if verdict["verdict"] == "ok":
                saved.add(machine, report, verdict["id"], verdict["figures"])
    if not args.json:
        for line in _lines(verdicts, context):
            context.out(line)
    saved.tell("check", context, verdicts if args.json else None, note=NO_PROOF)
    is_ok = bool(verdicts) and all(verdict["verdict"] == "ok" for verdict in verdicts)
    return 0 if is_ok else 1


def _lines(verdicts: list[VerdictDoc], context: Context) -> Iterator[str]:
    from probe_bench.figures import sentence
    from probe_bench.verdicts import sentence_of
    from probe_core.commands import paint

    if not verdicts:
        yield "There is no GPU to check."
        return
    for verdict in verdicts:
        title = f"{verdict['id']}  {context.encodable(verdict['name'] or '')}".rstrip()
        yield paint(title, "bold", context.colour)
        word = verdict["verdict"] or "not checked"
        yield from sentence(f"{word}: {sentence_of(verdict)}", context)
        for text in _details(verdict):
            yield from sentence(text, context)
    yield from sentence(NO_PROOF, context)


def _details(verdict: VerdictDoc) -> Iterator[str]:
    """Yield each figure, what held the device back meanwhile, and what could not be computed."""
    from probe_core.commands import measured_amount, measured_name

    figures = verdict["figures"]
    amounts = [
        f"{measured_name(figure)} {measured_amount(figure, figure['median'])}" for figure in figures
    ]
    if amounts:
        yield ", ".join(amounts)
    yield from _state(verdict)
    if verdict["verdict"] is not None:
        yield from (f"not computed: {problem}" for problem in verdict["problems"])


def _state(verdict: VerdictDoc) -> Iterator[str]:
    figures = verdict["figures"]
    clocks = [clock for figure in figures if (clock := figure.get("clock_mhz"))]
    power = [watts for figure in figures if (watts := figure.get("power_w"))]
    reasons = {name for figure in figures for name in figure.get("clock_reasons") or ()}
    parts = [f"{max(clocks):.0f} MHz"] if clocks else []
    parts += [f"{max(power):.0f} W"] if power else []
    parts += [f"held back by {', '.join(sorted(reasons))}"] if reasons else []
    if parts:
        yield f"meanwhile {', '.join(parts)}"
