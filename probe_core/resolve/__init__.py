"""Name each device's chip, and give its peaks: every number with a source, or None and a reason."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.resolve.reasons import DISPLAY, explain_nulls
from probe_core.resolve.shorthands import add_shorthands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from probe_chipdb import Database
    from probe_core.model.document import DeviceDoc, FindingDoc

    ResolveHook = Callable[[DeviceDoc], str | None]

__all__ = ["open_chipdb", "resolve"]

_NO_CHIPDB = "chipdb is not installed"


def open_chipdb(extra: Iterable[str]) -> tuple[Database | None, list[FindingDoc]]:
    """Return the chip database with the site's files, or None and the finding that says why.

    The core works without chipdb, with an older one and with a newer minor: whatever it raises
    becomes a finding.
    """
    try:
        import probe_chipdb

        return probe_chipdb.load(extra=extra, accept=_untrusted), []
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        reason = _NO_CHIPDB if isinstance(error, ImportError) else text
        fix = "install probe-chipdb, so that chips get names, FLOPS and bandwidth"
        missing = finding("chipdb-missing", "chips cannot be named", reason, fix, evidence=text)
        return None, [missing]


def _untrusted(path: str) -> str | None:
    """Return why a vendor's chip file must not be read; called only where a package has one."""
    from probe_core.machine.trust import untrusted

    return untrusted([path])


def resolve(
    devices: Sequence[DeviceDoc], database: Database | None, hook: ResolveHook | None = None
) -> list[FindingDoc]:
    """Add `chip`, `arch`, `peaks`, `bandwidth` and the shorthands to each device, in place.

    `hook` is the host's own: it returns a chip's id, or None to leave the question to chipdb.
    """
    findings: list[FindingDoc] = []
    # Parts of a device come after all whole ones, because they take their share of its peaks.
    for device in sorted(devices, key=lambda device: device.get("parent") is not None):
        try:
            findings += _resolve_device(device, devices, database, hook)
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
) -> list[FindingDoc]:
    device.setdefault("peaks", [])
    device.setdefault("bandwidth", None)
    device["chip"] = {"id": None, "by": None, "confidence": None, "candidates": []}
    if device["kind"] == "display":
        device["unknown"]["chip"] = DISPLAY
        return []
    if database is None:
        device["unknown"]["chip"] = device["unknown"]["peaks"] = _NO_CHIPDB
        return []
    if device["kind"] == "cpu":
        from probe_core.resolve import processors

        processors.resolve(device, database)
        return []
    from probe_core.resolve import accelerators

    parent = next((d for d in devices if d["id"] == device.get("parent")), None)
    return accelerators.resolve(device, parent, database, hook)


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
            problem,
            "correct it; `python -m probe_chipdb check FILE` lists all that is wrong",
            evidence=problem,
        )
        for problem in database.problems
    ]
