"""Give a recorded report instead of probing: for hosts that may not run anything at start-up."""

from __future__ import annotations

import os

from probe_core.machine.files import nonblocking
from probe_core.model.findings import SEVERITIES, finding
from probe_core.pipeline.static_parts import fill
from probe_core.pipeline.validate import KINDS
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.model.document import FindingDoc

__all__ = ["complete", "load_static", "read_document"]

FILE_LIMIT = 16 << 20
TEXT_LIMIT = 4096
FALLBACKS = (None, "no-accelerator", "degraded")


def load_static(path: str) -> tuple[dict[str, Any] | None, list[FindingDoc]]:
    """Return (the report's document, nothing), or (None, a finding that says why not)."""
    from probe_core.machine.trust import untrusted

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

    with open(path, "rb", opener=nonblocking) as file:
        raw = file.read(FILE_LIMIT + 1)
    if len(raw) > FILE_LIMIT:
        raise ValueError(f"longer than {FILE_LIMIT >> 20} MiB")
    document = _safe(json.loads(raw, parse_constant=_no_number))
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise ValueError("it is no report of schema 1")
    complete(document)
    if not document["devices"]:
        raise ValueError("it has no devices")
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
    if isinstance(value, (int, float)) and not abs(value) < 1 << 63:
        raise ValueError("it has a number beyond 64 bits")
    return value


def complete(document: dict[str, Any]) -> None:
    """Fill in what the report leaves out; raise `ValueError` for what its readers cannot use."""
    fill("the report", document)
    fill("its node", document["node"])
    fill("its node's memory", document["node"]["memory"])
    devices = document.get("devices")
    if not isinstance(devices, list):
        raise ValueError("it has no devices")
    for device in devices:
        _complete_device(device)
    for part in ("outcomes", "decisions", "findings"):
        for row in document[part]:
            fill(f"one of its {part}", row)
    if document["fallback"] not in FALLBACKS:
        raise ValueError("its fallback is neither null, no-accelerator nor degraded")
    if any(one["severity"] not in SEVERITIES for one in document["findings"]):
        raise ValueError(f"a finding's severity is none of {', '.join(SEVERITIES)}")


def _complete_device(device: Any) -> None:
    fill("a device", device)
    for name in ("id", "kind"):
        if not isinstance(device.get(name), str):
            raise ValueError(f"a device has no {name!r} that is text")
    if device["kind"] not in KINDS:
        raise ValueError(f"a device's kind is none of {', '.join(KINDS)}")
    device["ids"] = device["ids"] or [device["id"]]
    fill("a device's memory", device["memory"])
    fill("a device's chip", device["chip"])
    for link in device["links"]:
        fill("a link", link)
    for view in device["visibility"].values():
        fill("what a consumer sees", view)
    for peak in device["peaks"]:
        fill("a peak", peak)
        if not isinstance(peak.get("tflops"), (int, float)):
            raise ValueError("a peak has no 'tflops' that is a number")
