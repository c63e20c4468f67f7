"""All that a page about one node, or one of its devices, shows, in its order.

`html` and `terminal` write it.
"""

from __future__ import annotations

from typing import NamedTuple

from probe_core.commands import CommandError
from probe_core.model.naming import named_by
from probe_report.devices import Devices, devices_of
from probe_report.fabric import Distances, distances_of
from probe_report.figures import Names, cut
from probe_report.picture import Picture, picture_of
from probe_report.readiness import Chain, View, chains_of, views_of
from probe_report.sources import Raw, Run, Sources, raw_of, runs_of, sources_of
from probe_report.summary import Findings, Head, findings_of, head_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, NodeDoc, ReportDoc


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
        distances=distances_of(report, names),
        sources=sources_of(report, names),
        views=views_of(report, names),
        runs=runs,
        skipped=skipped,
        runs_hidden=runs_hidden,
        raw=raw_of(report) if raw else None,
        notes=tuple(cut(note, 400) for note in notes),
    )


def only(report: ReportDoc, text: str) -> ReportDoc:
    """Return a report with the devices that a text names, their parts, and their findings.

    A text is an id, whole or short, or a part of a model's name. Raises `CommandError` where none
    fits. Findings about no device stay: a driver's is one. Network cards do not.
    """
    devices = report["devices"]
    places = named_by(text, [[device["id"], *device["ids"]] for device in devices])
    chosen = {devices[place]["id"] for place in places} or _by_name(devices, text)
    if not chosen:
        listed = ", ".join(device["id"] for device in devices[:16])
        raise CommandError(f"--device {text}: no device has this id or name; there are: {listed}")
    shown = [d for d in devices if d["id"] in chosen or d.get("parent") in chosen]
    ids = {device["id"] for device in shown}
    findings = [f for f in report["findings"] if f["device"] is None or f["device"] in ids]
    node: NodeDoc = {**report["node"], "network": []}
    return {**report, "node": node, "devices": shown, "findings": findings}


def _by_name(devices: list[DeviceDoc], text: str) -> set[str]:
    part = text.lower()
    return {device["id"] for device in devices if part in (device["name"] or "").lower()}
