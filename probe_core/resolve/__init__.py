"""Name each device's chip, and give its peaks: every number with a source, or None and a reason."""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.resolve.reasons import explain_nulls
from probe_core.resolve.shorthands import add_shorthands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from probe_chipdb import Database
    from probe_core.model.document import FindingDoc

    ResolveHook = Callable[[dict[str, Any]], str | None]

__all__ = ["open_chipdb", "resolve"]

_NO_CHIPDB = "chipdb is not installed"


def open_chipdb(extra: Iterable[str]) -> tuple[Database | None, list[FindingDoc]]:
    """Return the chip database with the site's files, or None and why.

    The core works without chipdb, with an older one and with a newer minor: whatever it raises
    becomes a finding.
    """
    try:
        import probe_chipdb
        from probe_core.machine.trust import untrusted

        return probe_chipdb.load(extra=extra, accept=lambda path: untrusted([path])), []
    except Exception as error:
        why = _NO_CHIPDB if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        fix = "install probe-chipdb, so that chips get names, FLOPS and bandwidth"
        return None, [finding("chipdb-missing", "chips cannot be named", why, fix)]


def resolve(
    devices: list[dict[str, Any]], database: Database | None, hook: ResolveHook | None = None
) -> list[FindingDoc]:
    """Add `chip`, `arch`, `peaks`, `bandwidth` and the shorthands to each device, in place."""
    findings: list[FindingDoc] = []
    for device in sorted(devices, key=lambda one: one.get("parent") is not None):
        try:
            findings += _resolve_one(device, devices, database, hook)
        except Exception as error:  # a broken chip table must not cost the node its start
            why = f"{type(error).__name__}: {error}"
            fix = "report this, with the chipdb version"
            what = f"the chip of {device['id']} could not be resolved"
            findings.append(finding("chipdb-problem", what, why, fix, device=device["id"]))
        add_shorthands(device)
        explain_nulls(device)
    if database is not None:
        findings += _problems(database)
    return findings


def _resolve_one(
    device: dict[str, Any],
    devices: list[dict[str, Any]],
    database: Database | None,
    hook: ResolveHook | None,
) -> list[FindingDoc]:
    device.setdefault("peaks", [])
    device.setdefault("bandwidth", None)
    device["chip"] = {"id": None, "by": None, "confidence": None, "candidates": []}
    if device["kind"] == "display":
        device["unknown"]["chip"] = "a display adapter that cannot compute"
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


def _problems(database: Database) -> list[FindingDoc]:
    return [
        finding(
            "chipdb-problem",
            "a chip file was left out, wholly or in part",
            problem,
            "correct it; `python -m probe_chipdb check FILE` tells all that is wrong",
        )
        for problem in database.problems
    ]
