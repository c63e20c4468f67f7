"""Puts the figures that are kept of this node into the devices of a report."""

from __future__ import annotations

from probe_core.measured.place import state_file
from probe_core.model.findings import finding
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from probe_core.measured.store import Stored
    from probe_core.model.document import DeviceDoc, FindingDoc

__all__ = ["attach"]


def attach(
    devices: Iterable[DeviceDoc],
    node: str | None,
    environ: Mapping[str, str],
    exists: Callable[[str], bool],
    read: Callable[[str, int], bytes],
) -> list[FindingDoc]:
    """Set `measured` of the devices in place; return what is wrong with the file, or the peaks.

    `exists` and `read` look at a file without hanging; `read` raises `OSError` or `ValueError`.
    """
    path = state_file(environ)
    try:
        if path is None or not exists(path):
            return []
        # Only where something was ever measured.
        from probe_core.measured.store import FILE_LIMIT, parsed

        content = parsed(read(path, FILE_LIMIT))
    except OSError as error:
        return [_unusable(path or "", error.strerror or str(error))]
    except ValueError as error:
        return [_unusable(path or "", str(error))]
    return _attached(devices, node, content)


def _attached(devices: Iterable[DeviceDoc], node: str | None, content: Stored) -> list[FindingDoc]:
    from probe_core.measured.compare import above_peak, stale_reason, with_fractions
    from probe_core.measured.store import figures_of

    findings: list[FindingDoc] = []
    for device in devices:
        figures = []
        for figure in figures_of(content, node, device):
            entry = with_fractions(device, figure)
            entry["stale"] = stale_reason(device, figure)
            figures.append(entry)
        if figures:
            device["measured"] = figures
            device["sources"]["measured"] = "probe bench"
            above = above_peak(device, figures)
            findings += [above] if above else []
    return findings


def _unusable(path: str, reason: str) -> FindingDoc:
    return finding(
        "measured-unusable",
        "the measured figures cannot be read",
        f"{clean_text(path, 600)}: {clean_text(reason, 400)}",
        "remove the file, or run `probe bench` again",
        severity="info",
        evidence=clean_text(path, 600),
    )
