"""`probe bench`: what the devices of this node achieve, each measured in a child under a lease."""

from __future__ import annotations

from probe_core.commands import CommandError, Option, probe_options, seconds_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from probe_bench.measuring import Outcome
    from probe_bench.tasks import Task
    from probe_core.commands import Context
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, MeasuredDoc, ReportDoc

HELP = (
    "Measure what the devices of this node achieve: arithmetic per type, and memory bandwidth. Each"
    " runs for some seconds in a process of its own, a GPU under a lease; what it computes is"
    " compared, and the figures are kept. Exit status: 0 with a figure, 1 without or with a wrong"
    " result, 2 usage."
)

EXAMPLES = (
    ("probe bench", "every device that is ready, ten seconds each"),
    ("probe bench --list", "what would be measured, and why not; nothing runs"),
    ("probe bench --dtype fp32 --kind alu --seconds 2", "the arithmetic of the CPU alone"),
    ("probe bench --device 01:00.0 --json", "one device, for a script"),
)

LEAST_SECONDS, MOST_SECONDS = 0.1, 25.0


ARGUMENTS = (
    Option("dtype", "TYPES", "fp64, fp32, fp16, bf16 or int8 (comma-separated)"),
    Option("kind", "KINDS", "alu, matmul, memory or link (comma-separated)"),
    Option("seconds", "N", "time of each device, 0.1 to 25 (default: 10)", absent="10"),
    Option("device", "ID", "this device alone (an id, or part of it)"),
    Option("list", "", "print what would run; run nothing"),
    Option("json", "", "print one JSON document"),
    Option("no-save", "", "do not keep the figures"),
    *probe_options(),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Measure, print, and keep the figures."""
    for option in ("machine", "static"):
        if getattr(args, option) is not None:
            raise CommandError(f"bench measures this computer; leave out --{option}")
    plan = _Plan(args)
    return context.examined(lambda machine, report: _bench(plan, args, context, machine, report))


class _Plan:
    """The options, read; raises `CommandError` for values that make no sense."""

    def __init__(self, args: argparse.Namespace) -> None:
        from probe_bench.tasks import DTYPES, KINDS

        self.dtypes = _selected("dtype", args.dtype, DTYPES)
        self.kinds = _selected("kind", args.kind, KINDS) or KINDS
        self.seconds = seconds_of("seconds", args.seconds, LEAST_SECONDS, MOST_SECONDS)
        self.device: str | None = args.device


def devices_named(report: ReportDoc, named: str | None) -> list[DeviceDoc]:
    """Return the device that an id, or a part of one, names; all where there is none.

    Raises `CommandError` for a name of none or of several.
    """
    if named is None:
        return [d for d in report["devices"] if d["kind"] not in ("display", "coprocessor")]
    from probe_core.model.naming import named_by

    ids = [[device["id"], *device["ids"]] for device in report["devices"]]
    places = named_by(named, ids) or [
        place for place, own in enumerate(ids) if any(named.lower() in name.lower() for name in own)
    ]
    if len(places) == 1:
        return [report["devices"][places[0]]]
    listed = ", ".join(own[0] for own in ids)
    problem = f"names {len(places)} devices" if places else "no such device"
    raise CommandError(f"--device {named[:80]}: {problem}; there are: {listed}")


def _selected(option: str, text: str | None, choices: Sequence[str]) -> tuple[str, ...]:
    names = [] if text is None else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in choices:
            given = name[:40] or "has an empty name"
            raise CommandError(f"--{option} {given}: expected {', '.join(choices)}")
    return tuple(dict.fromkeys(names))


def _bench(
    plan: _Plan, args: argparse.Namespace, context: Context, machine: Machine, report: ReportDoc
) -> int:
    from probe_bench.tasks import obstacle, tasks

    devices = devices_named(report, plan.device)
    named = plan.device is not None
    refused = {d["id"]: reason for d in devices if (reason := obstacle(d, named)) is not None}
    ordered = {d["id"]: tasks(d, plan.dtypes, plan.kinds) for d in devices}
    if args.list:
        _print_list(devices, ordered, refused, args, context)
        return 0
    outcomes: dict[str, Outcome] = {}
    saved = Saved()
    for device in devices:
        own, refusal = ordered[device["id"]], refused.get(device["id"])
        outcome = measured_here(device, own, refusal, plan.seconds, machine, report, context)
        outcomes[device["id"]] = outcome
        # At once: who ends a run of sixteen devices keeps what the first ones achieved.
        if not args.no_save:
            saved.add(machine, report, device["id"], outcome.figures)
        if not args.json:
            for line in _lines(device, outcome, context):
                context.out(line)
    entries = [_entry(device, outcomes[device["id"]]) for device in devices]
    saved.tell("bench", context, entries if args.json else None)
    is_right = not any(outcome.wrong for outcome in outcomes.values())
    return 0 if is_right and any(outcome.figures for outcome in outcomes.values()) else 1


def measured_here(
    device: DeviceDoc,
    tasks: Sequence[Task],
    refusal: str | None,
    seconds: float,
    machine: Machine,
    report: ReportDoc,
    context: Context,
) -> Outcome:
    """Return what became of a device, or its `refusal`; a terminal shows which task runs."""
    from probe_bench.measuring import Outcome, measured

    if refusal is not None:
        return Outcome([], [], refusal)
    if not tasks:
        return Outcome([], [], "nothing of what is asked for concerns it")

    def progress(title: str) -> None:
        if context.terminal:
            context.err(f"{device['id']}: {title}")

    return measured(machine, report, device, tasks, seconds, progress)


class Saved:
    """Where the figures are kept, and why they could not be."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.problem: str | None = None

    def add(
        self, machine: Machine, report: ReportDoc, device: str, figures: Sequence[MeasuredDoc]
    ) -> None:
        """Keep the figures of a device; after a problem no more."""
        if not figures or self.problem is not None:
            return
        from probe_core.commands import save_measured

        try:
            self.path = save_measured(machine.environ, report, {device: figures})
        except OSError as error:
            self.problem = f"{error.filename or 'the file'}: {error.strerror or error}"
        except ValueError as error:
            self.problem = str(error)

    def tell(
        self,
        command: str,
        context: Context,
        devices: Sequence[Mapping[str, object]] | None,
        **more: str,
    ) -> None:
        """Say where the figures are: in one JSON document with `devices`, or without in words."""
        if devices is not None:
            kept = {"kept": self.path, "not_kept": self.problem}
            context.json({"schema": 1, "devices": devices, **kept, **more})
        elif self.path is not None:
            context.err(f"The figures were kept in {self.path}.")
        if self.problem is not None:
            context.err(f"probe {command}: the figures were not kept: {self.problem}")


def _entry(device: DeviceDoc, outcome: Outcome) -> dict[str, object]:
    from probe_core.commands import above_peak

    above = above_peak(device, outcome.figures)
    return {
        "id": device["id"],
        "name": device["name"],
        "not_measured": outcome.refusal,
        "measured": outcome.figures,
        "wrong": [{**task, "reason": reason} for task, reason in outcome.wrong],
        "problems": [{**task, "reason": reason} for task, reason in outcome.problems],
        "findings": [above] if above else [],
    }


def _lines(device: DeviceDoc, outcome: Outcome, context: Context) -> list[str]:
    from probe_bench.figures import grouped, lines, notes, sentence
    from probe_core.commands import above_peak

    sentences = [f"not measured: {outcome.refusal}"] if outcome.refusal else []
    sentences += [f"WRONG: {reason}" for _, reason in outcome.wrong]
    sentences += grouped(outcome.problems)
    sentences += notes(device, outcome.figures)
    above = above_peak(device, outcome.figures)
    if above is not None:
        sentences.append(f"{above['what']}: {above['why']}")
    result = list(lines(device, outcome.figures, context))
    for text in sentences:
        result += sentence(text, context)
    return result


def _print_list(
    devices: Sequence[DeviceDoc],
    ordered: Mapping[str, Sequence[Task]],
    refused: Mapping[str, str],
    args: argparse.Namespace,
    context: Context,
) -> None:
    from probe_bench.figures import sentence
    from probe_bench.tasks import title

    chosen = {d["id"]: [] if d["id"] in refused else list(ordered[d["id"]]) for d in devices}
    if args.json:
        entries = [
            {
                "id": device["id"],
                "name": device["name"],
                "not_measured": refused.get(device["id"]),
                "tasks": chosen[device["id"]],
            }
            for device in devices
        ]
        context.json({"schema": 1, "devices": entries})
        return
    for device in devices:
        context.out(f"{device['id']}  {device['name'] or ''}".rstrip())
        reason = f"not measured: {refused.get(device['id'], 'no task')}"
        for text in [title(task) for task in chosen[device["id"]]] or [reason]:
            for line in sentence(text, context):
                context.out(line)
