"""The doctor's document as lines for people: the first break first, with the line that repairs it.

Marks stay without colours: ✕ an error, ! a warning, i a hint, ? what could not be looked at.
"""

from __future__ import annotations

from probe_core.commands import grid, text
from probe_core.doctor.check import CHANGED
from probe_core.model.findings import NO_FIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypedDict

    from probe_core.commands import Context
    from probe_core.doctor.check import Check
    from probe_core.doctor.document import (
        BaselineDoc,
        CheckDoc,
        DeviceStateDoc,
        DoctorDoc,
        ShownFindingDoc,
        WheelDoc,
    )
    from probe_core.doctor.installed import CheckSet
    from probe_core.doctor.remote import RemoteCheck

    class EntryDoc(TypedDict):
        """One check in the list."""

        code: str
        step: str | None
        needs: list[str]
        summary: str
        distribution: str


_MARKS = {"error": ("✕", "red"), "warning": ("!", "yellow"), "info": ("i", "dim")}
_UNKNOWN = "?"
_INDENT, _LABEL = "   ", 7
_MAX_WIDTH = 80
_VERDICTS = {
    "native": "runs natively",
    "jit-only": "runs through JIT only",
    "compiles": "compiles when it runs",
    "needs-newer-driver": "needs a newer driver",
    "lacks-device": "has no code for it",
    "other-vendor": "is for another vendor",
    "cpu-build": "is a CPU build",
    "unknown": "cannot be judged",
}
_MAX_DEVICES = 4
_MAX_FOLLOWS = 3


def lines(
    document: DoctorDoc, context: Context, *, show_all: bool = False, chosen: bool = False
) -> Iterator[str]:
    """Yield the lines, of 80 columns at most; `chosen` says that not all checks were asked for."""
    width = min(context.width, _MAX_WIDTH)
    devices = {device["id"]: device for device in document["devices"]}
    serious = [finding for finding in document["findings"] if finding["severity"] != "info"]
    if serious:
        yield from text.wrapped(_headline(document), width, " ")
    else:
        tally = _tally(document["checks"])
        yield from text.wrapped(f"probe doctor: {_verdict(document, chosen)}. {tally}.", width, " ")
        yield ""
        yield from _healthy_devices(document["devices"], width)
    for finding in document["findings"]:
        if finding["code"] == CHANGED and serious:
            continue
        yield ""
        yield from _block(finding, devices, context, width)
    for check in document["checks"]:
        if check["status"] == "unknown" and "fix" in check:
            yield ""
            yield from _unseen(check, width)
    if "wheels" in document:
        yield ""
        yield from _wheels(document["wheels"], devices, context)
    if "baseline" in document:
        yield from _changed(document["baseline"], devices, width)
    yield from _end(document, width, bool(serious))
    if show_all:
        yield ""
        yield from _checks(document["checks"], context)


def _verdict(document: DoctorDoc, chosen: bool) -> str:
    """Return the verdict where no finding is more than a hint; only a good node is healthy."""
    if chosen:  # a few checks say nothing of the rest
        return "nothing found"
    states = {device["readiness"]["state"] for device in document["devices"]}
    node = document.get("node")
    if states == {"unknown"} or (node is not None and node["state"] == "unknown"):
        return "nothing wrong found, and nothing known to be well"
    if node is None:
        return "healthy"
    if node["state"] == "none" and node["set_aside"]:
        return "healthy, no accelerator for jobs"
    if node["state"] == "none":
        from probe_core.doctor.checks.absence import looked_at, points_to_one

        if points_to_one(document["findings"]):
            return "no accelerator found, and something points to one"
        return f"healthy, no accelerator found; {looked_at(document['checks'])} signs looked at"
    here, whole = len(node["usable"]), len(node["grantable"])
    return "healthy" if here == whole else f"healthy; this process may use {here} of {whole}"


def _headline(document: DoctorDoc) -> str:
    changed = next((f for f in document["findings"] if f["code"] == CHANGED), None)
    severities = [f["severity"] for f in document["findings"] if f is not changed]
    counts = {
        "error": severities.count("error"),
        "warning": severities.count("warning"),
        "hint": severities.count("info"),
    }
    parts = [f"{count} {noun}{'s'[: count > 1]}" for noun, count in counts.items() if count]
    since = f" · changed since it worked: {changed['what']}" if changed is not None else ""
    return f"probe doctor: {', '.join(parts)} · {document['system']}{since}"


def _tally(checks: Sequence[CheckDoc], other: str = "") -> str:
    """Return "49 checks passed, 5 do not apply here"."""
    statuses = [check["status"] for check in checks]
    passed = statuses.count("passed")
    noun = "check" if passed == 1 else "checks"
    parts = [f"{passed} {other}{noun} passed"]
    if absent := statuses.count("not_applicable"):
        parts.append(f"{absent} do not apply here" if absent > 1 else "1 does not apply here")
    if unseen := statuses.count("unknown"):
        parts.append(f"{unseen} could not look")
    return ", ".join(parts)


def _healthy_devices(devices: Sequence[DeviceStateDoc], width: int) -> Iterator[str]:
    """Yield what was looked at: each kind of device with its driver, link and memory."""
    groups: dict[tuple[str, str, str, int | None], list[DeviceStateDoc]] = {}
    for device in devices:
        name = device["name"] or device["id"]
        key = (
            f"{name}: {device['state']}",
            device["driver"] or "",
            device["link"] or "",
            device["memory"],
        )
        groups.setdefault(key, []).append(device)
    for (name, driver, link, memory), group in groups.items():
        times = f"{len(group)} × " if len(group) > 1 else ""
        yield from text.wrapped(f"{times}{name}", width, _INDENT)
        each = " each" if len(group) > 1 else ""
        yield from _field("driver", driver, width)
        yield from _field("link", f"{link}{each}" if link else "", width)
        yield from _field("memory", f"{text.size(memory)}{each}" if memory else "", width)
    if not groups:
        yield f"{_INDENT}no accelerator is here"


def _block(
    finding: ShownFindingDoc, devices: dict[str, DeviceStateDoc], context: Context, width: int
) -> Iterator[str]:
    mark, style = _MARKS[finding["severity"]]
    head = f"{mark} {finding['code']}"
    subject = finding.get("wheel") or _subject(finding, devices)
    room = width - text.width_of(f" {head}   ")
    shown = text.paint(mark, style, context.colour) + head[1:]
    if subject and text.width_of(subject) <= room:
        yield f" {shown}   {subject}"
    else:
        yield f" {shown}"
        yield from text.folded(subject, width, _INDENT)
    yield from text.wrapped(f"{finding['what']}.", width, _INDENT)
    yield from _field("seen", finding["evidence"] or finding["why"], width)
    yield from _field("but", finding.get("contradicts", ""), width)
    for name in ("has", "needs"):
        yield from _field(name, str(finding.get(name) or ""), width)
    if finding["fix"] != NO_FIX:
        yield from _field("fix", finding["fix"], width)
    follows = finding.get("follows", [])
    for entry in follows[:_MAX_FOLLOWS]:
        yield from _field("so", f"{entry['what']} ({entry['code']})", width)
    if (hidden := len(follows) - _MAX_FOLLOWS) > 0:
        yield from _field("", f"and {hidden} more of that kind", width)


def _subject(finding: ShownFindingDoc, devices: dict[str, DeviceStateDoc]) -> str:
    """Return the name and id of the device, or of several that share the finding."""
    device = finding["device"]
    ids = finding.get("devices") or ([device] if device else [])
    names = {devices[name]["name"] for name in ids if name in devices} - {None}
    name = f"{names.pop()}  " if len(names) == 1 else ""
    times = f"{len(ids)} × " if len(ids) > 1 and name else ""
    more = f" and {len(ids) - _MAX_DEVICES} more" if len(ids) > _MAX_DEVICES else ""
    return f"{times}{name}{', '.join(ids[:_MAX_DEVICES])}{more}"


def _field(label: str, value: str, width: int) -> Iterator[str]:
    """Yield a labelled value, its further lines set under the first."""
    if not value:
        return
    indent = _INDENT + " " * _LABEL
    # A command is copied: a terminal may wrap it, a line break inside of a path would change it.
    broken = text.wrapped if label == "fix" else text.folded
    for number, line in enumerate(broken(value, width, indent)):
        yield f"{_INDENT}{label:<{_LABEL}}{line[len(indent) :]}" if number == 0 else line


def _unseen(check: CheckDoc, width: int) -> Iterator[str]:
    head, reason = f" {_UNKNOWN} {check['code']}", check.get("reason", "")
    if text.width_of(head) + 3 + text.width_of(reason) <= width:
        yield f"{head}   {reason}"
    else:
        yield head
        yield from text.wrapped(reason, width, _INDENT)
    yield from _field("fix", check.get("fix", ""), width)


def _wheels(
    wheels: Sequence[WheelDoc], devices: dict[str, DeviceStateDoc], context: Context
) -> Iterator[str]:
    """Yield a row for each verdict: what each distribution with GPU code does on which device."""
    rows = [("WHEEL", "VERDICT", "ON")]
    for entry in wheels:
        ids = entry["devices"]
        names = dict.fromkeys(devices[i]["name"] or i if i in devices else i for i in ids)
        times = f"{len(ids)} × " if len(ids) > 1 and len(names) == 1 else ""
        verdict = _VERDICTS[entry["verdict"]]
        rows.append((entry["wheel"], verdict, context.encodable(times + ", ".join(names))))
    yield from grid(rows, min(context.width, _MAX_WIDTH), wrap="ON", indent=_INDENT)


def _changed(
    baseline: BaselineDoc, devices: dict[str, DeviceStateDoc], width: int
) -> Iterator[str]:
    if not baseline["lost"]:
        return
    yield ""
    names = [
        devices[name]["name"] or name if name in devices else name for name in baseline["lost"]
    ]
    sentence = f"{', '.join(names)} was ready on {baseline['saved'][:10]}. Changed since:"
    yield from text.wrapped(sentence, width, " ")
    for change in baseline["changed"]:
        values = f"{change['before'] or 'none'} → {change['now'] or 'none'}"
        yield from text.wrapped(f"{change['fact']}: {values}", width, _INDENT)
    if not baseline["changed"]:
        yield f"{_INDENT}nothing that was saved"


def _end(document: DoctorDoc, width: int, serious: bool) -> Iterator[str]:
    yield ""
    if not serious:
        return
    if any(check["status"] != "failed" for check in document["checks"]):
        tally = _tally(document["checks"], "other ")
        yield from text.wrapped(f"{tally} (probe doctor --all lists them).", width, " ")
    parts = ("Attach this to a question:", "probe doctor --bundle")
    yield from text.listed(parts, width, " ", separator="  ")


def _checks(checks: Iterable[CheckDoc], context: Context) -> Iterator[str]:
    rows = [("CHECK", "RESULT", "MS", "REASON")]
    rows += [
        (
            check["code"],
            check["status"].replace("_", " "),
            f"{check['ms']:.1f}",
            context.encodable(check.get("reason", "")),
        )
        for check in checks
    ]
    yield from grid(rows, context.width, right=("MS",), wrap="REASON", leaving=("MS",))


# `probe doctor --list`: every check, whose it is, its step, and what it needs to look.


def listed(sets: Sequence[CheckSet], context: Context) -> list[EntryDoc]:
    """Return all checks; those of other distributions are asked for in their own processes."""
    from probe_core import __version__
    from probe_core.doctor.examine import all_checks

    entries = [_entry(check, f"probe-core {__version__}") for check in all_checks()]
    if sets:
        entries += [_entry(check, check.distribution) for check in _installed(sets, context)]
    return entries


def _installed(sets: Sequence[CheckSet], context: Context) -> Iterable[RemoteCheck]:
    from probe_core.doctor.check import Request
    from probe_core.doctor.remote import run_installed
    from probe_core.machine import Machine

    empty: dict[str, object] = {"devices": [], "findings": [], "outcomes": []}
    request = Request(Machine(environ=context.environ), empty)  # type: ignore[arg-type]  # unread
    remote = run_installed(sets, request, list_only=True)
    for owner, problem in remote.problems:
        context.err(f"probe: the checks of {owner} are not listed: {problem}")
    return remote.checks


def _entry(check: Check | RemoteCheck, distribution: str) -> EntryDoc:
    return {
        "code": check.code,
        "step": check.step or None,
        "needs": list(check.needs),
        "summary": check.summary,
        "distribution": distribution,
    }


def table(entries: Sequence[EntryDoc], context: Context) -> Iterator[str]:
    """Yield a row a check with what it needs of its own, then what the report's steps read."""
    from probe_core.doctor.causes import READS

    rows = [("CHECK", "STEP", "LOOKS WHETHER")]
    rows += [(entry["code"], entry["step"] or "", _sentence(entry)) for entry in entries]
    yield from grid(rows, context.width, wrap="LOOKS WHETHER", leaving=("STEP",))
    yield ""
    yield from text.wrapped("Every check needs the report, whose steps read:", context.width)
    for step, paths in READS.items():
        yield from text.wrapped(f"{step}: {', '.join(paths)}", context.width, "  ")


def _sentence(entry: EntryDoc) -> str:
    """Return "a CDI specification is stale. Needs: /etc/cdi, /run/cdi"."""
    from probe_core.doctor.causes import READS

    common = ("report", *READS.get(entry["step"] or "", ()))
    own = [word for word in entry["needs"] if word not in common]
    needs = f" Needs: {', '.join(own)}" if own else ""
    return f"{entry['summary'].removeprefix('Whether ')}{needs}"
