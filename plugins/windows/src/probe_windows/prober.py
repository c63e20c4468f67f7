"""Reports the display adapters of Windows, for machines where no vendor's library answers."""

from __future__ import annotations

from probe_core.api import Unavailable, hookimpl, not_applicable
from probe_windows import adapters, identity, memory
from probe_windows.memory import ADRENO
from probe_windows.registry import Registry, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import NotApplicable, Request, SampleRequest, Sighting, StepDoc
    from probe_windows.adapters import Adapter
    from probe_windows.memory import Address
    from probe_windows.sampler import Sampler

_VENDORS = {"10de": "nvidia", "1002": "amd", "8086": "intel", "1414": "microsoft"}
# Adapters that cannot compute: board management controllers and what virtual machines show.
_DISPLAYS = frozenset("1a03 102b 1013 1234 1b36 1af4 15ad 1414 80ee 126f 1ab8 5853".split())


@hookimpl
def probe_devices(request: Request) -> NotApplicable | list[Sighting]:
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
    return [_sighting(adapter, request.machine.arch) for adapter in present]


def _sighting(adapter: Adapter, arch: str) -> Sighting:
    ids = identity.pci(adapter.instance, adapter.device)
    address = identity.address(adapter.device) if ids else None
    vendor = _vendor(adapter, ids.get("id", ""))
    computes = vendor == "qualcomm" or (ids and ids["id"][:4] not in _DISPLAYS)
    sighting: Sighting = {
        "ids": [_id(adapter, address)],
        "kind": "gpu" if computes else "display",
        "pci": ids,
        "node_index": {"display_class": adapter.number},
        "driver": _driver(adapter),
        "unknown": {
            "units": "the registry has no count of them",
            "clocks.max_mhz": "the registry has no clock",
        },
    }
    if vendor:
        sighting["vendor"] = vendor
    _add_name(sighting, adapter)
    if computes:
        memory.add_memory(sighting, adapter, address, arch)
        if adapter.basic:
            sighting["step_facts"] = [_basic(adapter)]
    return sighting


def _basic(adapter: Adapter) -> StepDoc:
    """No driver of the GPU's vendor is installed, or Windows turned it off after an error."""
    return {
        "step": "driver",
        "status": "broken",
        "evidence": f"Enum\\{adapter.instance}: Service={adapter.service}",
        "code": "basic-display",
    }


def _vendor(adapter: Adapter, pci_id: str) -> str | None:
    return "qualcomm" if adapter.instance.startswith(ADRENO) else _VENDORS.get(pci_id[:4])


def _add_name(sighting: Sighting, adapter: Adapter) -> None:
    name = text(adapter.driver.get("driverdesc"))
    if adapter.basic:
        sighting["unknown"]["name"] = "the basic driver names itself, not the GPU"
    elif name:
        sighting["name"] = name


def _id(adapter: Adapter, address: Address | None) -> str:
    """Return the PCI address, or else the instance path, which Windows keeps over restarts."""
    if address:
        bus, slot, function = address
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
    is_nvidias = driver["name"].lower() == "nvlddmkm"
    if version and is_nvidias and len(digits) > 5 and digits.isdecimal():
        driver |= {"version": f"{digits[-5:-2]}.{digits[-2:]}", "windows_version": version}
    elif version:
        driver["version"] = version
    if date := text(adapter.driver.get("driverdate")):
        driver["date"] = date
    return driver


@hookimpl
def open_sampler(request: SampleRequest) -> Sampler | NotApplicable:
    """Return what samples the GPUs; raises `Unavailable` where there are no counters."""
    if not request.machine.live:
        return not_applicable("a recorded machine has no performance counters")
    from probe_windows.sampler import Sampler

    return Sampler()
