"""Name each device's chip, and give its peaks: every number with a source, or None and a reason."""

from __future__ import annotations

import os

from probe_core.model.findings import finding
from probe_core.model.ids import ACCELERATORS, pci_model, pci_subsystem
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Literal

    from probe_chipdb import Database
    from probe_chipdb.database import Added
    from probe_core.machine.trust import Trust
    from probe_core.model.document import DeviceDoc, FindingDoc, PeakDoc, Sighting
    from probe_core.resolve.accelerators import PeaksMemo

    TextField = Literal["name", "arch", "vendor"]
    CountField = Literal["units", "cores"]
    Shorthand = Literal["fp32", "fp16", "int8"]
    ResolveHook = Callable[[DeviceDoc], str | None]
    Load = Callable[[str], object]
    """Imports a part of what a probe needs, see `gate`."""

__all__ = ["Accept", "load_chips", "look_up", "open_chipdb", "resolve"]

MAX_PROBLEM = 1024
"""Characters of what chipdb says of a file: it quotes the path and a wrong value."""

_NO_CHIPDB = "chipdb is not installed"
_NO_CHIPS = "it is missing, unreadable or holds no sound chip"


def open_chipdb(
    extra: Iterable[str],
    packages: bool = True,
    added: Added | None = None,
    refused: Mapping[str, str] | None = None,
) -> tuple[Database | None, list[FindingDoc]]:
    """Return the chip database with the site's files, or None and the finding that says why.

    `packages` is whether a vendor's package may be installed, for which chipdb then looks. `added`
    is what another process has read of both, so that nothing is looked at here; `refused` are then
    the files that it could not use, and why.
    The core works without chipdb, with an older one and with a newer minor: whatever it raises
    becomes a finding.
    """
    try:
        from probe_chipdb import database as chipdb

        # A chipdb of an earlier release reads its tables whole.
        load = getattr(chipdb, "load_by_position", chipdb.load)
        findings, files, accept = [], [], Accept()
        for file in extra:
            if reason := _refusal(file, accept, refused if added is not None else None):
                findings.append(_unusable(file, reason))
            else:
                files.append(file)
        if added is None:
            database = load(extra=files, packages=packages, accept=accept)
        else:
            database = load(added=added)
        findings += [_unusable(file, _NO_CHIPS) for file in _without_chips(database, files)]
        return database, findings
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        reason = _NO_CHIPDB if isinstance(error, ImportError) else text
        fix = "install probe-chipdb, so that chips get names, FLOPS and bandwidth"
        missing = finding("chipdb-missing", "chips cannot be named", reason, fix, evidence=text)
        return None, [missing]


def _refusal(file: str, accept: Accept, refused: Mapping[str, str] | None) -> str | None:
    if refused is not None:
        return refused.get(file)
    return accept(file) if os.path.exists(file) else None


def _without_chips(database: Database, files: Sequence[str]) -> Iterable[str]:
    """Return the site's files of which chipdb could use nothing; `problems` says why."""
    tables = {source.origin: source for source in database.tables()} if files else {}
    for file in files:
        table = tables.get(f"site:{file}")
        if table is None or not (any(table.chips) or any(table.archs)):
            yield file


def _unusable(file: str, reason: str) -> FindingDoc:
    return finding(
        "chip-file-unusable",
        f"nothing of the chip file {clean_text(file)} could be used",
        reason,
        "correct it; `python -m probe_chipdb check FILE` lists all that is wrong",
        setting="chipdb",
        evidence=clean_text(file),
    )


class Accept:
    """Says why root must not read a chip file; makes its memory of paths when it is first asked."""

    __slots__ = ("_trust",)

    def __init__(self) -> None:
        self._trust: Trust | None = None

    def __call__(self, path: str) -> str | None:
        if self._trust is None:
            from probe_core.machine.trust import Trust

            self._trust = Trust()
        return self._trust.reason([path])


def load_chips(sightings: Iterable[Sighting], database: Database | None) -> None:
    """Have chipdb read the rows of the chips on the buses.

    By their ids alone: which name a driver prints is not known yet, and some print none.
    """
    if database is None:
        return
    import probe_chipdb.cpu  # noqa: F401
    from probe_core.resolve import processors  # noqa: F401

    ids = {(pci_model(s), pci_subsystem(s)) for s in sightings if s.get("pci")}
    if ids:
        from probe_core.resolve import accelerators  # noqa: F401
    for number, subsystem in ids:
        try:
            chip = database.match(pci=number, subsystem=subsystem).chip
            if chip is not None:
                chip.peaks()
        except Exception:  # a broken table: `resolve` says so
            return


def look_up(sighting: Sighting, prober: str, database: Database | None) -> None:
    """Have chipdb look a device up as a prober reports it: `resolve` gets the answer from memory.

    A name that no chip has in that form takes as long as all else that is resolved.
    """
    if database is None or sighting["kind"] not in ACCELERATORS:
        return
    from probe_core.resolve import accelerators

    device: Any = {**sighting, "sources": {"name": prober}}
    try:
        accelerators.chip_of(device, database)
    except Exception:  # a broken table: `resolve` says so
        return


def resolve(
    devices: Sequence[DeviceDoc],
    database: Database | None,
    hook: ResolveHook | None = None,
    load: Load = bool,
) -> list[FindingDoc]:
    """Add `chip`, `arch`, `peaks`, `bandwidth` and the shorthands to each device, in place.

    `hook` is the host's own: it returns a chip's id, or None to leave the question to chipdb.
    `load` is called with the part of `gate` that reads the brand of an unknown processor.
    """
    memo: PeaksMemo = {}  # equal devices have equal peaks
    findings: list[FindingDoc] = []
    # Parts of a device come after all whole ones, because they take their share of its peaks.
    for device in sorted(devices, key=lambda device: device.get("parent") is not None):
        try:
            findings += _resolve_device(device, devices, database, hook, memo, load)
        except Exception as error:  # a broken chip table must not cost the node its start
            findings.append(_failure(device, error))
        add_shorthands(device)
        explain_nulls(device)
    findings = _once_per_node(findings)
    if database is not None:
        findings += _problems(database)
    return findings


def _once_per_node(findings: list[FindingDoc]) -> list[FindingDoc]:
    """Report one conflict of eight equal GPUs once: the first device's, with the number of them."""
    kept: list[FindingDoc] = []
    conflicts: dict[str, list[FindingDoc]] = {}
    for found in findings:
        if found["code"] == "chip-conflict":
            conflicts.setdefault(found["why"], []).append(found)
            if len(conflicts[found["why"]]) > 1:
                continue
        kept.append(found)
    for first, *others in conflicts.values():
        if others:
            first["what"] += f" ({len(others) + 1} devices, the same for each)"
    return kept


def _resolve_device(
    device: DeviceDoc,
    devices: Sequence[DeviceDoc],
    database: Database | None,
    hook: ResolveHook | None,
    memo: PeaksMemo,
    load: Load,
) -> list[FindingDoc]:
    device.setdefault("peaks", [])
    device.setdefault("bandwidth", None)
    device["chip"] = {"id": None, "by": None, "confidence": None, "candidates": []}
    if device["kind"] == "display":
        device["unknown"]["chip"] = DISPLAY
        return []
    if database is None:
        device["unknown"]["chip"] = device["unknown"]["peaks"] = _NO_CHIPDB
        if device.get("allowed"):
            from probe_core.resolve.processors import count_allowed

            count_allowed(device, ())
        return []
    if device["kind"] == "cpu":
        from probe_core.resolve import processors

        processors.resolve(device, database, load)
        return []
    from probe_core.resolve import accelerators

    if device["kind"] == "coprocessor" and not accelerators.is_known(device, database):
        return []
    parent = None
    if device.get("parent") is not None:
        parent = next((d for d in devices if d["id"] == device["parent"]), None)
    return accelerators.resolve(device, parent, database, hook, memo)


def _failure(device: DeviceDoc, error: Exception) -> FindingDoc:
    text = f"{type(error).__name__}: {error}"
    return finding(
        "chipdb-problem",
        f"the chip of {device['id']} could not be resolved",
        text,
        "report this, with the chipdb version",
        device=device["id"],
        evidence=text,
    )


def _problems(database: Database) -> list[FindingDoc]:
    return [
        finding(
            "chipdb-problem",
            "a chip file was left out, wholly or in part",
            clean_text(problem, MAX_PROBLEM),
            "correct it; `python -m probe_chipdb check FILE` lists all that is wrong",
            evidence=clean_text(problem, MAX_PROBLEM),
        )
        for problem in database.problems
    ]


# A value has its source, and a null its reason, field by field.

EXPLAINED = {
    "name": "no prober names it, and its chip is not certain",
    "vendor": "no prober reports who makes it",
    "arch": "its chip is not certain",
    "units": "no prober counted them, and chipdb has no count",
    "bandwidth": "no prober reports it, and chipdb has none of its chip",
}
"""Fields that have a reason in `unknown` whenever they are null, and the reason of last resort."""

DISPLAY = "a display adapter that cannot compute"


def explain_nulls(device: DeviceDoc) -> None:
    """Add the reason for each field of `EXPLAINED` that is unknown and has none yet, in place."""
    display = device["kind"] == "display"
    for field, reason in EXPLAINED.items():
        if device.get(field) is None:
            device["unknown"].setdefault(field, DISPLAY if display else reason)


def fill_text(device: DeviceDoc, field: TextField, value: str | None) -> None:
    """Set a field to what chipdb has, where no prober reported it."""
    if value and not device.get(field):
        device[field] = value
        from_chipdb(device, field)


def fill_count(device: DeviceDoc, field: CountField, value: int | None) -> None:
    """Set a count to what chipdb has, where no prober reported it."""
    if value is not None and device.get(field) is None:
        device[field] = value
        from_chipdb(device, field)


def from_chipdb(device: DeviceDoc, field: str) -> None:
    """Note that the value of a field comes from chipdb."""
    device["sources"][field] = "chipdb"
    device["unknown"].pop(field, None)


# `fp32`, `fp16` and `int8` of a device, by one declared convention.
#
# All dense, at the device's own clock label (boost for known chips). `fp32` is the vector path.
# `fp16` is the fastest path that accumulates in fp32; a chip without one gives its fp16 vector
# path.
# `int8` is the fastest path.

SHORTHANDS: tuple[Shorthand, ...] = ("fp32", "fp16", "int8")


def add_shorthands(device: DeviceDoc) -> None:
    """Set those of the three numbers (TFLOPS, TOPS) that are missing, or the reason in `unknown`.

    A device has them already where an equal one before it had the same peaks.
    """
    peaks = device.get("peaks") or []
    for name in SHORTHANDS:
        if device.get(name) is None:
            device[name] = shorthand(name, peaks)
        if device[name] is None:
            device["unknown"].setdefault(name, _missing(name, device))


def shorthand(name: str, peaks: Iterable[PeakDoc]) -> float | None:
    """Return one of `SHORTHANDS` from a device's peaks; None when no peak fits the convention."""
    dense = [p for p in peaks if p["dtype"] == name and p["sparsity"] == "dense"]
    return max((peak["tflops"] for peak in _fitting(name, dense)), default=None)


def _fitting(name: str, dense: list[PeakDoc]) -> list[PeakDoc]:
    vector = [peak for peak in dense if peak["path"] == "vector"]
    if name == "fp32":
        # A variant is a way to issue the same path: RDNA 3 counts dual issue in its own.
        return [peak for peak in vector if "variant" not in peak]
    if name == "fp16":
        return [peak for peak in dense if peak["accumulate"] == "fp32"] or vector
    return dense


def _missing(name: Shorthand, device: DeviceDoc) -> str:
    if device.get("peaks"):
        return f"no dense {name} path of this chip is known"
    return device["unknown"].get("peaks", "its peaks are unknown")
