"""Give a recorded report instead of probing: for hosts that may not run anything at start-up."""

from __future__ import annotations

import os

from probe_core.config import unblocking
from probe_core.findings import SEVERITIES, finding
from probe_core.sightings import KINDS
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

    with open(path, "rb", opener=unblocking) as file:
        raw = file.read(FILE_LIMIT + 1)
    if len(raw) > FILE_LIMIT:
        raise ValueError(f"longer than {FILE_LIMIT >> 20} MiB")
    document = _safe(json.loads(raw, parse_constant=_no_number))
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise ValueError("it is no report of schema 1")
    _complete(document)
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
# What readers rely on, by part: field, its types, and what stands for it where a report that was
# written by hand, or by an older core, leaves it out.
_MEMORY: dict[str, Any] = {
    "kind": (_TEXT, None),
    **dict.fromkeys(("total", "free", "usable"), (_NUMBER, None)),
    "parts": (dict, {}),
}
_PARTS: dict[str, dict[str, Any]] = {
    "the report": {
        **dict.fromkeys(("node", "timings_ms"), (dict, {})),
        **dict.fromkeys(("outcomes", "decisions", "findings"), (list, [])),
        **dict.fromkeys(("primary", "fallback", "chipdb"), (_TEXT, None)),
        "probe_core": (str, ""),
    },
    "its node": {
        "memory": (dict, {}),
        **dict.fromkeys(("os", "kernel", "arch", "model"), (_TEXT, None)),
    },
    "its node's memory": dict.fromkeys(("total", "available", "limit"), (_NUMBER, None)),
    "a device": {
        **dict.fromkeys(("name", "vendor", "parent", "power_state", "arch"), (_TEXT, None)),
        **dict.fromkeys(("fp32", "fp16", "int8", "bandwidth", "units"), (_NUMBER, None)),
        **dict.fromkeys(("ids", "peaks", "backends", "links", "seen_by"), (list, [])),
        **dict.fromkeys(("chip", "memory", "unknown", "sources", "others"), (dict, {})),
        "visibility": (dict, {}),
    },
    "a device's memory": _MEMORY,
    "a device's chip": {
        **dict.fromkeys(("id", "by", "confidence"), (_TEXT, None)),
        "candidates": (list, []),
    },
    "a peak": {
        **dict.fromkeys(("dtype", "path", "accumulate", "sparsity", "clock", "source"), (str, "")),
        "confidence": (str, ""),
    },
    "one of its outcomes": {
        **dict.fromkeys(("prober", "distribution", "status"), (str, "")),
        "reason": (_TEXT, None),
        "partial": (bool, False),
        "devices": (int, 0),
        "elapsed_ms": ((int, float), 0.0),
    },
    "one of its decisions": {
        **dict.fromkeys(("prober", "distribution"), (str, "")),
        "selected": (bool, False),
        "reason": (_TEXT, None),
    },
    "one of its findings": {
        **dict.fromkeys(("code", "what", "why", "fix"), (str, "")),
        "severity": (str, "info"),
        "device": (_TEXT, None),
    },
}


def _complete(document: dict[str, Any]) -> None:
    """Fill in what the report leaves out; raise `ValueError` for what its readers cannot use."""
    _fill("the report", document)
    _fill("its node", document["node"])
    _fill("its node's memory", document["node"]["memory"])
    devices = document.get("devices")
    if not isinstance(devices, list) or not devices:
        raise ValueError("it has no devices")
    for device in devices:
        _complete_device(device)
    for part in ("outcomes", "decisions", "findings"):
        for row in document[part]:
            _fill(f"one of its {part}", row)
    if any(one["severity"] not in SEVERITIES for one in document["findings"]):
        raise ValueError(f"a finding's severity is none of {', '.join(SEVERITIES)}")


def _complete_device(device: Any) -> None:
    _fill("a device", device)
    for name in ("id", "kind"):
        if not isinstance(device.get(name), str):
            raise ValueError(f"a device has no {name!r} that is text")
    if device["kind"] not in KINDS:
        raise ValueError(f"a device's kind is none of {', '.join(KINDS)}")
    device["ids"] = device["ids"] or [device["id"]]
    _fill("a device's memory", device["memory"])
    _fill("a device's chip", device["chip"])
    for peak in device["peaks"]:
        _fill("a peak", peak)
        if not isinstance(peak.get("tflops"), (int, float)):
            raise ValueError("a peak has no 'tflops' that is a number")


def _fill(what: str, table: Any) -> None:
    """Give every field of a part its stand-in where it is missing or null."""
    if not isinstance(table, dict):
        raise ValueError(f"{what} is not a table")
    for name, (types, default) in _PARTS[what].items():
        if table.get(name) is None:
            table[name] = type(default)(default) if isinstance(default, (dict, list)) else default
        elif not isinstance(table[name], types):
            raise ValueError(f"{what} has a {name!r} of the wrong type")
