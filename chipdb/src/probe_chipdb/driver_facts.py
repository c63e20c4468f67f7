"""Reads what a program knows of its device, in whatever types torch, jax and NVML give it."""

from probe_chipdb.pci_text import ids_in
from probe_chipdb.spelling import claimed_vendor, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_chipdb.database import Database
    from probe_chipdb.matching import Match
    from probe_chipdb.peaks import Peak

# Spellings of torch, numpy, jax and the formats' own names, behind "torch." and the like.
_DTYPES = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
    "float64": "fp64", "double": "fp64", "tensorfloat32": "tf32", "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8", "float8": "fp8", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
    "float8_e4m3fnuz": "fp8", "float8_e5m2fnuz": "fp8", "mxfp8": "fp8", "mxfp6": "fp6",
    "mxfp4": "fp4", "nvfp4": "fp4", "float4_e2m1fn": "fp4", "int8": "int8", "int4": "int4",
    "uint8": "int8", "i8": "int8", "w8a8": "int8",
}  # fmt: skip
_OWN = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "int4")
_LONGEST = 64  # of a data type, a capability, a gfx target or a PCI id


def dtype_of(value: object) -> str:
    """The data type by its name in the data; empty where it is none.

    >>> dtype_of("torch.bfloat16"), dtype_of("FP16"), dtype_of("float"), dtype_of("complex64")
    ('bf16', 'fp16', 'fp32', '')
    """
    text = _text(value).lower()
    # numpy and jax print their types as "<class 'jax.numpy.bfloat16'>"
    text = text.removeprefix("<class '").removesuffix("'>").rpartition(".")[2]
    return text if text in _OWN else _DTYPES.get(text, "")


class Facts:
    """A device's facts as the matcher takes them; what cannot be one is None.

    clock_mhz: a clock that the caller vouches for.
    """

    __slots__ = ("capability", "clock_mhz", "gfx", "memory", "name", "pci", "units")

    def __init__(self, name: object, facts: "Mapping[str, object]") -> None:
        if isinstance(name, bytes):
            name = name.decode("utf-8", "replace")  # nvidia-ml-py before 12
        self.name = name if isinstance(name, str) and name.strip() else None
        self.capability = _capability(facts.get("capability", facts.get("compute_capability")))
        self.gfx = _text(facts.get("gfx")).partition(":")[0]
        self.memory = _count(facts.get("memory"), 2**60)
        self.units = _count(facts.get("units"), 10**6)
        self.clock_mhz = _count(facts.get("clock_mhz"), 10**5)
        pci, subsystem, revision = ids_in(_text(facts.get("pci")), only_ids=True)
        subsystem = _text(facts.get("subsystem")) or subsystem
        self.pci = (pci, subsystem, _text(facts.get("revision")) or revision)

    def match(self, db: "Database") -> "Match | None":
        """The match, or None where nothing that identifies a device was given."""
        if not self.name and not self.pci[0]:
            return None
        pci, subsystem, revision = (part or None for part in self.pci)
        return db.match(
            pci=pci,
            subsystem=subsystem,
            revision=revision,
            compute_capability=self._trusted_capability(db),
            gfx=self.gfx or None,
            units=self.units,
            memory=self.memory,
            name=self.name,
        )

    def _trusted_capability(self, db: "Database") -> str | None:
        """The capability of NVIDIA's own devices: Kunlun's P800 shows torch an 8.6, MUSA a 3.1."""
        if not self.capability or not self._is_nvidias(db):
            return None
        return self.capability

    def _is_nvidias(self, db: "Database") -> bool:
        if self.pci[0]:
            return self.pci[0].startswith("10de:")
        if not self.name or claimed_vendor(self.name) == "nvidia":
            return bool(self.name)
        match = db.match(name=self.name)
        chips = (match.chip,) if match.chip else match.candidates
        return bool(chips) and all(chip.vendor == "nvidia" for chip in chips)

    def derived(self, db: "Database") -> "tuple[Peak, ...]":
        """The peaks of an unknown chip, where its architecture, units and a clock are known."""
        if not (self.units and self.clock_mhz):
            return ()
        arch, _ = db.arch_for(
            compute_capability=self._trusted_capability(db),
            gfx=self.gfx or None,
            name=normalise(self.name) if self.name else None,
            pci=self.pci[0] or None,
        )
        if arch is None:
            return ()
        return db.derive(
            arch.id, units=self.units, clock_mhz=self.clock_mhz, clock="given", source="the caller"
        )


def _text(value: object) -> str:
    """A short text, as it is or as the value prints itself."""
    if value is None:
        return ""
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception:  # a caller's object, whose __str__ is not ours
        return ""
    return text.strip() if len(text) <= _LONGEST else ""


def _count(value: object, most: int) -> int | None:
    """A positive whole number within bounds; torch gives ints, numpy and jax their own types."""
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    try:
        number = int(value)  # type: ignore[call-overload]
    except Exception:  # not a number, infinite, or a caller's object
        return None
    return number if 0 < number <= most else None


def _capability(value: object) -> str:
    """`"9.0"` of "9.0", (9, 0), [9, 0], 9.0 and "sm_90"; empty where it is none."""
    if isinstance(value, tuple | list):
        if len(value) != 2 or not all(type(part) is int and 0 <= part < 100 for part in value):
            return ""
        return f"{value[0]}.{value[1]}"
    text = _text(value).lower().removeprefix("sm_").removeprefix("compute_").rstrip("af")
    if text.isascii() and text.isdecimal() and 2 <= len(text) <= 3:
        return f"{text[:-1]}.{text[-1]}"
    major, point, minor = text.partition(".")
    plain = (
        point and major.isascii() and major.isdecimal() and minor.isascii() and minor.isdecimal()
    )
    return text if plain and len(text) <= 5 else ""
