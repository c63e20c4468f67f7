"""Give a recorded report instead of probing: for hosts that may not run anything at start-up."""

from __future__ import annotations

from probe_core.machine.files import read_head
from probe_core.model.complete import complete
from probe_core.model.findings import SEVERITIES, finding
from probe_core.model.kinds import KINDS
from probe_core.model.report import FALLBACKS, REPORT
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.model.document import FindingDoc, ReportDoc

__all__ = ["complete_report", "load_static", "parse_document", "read_document", "read_text"]

FILE_LIMIT = 4 << 20
"""Bytes of a report file: for 64 GPUs of 8 kB each, as the recorded H100s take, eight times.

The worst takes half a second."""

TEXT_LIMIT = 4096
"""Characters of one text: a finding's longest sentence is 600, a chip's sources a few hundred."""


def load_static(path: str) -> tuple[ReportDoc | None, list[FindingDoc]]:
    """Return (the report's document, nothing), or (None, a finding that says why not)."""
    from probe_core.pipeline.settings import read_named

    try:
        return parse_document(read_named(path, FILE_LIMIT)), []
    except RecursionError:
        return None, [_unusable(path, "it is nested too deep")]
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return None, [_unusable(path, clean_text(reason, 400))]


def _unusable(path: str, reason: str) -> FindingDoc:
    return finding(
        "static-unusable",
        clean_text(f"the static report {path} cannot be used, so no plugin ran", 600),
        reason,
        "give a file that `probe --json` wrote",
        severity="error",
        setting="static",
        evidence=clean_text(path, 600),
    )


def read_document(path: str) -> ReportDoc:
    """Return the document in a report file; raises `OSError` or `ValueError` with the reason."""
    return parse_document(read_text(path))


def read_text(path: str, limit: int = FILE_LIMIT) -> bytes:
    """Return a report file's bytes; raises `OSError`, or `ValueError` for one that is too long."""
    return _bounded(read_head(path, limit), limit)


def parse_document(raw: bytes) -> ReportDoc:
    """Return the document in a report's text; raises `ValueError` with the reason."""
    import json

    _bounded(raw)
    try:
        document = _safe(json.loads(raw, parse_constant=_no_number))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError("not a report (it is no JSON document)") from None
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise ValueError("it is no report of schema 1")
    whole = complete_report(document)
    if not whole["devices"]:
        raise ValueError("it has no devices")
    return whole


def _bounded(raw: bytes, limit: int = FILE_LIMIT) -> bytes:
    if len(raw) > limit:
        raise ValueError(f"longer than {limit >> 20} MiB")
    return raw


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


def complete_report(document: dict[str, Any]) -> ReportDoc:
    """Fill in what the report leaves out; raise `ValueError` for what its readers cannot use."""
    complete(document, REPORT)
    for device in document["devices"]:
        if device["kind"] not in KINDS:
            raise ValueError(f"a device's kind is none of {', '.join(KINDS)}")
        device["ids"] = device["ids"] or [device["id"]]
    if document["fallback"] not in (None, *FALLBACKS):
        raise ValueError("its fallback is neither null, no-accelerator nor degraded")
    if any(entry["severity"] not in SEVERITIES for entry in document["findings"]):
        raise ValueError(f"a finding's severity is none of {', '.join(SEVERITIES)}")
    return document  # type: ignore[return-value]
