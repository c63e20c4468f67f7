"""What probe-core knows of a node, in the forms that schedulers and monitors read.

`export` returns one format's text of a report's document; `formats` names them, those of other
distributions too. Nothing is probed and nothing written.
"""

from __future__ import annotations

from probe_core.commands import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import ReportDoc
    from probe_export.installed import Rules

__all__ = ["ExportError", "export", "formats"]


class ExportError(CommandError):
    """An export that cannot be made: whose fault it is, why, and the next step in one sentence.

    `status` is the exit status of the command: 1 for a broken format, 2 for a wrong option.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message, status)


def formats() -> dict[str, str]:
    """Return the installed formats that can be used: name to a summary in one line."""
    from probe_export.installed import installed_formats

    usable, _ = installed_formats(_rules())
    return {name: entry.summary for name, entry in usable.items() if entry.problem is None}


def export(name: str, report: ReportDoc) -> str:
    """Return the text of a report's document in the format `name`.

    Raises `KeyError` where there is no such format, and `ExportError` where it is broken.
    """
    from probe_export.installed import installed_formats, load

    usable, _ = installed_formats(_rules(), name)
    if name not in usable:
        raise KeyError(name)
    return load(name, usable)(report)


def _rules() -> Rules:
    import os

    from probe_core.commands import plugin_rules

    return plugin_rules({}, os.environ)
