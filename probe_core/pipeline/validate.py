"""Believe nothing a prober says before it was checked, field by field.

A bad value becomes unknown, with the reason, and the device stays: one wrong number must not hide
a GPU. Only a device without a usable id is refused.
"""

from __future__ import annotations

from probe_core.model.fields import (
    FIELDS,
    KINDS,
    MAX_IDS,
    MAX_MEMORY,
    MIB,
    Rejected,
    reason_of,
    shown,
)
from probe_core.unencodable import INVALID
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.model.document import FindingDoc

__all__ = [
    "FIELDS",
    "KINDS",
    "MAX_IDS",
    "MAX_MEMORY",
    "MIB",
    "Rejected",
    "check_finding",
    "check_sighting",
]


def check_sighting(raw: object) -> tuple[dict[str, Any] | None, list[str]]:
    """Return (sighting with checked fields, sentences about rejected values).

    The sighting is None when it has no id, or no known kind, to be merged by.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        text = reason_of(raw) if isinstance(raw, dict) else type(raw).__name__
        return None, [f"a device must be a mapping, found {clean_text(text)}"]
    problems: list[str] = []
    sighting: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for key, value in _with_shorthands(raw).items():
        if value is None or key == "unknown":
            continue
        _take(sighting, unknown, problems, key, value)
    unknown.update(_unknown(raw.get("unknown")))
    if not sighting.get("ids") or "kind" not in sighting:
        missing = "ids" if not sighting.get("ids") else "kind"
        problems.append(f"a device has no usable {missing!r}, so it was left out")
        return None, problems
    sighting["unknown"] = unknown
    return sighting, problems


def _with_shorthands(raw: dict[str, Any]) -> dict[str, Any]:
    if "memory_bytes" not in raw:
        return raw
    memory = raw.get("memory")
    memory = dict(memory) if isinstance(memory, dict) else {}
    memory.setdefault("total", raw["memory_bytes"])
    return {k: v for k, v in raw.items() if k != "memory_bytes"} | {"memory": memory}


def _take(
    sighting: dict[str, Any],
    unknown: dict[str, str],
    problems: list[str],
    key: str,
    value: Any,
) -> None:
    check = FIELDS.get(key)
    if check is None:
        problems.append(f"the field {clean_text(key, 60)!r} is not one of a device's")
        return
    if isinstance(check, dict):
        _take_table(sighting, unknown, problems, key, value)
        return
    try:
        sighting[key] = check(value)
    except Rejected as error:
        unknown[key] = str(error)
        problems.append(f"{key}: {error}")


def _take_table(
    sighting: dict[str, Any],
    unknown: dict[str, str],
    problems: list[str],
    key: str,
    value: Any,
) -> None:
    """Check a table of named values; each is kept or rejected on its own."""
    if not isinstance(value, dict) or INVALID in value:
        unknown[key] = f"expected a table, found {shown(value)}"
        problems.append(f"{key}: {unknown[key]}")
        return
    table: dict[str, Any] = {}
    checks = FIELDS[key]
    for name, item in list(value.items())[:MAX_IDS]:
        path = f"{key}.{clean_text(name, 40)}"
        check = checks.get(name, checks.get("*"))
        try:
            if check is None:
                raise Rejected("is not a field of it")
            if item is not None:
                table[clean_text(name, 40)] = check(item)
        except Rejected as error:
            unknown[path] = str(error)
            problems.append(f"{path}: {error}")
    if table:
        sighting[key] = table


def _unknown(raw: object) -> dict[str, str]:
    if not isinstance(raw, dict):
        return {}
    items = list(raw.items())[:MAX_IDS]
    return {clean_text(k, 80): clean_text(v, 400) for k, v in items if isinstance(v, str)}


def check_finding(raw: object, prober: str | None = None) -> FindingDoc | None:
    """Return a prober's finding with safe text, or None when it says too little.

    `prober` is who reported it: a prober cannot speak in another's name.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        return None
    if not all(isinstance(raw.get(key), str) and raw[key] for key in _SENTENCES):
        return None
    severity = raw.get("severity")
    device = raw.get("device")
    return {
        "code": clean_text(raw["code"], 60),
        "severity": severity if severity in ("info", "warning", "error") else "warning",
        "what": clean_text(raw["what"], 600),
        "why": clean_text(raw["why"], 600),
        "fix": clean_text(raw["fix"], 600),
        "device": clean_text(device) if isinstance(device, str) else None,
        "prober": prober,
        "setting": None,
        "variable": _fact(raw, "variable"),
        "step": _fact(raw, "step"),
        "evidence": _fact(raw, "evidence", 600),
    }


_SENTENCES = ("code", "what", "why", "fix")


def _fact(raw: dict[str, Any], name: str, limit: int = 80) -> str | None:
    value = raw.get(name)
    return clean_text(value, limit) if isinstance(value, str) and value else None
