"""What points to an accelerator that is not there: "healthy" is said after these were looked at.

A bus without an accelerator looks like one whose accelerator is lost, switched off, or was given to
nobody. What happened left a sign elsewhere: a setting of the firmware, a rule of udev, a line of
the kernel's log, a driver with nothing to drive. Each sign is a row of `SIGNS`. All are files that
the kernel answers from memory, or small ones of the configuration: no device is opened or woken.
"""

from __future__ import annotations

from probe_core.doctor.causes import fixed, of_cause
from probe_core.doctor.check import FunctionCheck, failed, not_applicable, passed, unknown
from probe_core.doctor.log import FILES, kernel_log
from probe_core.machine.engines import option
from probe_core.model.causes import CAUSES
from probe_core.model.fix import REBOOT, Blank, at, by_hand, otherwise, parts_of, reboot, run
from probe_core.model.ids import pci_vendor
from probe_core.readiness.actions import HOST, WINDOWS
from probe_core.readiness.distributions import os_release
from probe_core.readiness.switched import (
    ARMOURY,
    ASUS,
    EGPU,
    PRIME,
    RULES,
    SUPERGFX,
    SUSE_PRIME,
    modes,
    removals,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.doctor.document import CheckDoc, ShownFindingDoc
    from probe_core.model.document import Severity
    from probe_core.model.fix import Fix

    Look = Callable[["Place"], "Trace | Unseen | None"]


class Trace:
    """A sign that is there: what was read where, and the step to take.

    `severity` is set where it is not the cause's own.
    """

    def __init__(self, evidence: str, fix: Fix, severity: Severity | None = None) -> None:
        self.evidence = evidence
        self.fix = fix
        self.severity = severity


class Unseen:
    """A sign that could not be looked at, and why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Sign:
    """One row: the code of its cause, what it reads, how it is looked for.

    `explained_by` are the codes of signs that say why this one is there: with one of them it is no
    finding of its own.
    """

    def __init__(
        self, code: str, needs: Sequence[str], look: Look, explained_by: Sequence[str] = ()
    ) -> None:
        self.code = code
        self.needs = tuple(needs)
        self.look = look
        self.explained_by = tuple(explained_by)


# What is there: the devices of the report, and the functions on the bus.

BUS = "/sys/bus/pci/devices"
_MAX_FUNCTIONS = 4096
"""Functions that are looked at: ten times those of a server with eight GPUs and their switches."""

_GPU_CLASSES = ("0x03", "0x12")
"""PCI classes of displays and of processing accelerators (PCI Code and ID Assignment)."""

_NVIDIA, _AMD = "10de", "1002"


class Place:
    """One machine while signs are looked for."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.machine = request.machine
        self.report = request.report
        self.scene = request.scene
        self._addresses: list[str] | None = None
        self._vendors: dict[str, str] = {}

    @property
    def addresses(self) -> list[str]:
        """The functions on the PCI bus."""
        if self._addresses is None:
            self._addresses = self.machine.listdir(BUS)[:_MAX_FUNCTIONS]
        return self._addresses

    @property
    def is_virtual(self) -> bool:
        """Whether this is a virtual machine: what it lacks is the hypervisor's to give."""
        return self.report["node"]["vm"] is not None

    def vendor(self, address: str) -> str:
        """Return the PCI vendor of a function: "10de"."""
        if address not in self._vendors:
            text = self.machine.read(f"{BUS}/{address}/vendor", 16) or ""
            self._vendors[address] = text.removeprefix("0x")
        return self._vendors[address]

    def has(self, vendor: str, *, any_class: bool = False) -> bool:
        """Return whether the report, or the bus, has an accelerator of a PCI vendor.

        The bus counts beside the report, which leaves out what probers were told not to look at.
        Of vendors of processors and boards only displays and accelerators count.
        """
        if any(pci_vendor(device) == vendor for device in self.report["devices"]):
            return True
        own = (address for address in self.addresses if self.vendor(address) == vendor)
        return any(any_class or self.is_of(address, *_GPU_CLASSES) for address in own)

    def has_nvidia(self) -> bool:
        """Return whether a GPU of NVIDIA is there; a Jetson's is on no PCI bus."""
        named = any(device["vendor"] == "nvidia" for device in self.report["devices"])
        return named or self.has(_NVIDIA)

    def is_of(self, address: str, *classes: str) -> bool:
        """Return whether a function is of one of these PCI classes."""
        return (self.machine.read(f"{BUS}/{address}/class", 16) or "").startswith(classes)


# Linux in Windows: the GPU comes through /dev/dxg, which WSL 1 does not have.

_DXG = "/dev/dxg"
_VERSION_1 = "-Microsoft"
"""How the release of WSL 1's kernel ends ("4.4.0-19041-Microsoft"); WSL 2's has it in lower case,
before its version ("5.15.153.1-microsoft-standard-WSL2")."""


def _wsl_1(place: Place) -> Trace | None:
    release = place.scene.release
    if not release.endswith(_VERSION_1):
        return None
    name = place.machine.environ.get("WSL_DISTRO_NAME", Blank("NAME"))
    command = run("wsl --set-version {name} 2").filled({"name": name})
    fix = (at(WINDOWS, "in Windows "), command, " (`wsl --list` has the names)")
    return Trace(f"/proc/sys/kernel/osrelease: {release}", fix)


def _wsl_2(place: Place) -> Trace | Unseen | None:
    scene = place.scene
    if not scene.wsl or scene.release.endswith(_VERSION_1) or scene.container is not None:
        return None
    if place.machine.exists(_DXG):
        return None
    if not scene.shows_nodes:
        return Unseen("the recording has no /dev")
    return Trace(
        f"{_DXG} is not there; the kernel is {scene.release}",
        (
            at(WINDOWS, "in Windows "),
            by_hand("install the GPU's driver"),
            *(", then ", run("wsl --update"), " and ", run("wsl --shutdown"), "; start WSL anew"),
        ),
    )


# Laptops whose discrete GPU somebody switched off: by the firmware, by a rule, by a mode.


def _off_in_firmware(place: Place) -> Trace | None:
    path = next((path for path in (ASUS, ARMOURY) if place.machine.read(path, 16) == "1"), None)
    if path is None or place.has_nvidia():
        return None
    return Trace(
        f"{path}: 1",
        (
            *(run("supergfxctl -m Hybrid"), REBOOT, otherwise("; or, without supergfxctl, ")),
            *(run(f"echo 0 | sudo tee {path}"), REBOOT),
        ),
    )


def _egpu_off(place: Place) -> Trace | None:
    read = place.machine.read
    states = {paths: [read(path, 16) for path in paths] for paths in EGPU.items()}
    for (connected, enable), state in states.items():
        if state == ["1", "0"]:
            fix = (
                *(run(f"echo 1 | sudo tee {enable}"), REBOOT),
                "; the laptop's own discrete GPU is off then",
            )
            return Trace(f"{connected}: 1; {enable}: 0", fix)
    return None


_VENDORS = (_NVIDIA, _AMD)
_MAX_LINE = 160
"""Characters of a line that a finding quotes."""


def _by_rule(place: Place) -> Trace | None:
    for path, line in removals(place.machine):
        vendor = next((own for own in _VENDORS if f'"0x{own}"' in line), _NVIDIA)
        if not place.has(vendor):
            by_tool = path.endswith("/50-remove-nvidia.rules")
            edit = by_hand(f"remove that line from {path}", removes=(f"line {line} of {path}",))
            undo = run("sudo envycontrol -s hybrid") if by_tool else edit
            return Trace(f"{path}: {line[:_MAX_LINE]}", (undo, REBOOT))
    return None


_UNDO = {
    SUPERGFX: run("supergfxctl -m Hybrid"),
    PRIME: run("sudo prime-select nvidia"),
    SUSE_PRIME: run("sudo prime-select nvidia"),
}


def _by_mode(place: Place) -> Trace | None:
    for path, text in () if place.has_nvidia() else modes(place.machine):
        # Ubuntu's file comes without a GPU, too: without a driver nobody switched one off.
        if path != PRIME or _driver_files(place):
            undo = _UNDO[path]
            if path == PRIME and os_release(place.scene.machine).get("ID") == "pop":
                undo = run("sudo system76-power graphics hybrid")
            return Trace(f"{path}: {text}", (undo, REBOOT))
    return None


# Thunderbolt and USB4: a device that is connected and may not use PCIe yet.

THUNDERBOLT = "/sys/bus/thunderbolt/devices"
"""Linux, Documentation/ABI/testing/sysfs-bus-thunderbolt: `authorized` is 0 of what is not yet."""

_MAX_ROUTERS = 64
# Words in the names of enclosures for GPUs ("Core X Chroma" of Razer: openrazer#954; "Breakaway
# Box" of Sonnet), and of what has none (docks, displays, disks, network). A judgement; a name with
# none of these words may be either.
_ENCLOSURES = ("egpu", "egfx", "core", "breakaway", "gaming box", "xg mobile", "xg station")
_OTHERS = (
    *("dock", "hub", "display", "monitor", "studio", "ssd", "disk", "drive", "raid", "storage"),
    *("ethernet", "network", "10g", "adapter", "nvme", "station", "macbook", "imac", "mac mini"),
)
_NO_PCIE = ("dponly", "usbonly", "nopcie")


def _egpu(place: Place) -> Trace | None:
    unclear = None
    for name in place.machine.listdir(THUNDERBOLT)[:_MAX_ROUTERS]:
        folder = f"{THUNDERBOLT}/{name}"
        if "-" not in name or place.machine.read(f"{folder}/authorized", 8) != "0":
            continue
        title = place.machine.read(f"{folder}/device_name", 128) or ""
        if any(word in title.lower() for word in _ENCLOSURES):
            return _enrol(place, folder, title)
        if unclear is None and not any(word in title.lower() for word in _OTHERS):
            unclear = _enrol(place, folder, title, "info")
    return unclear


def _enrol(place: Place, folder: str, title: str, severity: Severity | None = None) -> Trace:
    name = " ".join(filter(None, (place.machine.read(f"{folder}/vendor_name", 128), title)))
    domain = folder.rpartition("/")[2].partition("-")[0]
    level = place.machine.read(f"{THUNDERBOLT}/domain{domain}/security", 32) or ""
    evidence = f"{folder}/authorized: 0 ({name or 'a device without a name'})"
    if level in _NO_PCIE:  # nothing can be authorised at these levels
        fix = "allow PCIe devices in the firmware setup's Thunderbolt security level"
        return Trace(f"{evidence}; the domain's security is {level}", fix, severity)
    ident = place.machine.read(f"{folder}/unique_id", 64) or Blank("UUID")
    command = run("boltctl enroll {ident}").filled({"ident": ident})
    hint = ", of `boltctl list`" if isinstance(ident, Blank) else ""
    return Trace(evidence, (command, hint), severity)


# What the kernel saw, and has no more.

# NVIDIA's Xid 79 ("Xid Errors"), nv.c and nv-pci.c of open-gpu-kernel-modules ("Attempting to
# remove device … with non-zero usage count!"), and amdgpu's own words.
_LOST = ("fallen off the bus", "device lost from bus", "with non-zero usage count!")
_XID_79 = "): 79,"


def _lost(place: Place) -> Trace | Unseen | None:
    log = kernel_log(place.request)
    if log.text is None:
        return Unseen(log.reason)
    line = next((line for line in _lost_lines(log.text) if _is_gone(place, line)), None)
    if line is None:
        return None
    fix: Fix = (
        reboot("power the machine off and on"),
        "; if the device does not come back, check seating, power cables and riser",
    )
    if place.is_virtual:
        fix = "stop the virtual machine and start it again; the host's kernel log has more"
    return Trace(f"kernel log: {line.strip()[:_MAX_LINE]}", fix)


def _lost_lines(text: str) -> Iterator[str]:
    """Yield the lines that name a lost device; one message may take three lines."""
    named = ""
    for line in text.splitlines():
        if _address(line):
            named = line
        if any(words in line for words in _LOST) or ("NVRM: Xid (" in line and _XID_79 in line):
            yield line if _address(line) else named


def _is_gone(place: Place, line: str) -> bool:
    address = _address(line)
    return address is not None and address not in place.addresses


def _address(line: str) -> str | None:
    """Return the PCI address in a line, as /sys has it: "PCI:0000:01:00" is 0000:01:00.0."""
    for word in line.replace("(", " ").replace(")", " ").split():
        text = word.strip(":,").removeprefix("PCI:").lower()
        domain, _, rest = text.partition(":")
        bus, _, function = rest.partition(":")
        digits = f"{domain}{bus}{function.replace('.', '')}"
        if (len(domain), len(bus)) == (4, 2) and all(c in "0123456789abcdef" for c in digits):
            return text if "." in function else f"{text}.0"
    return None


_AUDIO = "0x0403"


def _orphan(place: Place) -> Trace | None:
    """Look for a GPU's sound function without the GPU, which is function 0 of the same slot."""
    there = set(place.addresses)
    for address in place.addresses:
        slot, _, function = address.rpartition(".")
        if function == "0" or f"{slot}.0" in there or place.vendor(address) not in _VENDORS:
            continue
        if (place.machine.read(f"{BUS}/{address}/class", 16) or "").startswith(_AUDIO):
            return Trace(
                f"{BUS} has {address}, a GPU's sound function, and no {slot}.0",
                CAUSES["function-without-gpu"].parts,
            )
    return None


# Containers that were to have a device.

_NVIDIA_PROC = "/proc/driver/nvidia/version"
# Variable to (PCI vendor, resource in Kubernetes, vendor of `option`): set by a vendor's image or
# device plugin, and read by its container runtime.
_GRANTS = {
    "NVIDIA_VISIBLE_DEVICES": (_NVIDIA, "nvidia.com/gpu", "nvidia"),
    "HABANA_VISIBLE_DEVICES": ("1da3", "habana.ai/gaudi", "gaudi"),
}
_NOTHING = ("", "none", "void")


def _container(place: Place) -> Trace | None:
    if place.machine.exists(_DXG) or place.scene.container is None:
        return None
    for variable, (vendor, resource, maker) in _GRANTS.items():
        value = place.machine.environ.get(variable, "")
        if value in _NOTHING or place.has(vendor) or (maker == "nvidia" and place.has_nvidia()):
            continue
        # Vendors' images say "all" wherever they are started: no more than a hint.
        severity: Severity | None = "info" if value == "all" else None
        fix = _granted(place, maker, resource, is_granted=value != "all")
        evidence = f"{variable}={value[:80]}; no device of vendor {vendor} on the PCI bus"
        return Trace(evidence, fix, severity)
    if (trace := _ascend(place)) is not None:
        return trace
    if place.scene.nvidia_version and not place.addresses and not place.has_nvidia():
        fix = _granted(place, "nvidia", "nvidia.com/gpu", is_granted=False)
        return Trace(f"{_NVIDIA_PROC} is the host's; the container has no device of it", fix)
    return None


# Ascend Docker Runtime mounts what the variable names, and this node beside it; "void" and "" are
# none (MindCluster, "Containerization"). Kunpeng's boards have a display of the same vendor.
_ASCEND, _ASCEND_NODE = "ASCEND_VISIBLE_DEVICES", "/dev/davinci_manager"
_HUAWEI, _ACCELERATOR = "19e5", "0x12"


def _ascend(place: Place) -> Trace | None:
    value = place.machine.environ.get(_ASCEND, "")
    if value in _NOTHING or not place.scene.shows_nodes or place.machine.exists(_ASCEND_NODE):
        return None
    own = (address for address in place.addresses if place.vendor(address) == _HUAWEI)
    if any(place.is_of(address, _ACCELERATOR) for address in own):
        return None
    evidence = f"{_ASCEND}={value[:80]}; no {_ASCEND_NODE}, no NPU of Ascend on the PCI bus"
    if place.scene.container == "kubernetes":
        return Trace(evidence, CAUSES["container-without-device"].fixes["kubernetes"])
    from probe_core.readiness.driver_nodes import ROWS

    row = next(row for row in ROWS if row.maker == "ascend")
    return Trace(evidence, f"start the container anew, on a host with an NPU, with {row.container}")


def _granted(place: Place, maker: str, resource: str, *, is_granted: bool) -> str:
    engine = place.scene.container or ""
    if engine == "kubernetes" and is_granted and maker == "nvidia":
        # The device plugin granted one, and the runtime that mounts it was not used.
        return "set `runtimeClassName: nvidia` in the pod's spec, or make it the default"
    if engine == "kubernetes":
        return f"request it: `resources.limits: {{{resource}: 1}}`"
    nodes = option(maker, engine).replace("{node}", "/dev/accel")
    return f"start the container anew with {nodes}"


# A driver that has nothing to drive.

PROC_MODULES = "/proc/modules"
# Module to the PCI vendor of its devices. nvidia does not stay loaded where it finds no GPU ("None
# of the NVIDIA devices were initialized", No such device): it had one. The others load by the PCI
# ids of their devices, or where somebody asked. i915 and xe are left out: the sound driver of
# Intel's processors asks for them (snd_hdac_i915).
_MODULES = {
    "nvidia": _NVIDIA,
    "amdgpu": _AMD,
    "habanalabs": "1da3",
    "qaic": "17cb",
    "hailo_pci": "1e60",
    "apex": "1ac1",
    "tenstorrent": "1e52",
    "neuron": "1d0f",
}
_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")


def _driver(place: Place) -> Trace | None:
    if place.scene.wsl:
        return None  # its driver is Windows's, and the check wsl-linux-driver has the Linux one
    for module, vendor in _MODULES.items():
        if _is_loaded(place, module) and not _drives(place, vendor):
            evidence = f"{PROC_MODULES}: {module}; no device of vendor {vendor} on the PCI bus"
            return Trace(evidence, _present(place, vendor))
    # An image brings its own libraries: in a container they say nothing of the host.
    if place.scene.container is not None or place.has_nvidia():
        return None
    if path := _driver_files(place):
        evidence = f"{path} is installed; no device of vendor {_NVIDIA} on the PCI bus"
        return Trace(evidence, _present(place, _NVIDIA))
    return None


def _drives(place: Place, vendor: str) -> bool:
    if vendor == _NVIDIA:
        return place.has_nvidia()
    return place.has(vendor, any_class=vendor != _AMD)


def _is_loaded(place: Place, module: str) -> bool:
    text = place.machine.read(PROC_MODULES, 256 << 10) or ""
    return any(line.startswith(f"{module} ") for line in text.splitlines())


def _driver_files(place: Place) -> str | None:
    """Return the library of NVIDIA's driver, by the name that has its version; None without one.

    CUDA's toolkit has stubs of the same name, which belong to no driver.
    """
    for name in _LIBRARIES:
        for path in place.scene.libraries.find(name):
            version = place.scene.machine.realpath(path).rpartition(".so.")[2]
            if version.count(".") and version.replace(".", "").isdecimal():
                return path
    return None


def _present(place: Place, vendor: str) -> Fix:
    command = f"`lspci -d {vendor}:`"
    if place.scene.container is not None:
        return at(
            HOST, "on the host: "
        ), f"{command} must list the device; check its power, slot and seating"
    if place.is_virtual:
        return (
            "attach the device to this virtual machine in its hypervisor (passthrough), or take an"
            " instance type that has one"
        )
    return (
        f"{command} must list the device: check seating, power cables and riser, and that the slot"
        " is on in the firmware setup; where no card is meant to be, nothing"
    )


# The signs, those first that say why others are there.

_PCI_FILES = (f"{BUS}/*/vendor", f"{BUS}/*/class")
_SWITCHED = ("gpu-off-in-firmware", "gpu-removed-by-rule", "gpu-off-by-mode")
_EGPU_OFF = "egpu-off-in-firmware"

SIGNS: tuple[Sign, ...] = (
    Sign("wsl-1", (), _wsl_1),
    Sign("wsl-without-gpu", (_DXG,), _wsl_2),
    Sign("gpu-off-in-firmware", (ASUS, ARMOURY, *_PCI_FILES), _off_in_firmware),
    Sign("gpu-removed-by-rule", (*RULES, *_PCI_FILES), _by_rule, _SWITCHED[:1]),
    Sign(
        "gpu-off-by-mode",
        (SUPERGFX, PRIME, SUSE_PRIME, *_PCI_FILES),
        _by_mode,
        _SWITCHED[:2],
    ),
    Sign(_EGPU_OFF, (*EGPU, *EGPU.values()), _egpu_off),
    Sign("egpu-not-authorized", (THUNDERBOLT,), _egpu),
    Sign("container-without-device", (_DXG, _NVIDIA_PROC, _ASCEND_NODE, *_PCI_FILES), _container),
    # A GPU that is switched off while its driver starts is logged as lost.
    Sign("device-lost", (*FILES, BUS), _lost, (*_SWITCHED, _EGPU_OFF)),
    Sign("function-without-gpu", _PCI_FILES, _orphan, (*_SWITCHED, "device-lost")),
    Sign(
        "driver-without-device",
        (PROC_MODULES, *_PCI_FILES),
        _driver,
        (
            *(*_SWITCHED, _EGPU_OFF, "egpu-not-authorized", "container-without-device"),
            *("device-lost", "function-without-gpu"),
        ),
    ),
)

_BY_CODE: Mapping[str, Sign] = {sign.code: sign for sign in SIGNS}


def looked_at(checks: Iterable[CheckDoc]) -> int:
    """Return how many of the signs were looked at, of the doctor's checks."""
    return sum(check["code"] in _BY_CODE and check["status"] != "unknown" for check in checks)


def points_to_one(findings: Iterable[ShownFindingDoc]) -> bool:
    """Return whether one of the doctor's findings is a sign: "healthy" is not said over it."""
    return any(finding["code"] in _BY_CODE for finding in findings)


def _judged(sign: Sign, request: Request) -> ResultDoc:
    if request.machine.os != "linux":
        return not_applicable("this is not Linux")
    place = request.once("place of signs", lambda: Place(request))
    trace = sign.look(place)
    if isinstance(trace, Unseen):
        return unknown(trace.reason)
    if trace is None or _is_explained(sign, place):
        return passed()
    finding = of_cause(request, sign.code, trace.evidence)
    fixed(finding, _from_here(trace.fix, sign, place), request)
    finding["severity"] = trace.severity or finding["severity"]
    return failed(finding)


_OF_CONTAINERS = ("container-without-device", "driver-without-device")
"""Signs whose steps say themselves where they are taken."""


def _from_here(fix: Fix, sign: Sign, place: Place) -> Fix:
    """Return a step as it is told here: nothing inside a container changes the host's bus."""
    is_hosts = place.scene.container is not None and sign.code not in _OF_CONTAINERS
    return (at(HOST, "on the host: "), *parts_of(fix)) if is_hosts else fix


def _is_explained(sign: Sign, place: Place) -> bool:
    others = (_BY_CODE[code].look(place) for code in sign.explained_by)
    return any(isinstance(trace, Trace) for trace in others)


def _check(sign: Sign) -> FunctionCheck:
    further = (word for code in sign.explained_by for word in _BY_CODE[code].needs)
    return FunctionCheck(
        sign.code,
        lambda request: _judged(sign, request),
        step=CAUSES[sign.code].step,
        needs=tuple(dict.fromkeys((*sign.needs, *further))),
        summary=f"Whether {CAUSES[sign.code].meaning}.",
    )


CHECKS = [_check(sign) for sign in SIGNS]
