"""Tells which PCI functions compute or display, and describes those.

Most nodes have none: so all functions are judged by two files each, and what describes one is
imported when there is one.
"""

from __future__ import annotations

import os

from probe_core.api import NotApplicable, Request, Unavailable, hookimpl, not_applicable
from probe_core.model.ids import ACCELERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import Kind, Sighting
    from probe_core.probers.tree import TreeCandidate

    Answer = list[Sighting] | NotApplicable


FOLDER = "/sys/bus/pci/devices"
_DISPLAY, _ACCELERATOR, _BRIDGE, _COPROCESSOR = 0x03, 0x12, 0x06, 0x0B40

DISPLAY_ONLY = frozenset("1a03 102b 1013 1234 1b36 1af4 15ad 1414 80ee 18ca 126f 1039".split())
"""Vendors whose displays cannot compute: board management controllers and virtual adapters.

Four well-known tools count a server's ASPEED as one more GPU.
"""

# Server displays of vendors whose other devices do compute (names as in pci.ids):
# Huawei iBMC; ATI ES1000, RN50 and Rage XL.
_DISPLAY_ONLY_DEVICES = frozenset(
    "19e5:1711 1002:515e 1002:5969 1002:474d 1002:474f 1002:4752".split()
)

# What Windows projects of its own GPU, or of its software renderer, into WSL and Hyper-V: Linux's
# driver dxgkrnl calls it PCI_DEVICE_ID_VIRTUAL_RENDER, a virtual compute device. Which of both it
# is the bus does not tell; the library of the GPU's vendor does.
_PROJECTED = ("1414", "008e")

# Vendors that file their accelerators under other classes than "processing accelerator".
_ACCELERATOR_VENDORS: dict[str, Kind] = {
    "1da3": "accelerator",
    "1e52": "accelerator",
    "1e60": "npu",
    "1ac1": "npu",
    "1d95": "accelerator",
    "1e3e": "accelerator",  # chipdb has no id of Iluvatar's cards
    "cabc": "accelerator",
}

# Vendors that also make network and storage devices: only these ids are accelerators.
_ACCELERATOR_DEVICES: dict[str, tuple[Kind, frozenset[str]]] = {
    # pci.ids: NeuronDevice (Inferentia 1 and 2, Trainium 1 to 3)
    "1d0f": ("accelerator", frozenset("7064 7164 7264 7364 7564 7565".split())),
    # jax/_src/hardware_utils.py: TPU v2 to v7
    "1ae0": ("accelerator", frozenset("0027 0056 005e 0062 0063 006f 0076".split())),
}
# AMD files its NPUs under "signal processing" (linux drivers/accel/amdxdna).
_NPUS = {"1022": ("1502", "17f0")}
_PROCESSING: dict[str, Kind] = {"1002": "gpu", "8086": "npu"}
"""What a "processing accelerator" of these vendors is."""
# Storage, network and bridges: companions on an accelerator's board.
_COMPANIONS = (0x01, 0x02, _BRIDGE)

_HEXADECIMAL = frozenset("0123456789abcdef")


class PciCandidate:
    """A PCI function that computes or displays: its address, kind, ids (four digits), class.

    `device` is empty where the vendor and class told the kind.
    """

    def __init__(self, address: str, kind: Kind, vendor: str, device: str, pci_class: int) -> None:
        self.address = address
        self.kind = kind
        self.vendor = vendor
        self.device = device
        self.pci_class = pci_class


def _candidate(machine: Machine, address: str) -> PciCandidate | None:
    """Return a PCI display, accelerator or coprocessor; None of any other function."""
    folder = f"{FOLDER}/{address}"
    pci_class = machine.read_int(f"{folder}/class")
    # A server has dozens of bridges, and none of the devices below is one: one read less for each.
    if pci_class is None or pci_class >> 16 == _BRIDGE:
        return None
    vendor = _digits(machine, f"{folder}/vendor")
    if not vendor:
        return None
    # Most functions of a server are none of these: one read less for each.
    by_device = vendor in _ACCELERATOR_DEVICES or vendor in _NPUS or pci_class >> 16 == _DISPLAY
    device = _digits(machine, f"{folder}/device") if by_device else ""
    kind = _kind(vendor, device, pci_class)
    return PciCandidate(address, kind, vendor, device, pci_class) if kind else None


def _kind(vendor: str, device: str, pci_class: int) -> Kind | None:
    """Return what a device is to us, or None when it neither computes nor displays."""
    base, sub = pci_class >> 16, pci_class >> 8
    if vendor in _ACCELERATOR_DEVICES:
        kind, ids = _ACCELERATOR_DEVICES[vendor]
        return kind if device in ids else None
    if vendor in _NPUS and device in _NPUS[vendor]:
        return "npu"
    if vendor in _ACCELERATOR_VENDORS and base not in _COMPANIONS:
        return _ACCELERATOR_VENDORS[vendor]
    if (vendor, device) == _PROJECTED:
        return None
    if base == _DISPLAY:
        if vendor in DISPLAY_ONLY:
            return "display"
        return "display" if f"{vendor}:{device}" in _DISPLAY_ONLY_DEVICES else "gpu"
    if base == _ACCELERATOR:
        # Instinct cards report 0380 or 1200; Intel's NPUs 1200.
        return _PROCESSING.get(vendor, "coprocessor")
    # QuickAssist and other crypto cards share this class with Xeon Phi and vector engines: chipdb,
    # or the vendor's own prober, knows which of them compute.
    return "coprocessor" if sub == _COPROCESSOR else None


def _digits(machine: Machine, path: str) -> str:
    """Return an id as sysfs writes it (0x10de) without its prefix; "" when it is not one."""
    digits = (machine.read(path, 16) or "").lower().removeprefix("0x")
    return digits if len(digits) == 4 and _HEXADECIMAL.issuperset(digits) else ""


# Where there may be a device tree at all.

FIRMWARE = "/sys/firmware"
X86 = ("x86_64", "i686", "i386")


def may_have_tree(machine: Machine) -> bool:
    """Return whether there may be a device tree: most machines have none.

    One look instead of one at each of dozens of platform devices. A container shows /sys/firmware
    empty, and there the devices themselves may still name nodes.
    """
    return machine.exists(f"{FIRMWARE}/devicetree") or not (
        machine.arch in X86 or machine.listdir(FIRMWARE)
    )


# USB accelerators, which have no kernel driver: programs open the device's own node.

USB = "/sys/bus/usb/devices"

_CORAL: tuple[Kind, str, str] = ("npu", "google", "Coral USB Accelerator")

_USB_ACCELERATORS = {
    # libedgetpu's udev rules: as it is plugged in, and with the firmware that its first user loads.
    ("1a6e", "089a"): _CORAL,
    ("18d1", "9302"): _CORAL,
}
_USB_VENDORS = frozenset(vendor for vendor, _ in _USB_ACCELERATORS)


def usb_accelerators(machine: Machine) -> list[Sighting]:
    """Return a sighting of each USB accelerator, by its port; other devices cost one read each."""
    # usb1 is a hub of the computer, 1-2:1.0 a part of the device 1-2.
    ports = (name for name in machine.listdir(USB) if name[:1].isdecimal() and ":" not in name)
    return [sighting for port in ports if (sighting := _describe_usb(machine, port))]


def _describe_usb(machine: Machine, port: str) -> Sighting | None:
    folder = f"{USB}/{port}"
    vendor = machine.read(f"{folder}/idVendor", 16)
    if vendor not in _USB_VENDORS:
        return None
    found = _USB_ACCELERATORS.get((vendor, machine.read(f"{folder}/idProduct", 16) or ""))
    if found is None:
        return None
    kind, maker, name = found
    sighting: Sighting = {"ids": [f"usb:{port}"], "kind": kind, "vendor": maker, "name": name}
    bus, number = (machine.read_int(f"{folder}/{file}") for file in ("busnum", "devnum"))
    if bus is not None and number is not None:
        sighting["nodes"] = [f"/dev/bus/usb/{bus:03}/{number:03}"]
    return sighting


# Find every accelerator on the buses from the kernel's files: no library, no device opened.
#
# This is the safety net under all vendor libraries: a GPU whose driver is broken is still seen,
# and
# a vendor's library is only loaded where this prober saw the vendor's hardware.


@hookimpl
def probe_devices(request: Request) -> Answer:
    """Report PCI displays and accelerators, GPU and NPU nodes of the device tree, USB NPUs."""
    try:
        return Scan(request.machine).answer()
    except Unavailable as error:  # a prober under test has what it asks, and no buses beside it
        return not_applicable(error.reason)


def _refuse_unread(machine: Machine) -> None:
    """Raise `Unavailable` where nothing was found because what lists the devices was not read."""
    if not machine.listdir("/sys"):
        raise Unavailable(
            "/sys is not mounted or cannot be read: which devices are on a bus is unknown",
            code="no-sysfs",
            fix="mount /sys: `mount -t sysfs sysfs /sys`, for a chroot"
            " `mount --rbind /sys DIR/sys`",
        )
    try:
        os.listdir(machine.path(FOLDER))
    except (FileNotFoundError, NotADirectoryError):  # a kernel without PCI
        return
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unavailable(
            f"{FOLDER} cannot be read ({reason}): which devices are on the PCI bus is unknown",
            code="no-sysfs",
            fix=f"let this process read {FOLDER}: a sandbox, a service's InaccessiblePaths= or a"
            " security module keeps it away",
        ) from None


class Scan:
    """A look at the buses: first at what kind each device is, which two files of each tell.

    `vendors` are the PCI vendor ids of the devices that compute or display, four hexadecimal digits
    each: they decide which probers run. A dozen files more describe each device: `shows_any` is
    whether there is one, `shows_accelerator` whether a PCI function computes.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        functions = (_candidate(machine, address) for address in machine.listdir(FOLDER))
        self._functions = [function for function in functions if function]
        self._nodes = self._in_the_tree() if may_have_tree(machine) else []
        self._usb = usb_accelerators(machine)
        self.vendors = {function.vendor for function in self._functions}
        self.shows_any = bool(self._functions or self._nodes or self._usb)
        self.shows_accelerator = any(f.kind in ACCELERATORS for f in self._functions)

    def _in_the_tree(self) -> list[TreeCandidate]:
        from probe_core.probers.tree import tree_candidates

        return tree_candidates(self._machine)

    def answer(self) -> Answer:
        """Return a sighting of each device, or that there is none; raises `Unavailable`."""
        if not self.shows_any:
            if self._machine.os == "linux":
                _refuse_unread(self._machine)
            return not_applicable("no display, GPU or accelerator is on any bus")
        from probe_core.machine.links import remembering
        from probe_core.probers.functions import describe_pci, minors_of

        machine = remembering(self._machine)
        minors = minors_of(machine)
        described = (describe_pci(machine, function, minors) for function in self._functions)
        sightings = [sighting for sighting in described if sighting]
        if self._nodes:
            from probe_core.probers.tree import describe_tree

            sightings += describe_tree(machine, self._nodes, minors)
        sightings += self._usb
        return sightings or not_applicable("no display, GPU or accelerator is on any bus")
