"""Describes the GPUs of Intel Macs: PCI devices of the I/O registry, named by system_profiler.

The two lists are joined by PCI vendor and device id, the n-th of a kind with the n-th: GPUs with
the same ids are the same model.
"""

from __future__ import annotations

from probe_apple import ioreg, profiler
from probe_apple.facts import Facts
from probe_apple.scene import PCI, PROFILER, tell_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_apple.scene import Scene

_VENDORS = {"8086": "intel", "1002": "amd", "10de": "nvidia"}
_BY_WORD = {"intel": "8086", "amd": "1002", "ati": "1002", "nvidia": "10de"}


def gpus(scene: Scene) -> Iterator[dict[str, Any]]:
    """Yield the GPUs, those of which only system_profiler knows last."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for table in scene.profile.displays:
        tables.setdefault(_identity(table), []).append(table)
    for entry in scene.pci:
        ids = ioreg.pci_ids(entry)
        place = ioreg.address(entry)
        if place and ids.get("class", "").startswith("03") and "id" in ids:
            same = tables.get(ids["id"], [])
            yield _describe(scene, f"pci:{place}", ids, entry, same.pop(0) if same else {})
    for identity, left in tables.items():
        for n, rest in enumerate(left):
            known = {"id": identity} if ":" in identity else {}
            name = identity.replace(":", "-").replace(" ", "_")
            yield _describe(scene, f"apple:{name}-{n}", known, {}, rest)


def _identity(table: Mapping[str, Any]) -> str:
    """Return "1002:7340" of a table of SPDisplaysDataType, or its name where ids are missing."""
    told = (profiler.word(table, "spdisplays_vendor", "sppci_vendor") or "").lower()
    vendor = next((code for word, code in _BY_WORD.items() if word in told or code in told), None)
    device = profiler.hexadecimal(profiler.word(table, "spdisplays_device-id"))
    if vendor and device:
        return f"{vendor}:{device}"
    name = profiler.word(table, "sppci_model", "_name") or "unnamed"
    return name.encode("ascii", "replace").decode()


def _describe(
    scene: Scene,
    identity: str,
    ids: dict[str, str],
    entry: Mapping[str, Any],
    table: Mapping[str, Any],
) -> dict[str, Any]:
    facts = Facts(ids=[identity], kind="gpu", backends=["metal"])
    if ids:
        facts.fields["pci"] = ids
    if vendor := _VENDORS.get(ids.get("id", "")[:4]):
        facts.fields["vendor"] = vendor
    name = profiler.word(table, "sppci_model") or ioreg.text(entry.get("model"))
    why = scene.why("neither system_profiler nor ioreg names it", PROFILER, PCI)
    facts.say("name", name, why)
    facts.say("units", None, "macOS does not count the units of GPUs that are not Apple's")
    if macos := scene.sysctl.text("kern.osproductversion"):
        facts.fields["driver"] = {"macos": macos}
    _tell_memory(facts, scene, entry, table)
    facts.note("metal", profiler.metal(table))
    if profiler.word(table, "sppci_device_type") == "spdisplays_egpu":
        facts.note("external", True)
    return facts.sighting()


def _tell_memory(
    facts: Facts, scene: Scene, entry: Mapping[str, Any], table: Mapping[str, Any]
) -> None:
    """Say whose memory it is; the exact size is in the I/O registry, a rounded one in the table."""
    shared = profiler.size(profiler.word(table, "spdisplays_vram_shared"))
    exact = _exact(entry)
    own = exact or profiler.size(profiler.word(table, "spdisplays_vram"))
    # Intel's integrated GPUs are device 2 of bus 0; its cards were never in a Mac.
    if shared or facts.fields.get("vendor") == "intel":
        tell_memory(facts, scene)
        facts.say("memory.parts.limit", shared, "system_profiler does not tell how much it may use")
    elif own:
        facts.fields["memory"] = {"kind": "dedicated", "total": own, "parts": {"vram": own}}
        facts.note("memory_source", "ioreg" if exact else "system_profiler, rounded")
    else:
        why = scene.why("neither system_profiler nor ioreg tells it", PROFILER, PCI)
        facts.say("memory.total", None, why)


def _exact(entry: Mapping[str, Any]) -> int | None:
    """Return the bytes of VRAM; drivers write VRAM,totalMB or VRAM,totalsize (bytes)."""
    megabytes = ioreg.count(entry.get("VRAM,totalMB"))
    size = ioreg.number(entry.get("VRAM,totalsize"))
    return megabytes << 20 if megabytes else (size if size and size > 0 else None)
