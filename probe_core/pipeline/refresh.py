"""Judge a report that was made elsewhere or earlier by the environment of this process."""

from __future__ import annotations

from probe_core.model.device import FIELDS
from probe_core.model.field import filled
from probe_core.model.verdict import usable_here
from probe_core.pipeline.conclude import choose
from probe_core.readiness import conclude, reopen
from probe_core.visibility import CODES, annotate, findings, see

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.visibility import Views

__all__ = ["refresh"]


def refresh(
    document: ReportDoc,
    environ: Mapping[str, str],
    *,
    versions: Mapping[str, str] | None = None,
) -> Views:
    """Rewrite a report's visibility for `environ`, and return the views.

    For a report made elsewhere or earlier (a static one): what hid a device then does not count.
    The primary device stays, unless it is hidden now, or was a CPU for want of a visible GPU.
    `versions` tells versions of runtimes that change their rules, as `visibility.see` takes them.
    """
    devices = document["devices"]
    reopen(devices)
    views = see(devices, environ, os=_os_of(document), versions=versions)
    hidden_before = [device["id"] for device in devices if _is_hidden(device)]
    annotate(devices, views)
    conclude([device for device in devices if device.get("readiness", {}).get("steps")])
    lasting = [entry for entry in document.get("findings", []) if entry["code"] not in CODES]
    document["findings"] = lasting + findings(views)
    _choose_primary(document, devices, hidden_before)
    return views


def _is_hidden(device: DeviceDoc) -> bool:
    return usable_here(device).usable is False


def _os_of(document: ReportDoc) -> str:
    return document["node"]["os"] if document.get("node") else "linux"


def _choose_primary(
    document: ReportDoc, devices: Sequence[DeviceDoc], hidden_before: Collection[str]
) -> None:
    """Choose the primary device anew where it is hidden here, or a better one no longer is.

    `hidden_before` are the ids of the devices that the environment of the recording hid.
    """
    primary = next((d for d in devices if d["id"] == document.get("primary")), None)
    if primary is not None and not _is_hidden(primary):
        freed = any(d["id"] in hidden_before and not _is_hidden(d) for d in devices)
        if not (freed and primary["kind"] == "cpu"):
            return
    # A device of a hand-written report may name no prober: it counts as seen all the same.
    candidates: list[Any] = [
        filled({**device, "seen_by": device.get("seen_by") or ["recorded"]}, FIELDS)
        for device in devices
    ]
    chosen = choose(candidates, {})
    document["primary"] = chosen["id"] if chosen else None
