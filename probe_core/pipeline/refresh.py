"""Judge a report that was made elsewhere or earlier by the environment of this process."""

from __future__ import annotations

from probe_core.model.runtimes import native_runtime
from probe_core.pipeline.primary import choose
from probe_core.visibility import CODES, annotate, findings, see

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from probe_core.visibility import Views

    Device = Mapping[str, Any]

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
    devices = [device for device in document.get("devices") or () if isinstance(device, dict)]
    views = see(devices, environ, os=os, versions=versions)
    hidden = [str(device.get("id")) for device in devices if _hidden(device)]
    annotate(devices, views)
    said = [one for one in document.get("findings") or () if one.get("code") not in CODES]
    document["findings"] = said + findings(views)
    _choose_primary(document, devices, hidden)
    return views


def _hidden(device: Device) -> bool:
    """Return whether a report says that its own runtime does not see the device."""
    said = (device.get("visibility") or {}).get(native_runtime(device)) or {}
    return said.get("visible") is False


def _choose_primary(
    document: dict[str, Any], devices: Sequence[dict[str, Any]], hidden: Collection[str]
) -> None:
    """Choose the primary device anew where it is hidden here, or a better one no longer is.

    `hidden` are the ids of the devices that the environment of the recording hid.
    """
    now = next((one for one in devices if one.get("id") == document.get("primary")), None)
    freed = any(one.get("id") in hidden and not _hidden(one) for one in devices)
    if now is not None and not _hidden(now) and not (freed and now.get("kind") == "cpu"):
        return
    blank = {"seen_by": ["recorded"], "memory": {"total": None}}
    full = [{**one, **{k: v for k, v in blank.items() if not one.get(k)}} for one in devices]
    chosen = choose(full, {}, ())
    document["primary"] = chosen["id"] if chosen else None
