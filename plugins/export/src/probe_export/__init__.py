"""What probe-core knows of a node, in the forms that schedulers and monitors read.

`export` returns one format's text of a report's document; `formats` names them. Standard library
only, nothing is probed and nothing written.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import ReportDoc

__all__ = ["export", "formats"]


def formats() -> dict[str, str]:
    """Return the formats: name to a summary in one line."""
    from probe_export.table import FORMATS

    return {name: summary for name, (_, _, summary) in FORMATS.items()}


def export(name: str, report: ReportDoc) -> str:
    """Return the text of a report's document in the format `name`; raises `KeyError` for others."""
    from probe_export.table import exporter

    return exporter(name)(report)
