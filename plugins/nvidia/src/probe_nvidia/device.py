"""One whole GPU through NVML: a table of (field, call) pairs, and what follows from the answers."""

from __future__ import annotations

from probe_core.sysfs.pci import normal_id
from probe_nvidia import limits
from probe_nvidia.ask import Asker, text
from probe_nvidia.memory import INTEGRATED, memory_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]

__all__ = ["CORES_PER_SM", "capability_of", "describe", "mig_mode", "pci_facts", "units_of"]

_SM, _MEMORY = 1, 2  # nvmlClockType_t

NUMBERS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("cores", "nvmlDeviceGetNumGpuCores", ()),
    ("clocks.max_mhz", "nvmlDeviceGetMaxClockInfo", (_SM,)),
    ("clocks.memory_max_mhz", "nvmlDeviceGetMaxClockInfo", (_MEMORY,)),
    ("bus_width_bits", "nvmlDeviceGetMemoryBusWidth", ()),
)
"""Plain figures: field, NVML function, arguments after the handle."""

CORES_PER_SM = {
    **dict.fromkeys(("3.0", "3.2", "3.5", "3.7"), 192),
    **dict.fromkeys(("5.0", "5.2", "5.3", "6.1", "6.2"), 128),
    **dict.fromkeys(("6.0", "7.0", "7.2", "7.5", "8.0"), 64),
    **dict.fromkeys(("8.6", "8.7", "8.9", "9.0", "10.0", "10.1", "10.3"), 128),
    **dict.fromkeys(("11.0", "12.0", "12.1"), 128),
}
"""fp32 lanes of one SM by compute capability (CUDA C++ Programming Guide, "Throughput of native
arithmetic instructions"): NVML tells cores, and SMs only of MIG instances."""

_VIRTUALIZATION = {1: "passthrough", 2: "vgpu", 3: "vgpu-host", 4: "vsga-host"}

_SPEED, _COUNT = 90, 91  # NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, NVML_FI_DEV_NVLINK_LINK_COUNT

_CLOCK_NOTE = "NVML's maximum SM clock: an upper bound, not the boost clock"
_BANDWIDTH_NOTE = "computed: 2 transfers x memory_max_mhz x bus_width_bits / 8"


def describe(asker: Asker, scene: Scene, index: int | None, identity: str | None) -> Sighting:
    """Return the sighting of the GPU behind the asker's handle.

    `index` is NVML's; `identity` its ``pci:`` id, None on a SoC without a PCI address.
    """
    sighting: Sighting = {
        "ids": [identity] if identity else [],
        "kind": "gpu",
        "vendor": "nvidia",
        "backends": ["cuda"],
        "node_index": {} if index is None else {"nvml": index},
        "extra": {},
    }
    _identify(asker, sighting)
    capability = capability_of(asker)
    numbers = {field: asker.number(field, call, *arguments) for field, call, arguments in NUMBERS}
    fields = {
        "compute_capability": capability,
        "cores": numbers["cores"],
        "units": units_of(asker, capability, numbers["cores"]),
        "bus_width_bits": numbers["bus_width_bits"],
        "memory": memory_of(asker, scene.machine, capability),
        "processes": _processes(asker),
    }
    sighting |= {field: value for field, value in fields.items() if value is not None}
    _clocks(asker, sighting, numbers)
    limits.describe(asker, sighting)
    mode = asker.get(None, "nvmlDeviceGetVirtualizationMode")
    if mode in _VIRTUALIZATION:
        sighting["extra"]["virtualization"] = _VIRTUALIZATION[mode]
    _connect(asker, sighting, scene.cards.get(identity or "", {}))
    sighting["power_state"] = "unknown" if asker.lost else "active"
    if asker.lost:
        del sighting["backends"]  # no program can use it now
    sighting["unknown"] = asker.unknown
    return sighting


def pci_facts(asker: Asker) -> tuple[str | None, dict[str, str]]:
    """Return the GPU's ``pci:`` id and its device and subsystem ids; (None, {}) without PCI."""
    info = asker.get("pci", "nvmlDeviceGetPciInfo")
    if info is None:
        return None, {}
    identity = normal_id(text(getattr(info, "busId", "")) or "")
    if identity is None:
        identity = normal_id(f"{info.domain:x}:{info.bus:x}:{info.device:x}.0")
    facts = {"id": _pair(info.pciDeviceId)}
    if info.pciSubSystemId:
        facts["subsystem"] = _pair(info.pciSubSystemId)
    return identity, facts


def capability_of(asker: Asker) -> str | None:
    """Return the compute capability ("8.9")."""
    pair = asker.get("compute_capability", "nvmlDeviceGetCudaComputeCapability")
    return f"{pair[0]}.{pair[1]}" if pair else None


def units_of(asker: Asker, capability: str | None, cores: int | None) -> int | None:
    """Return the number of SMs, where the cores divide by what one SM of this kind has."""
    per_sm = CORES_PER_SM.get(capability or "")
    if cores and per_sm and cores % per_sm == 0:
        return cores // per_sm
    reason = "NVML gives neither SMs nor cores"
    if cores:
        reason = (
            f"NVML gives no SMs, and cores per SM of compute capability {capability} are unknown"
        )
    asker.unknown["units"] = asker.lost or reason
    return None


def mig_mode(asker: Asker) -> bool:
    """Return whether MIG is on; most GPUs do not have it."""
    modes = asker.get(None, "nvmlDeviceGetMigMode")
    return bool(modes and modes[0])


def _pair(packed: int) -> str:
    """Return ``vvvv:dddd`` of NVML's packed 0xDDDDVVVV."""
    return f"{packed & 0xFFFF:04x}:{packed >> 16:04x}"


def _identify(asker: Asker, sighting: Sighting) -> None:
    uuid = text(asker.get("uuid", "nvmlDeviceGetUUID"))
    if uuid:
        sighting["ids"].append(f"uuid:{uuid}")
    name = text(asker.get("name", "nvmlDeviceGetName"))
    if name:
        sighting["name"] = name


def _processes(asker: Asker) -> int | None:
    call = "nvmlDeviceGetComputeRunningProcesses"
    running = asker.first("processes", (f"{call}_v3",), (f"{call}_v2",), (call,))
    return None if running is None else len(running)


def _clocks(asker: Asker, sighting: Sighting, numbers: Mapping[str, int | None]) -> None:
    core, memory = numbers["clocks.max_mhz"], numbers["clocks.memory_max_mhz"]
    clocks = {"max_mhz": core, "memory_max_mhz": memory}
    sighting["clocks"] = {name: mhz for name, mhz in clocks.items() if mhz}
    if core:
        sighting["extra"]["clock_by"] = _CLOCK_NOTE
    width = numbers["bus_width_bits"]
    if memory and width:
        # NVML's memory clock is half the transfer rate for GDDR5 to GDDR7 and HBM alike: 10501 MHz
        # x 384 bits x 2 = 1008 GB/s (RTX 4090), 2619 x 5120 x 2 = 3352 GB/s (H100).
        sighting["bandwidth"] = 2 * memory * 1_000_000 * width // 8
        sighting["extra"]["bandwidth_by"] = _BANDWIDTH_NOTE
    else:
        asker.unknown["bandwidth"] = asker.lost or "needs the memory clock and the bus width"


def _connect(asker: Asker, sighting: Sighting, bus: Mapping[str, Any]) -> None:
    """Add ``links``: NVLink, and PCIe where the bus prober did not read it from sysfs.

    `bus` is what the bus prober saw of the GPU. Both read the same register of the GPU (its link
    status), so they can differ in time alone: an idle link runs at 2.5 GT/s, and NVML has woken it.
    But a sighting's link is the slowest hop to the host, and NVML knows the GPU's own hop only. So
    sysfs decides, and NVML's answer (four calls a GPU) is a ``local_…`` hop.
    """
    has_pcie = any(link.get("kind") == "pcie" for link in bus.get("links", ()))
    # What an integrated GPU says of PCIe is made up: GB10 sits on C2C (all-smi#80).
    needs_hop = not has_pcie and sighting.get("compute_capability") not in INTEGRATED
    count, speed = _nvlink_facts(asker)
    if needs_hop or count != 0:
        from probe_nvidia import links  # most GPUs have no NVLink, and their hop is in sysfs

        links.connect(asker, sighting, needs_hop, count, speed)


def _nvlink_facts(asker: Asker) -> tuple[int | None, int | None]:
    """Return (number of NVLinks that the GPU has, MB/s of one in one direction).

    One call, so that the many GPUs without NVLink cost no more. None where the driver has no field
    values.
    """
    values = asker.get(None, "nvmlDeviceGetFieldValues", [_SPEED, _COUNT])
    if values is None:
        return None, None
    speed, count = (value.value.uiVal if value.nvmlReturn == 0 else 0 for value in values)
    return count, speed or None
