"""One device of a report, as the page of `--device` shows it."""

from __future__ import annotations

from probe_core.commands import CommandError
from probe_core.model.ids import named_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["only"]


def only(report: ReportDoc, text: str) -> ReportDoc:
    """Return a report with the devices that a text names, their parts, and their findings.

    A text is an id, whole or short, or a part of a model's name. Raises `CommandError` where none
    fits. Findings about no device stay: a driver's is one.
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
    return {**report, "devices": shown, "findings": findings}


def _by_name(devices: list[DeviceDoc], text: str) -> set[str]:
    part = text.lower()
    return {device["id"] for device in devices if part in (device["name"] or "").lower()}
