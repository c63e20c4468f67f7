"""All that a page about one node shows, in its order; `html` and `terminal` write it."""

from __future__ import annotations

from typing import NamedTuple

from probe_report.devices import Devices, devices_of
from probe_report.distances import Distances, distances_of
from probe_report.figures import cut
from probe_report.findings import Findings, findings_of
from probe_report.groups import Names, accelerators
from probe_report.picture import Picture, picture_of
from probe_report.raw import Raw, raw_of
from probe_report.readiness import Chain, chains_of
from probe_report.runs import Run, runs_of
from probe_report.sources import Sources, sources_of
from probe_report.summary import Head, head_of
from probe_report.visibility import View, views_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import ReportDoc

__all__ = ["Page", "page_of"]


class Page(NamedTuple):
    """One node. `notes` are sentences about what the page leaves out, and how to have it."""

    head: Head
    findings: Findings
    picture: Picture
    devices: Devices
    chains: tuple[Chain, ...]
    chains_hidden: int
    distances: Distances | None
    sources: Sources
    views: tuple[View, ...]
    runs: tuple[Run, ...]
    skipped: tuple[Run, ...]
    runs_hidden: int
    raw: Raw | None
    notes: tuple[str, ...]


def page_of(report: ReportDoc, notes: tuple[str, ...] = (), *, raw: bool = True) -> Page:
    """Return the page of a report; `raw` is whether it holds the JSON."""
    names = Names(report)
    chains, chains_hidden = chains_of(report, names)
    runs, skipped, runs_hidden = runs_of(report)
    return Page(
        head=head_of(report),
        findings=findings_of(report["findings"]),
        picture=picture_of(report, names),
        devices=devices_of(report, names),
        chains=chains,
        chains_hidden=chains_hidden,
        distances=distances_of(accelerators(report), names),
        sources=sources_of(report, names),
        views=views_of(report, names),
        runs=runs,
        skipped=skipped,
        runs_hidden=runs_hidden,
        raw=raw_of(report) if raw else None,
        notes=tuple(cut(note, 400) for note in notes),
    )
