"""Puts the figures that are kept of this node into the devices of a report."""

from __future__ import annotations

from probe_core.measured.compare import above_peak, stale_reason, with_fractions
from probe_core.measured.store import FILE_LIMIT, figures_of, parsed
from probe_core.model.findings import finding
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_core.model.document import DeviceDoc, FindingDoc

__all__ = ["attach"]


def attach(
    devices: Iterable[DeviceDoc],
    node: str | None,
    path: str,
    read: Callable[[str, int], bytes],
) -> list[FindingDoc]:
    """Set `measured` of the devices in place; return what is wrong with the file, or the peaks.

    `read` reads at most so many bytes without hanging; it raises `OSError` or `ValueError`.
    """
    refused: list[tuple[str, str]] = []
    try:
        content = parsed(read(path, FILE_LIMIT), refused)
    except OSError as error:
        return [_unusable(path, error.strerror or str(error))]
    except ValueError as error:
        return [_unusable(path, str(error))]
    reasons = [reason for name, reason in refused if name == (node or "")]
    findings = [_refused(path, reasons)] if reasons else []
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


def _refused(path: str, reasons: list[str]) -> FindingDoc:
    count = counted(len(reasons), "measured figure")
    return _unusable(path, reasons[0], f"{count} in the file cannot be true: left out")


def _unusable(
    path: str, reason: str, problem: str = "the measured figures cannot be read"
) -> FindingDoc:
    return finding(
        "measured-unusable",
        problem,
        f"{clean_text(path, 600)}: {clean_text(reason, 400)}",
        "remove the file, or run `probe bench` again",
        severity="info",
        evidence=clean_text(path, 600),
    )
