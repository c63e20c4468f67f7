"""What this process may use: which devices a runtime numbers before any variable acts.

A device that its readiness blocks is withheld from the runtimes that need the broken step. They
differ: CUDA opens /dev/nvidiactl, /dev/nvidiaN and /dev/nvidia-uvm and needs no /dev/dri; ROCr
opens /dev/kfd and the render node; Level Zero and Mesa's Vulkan drivers the render node alone.

Sources: Mesa, src/amd/vulkan/radv_physical_device.c (the kernel driver must be amdgpu) and
src/nouveau/vulkan (NVK, under nouveau); Linux, drivers/gpu/drm/amd/amdkfd/kfd_priv.h
(`kfd_devcgroup_check_permission` asks about the render node); open-gpu-kernel-modules,
kernel-open/nvidia/nv.c (`nvidia_read_card_info` lists every card whoever asks, but for excluded
ones), which is what tinygrad's NV backend numbers.
"""

from __future__ import annotations

from probe_core.model.ids import (
    NO_PLACE,
    STEPS,
    driver_name,
    driver_version,
    is_passthrough_driver,
    pci_model,
    pci_place,
)
from probe_core.model.verdict import blocking_step, state_of, step_without_kfd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, StepDoc

# Kernel drivers of others for a vendor's GPUs: its own compute runtime does not open the device
# under them. CUDA needs the nvidia module, ROCm the KFD interface of amdgpu, which radeon lacks.
_OTHER_DRIVERS = {
    "nvidia": ("nouveau", "nova", "nova-core", "nova_core"),
    "amd": ("radeon",),
    "intel": (),
}
_OWN_DRIVERS = (None, "nvidia", "amdgpu", "i915", "xe")
"""With these there is nothing to ask of a device whose readiness is not known."""

_MOST_ALTERNATIVES = 3
"""Devices of which every combination is tried, counted or not: 8 lists. Of more, one list for
each number of them, so that every other device meets each number that it may have."""

_GRANTED = STEPS.index("granted")

_SENTENCES = {
    "hardware": "the hardware does not work",
    "driver": "no driver that it needs serves it",
    "node": "a device node is missing",
    "permission": "a device node cannot be opened",
    "library": "the driver's library cannot be used",
    "responding": "it does not respond",
    "granted": "it is not granted to this process",
    "runtime": "the runtime cannot use it",
}


class Withheld:
    """A device that its readiness, or its driver, keeps from a runtime.

    `visible` is False, or None where only the driver knows whether the runtime shows it. `counted`
    says whether it takes a number all the same; None where that is not known.
    """

    __slots__ = ("code", "counted", "reason", "step", "visible")

    def __init__(
        self, step: str, code: str | None, reason: str, visible: bool | None, counted: bool | None
    ) -> None:
        self.step = step
        self.code = code
        self.reason = reason
        self.visible = visible
        self.counted = counted


class Available:
    """The devices that a runtime numbers, and those that are withheld from it.

    `devices`: those that take a number, or may, in the report's order. `withheld`: id → why it is
    not surely shown; a device may be in both.
    """

    __slots__ = ("devices", "withheld")

    def __init__(self, devices: Sequence[DeviceDoc], withheld: Mapping[str, Withheld]) -> None:
        self.devices = devices
        self.withheld = withheld

    @property
    def uncertain(self) -> str | None:
        """Why the numbers are not known; None where they are."""
        return next(
            (entry.reason for entry in self.withheld.values() if entry.counted is None), None
        )

    def complete(self) -> bool:
        """Return whether `alternatives` are all that there are."""
        return len(self._doubtful()) <= _MOST_ALTERNATIVES

    def alternatives(self) -> list[Sequence[DeviceDoc]]:
        """Return the lists of devices that may be numbered, the one without any in doubt first."""
        groups = self._doubtful() if self.withheld else []
        if not groups:
            return [self.devices]
        omissions = _subsets(groups) if self.complete() else _ends(groups)
        return [
            [device for device in self.devices if device["id"] not in names] for names in omissions
        ]

    def _doubtful(self) -> list[set[str]]:
        """Return the devices that may be counted, those together that share one cause.

        What fails in each device by itself is decided for each; what withholds the others (one
        library, this process's limits) is the same for all that it withholds.
        """
        groups: dict[str, set[str]] = {}
        for name, entry in self.withheld.items():
            if entry.counted is None:
                own = entry.step in ("hardware", "responding")
                groups.setdefault(name if own else entry.step, set()).add(name)
        return list(groups.values())


def _subsets(groups: Sequence[set[str]]) -> list[set[str]]:
    subsets: list[set[str]] = [set().union(*groups)]
    for group in groups:
        subsets += [subset - group for subset in subsets]
    return subsets


def _ends(groups: Sequence[set[str]]) -> list[set[str]]:
    return [set().union(*groups[place:]) for place in range(len(groups) + 1)]


def available_to(
    devices: Sequence[DeviceDoc], runtime: str, vendor: str | None = None
) -> Available:
    """Return what `runtime` (cuda, rocr, level-zero, vulkan, tinygrad, …) numbers of `devices`.

    With `vendor`, the devices of others stay in the list unjudged.
    """
    withheld: dict[str, Withheld] = {}
    for device in devices:
        # Nothing else can be withheld: spares every healthy device the search for its parent.
        if vendor in (None, device["vendor"]) and (device["parent"] or _is_suspect(device)):
            entry = _withheld(device, devices, runtime)
            if entry is not None:
                withheld[device["id"]] = entry
    if not withheld:
        return Available(devices, withheld)
    numbered = [
        device
        for device in devices
        if device["id"] not in withheld or withheld[device["id"]].counted is not False
    ]
    return Available(numbered, withheld)


def _is_suspect(device: DeviceDoc) -> bool:
    state = state_of(device)
    if state == "ready" or device["kind"] != "gpu":
        return False
    return state != "unknown" or driver_name(device) not in _OWN_DRIVERS


def _withheld(device: DeviceDoc, devices: Sequence[DeviceDoc], runtime: str) -> Withheld | None:
    step = blocking_step(device)
    if step is not None and runtime not in ("rocr", "hip") and _keeps_from(step["code"]) == "rocr":
        return None
    if step is None and runtime in ("rocr", "tinygrad"):
        step = step_without_kfd(device)
    if step is None and state_of(device) == "unknown":
        parent = _parent(device, devices) if device["parent"] else None
        step = _inherited(parent) if parent is not None else None
        if step is None:
            return _by_driver(device, runtime)
    return _judge(device, step, runtime, devices) if step is not None else None


def _parent(device: DeviceDoc, devices: Iterable[DeviceDoc]) -> DeviceDoc | None:
    name = device["parent"]
    return next((other for other in devices if name in (other["id"], *other["ids"])), None)


def _inherited(parent: DeviceDoc) -> StepDoc | None:
    """Return the step that blocks a part with its whole; what was granted is each one's own."""
    step = blocking_step(parent)
    return None if step is None or STEPS.index(step["step"]) >= _GRANTED else step


def _by_driver(device: DeviceDoc, runtime: str) -> Withheld | None:
    """Judge a device whose readiness nobody knows: of an older core's report, or another tool's."""
    name, vendor = driver_name(device), device["vendor"]
    if is_passthrough_driver(name, vendor):
        code = "reserved-for-vm"
    elif name in _OTHER_DRIVERS.get(vendor or "", ()) and runtime != "vulkan":
        code = f"{name}-bound"
    else:
        return None
    reason = f"the kernel driver {name} holds it, not the vendor's"
    return Withheld("driver", code, reason, False, False)


def _judge(
    device: DeviceDoc, step: StepDoc, runtime: str, devices: Sequence[DeviceDoc]
) -> Withheld:
    rule = _RULES.get(runtime, _native)
    visible, counted = rule(device, step["step"], step["code"] or "")
    if runtime == "vulkan" and device["vendor"] == "amd" and step["step"] in ("node", "permission"):
        visible, counted = _without_render_node(step, devices)
    fact = step["evidence"] or step["code"]
    reason = _SENTENCES[step["step"]] + (f": {fact}" if fact else "")
    if visible is None:
        reason += f"; whether {runtime} shows it all the same is not known"
    return Withheld(step["step"], step["code"], reason, visible, counted)


def _keeps_from(code: str | None) -> str:
    """Return which runtimes a cause keeps the device from; "" for all that need the step."""
    from probe_core.model.causes import cause_of

    cause = cause_of(code)
    return cause.keeps_from if cause is not None else ""


_OUT = (False, False)
_UNKNOWN = (None, None)
_LISTED = (None, True)
_COUNTED = (False, True)

_Verdict = tuple["bool | None", "bool | None"]


def _native(device: DeviceDoc, step: str, code: str) -> _Verdict:
    """Judge for a vendor's own compute runtime, which needs every step."""
    if code == "compute-prohibited":
        # The runtime enumerates the device, and refuses contexts (CUDA guide, compute modes).
        return _LISTED
    if code == "hsa-override-foreign":
        return _UNKNOWN
    return _UNKNOWN if _is_silent(device, step, code) else _OUT


def _is_silent(device: DeviceDoc, step: str, code: str) -> bool:
    """Return whether the kernel driver still has the device, which no longer answers.

    NVML goes on counting a lost GPU (koordinator#2706), and whether CUDA and HIP do is documented
    nowhere.
    """
    return step == "responding" or (code == "off-the-bus" and driver_name(device) is not None)


def _vulkan(device: DeviceDoc, step: str, code: str) -> _Verdict:
    vendor = device["vendor"]
    if step == "driver":
        return _UNKNOWN if _keeps_from(code) == "other driver" else _OUT
    if step == "library":
        # NVIDIA's Vulkan driver comes with the other libraries, whose version differs too.
        return _OUT if code == "version-mismatch" else _UNKNOWN
    if step == "runtime" or _is_silent(device, step, code):
        return _UNKNOWN
    return _UNKNOWN if _keeps_from(code) in ("cuda", "cuda rule") and vendor == "nvidia" else _OUT


def _without_render_node(step: StepDoc, devices: Iterable[DeviceDoc]) -> _Verdict:
    """Judge an AMD card of which /dev/kfd or the render node is refused: Vulkan needs the latter.

    /dev/kfd is one for all cards: where another card can be used, it is this card's own node.
    """
    others = (device for device in devices if device["vendor"] == "amd" and not device["parent"])
    kfd_is_open = any(state_of(device) in ("ready", "limited") for device in others)
    return _OUT if kfd_is_open and step["code"] != "kfd-missing" else _UNKNOWN


def _tinygrad(device: DeviceDoc, step: str, code: str) -> _Verdict:
    """Judge for the backends that open the kernel driver's own nodes and need no library."""
    if device["vendor"] != "nvidia":
        return _LISTED if step in ("library", "runtime") else _native(device, step, code)
    if step == "driver" or code == "gpu-excluded":
        return _OUT
    if step in ("library", "runtime") or _keeps_from(code) == "cuda rule":
        return _LISTED
    if _is_silent(device, step, code):
        return _UNKNOWN
    # The kernel's list of cards has it also where its node is missing or refused.
    return _OUT if step == "hardware" else _COUNTED


def _container(device: DeviceDoc, step: str, code: str) -> _Verdict:
    """Judge for containers yet to be started, by a service that has limits of its own."""
    if step in ("hardware", "driver", "library") or code == "gpu-excluded":
        return _UNKNOWN if _is_silent(device, step, code) else _OUT
    return _LISTED if step == "runtime" or _keeps_from(code) == "cuda rule" else _UNKNOWN


_RULES = {"vulkan": _vulkan, "tinygrad": _tinygrad, "nvidia-container": _container}


# What else the rules read of devices: ids, order, vendor.


def ids_of(devices: Iterable[DeviceDoc]) -> list[str]:
    """Return the ids that the report gives the devices."""
    return [device["id"] for device in devices]


def uuids(device: DeviceDoc) -> list[str]:
    """Return the device's vendor UUIDs without the report's ``uuid:`` prefix."""
    return [name[5:] for name in device["ids"] if name.startswith("uuid:")]


def pci_codes(device: DeviceDoc) -> tuple[int, int] | None:
    """Return the PCI ids of the device's vendor and of its model; None when they are not known."""
    try:
        vendor, code = (pci_model(device) or "").split(":")
        return int(vendor, 16), int(code, 16)
    except ValueError:
        return None


def driver_major(devices: Iterable[DeviceDoc]) -> int | None:
    """Return the driver's major version (580 of "580.95.05"); None when none is reported."""
    for device in devices:
        major = (driver_version(device) or "").split(".")[0]
        if major.isascii() and major.isdigit():
            return int(major)
    return None


def gpus_of(devices: Iterable[DeviceDoc], vendor: str) -> list[DeviceDoc]:
    """Return the vendor's GPUs, usable or not; partitions are not among them."""
    return [
        device
        for device in devices
        if device["vendor"] == vendor and device["kind"] == "gpu" and not device["parent"]
    ]


def in_order(devices: Sequence[DeviceDoc], ordinal: str | None = None) -> list[DeviceDoc]:
    """Return the devices in the order of a driver's ordinal, else of the PCI address.

    `ordinal` is a name in ``node_index`` (``kfd``); it counts only when every device has one.
    Devices without an address keep their place at the end.
    """
    if ordinal is not None and len(devices) > 1:
        ordinals = [(device.get("node_index") or {}).get(ordinal) for device in devices]
        numbered = [(number, place) for place, number in enumerate(ordinals) if number is not None]
        if len(numbered) == len(devices):
            return [devices[place] for _, place in sorted(numbered)]
    return sorted(devices, key=lambda device: pci_place(device) or NO_PLACE)


def integrated(device: DeviceDoc) -> bool:
    """Return whether the GPU shares the system's memory."""
    return device["memory"]["kind"] in ("shared", "unified")
