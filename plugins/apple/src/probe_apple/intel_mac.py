"""Describes the GPUs of Intel Macs: PCI devices of the I/O registry, named by system_profiler.

The two lists are joined by PCI vendor and device id, the n-th of a kind with the n-th: GPUs with
the same ids are the same model.
"""

from __future__ import annotations

from probe_apple import ioreg, profiler
from probe_apple.scene import PCI, PROFILER, put_memory
from probe_core.sysfs.sighting import Draft

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_apple.scene import Scene
    from probe_core.api import PciDoc

_VENDORS = {"8086": "intel", "1002": "amd", "10de": "nvidia"}
_BY_NAME = {"intel": "8086", "amd": "1002", "ati": "1002", "nvidia": "10de"}


def gpus(scene: Scene) -> Iterator[dict[str, Any]]:
    """Yield the GPUs, those of which only system_profiler knows last."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for table in scene.profile.displays:
        tables.setdefault(_identity(table), []).append(table)
    for entry in scene.pci:
        ids = ioreg.pci_ids(entry)
        address = ioreg.address(entry)
        if address and ids.get("class", "").startswith("03") and "id" in ids:
            same = tables.get(ids["id"], [])
            yield _describe(scene, f"pci:{address}", ids, entry, same.pop(0) if same else {})
    for identity, unmatched in tables.items():
        for number, nameless in enumerate(unmatched):
            own: PciDoc = {"id": identity} if ":" in identity else {}
            name = identity.replace(":", "-").replace(" ", "_")
            yield _describe(scene, f"apple:{name}-{number}", own, {}, nameless)


def _identity(table: Mapping[str, Any]) -> str:
    """Return "1002:7340" of a table of SPDisplaysDataType, or its name where ids are missing."""
    maker = (profiler.first_text(table, "spdisplays_vendor", "sppci_vendor") or "").lower()
    codes = (code for name, code in _BY_NAME.items() if name in maker or code in maker)
    vendor = next(codes, None)
    device = profiler.hexadecimal(profiler.first_text(table, "spdisplays_device-id"))
    if vendor and device:
        return f"{vendor}:{device}"
    name = profiler.first_text(table, "sppci_model", "_name") or "unnamed"
    return name.encode("ascii", "replace").decode()


def _describe(
    scene: Scene,
    identity: str,
    ids: PciDoc,
    entry: Mapping[str, Any],
    table: Mapping[str, Any],
) -> dict[str, Any]:
    draft = Draft(ids=[identity], kind="gpu", backends=["metal"])
    if ids:
        draft.fields["pci"] = ids
    if vendor := _VENDORS.get(ids.get("id", "")[:4]):
        draft.fields["vendor"] = vendor
    name = profiler.first_text(table, "sppci_model") or ioreg.text(entry.get("model"))
    reason = scene.reason("neither system_profiler nor ioreg names it", PROFILER, PCI)
    draft.put("name", name, reason)
    draft.put("units", None, "macOS does not count the units of GPUs that are not Apple's")
    if macos := scene.sysctl.text("kern.osproductversion"):
        draft.fields["driver"] = {"macos": macos}
    _put_memory(draft, scene, entry, table)
    draft.note("metal", profiler.metal(table))
    if profiler.first_text(table, "sppci_device_type") == "spdisplays_egpu":
        draft.note("external", True)
    return draft.sighting()


def _put_memory(
    draft: Draft, scene: Scene, entry: Mapping[str, Any], table: Mapping[str, Any]
) -> None:
    """Say whose memory it is; the exact size is in the I/O registry, a rounded one in the table."""
    shared = profiler.size(profiler.first_text(table, "spdisplays_vram_shared"))
    exact = _exact(entry)
    own = exact or profiler.size(profiler.first_text(table, "spdisplays_vram"))
    # Intel's integrated GPUs are device 2 of bus 0; its cards were never in a Mac.
    if shared or draft.fields.get("vendor") == "intel":
        put_memory(draft, scene)
        draft.put(
            "memory.parts.limit", shared, "system_profiler does not report how much it may use"
        )
    elif own:
        draft.fields["memory"] = {"kind": "dedicated", "total": own, "parts": {"vram": own}}
        draft.note("memory_source", "ioreg" if exact else "system_profiler, rounded")
    else:
        reason = scene.reason("neither system_profiler nor ioreg reports it", PROFILER, PCI)
        draft.put("memory.total", None, reason)


def _exact(entry: Mapping[str, Any]) -> int | None:
    """Return the bytes of VRAM; drivers write VRAM,totalMB or VRAM,totalsize (bytes)."""
    megabytes = ioreg.count(entry.get("VRAM,totalMB"))
    size = ioreg.number(entry.get("VRAM,totalsize"))
    return megabytes << 20 if megabytes else (size if size is not None and size > 0 else None)
