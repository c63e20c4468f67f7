"""Reports the display adapters of Windows: the net below the vendors' own libraries."""

from __future__ import annotations

from probe_core.api import Unavailable, finding, hookimpl, not_applicable
from probe_windows import adapters, identity, memory
from probe_windows.memory import ADRENO
from probe_windows.registry import Registry, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import NotApplicable, Request
    from probe_windows.adapters import Adapter

# PCI vendor ids of those whose GPUs compute; 1414 is Microsoft's adapter in virtual machines.
_VENDORS = {"10de": "nvidia", "1002": "amd", "8086": "intel", "1414": "microsoft"}
# Adapters that cannot compute: board management controllers and what virtual machines show.
_DISPLAYS = frozenset("1a03 102b 1013 1234 1b36 1af4 15ad 1414 80ee 126f 1ab8 5853".split())


@hookimpl
def probe_devices(request: Request) -> NotApplicable | list[dict[str, Any]]:
    """Answer with the display adapters that are there now."""
    if not request.machine.live:
        return not_applicable("a recorded machine has no registry")
    try:
        registry = Registry()
    except ImportError as error:
        raise Unavailable(f"the registry cannot be read: {error}", code="no-registry") from None
    present = list(adapters.present(registry))
    if not present:
        return not_applicable("the registry lists no display adapter that is there now")
    sightings = [_sighting(adapter, request.machine.arch) for adapter in present]
    return sightings + [
        _no_driver(sighting["ids"][0])
        for sighting, adapter in zip(sightings, present, strict=True)
        if adapter.basic and sighting["kind"] == "gpu"
    ]


def _no_driver(device: str) -> dict[str, Any]:
    return finding(
        "driver-not-loaded",
        device=device,
        step="driver",
        what=f"{device} runs with the Microsoft Basic Display Adapter",
        why="no driver of its vendor is installed, or Windows turned it off after an error",
        fix="install the vendor's driver; Device Manager shows why one does not start",
    )


def _sighting(adapter: Adapter, arch: str) -> dict[str, Any]:
    ids = identity.pci(adapter.instance, adapter.device)
    place = identity.address(adapter.device) if ids else None
    vendor = ids.get("id", "")[:4]
    adreno = adapter.instance.startswith(ADRENO)
    sighting: dict[str, Any] = {
        "ids": [_id(adapter, place)],
        "kind": "gpu" if adreno or (vendor and vendor not in _DISPLAYS) else "display",
        "pci": ids,
        "node_index": {"display_class": adapter.number},
        "unknown": {
            "units": "the registry has no count of them",
            "clocks.max_mhz": "the registry has no clock",
        },
    }
    if adreno or vendor in _VENDORS:
        sighting["vendor"] = "qualcomm" if adreno else _VENDORS[vendor]
    name = text(adapter.driver.get("driverdesc"))
    if name and not adapter.basic:
        sighting["name"] = name
    elif adapter.basic:
        sighting["unknown"]["name"] = "the basic driver names itself, not the GPU"
    sighting["driver"] = _driver(adapter)
    if sighting["kind"] == "gpu":
        memory.describe(sighting, adapter, place, arch)
    return sighting


def _id(adapter: Adapter, place: tuple[int, int, int] | None) -> str:
    """Return the PCI address, or else the instance path, which Windows keeps over restarts."""
    if place:
        bus, slot, function = place
        return f"pci:0000:{bus:02x}:{slot:02x}.{function}"
    path = adapter.instance.encode("ascii", "backslashreplace").decode().replace(" ", "_")
    return f"windows:{path}"


def _driver(adapter: Adapter) -> dict[str, str]:
    """Return service and version; NVIDIA's own number is the last five digits of Windows's.

    31.0.15.3598 is 535.98 (NVIDIA's release notes name both).
    """
    driver = {"name": adapter.service or ""}
    version = text(adapter.driver.get("driverversion"))
    digits = (version or "").replace(".", "")
    ours = driver["name"].lower() == "nvlddmkm"
    if version and ours and len(digits) > 5 and digits.isdecimal():
        driver |= {"version": f"{digits[-5:-2]}.{digits[-2:]}", "windows_version": version}
    elif version:
        driver["version"] = version
    if date := text(adapter.driver.get("driverdate")):
        driver["date"] = date
    return driver
