"""Strong ids, the only thing that joins sightings, and the closed lists of a report's words.

Each id has one written form: ``pci:0000:01:00.0`` (domain of four or more hex digits) ·
``uuid:GPU-…`` · ``dt:/soc/gpu@fb000000`` · ``cpu:0`` · ``<prober>:<anything stable>`` for what has
no better one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from probe_core.model.document import DeviceDoc


UUID_PREFIXES = ("GPU", "MIG", "CPU", "NPU")
"""What vendors' own UUIDs begin with (NVML, ROCr); those of Vulkan and others have no prefix."""
_VENDORS_OWN = tuple(f"{prefix}-" for prefix in UUID_PREFIXES)
_STRENGTH = {"pci": 0, "dt": 1, "uuid": 2, "cpu": 0}
"""Lower names a device: an address is what `lspci` shows, and no two devices share it."""

ID_LIMIT = 256
"""Characters of an id. A judgement: the longest are device-tree paths, far shorter than this."""

_ADDRESS = frozenset("0123456789abcdefABCDEF:.")  # `int` also takes signs and underscores
_HEX = "0123456789abcdef"


def normalise_id(text: str) -> str:
    """Return the one form of an id; raises `ValueError` with the reason.

    NVML writes PCI domains with eight hex digits, sysfs with four: both are numbers, and are
    compared as such (``0000000F:01:00.0`` is ``pci:000f:01:00.0``; domains beyond ffff stay long).
    """
    if _is_plain_address(text):
        return text
    kind, colon, value = text.partition(":")
    if not colon or not value.strip() or len(text) > ID_LIMIT:
        raise ValueError(
            f"the id {text[:60]!r} is not `kind:value` of at most {ID_LIMIT} characters"
        )
    if not text.isprintable() or not text.isascii() or " " in text:
        raise ValueError(f"the id {text[:60]!r} holds characters other than printable ASCII")
    kind = kind.lower()
    if kind == "pci":
        return pci_id(value)
    return f"{kind}:{_uuid(value) if kind == 'uuid' else value}"


def _is_plain_address(text: str) -> bool:
    """Return whether an id is ``pci:dddd:bb:dd.f`` already, as nearly all are that name a device.

    Each link of each device names its peer: that costs a tenth of parsing the numbers.
    """
    return (
        len(text) == 16
        and text.startswith("pci:")
        and text[8] == text[11] == ":"
        and text[14] == "."
        and text[12] in "01"
        and text[15] in "01234567"
        and not (text[4:8] + text[9:11] + text[13]).strip(_HEX)
    )


def _uuid(text: str) -> str:
    """Return a UUID with its prefix's case kept and its hex digits in lower case."""
    prefix, dash, digits = text.partition("-")
    if dash and prefix.upper() in UUID_PREFIXES:
        # MIG-GPU-…/7/0, NVML's form before driver 470, holds the GPU's own UUID.
        return f"{prefix.upper()}-{digits if digits.startswith('GPU-') else digits.lower()}"
    return text


def pci_id(address: str) -> str:
    """Return ``pci:dddd:bb:dd.f`` of an address with or without a domain."""
    head, dot, function = address.rpartition(".")
    parts = head.split(":")
    if len(parts) == 2:
        parts = ["0", *parts]
    try:
        domain, bus, device = (int(part, 16) for part in parts)
        number = int(function, 16)
    except ValueError:
        raise ValueError(f"{address[:60]!r} is no PCI address (dddd:bb:dd.f)") from None
    well_formed = dot and _ADDRESS.issuperset(address)
    if not (well_formed and domain < 1 << 32 and bus < 256 and device < 32 and number < 8):
        raise ValueError(f"{address[:60]!r} is no PCI address (dddd:bb:dd.f)")
    return f"pci:{domain:04x}:{bus:02x}:{device:02x}.{number:x}"


def strength(identity: str) -> tuple[int, str]:
    """Sort key: the best id of a device comes first and names it."""
    return (_STRENGTH.get(identity.partition(":")[0], 3), identity)


def single(identity: str) -> str | None:
    """Return what the id is of which a device has but one (``pci``, ``uuid``); None for others.

    A device may have a UUID of its vendor's and others of Vulkan's or Level Zero's making.
    """
    kind, _, value = identity.partition(":")
    if kind == "uuid":
        return kind if value.startswith(_VENDORS_OWN) else None
    return kind if kind == "pci" else None


def fits_kind(identity: str, kind: str) -> bool:
    """Return whether a device of `kind` can have an id: ``cpu:0`` is a processor's, never a GPU's.

    A processor has no PCI address and no GPU's UUID. Among GPUs, NPUs, other accelerators and
    displays the ids do not tell: sources name one device differently (the bus a display, its
    driver a GPU).
    """
    if identity.startswith(("cpu:", "uuid:CPU-")):
        return kind == "cpu"
    return kind != "cpu" or not (identity.startswith("pci:") or single(identity))


# What a name is that others choose: the gate before each output that another program reads.
#
# Shells run, and label stores, schedulers and metrics refuse, what stands in them unquoted. A name
# that does not pass is left out of such an output, never escaped: each reader has escapes of its
# own. People are shown every name (`clean_text`), and JSON has it as it is.

_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_ID = _WORD | frozenset(":/@+")
"""Of a device tree's path: ``dt:/soc/gpu@fb000000``. Not the comma, which parts the ids of a list
(``--device``, CUDA_VISIBLE_DEVICES), though the device tree allows it."""

_INSIDE = "-."
"""What no name begins with: an option begins with the first, a hidden file with the second."""

MAX_PROBER_NAME = 64
_MAX_DISTRIBUTION = 128
"""Characters; a judgement: four times the longest name of ours."""

_MAX_CODE = 60
"""Characters, as a prober's finding may have."""


def is_prober_name(text: str) -> bool:
    """Return whether `text` can be a prober's name: ``nvidia``."""
    return _is_word(text, MAX_PROBER_NAME)


def is_distribution_name(text: str) -> bool:
    """Return whether `text` can be a distribution's name: ``probe-nvidia``."""
    return _is_word(text, _MAX_DISTRIBUTION)


def is_code(text: str) -> bool:
    """Return whether `text` can be the code of a finding, a check or a step: ``driver-missing``."""
    return _is_word(text, _MAX_CODE)


def is_device_id(text: str) -> bool:
    """Return whether `text` can be given to other programs as a device's id.

    Stricter than `normalise_id`: an id only has to be printable to join the sightings of a device.
    """
    kind, colon, value = text.partition(":")
    is_id = bool(colon and value) and len(text) <= ID_LIMIT and _ID.issuperset(text)
    return is_id and kind.isalnum()


def _is_word(text: str, limit: int) -> bool:
    return 0 < len(text) <= limit and text[0] not in _INSIDE and _WORD.issuperset(text)


# Where a device says that it is, and what drives it: None where no prober told. A device is a
# report's, or a sighting as a request's bus has it; nobody else takes these two tables apart.


def pci_address(device: DeviceDoc) -> str | None:
    """Return the device's PCI address as /sys writes it; None off that bus."""
    return next((name[4:] for name in device["ids"] if name.startswith("pci:")), None)


def pci_place(device: DeviceDoc) -> tuple[int, int, int, int] | None:
    """Return domain, bus, device and function of the device's PCI address; None without one."""
    first = device["id"]
    # Nearly always the first id, and asked for each device of each runtime.
    names = (first,) if first.startswith("pci:") else device["ids"]
    for name in names:
        if name.startswith("pci:"):
            try:
                _, domain, bus, slot = name.split(":")
                number, function = slot.split(".")
                return int(domain, 16), int(bus, 16), int(number, 16), int(function, 16)
            except ValueError:
                continue
    return None


NO_PLACE = (1 << 40, 0, 0, 0)
"""Sorts behind every PCI address: domains go beyond 16 bits (Intel VMD's begin at 0x10000)."""


def pci_model(device: Mapping[str, object]) -> str | None:
    """Return the PCI ids of vendor and model, as ``10de:2684``."""
    return _fact(device, "pci", "id")


def pci_vendor(device: Mapping[str, object]) -> str | None:
    """Return the four hexadecimal digits of the PCI vendor."""
    return (pci_model(device) or "").partition(":")[0] or None


def pci_product(device: Mapping[str, object]) -> str | None:
    """Return the four hexadecimal digits that the vendor gave the model."""
    return (pci_model(device) or "").partition(":")[2] or None


def pci_fact(
    device: Mapping[str, object], name: Literal["subsystem", "revision", "class"]
) -> str | None:
    """Return a fact of PCI: ids of the board's maker and board (``1043:88b2``), or digits in hex.

    The revision has two digits, the class six.
    """
    return _fact(device, "pci", name)


def driver_name(device: Mapping[str, object]) -> str | None:
    """Return the name of the kernel driver that a prober reported."""
    return _fact(device, "driver", "name")


def driver_version(device: Mapping[str, object]) -> str | None:
    """Return the version of that driver, as the driver writes it."""
    return _fact(device, "driver", "version")


def driver_fact(device: Mapping[str, object], name: str) -> str | None:
    """Return what only drivers of one vendor tell: ``cuda``, the newest CUDA that it serves."""
    return _fact(device, "driver", name)


def _fact(device: Mapping[str, object], table: str, name: str) -> str | None:
    facts: Any = device.get(table)
    return facts.get(name) or None if facts else None


def driver_text(device: DeviceDoc) -> str | None:
    """Return the driver's name and version, as far as they are known."""
    return " ".join(filter(None, (driver_name(device), driver_version(device)))) or None


def whole(device: DeviceDoc, field: Literal["units", "threads"]) -> int | None:
    """Return the count of the whole device, of which this process may use what the field has."""
    nominal = device["chip"].get("nominal") or {}
    count = nominal.get(field, device.get(field))
    return count if isinstance(count, int) else None


# The kinds of devices, in the order in which reports list them.

ACCELERATORS = ("gpu", "npu", "accelerator")
"""Kinds that compute for others; a display adapter of a server's BMC does not.

A coprocessor may, for all that is known: crypto cards file themselves under the same PCI class.
"""

KINDS = (*ACCELERATORS, "cpu", "coprocessor", "display")
"""Every value that a device's `kind` may have."""

KIND_ORDER = {"gpu": 0, "accelerator": 1, "npu": 2, "cpu": 3, "coprocessor": 4, "display": 5}
"""Place of each kind in a report's list: what frameworks use first comes first."""


# How a prober's run can end.

STATUSES: dict[str, str] = {
    "ok": "it reported devices",
    "not_applicable": "nothing of its own is here",
    "unavailable": "its hardware is here but cannot be queried",
    "skipped": "it was not run",
    "load_error": "its module or hook could not be loaded",
    "call_error": "it raised",
    "invalid": "it returned something other than devices",
    "timeout": "it did not end before its deadline",
    "crashed": "its process died",
    "protocol": "its process broke the protocol",
    "resource": "it used more than it may",
}
"""Status of an outcome to what it means."""

FAILURES = frozenset(
    {"load_error", "call_error", "invalid", "timeout", "crashed", "protocol", "resource"}
)
"""Statuses that are the prober's fault, or its process's."""


# The chain that a device must hold for this process to use it: its steps, states and words.
#
# What judges the steps is `probe_core.readiness`; what only reads the result needs these.

STEPS = (
    "hardware",
    "driver",
    "node",
    "permission",
    "library",
    "responding",
    "granted",
    "visible",
    "runtime",
)
"""From the bus to the program, in the order in which a break hides what comes after it."""

STATES = ("ready", "limited", "blocked", "unknown")
"""`limited`: usable with less than the device has. `unknown` never keeps a device from use."""

NODE_UNKNOWN = "node-unknown"
"""Code of the step `node` where nobody knows which nodes the device's programs open."""

SEVERITIES = ("info", "warning", "error")
"""Of findings, and of broken steps; the lowest first."""

STEP_STATUSES = ("ok", "broken", "unknown", "not_applicable")
"""What may be said of a step; unknown comes with the reason as its evidence."""


# Kernel drivers that reserve a device for a virtual machine: one list for every step that asks.
#
# Such a driver binds the device and leaves it to a guest (passthrough). No runtime of this system
# can open the device then, so it is neither primary nor counted by CUDA, ROCm or Vulkan.

PASSTHROUGH_DRIVERS = (
    # "Simple stub driver to reserve a PCI device" (Linux, drivers/pci/pci-stub.c).
    "pci-stub",
    # Xen's driver registers as pciback: "The name should be xen_pciback, but until the tools are
    # updated we will keep it as pciback" (Linux, drivers/xen/xen-pciback/pci_stub.c).
    "pciback",
    # The module of that driver, as people and tools write it.
    "xen-pciback",
    # Generic passthrough (Linux, drivers/vfio/pci/vfio_pci.c).
    "vfio-pci",
)
"""Names in ``/sys/bus/pci/drivers``. Variants of vfio-pci: `is_passthrough_driver`."""

# The kernel's variants of vfio-pci (drivers/vfio/pci/*/main.c) are named after it, with hyphens
# (xe-vfio-pci for Intel GPUs) or underscores (nvgrace_gpu_vfio_pci for GH200, GB200 and GB300,
# which takes its name from KBUILD_MODNAME; qat_vfio_pci).
_VARIANT = "-vfio-pci"

# libtpu drives TPUs from v5e on through vfio-pci: no guest has them (Ray,
# python/ray/_private/accelerators/tpu.py, counts the entries of /dev/vfio as chips).
_DRIVEN_FROM_USER_SPACE = (("google", "vfio-pci"),)


def is_passthrough_driver(driver: str | None, vendor: str | None = None) -> bool:
    """Return whether a kernel driver keeps a device of `vendor` from this system's runtimes."""
    if driver is None or (vendor, driver) in _DRIVEN_FROM_USER_SPACE:
        return False
    return driver in PASSTHROUGH_DRIVERS or driver.replace("_", "-").endswith(_VARIANT)
