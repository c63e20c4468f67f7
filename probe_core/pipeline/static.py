"""Give a recorded report instead of probing: for hosts that may not run anything at start-up."""

from __future__ import annotations

from probe_core.jsontext import parse_bounded
from probe_core.machine import read_head
from probe_core.model.complete import complete
from probe_core.model.findings import finding
from probe_core.model.ids import KINDS, SEVERITIES
from probe_core.model.report import FALLBACKS, REPORT
from probe_core.wording import TEXT_LIMIT as NAME_LIMIT
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
    from probe_core.pipeline.file_reading import read_named

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
    _bounded(raw)
    try:
        document = parse_bounded(raw)
    except ValueError as error:
        if type(error) is ValueError:  # about a number, which it names
            raise
        raise ValueError("not a report (it is no JSON document)") from None
    if not _is_clean(raw):
        _clean([document], set())
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


def _is_clean(raw: bytes) -> bool:
    """Return whether `_clean` would change nothing, where the JSON itself shows it, as most does.

    JSON has control characters only as escapes, DEL left out; in UTF-16 and UTF-32 it has zeros.
    """
    if not raw.isascii() or any(byte in raw for byte in (b"\\", b"\x7f", b"\0")):
        return False
    at = 0
    while at + NAME_LIMIT < len(raw):  # no text is longer than what lies between two quotes
        at = raw.rfind(b'"', at, at + NAME_LIMIT + 1) + 1
        if not at:
            return False
    return True


def _clean(part: Any, names: set[str]) -> None:
    """Give the text of a foreign table or list, in place, what may be shown on a terminal.

    `names` gets those that are clean: eight devices of one kind have most names eight times.
    """
    for name, item in part.items() if isinstance(part, dict) else enumerate(part):
        kind = type(item)  # JSON has these types and no others
        if kind is str:
            # What `clean_text` leaves as it is, nearly all texts, is worth no call.
            if len(item) > TEXT_LIMIT or not (item.isascii() and item.isprintable()):
                part[name] = clean_text(item, TEXT_LIMIT)
        elif kind is dict or kind is list:
            _clean(item, names)
    if isinstance(part, dict) and not names.issuperset(part):
        items = [(clean_text(name, NAME_LIMIT), item) for name, item in part.items()]
        part.clear()
        part.update(items)
        names.update(part)


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
