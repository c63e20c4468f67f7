"""Judge a report that was made elsewhere or earlier by the environment of this process."""

from __future__ import annotations

from probe_core.model.runtimes import hidden
from probe_core.pipeline.primary import choose
from probe_core.visibility import CODES, annotate, findings, see

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import DeviceDoc
    from probe_core.visibility import Views

__all__ = ["refresh"]


def refresh(
    document: dict[str, Any],
    environ: Mapping[str, str],
    *,
    versions: Mapping[str, str] | None = None,
) -> Views:
    """Rewrite a report's visibility for `environ`, and return the views.

    For a report made elsewhere or earlier (a static one): what hid a device then does not count.
    The primary device stays, unless it is hidden now, or was a CPU for want of a visible GPU.
    """
    node = document.get("node")
    os = str((node if isinstance(node, dict) else {}).get("os") or "linux")
    devices: list[DeviceDoc] = document["devices"]
    views = see(devices, environ, os=os, versions=versions)
    hidden_before = {device["id"] for device in devices if hidden(device)}
    annotate(devices, views)
    kept = [finding for finding in document.get("findings") or () if finding["code"] not in CODES]
    document["findings"] = kept + findings(views)
    _choose_primary(document, devices, hidden_before)
    return views


def _choose_primary(
    document: dict[str, Any], devices: Sequence[DeviceDoc], hidden_before: Collection[str]
) -> None:
    """Choose the primary device anew where it is hidden here, or a better one no longer is.

    `hidden_before` are the ids of the devices that the environment of the recording hid.
    """
    primary = next((one for one in devices if one["id"] == document.get("primary")), None)
    freed = any(device["id"] in hidden_before and not hidden(device) for device in devices)
    cpu_for_want = freed and primary is not None and primary["kind"] == "cpu"
    if primary is not None and not hidden(primary) and not cpu_for_want:
        return
    # A hand-written report may not say who saw a device: as little as the bus is no reason to
    # pass it over.
    full: list[dict[str, Any]] = [
        {**device, "seen_by": device["seen_by"] or ["recorded"]} for device in devices
    ]
    chosen = choose(full, {}, ())
    document["primary"] = chosen["id"] if chosen else None
