"""Where a host's report comes in: checked and completed here once, typed from here on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.model.document import ReportDoc

__all__ = ["document_of", "report_document"]


def document_of(report: object) -> Mapping[str, Any]:
    """Return a `Report` as plain data, or the document itself, unchecked.

    Raises `TypeError` for anything else.
    """
    if hasattr(report, "to_json"):
        document: Mapping[str, Any] = report.to_json()
        return document
    if not hasattr(report, "get"):
        raise TypeError(f"it needs a report or its document, not {type(report).__name__}")
    return report  # type: ignore[return-value]


def report_document(report: object) -> ReportDoc:
    """Return the document of a `Report`, or a checked copy of a document, with no key missing.

    Raises `TypeError` for anything else, and `ValueError` for a document that is no report: with
    a value of the wrong type, or a device that lacks its id or kind. What else is missing counts
    as not known, as in a static report.
    """
    from probe_core.pipeline.static import complete_report

    try:
        return complete_report(_copy(document_of(report)))
    except ValueError as error:
        raise ValueError(f"the report cannot be used: {error}") from None


def _copy(value: Any) -> Any:
    """Return plain data of its own: the host's report is not to be filled in."""
    if hasattr(value, "items"):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(item) for item in value]
    return value
