"""Keep what a command measured: read by every probe of this user on this node from then on."""

from __future__ import annotations

import os

from probe_core.config import MEASURED, state_base, state_file
from probe_core.measured.store import FILE_LIMIT, empty, parsed, text, with_figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.measured.store import Stored
    from probe_core.model.document import MeasuredDoc, ReportDoc

__all__ = ["save_measured"]


def save_measured(
    environ: Mapping[str, str], report: ReportDoc, figures: Mapping[str, Sequence[MeasuredDoc]]
) -> str:
    """Keep the figures of devices of a report, by their ids; return the path of the file.

    Each replaces the older one of its kind. Raises `OSError`, and `ValueError` with the reason for
    a file of another version, or without a place; then what was there stays.
    """
    path = state_file(environ, MEASURED)
    if path is None:
        raise ValueError("neither XDG_STATE_HOME nor HOME names a folder")
    content, node = _before(path), report["node"].get("id")
    for device in report["devices"]:
        if figures.get(device["id"]):
            own = map(_without_fractions, figures[device["id"]])
            content = with_figures(content, node, device, own)
    from probe_core.machine.files import make_own_folder, replace_file

    make_own_folder(os.path.dirname(path), state_base(environ)[0])
    replace_file(path, text(content), mode=0o600)
    return path


def _without_fractions(figure: MeasuredDoc) -> MeasuredDoc:
    """Return a figure without what a probe computes anew: fractions follow the derived peak."""
    result = figure.copy()
    for name in ("fraction", "fraction_at_clock"):
        result.pop(name, None)  # type: ignore[misc]  # neither is required
    return result


def _before(path: str) -> Stored:
    from probe_core.pipeline.settings import is_file, read_named

    if not is_file(path):
        return empty()
    try:
        return parsed(read_named(path, FILE_LIMIT))
    except ValueError as error:
        raise ValueError(f"{path}: {error}; remove it") from None
