"""Give a recorded report instead of probing: for hosts that may not run anything at start-up."""

from __future__ import annotations

import os

from probe_core.findings import SEVERITIES, finding
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.findings import Finding

__all__ = ["load_static", "read_document"]

FILE_LIMIT = 16 << 20
TEXT_LIMIT = 4096


def load_static(path: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return (the report's document, nothing), or (None, a finding that says why not)."""
    from probe_core.registry.trust import untrusted

    try:
        reason = untrusted([path]) if os.path.exists(path) else None
        if reason:
            raise ValueError(reason)
        return read_document(path), []
    except (OSError, ValueError, RecursionError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        what = f"the static report {path} cannot be used, so the node was probed"
        fix = "give a file that `probe --json` wrote"
        why = clean_text(why, 400) or "nested too deep"
        return None, [finding("static-unusable", clean_text(what, 600), why, fix)]


def read_document(path: str) -> dict[str, Any]:
    """Return the document in a report file; raises `OSError` or `ValueError` with the reason."""
    import json

    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:
        raw = file.read(FILE_LIMIT + 1)
    if len(raw) > FILE_LIMIT:
        raise ValueError(f"longer than {FILE_LIMIT >> 20} MiB")
    document = _safe(json.loads(raw, parse_constant=_no_number))
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise ValueError("it is no report of schema 1")
    _check(document)
    return document


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _safe(value: Any) -> Any:
    """Return foreign data with text that may be shown on a terminal."""
    if isinstance(value, str):
        return clean_text(value, TEXT_LIMIT)
    if isinstance(value, list):
        return [_safe(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): _safe(item) for key, item in value.items()}
    return value


_TEXT, _NUMBER = (str, type(None)), (int, float, type(None))
# What readers rely on, by part: every report of schema 1 has these fields, of these types.
_REPORT: dict[str, Any] = {
    "node": dict,
    "devices": list,
    "outcomes": list,
    "decisions": list,
    "findings": list,
    "timings_ms": dict,
    "primary": _TEXT,
    "fallback": _TEXT,
}
_NODE: dict[str, Any] = {"memory": dict, **dict.fromkeys(("os", "kernel", "arch", "model"), _TEXT)}
_NODE_MEMORY = dict.fromkeys(("total", "available", "limit"), _NUMBER)
_DEVICE: dict[str, Any] = {
    **dict.fromkeys(("id", "kind"), str),
    **dict.fromkeys(("name", "vendor", "parent", "power_state"), _TEXT),
    **dict.fromkeys(("fp32", "fp16", "int8", "bandwidth", "units"), _NUMBER),
    **dict.fromkeys(("ids", "peaks", "backends", "links", "seen_by"), list),
    **dict.fromkeys(("chip", "memory", "visibility", "unknown", "sources", "others"), dict),
}
_MEMORY = {"kind": _TEXT, **dict.fromkeys(("total", "free", "usable"), _NUMBER)}
_CHIP = {"id": _TEXT, "by": _TEXT, "confidence": _TEXT, "candidates": list}
_PEAK = {
    **dict.fromkeys(("dtype", "path", "accumulate", "sparsity", "clock", "source"), str),
    "tflops": (int, float),
}
_ROWS: dict[str, dict[str, Any]] = {
    "outcomes": {"prober": str, "distribution": str, "status": str, "reason": _TEXT}
    | {"partial": bool, "devices": int, "elapsed_ms": (int, float)},
    "decisions": {"prober": str, "distribution": str, "selected": bool, "reason": _TEXT},
    "findings": dict.fromkeys(("code", "severity", "what", "why", "fix"), str),
}


def _check(document: dict[str, Any]) -> None:
    """Raise `ValueError` where the document is not what its readers rely on."""
    _fields("the report", document, _REPORT)
    _fields("its node", document["node"], _NODE)
    _fields("its node's memory", document["node"]["memory"], _NODE_MEMORY)
    if not document["devices"]:
        raise ValueError("it has no devices")
    for device in document["devices"]:
        _fields("a device", device, _DEVICE)
        _fields("a device's memory", device["memory"], _MEMORY)
        _fields("a device's chip", device["chip"], _CHIP)
        for peak in device["peaks"]:
            _fields("a peak", peak, _PEAK)
    for part, fields in _ROWS.items():
        for row in document[part]:
            _fields(f"one of its {part}", row, fields)
    if any(one["severity"] not in SEVERITIES for one in document["findings"]):
        raise ValueError(f"a finding's severity is none of {', '.join(SEVERITIES)}")


def _fields(what: str, table: Any, fields: dict[str, Any]) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{what} is not a table")
    for name, types in fields.items():
        if name not in table:
            raise ValueError(f"{what} has no {name!r}")
        if not isinstance(table[name], types):
            raise ValueError(f"{what} has a {name!r} of the wrong type")
