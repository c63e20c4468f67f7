"""The figures of a device in one call, from what a program holds already: for MFU and catalogues.

    >>> import probe_chipdb
    >>> peak = probe_chipdb.peak("NVIDIA H100 80GB HBM3", "bf16", capability="9.0")
    >>> round(peak.tflops), peak.per
    (989, 'device')
    >>> probe_chipdb.peak("NVIDIA GeForce RTX 4095", "bf16") is None
    True
    >>> probe_chipdb.why("NVIDIA GeForce RTX 4095", "bf16")
    "no chip is named 'NVIDIA GeForce RTX 4095'"

Nothing here raises, whatever it is given: an unknown answer is None, and `why` has the reason.
"""

from probe_chipdb import database
from probe_chipdb.chip_peaks import find, natural_accumulator
from probe_chipdb.matching import has_memory
from probe_chipdb.name_facts import ids_in
from probe_chipdb.peaks import ACCUMULATORS, PATHS, Peak
from probe_chipdb.spelling import claimed_vendor, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.matching import Match


# Reads what a program knows of its device, in whatever types torch, jax and NVML give it.

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


_MOST_MEMORY = 2**60  # bytes: a million TiB


class Device:
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
        self.memory = _count(facts.get("memory"), _MOST_MEMORY)
        self.units = _count(facts.get("units"), 10**6)
        self.clock_mhz = _count(facts.get("clock_mhz"), 10**5)
        pci, subsystem, revision = ids_in(_text(facts.get("pci")))
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


_own: "dict[bool, database.Database]" = {}
"""With and without the packages of vendors; loaded at the first call, then kept."""


class _Answer:
    """A peak, or the reason why there is none."""

    __slots__ = ("peak", "why")

    def __init__(self, peak: Peak | None, why: str) -> None:
        self.peak = peak
        self.why = why


def peak(
    name: object = None,
    dtype: object = "bf16",
    *,
    sparse: bool = False,
    path: str | None = None,
    accumulate: str | None = None,
    per: str = "device",
    **facts: object,
) -> Peak | None:
    """The theoretical peak of one device, or None: then `why` has the reason.

    name: as the driver, torch or a cloud prints it. dtype: "bf16", "float16", torch.bfloat16.
    sparse: the vendor's structured sparsity. path: "matrix" or "vector"; None takes the matrix
    units where the chip has them for this type. accumulate: fp32 where the path has it.
    per: "device" as a framework counts them (one die of an MI250X), or "package".
    facts: capability ("9.0", (9, 0)), gfx, memory (bytes), units, pci, subsystem, revision,
    clock_mhz (only for a chip without a clock of its own). Others are ignored. Installed packages
    of vendors are read; packages=False refuses them, database= asks another database.

    Where the facts leave several products with one figure, it is that figure; a laptop answers the
    top of its range, with `low`. Never another chip's figure, and never a default.
    """
    return _answer(name, dtype, sparse, path, accumulate, per, facts).peak


def why(
    name: object = None,
    dtype: object = "bf16",
    *,
    sparse: bool = False,
    path: str | None = None,
    accumulate: str | None = None,
    per: str = "device",
    **facts: object,
) -> str:
    """Why `peak` of the same arguments is None, in a clause; empty where it is known.

    Where it is known although a fact contradicts the product (a memory of another size), that is
    said: the figure is the product's, and the device may be another.
    """
    return _answer(name, dtype, sparse, path, accumulate, per, facts).why


def bandwidth(name: object = None, *, per: str = "device", **facts: object) -> int | None:
    """The memory's bandwidth in bytes per second of one device; None where products differ."""
    figures = {
        chip.bandwidth and chip.bandwidth * _share(chip, per) for chip in _chips(name, facts)[1]
    }
    figure = figures.pop() if len(figures) == 1 else None
    return None if figure is None else round(figure)


def memory(name: object = None, *, per: str = "device", **facts: object) -> int | None:
    """The nominal size of the memory in bytes, as sold; None for a share of the system's.

    None, too, where the memory that is given is another: a card whose memory was exchanged, or
    another product.
    """
    chips = _chips(name, facts)[1]
    sizes = filter(None, [chip.memory.bytes for chip in chips])
    live = _count(facts.get("memory"), _MOST_MEMORY)
    if live and not all(has_memory(size, live) for size in sizes):
        return None
    figures = {chip.memory.bytes and chip.memory.bytes * _share(chip, per) for chip in chips}
    figure = figures.pop() if len(figures) == 1 else None
    return None if figure is None else round(figure)


def canonical(name: object = None, **facts: object) -> tuple[str, ...]:
    """The ids of the products that a name means: one, several that share it, or none.

    >>> canonical("H200 141GB HBM3"), canonical("A100 PCIe 40GB")
    (('nvidia/h200-sxm5-141gb',), ('nvidia/a100-pcie-40gb',))
    """
    return tuple(chip.id for chip in _chips(name, facts)[1])


def _chips(name: object, facts: "dict[str, object]") -> "tuple[Match | None, tuple[Chip, ...]]":
    """The match, and the products that it leaves."""
    try:
        match = Device(name, facts).match(_database(facts))
    except OSError:  # a checkout without the table; `why` has the sentence
        match = None
    if match is None:
        return None, ()
    return match, ((match.chip,) if match.chip else match.candidates)


def _database(facts: "dict[str, object]") -> database.Database:
    own = facts.get("database")
    if isinstance(own, database.Database):
        return own
    packages = facts.get("packages") is not False
    if packages not in _own:
        _own[packages] = database.load(packages=packages)
    return _own[packages]


def _answer(
    name: object,
    dtype: object,
    sparse: bool,
    path: str | None,
    accumulate: str | None,
    per: str,
    facts: "dict[str, object]",
) -> _Answer:
    kind = dtype_of(dtype)
    if not kind:
        shown = dtype[:40] if isinstance(dtype, str) else type(dtype).__name__
        return _Answer(None, f"{shown!r} is no data type that chipdb has")
    if not (_is_one(path, (None, *PATHS)) and _is_one(accumulate, (None, *ACCUMULATORS))):
        return _Answer(None, f"path is one of {PATHS}, accumulate one of {ACCUMULATORS}")
    if not _is_one(per, _PER):
        return _Answer(None, f"per is one of {_PER}")
    try:
        _database(facts)
    except OSError as error:
        return _Answer(None, str(error))
    match, chips = _chips(name, facts)
    if match is None:
        return _Answer(None, "no name and no id was given")
    sparsity = "sparse" if _is_true(sparse) else "dense"
    peaks = _peaks(match, chips, name, facts)
    chosen = _choose(peaks, kind, sparsity, path, accumulate)
    if chosen is None:
        return _Answer(None, _reason(match, chips, bool(peaks), f"{sparsity} {kind}"))
    return _Answer(_scaled(chosen, chips, per), "; ".join(match.conflicts))


_PER = ("device", "package")


def _is_one(value: object, allowed: tuple[object, ...]) -> bool:
    """Whether a value is one of these; never asked of a caller's own class, which may raise."""
    return (value is None or isinstance(value, str)) and value in allowed


def _is_true(value: object) -> bool:
    """A flag, in a type of numpy's or any other; what raises when asked is none."""
    try:
        return bool(value)
    except Exception:  # a caller's object
        return False


def _peaks(
    match: "Match", chips: "tuple[Chip, ...]", name: object, facts: "dict[str, object]"
) -> tuple[Peak, ...]:
    device = Device(name, facts)
    if not chips:
        return device.derived(_database(facts))
    if len(chips) > 1:
        return match.shared_peaks()
    (chip,) = chips
    clock = chip.clock
    mhz = None if clock.boost or clock.base or clock.matrix else device.clock_mhz
    return chip.peaks(units=match.units, clock_mhz=mhz, clock_source="given")


def _choose(
    peaks: tuple[Peak, ...], dtype: str, sparsity: str, path: str | None, accumulate: str | None
) -> Peak | None:
    """The figure of the matrix units, else of the vector units; what is asked for stays asked."""
    for unit in (path,) if path else ("matrix", "vector"):
        natural = natural_accumulator(dtype, unit)
        # A vector unit may sum fp16 in fp32 alone, or do so only with packed instructions.
        usual = (natural, "fp32", f"{natural}.packed", "fp32.packed", f"{natural}.single")
        for accumulator in (accumulate,) if accumulate else dict.fromkeys(usual):
            figure = find(peaks, f"{dtype}.{unit}.{accumulator}", sparsity)
            if figure is not None:
                return figure
    return None


def _reason(match: "Match", chips: "tuple[Chip, ...]", has_peaks: bool, figure: str) -> str:
    if not chips:
        return match.reason or "no chip of the table"
    if len(chips) > 1:
        return f"{match.reason}; their {figure} figures differ or are unknown"
    (chip,) = chips
    if not has_peaks:
        return chip.why_no_peaks(units=match.units) or f"chipdb has no figures for {chip.id}"
    return f"{chip.id} has no {figure} path that chipdb knows"


def _scaled(peak: Peak, chips: "tuple[Chip, ...]", per: str) -> Peak:
    shares = {_share(chip, per) for chip in chips} or {1.0}
    share = shares.pop()
    if share != 1.0 and not shares:
        peak.tflops *= share
        peak.low = None if peak.low is None else peak.low * share
        peak.published = None if peak.published is None else peak.published * share
        peak.source += f"; x {share:g} per {per}"
    peak.per = per
    return peak


def _share(chip: "Chip", per: object) -> float:
    """What one device, or one package, is of what the data describes."""
    if isinstance(per, str) and per == "package":
        return float(chip.boards)
    return 1.0 / chip.shown if chip.boards == 1 else 1.0
