"""Strong ids: the only thing that joins sightings. Each has one written form.

``pci:0000:01:00.0`` (domain of four or more hex digits) · ``uuid:GPU-…`` · ``dt:/soc/gpu@fb000000``
· ``cpu:0`` · ``<prober>:<anything stable>`` for what has no better one.
"""

from __future__ import annotations

__all__ = ["UUID_PREFIXES", "fits_kind", "normalise_id", "pci_id", "single", "strength"]

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
