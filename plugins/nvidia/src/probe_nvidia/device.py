"""One whole GPU through NVML: what it is, its memory, what it may draw, and how it is set.

NOT_SUPPORTED means "no memory of its own" only on parts that are integrated by construction (GB10,
Jetson). On a discrete card it is a fault and must not turn into the host's RAM.
"""

from __future__ import annotations

from probe_core.sysfs.pci import normal_id
from probe_nvidia import links
from probe_nvidia.nvml import Asker, text
from probe_nvidia.scene import INTEGRATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.api import Machine, SightingMemory
    from probe_nvidia.nvml import FieldValues
    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]

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

_CLOCK_NOTE = "NVML's maximum SM clock: an upper bound, not the boost clock"
_BANDWIDTH_NOTE = "computed: 2 transfers x memory_max_mhz x bus_width_bits / 8"


REASONS = (
    "idle",
    "app-clocks",
    "sw-power-cap",
    "hw-slowdown",
    "sync-boost",
    "sw-thermal",
    "hw-thermal",
    "hw-power-brake",
    "display-clocks",
)
"""The bits of nvmlClocksEventReasons, from 0x1 to 0x100, as nvidia-smi calls them."""

_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")
"""nvmlComputeMode_t, from 0."""


_VERSION_2 = 0x0200_0028
"""Version 2 of the memory structure: its size (40 bytes) and number, as NVML wants them."""


# NVML's fields (NVML_FI_DEV_… of nvml.h): ECC_CURRENT and ECC_PENDING; REMAPPED_UNC, …_PENDING and
# …_FAILURE; POWER_MAX_LIMIT, …_DEFAULT_LIMIT and …_CURRENT_LIMIT, which is the enforced one.
_ECC = (1, 2)
_REMAPPED = (143, 144, 145)
_MAX, _DEFAULT, _ENFORCED = 188, 189, 190
_FIELDS = (links.SPEED, links.COUNT, *_ECC, *_REMAPPED, _MAX, _DEFAULT, _ENFORCED)
"""What one call asks instead of six. What is not there is asked by its function: older drivers have
fewer fields, and a function says why there is no answer."""


def identify(
    asker: Asker,
    index: int | None,
    identity: str | None,
    numbers: Mapping[str, str],
    name: str | None,
) -> Sighting:
    """Return the sighting of the GPU behind the asker's handle, with its ids and its name.

    `index` is NVML's; `identity` its ``pci:`` id, None on a SoC without a PCI address; `numbers`
    are its PCI device and subsystem ids, `name` is what the kernel driver's file calls it.
    """
    sighting: Sighting = {
        "ids": [identity] if identity else [],
        "kind": "gpu",
        "vendor": "nvidia",
        "backends": ["cuda"],
        "node_index": {} if index is None else {"nvml": index},
        "extra": {},
    }
    if numbers:
        sighting["pci"] = numbers
    _identify(asker, sighting, name)
    return sighting


def add_design(asker: Asker, sighting: Sighting) -> None:
    """Add what the design of the board decides, which is asked once of equal boards."""
    capability = capability_of(asker)
    figures = {field: asker.number(field, call, *arguments) for field, call, arguments in NUMBERS}
    fields = {
        "compute_capability": capability,
        "cores": figures["cores"],
        "units": units_of(asker, capability, figures["cores"]),
        "bus_width_bits": figures["bus_width_bits"],
    }
    sighting |= {field: value for field, value in fields.items() if value is not None}
    _clocks(asker, sighting, figures)
    mode = asker.get(None, "nvmlDeviceGetVirtualizationMode")
    if mode in _VIRTUALIZATION:
        sighting["extra"]["virtualization"] = _VIRTUALIZATION[mode]


def read_fields(asker: Asker, sighting: Sighting) -> FieldValues | None:
    """Return NVML's fields of the GPU, and note how many links equal boards have."""
    values = asker.values(*_FIELDS, *links.states(asker))
    if values and links.COUNT in values:
        links.note_states(asker, sighting, values)
    return values


def add_state(
    asker: Asker,
    scene: Scene,
    sighting: Sighting,
    identity: str | None,
    values: FieldValues | None,
) -> None:
    """Add what each GPU has of its own: memory, processes, how it is set, what it leads to.

    `values` are what `read_fields` returned.
    """
    memory = memory_of(asker, scene.machine, sighting.get("compute_capability"))
    fields = {"memory": memory, "processes": _processes(asker)}
    sighting |= {field: value for field, value in fields.items() if value is not None}
    _limits(asker, sighting, values or {})
    links.connect(asker, sighting, scene.cards.get(identity or "", {}), values)
    sighting["power_state"] = "unknown" if asker.lost else "active"
    if asker.lost:
        del sighting["backends"]  # no program can use it now
    sighting["unknown"] = asker.unknown


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


def _identify(asker: Asker, sighting: Sighting, name: str | None) -> None:
    uuid = text(asker.get("uuid", "nvmlDeviceGetUUID"))
    if uuid:
        sighting["ids"].append(f"uuid:{uuid}")
    name = name or text(asker.get("name", "nvmlDeviceGetName"))
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


def memory_of(asker: Asker, machine: Machine, capability: str | None) -> SightingMemory | None:
    """Return the ``memory`` of a sighting (bytes), or None with the reason in the asker."""
    if capability in INTEGRATED:
        return _unified(asker, machine)
    info = memory_info(asker, "memory.total")
    if info is None:
        return None
    total = int(info.total)
    if not total:
        asker.unknown["memory.total"] = "NVML answered 0 bytes"
        return None
    reserved = int(getattr(info, "reserved", 0))
    return {
        "kind": "dedicated",
        "total": total,
        "free": int(info.free),
        "used": int(info.used),
        # The total includes what the driver keeps for itself; the memory bar of a 24564 MiB card
        # never reaches it.
        "usable": total - reserved,
        "parts": {"vram": total} | ({"reserved": reserved} if reserved else {}),
    }


def _unified(asker: Asker, machine: Machine) -> SightingMemory:
    """Return the system's memory; a carve-out that the driver calls its own is a part of it."""
    from probe_nvidia.files import unified_memory  # no card with memory of its own needs it

    memory = unified_memory(machine)
    info = memory_info(asker, None)
    if memory is None:
        asker.unknown["memory.total"] = "it is the system's, and /proc/meminfo has no MemTotal"
        memory = {"kind": "unified", "parts": {}}
    if info is not None and info.total:
        memory["parts"]["vram"] = int(info.total)
    return memory


def memory_info(asker: Asker, field: str | None) -> Any:
    """Ask version 2, which tells reserved bytes apart, then version 1 (drivers before 510)."""
    version = getattr(asker.nvml, "nvmlMemory_v2", _VERSION_2)
    call = "nvmlDeviceGetMemoryInfo"
    return asker.first(field, (call, version), (call,))


def _limits(asker: Asker, sighting: Sighting, values: FieldValues) -> None:
    """Add `power`, `ecc`, `compute_mode` and `persistence` to the sighting."""
    sighting["power"] = _power(asker, values)
    sighting["ecc"] = _ecc(asker, values)
    mode = asker.get("compute_mode", "nvmlDeviceGetComputeMode")
    if mode is not None and mode < len(_COMPUTE_MODES):
        sighting["compute_mode"] = _COMPUTE_MODES[mode]
    persistence = asker.get("persistence", "nvmlDeviceGetPersistenceMode")
    if persistence is not None:
        sighting["persistence"] = bool(persistence)


def _power(asker: Asker, values: FieldValues) -> dict[str, Any]:
    milliwatts = {
        # The enforced one is what was set, or less: a board controller or another tool may force
        # more (nvmlDeviceGetEnforcedPowerLimit: "after taking into account all limiters").
        "limit_watts": values.get(_ENFORCED)
        or asker.get(None, "nvmlDeviceGetEnforcedPowerLimit")
        or asker.number("power.limit_watts", "nvmlDeviceGetPowerManagementLimit"),
        "default_watts": values.get(_DEFAULT)
        or asker.number("power.default_watts", "nvmlDeviceGetPowerManagementDefaultLimit"),
        "max_watts": values.get(_MAX) or _most(asker),
    }
    power: dict[str, Any] = {name: value / 1000 for name, value in milliwatts.items() if value}
    if (reasons := slowed_by(asker, "power.reasons")) is not None:
        power["reasons"] = reasons
    return power


def _most(asker: Asker) -> int | None:
    span = asker.get("power.max_watts", "nvmlDeviceGetPowerManagementLimitConstraints")
    return span[1] if span else None


def slowed_by(asker: Asker, field: str) -> list[str] | None:
    """Return what holds the clocks down now, in the words of `REASONS`."""
    mask = asker.first(
        field,
        ("nvmlDeviceGetCurrentClocksEventReasons",),
        ("nvmlDeviceGetCurrentClocksThrottleReasons",),  # its name before driver 535
    )
    return None if mask is None else [word for bit, word in enumerate(REASONS) if mask & (1 << bit)]


def _ecc(asker: Asker, values: FieldValues) -> dict[str, bool | int]:
    modes = _all(values, _ECC) or asker.get("ecc.enabled", "nvmlDeviceGetEccMode")
    ecc: dict[str, bool | int] = (
        {} if modes is None else {"enabled": bool(modes[0]), "pending": bool(modes[1])}
    )
    rows = _all(values, _REMAPPED)
    if rows is None:
        every = asker.get(None, "nvmlDeviceGetRemappedRows")  # Ampere and later, data centre cards
        rows = every and every[1:]
    if rows is not None:
        pending, failed = bool(rows[1]), bool(rows[2])
        ecc |= {"remapped": int(rows[0]), "remap_pending": pending, "remap_failed": failed}
    return ecc


def _all(values: FieldValues, fields: tuple[int, ...]) -> list[int] | None:
    return [values[field] for field in fields] if values.keys() >= set(fields) else None
