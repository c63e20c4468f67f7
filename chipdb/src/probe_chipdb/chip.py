"""One chip: what it is called, has and is of; read from its line only as far as it is needed."""

from probe_chipdb.table import (
    CHIP,
    CLOCK,
    LIMITS,
    MEMORY,
    items,
    number,
    parts,
    unescape,
    whole,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_chipdb.database import Database
    from probe_chipdb.formats import Cell
    from probe_chipdb.peaks import Arch, Peak


_CHIP_AT = {name: at for at, name in enumerate(CHIP)}
_UNITS, _COUNTS = _CHIP_AT["units"], _CHIP_AT["counts"]


class Clock:
    """Clocks in MHz as the vendor states them; None is unknown.

    base, boost: of the vector units. matrix: of the matrix units where it differs. boost_low: the
    bottom of a range; `boost` is then its top. game: AMD's game clock. set_by: what decides in a
    range ("laptop", "mode", "model", "soc"); None where the vendor fixes the clock.
    """

    __slots__ = CLOCK

    def __init__(
        self,
        base: float | None,
        boost: float | None,
        matrix: float | None,
        boost_low: float | None,
        game: float | None = None,
        set_by: str | None = None,
    ) -> None:
        self.base = base
        self.boost = boost
        self.matrix = matrix
        self.boost_low = boost_low
        self.game = game
        self.set_by = set_by


class Memory:
    """Memory as sold: gib in GiB, bus in bits, gbs in 10^9 bytes per second; None is unknown.

    Unified memory has no `gib`: it is the system's. gbs_low: the bottom of a range, `gbs` its top.
    """

    __slots__ = MEMORY

    def __init__(
        self,
        gib: float | None,
        type: str | None,
        bus: int | None,
        gbs: float | None,
        gbs_low: float | None = None,
    ) -> None:
        self.gib = gib
        self.type = type
        self.bus = bus
        self.gbs = gbs
        self.gbs_low = gbs_low

    @property
    def bytes(self) -> int | None:
        """The nominal size in bytes."""
        return None if self.gib is None else int(self.gib * 2**30)


class Sustained:
    """A measurement with large matrices, of one device.

    rate: the rate key. tflops: TFLOPS (TOPS), the best of the runs; low: the worst, else None.
    watts, runs, software: where they were told. source: a key for `Database.source`.
    """

    __slots__ = ("low", "rate", "runs", "software", "source", "tflops", "watts")

    def __init__(self, row: "list[str]") -> None:
        self.rate, tflops, low, watts, runs, software, self.source = row
        self.tflops = float(tflops)
        self.low = number(low)
        self.watts = number(watts)
        self.runs = int(runs) if runs else None
        self.software = software or None

    def as_json(self) -> "dict[str, str | float | None]":
        """The measurement as plain data, without what was not told."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value is not None}


class Chip:
    """One product: an id that is never reused, and what its vendor publishes of it.

    name: as the vendor's driver prints it, else the marketing name. kind: "gpu", "npu" or
        "accelerator". vendor: the short name, as in the id. arch: the id for `Database.arch`.
    units: SMs, CUs, EUs or cores of one device, as the operating system shows it.
    fields: the texts of all columns as they stand in the table, for the code of this package.

    Everything unknown is None or empty, never a guess.
    """

    __slots__ = (
        "_db", "_memory", "_words", "arch", "fields", "id", "kind", "name", "origin", "units",
        "vendor",
    )  # fmt: skip

    def __init__(self, db: "Database", fields: list[str], origin: str) -> None:
        self._db = db
        if len(fields) < len(CHIP):  # a table of an earlier format lacks the last columns
            fields = fields + [""] * (len(CHIP) - len(fields))
        self.fields = fields
        self.id = fields[0]
        self.name = unescape(fields[1])
        self.kind = fields[2]
        self.vendor = fields[3]
        self.arch = fields[4] or None
        units = fields[_UNITS]
        self.units = int(units) if units else None
        self.origin = origin
        self._memory: Memory | None = None
        self._words: tuple[str, ...] | None = None

    def _text(self, column: str) -> str | None:
        return unescape(self.fields[_CHIP_AT[column]]) or None

    def _list(self, column: str) -> tuple[str, ...]:
        return tuple(items(self.fields[_CHIP_AT[column]]))

    @property
    def unknown(self) -> str | None:
        """Why figures are missing, a key of `chip_peaks.REASONS`."""
        return self.fields[_CHIP_AT["unknown"]] or None

    @property
    def confidence(self) -> str:
        """How sure counts and clocks are, one of `peaks.CONFIDENCES`."""
        return self.fields[_CHIP_AT["confidence"]] or "recalled"

    @property
    def family(self) -> str | None:
        """The architecture's family, as reports print it ("ada")."""
        arch = self.architecture()
        return arch.family if arch else None

    @property
    def series(self) -> str | None:
        """The title of the product family that the chip is filed under."""
        return self._text("family")

    @property
    def codename(self) -> str | None:
        """The die, where it is known."""
        return self._text("codename")

    @property
    def year(self) -> int | None:
        """Year of release."""
        return whole(self.fields[_CHIP_AT["year"]])

    @property
    def units_range(self) -> tuple[int, int] | None:
        """The least and the most units, where parts of several counts share the entry."""
        if not self.fields[_CHIP_AT["counts"]]:
            return None
        counts = stated(self)
        return (min(counts), max(counts)) if counts else None

    @property
    def unit(self) -> str | None:
        """What `units` counts."""
        arch = self.architecture()
        return arch.unit if arch else None

    @property
    def cores(self) -> int | None:
        """FP32 lanes (CUDA cores, stream processors) of one device."""
        arch, units = self.architecture(), self.units
        if arch is None or units is None or arch.cores_per_unit is None:
            return None
        return int(units * arch.cores_per_unit)

    @property
    def clock(self) -> Clock:
        """Clocks in MHz."""
        # A table of format 1 has four parts; an unknown clock has none.
        base, boost, matrix, low, game, set_by = (
            self.fields[_CHIP_AT["clock"]].split(";") + [""] * 6
        )[:6]
        mhz = (number(base), number(boost), number(matrix), number(low), number(game))
        return Clock(*mhz, set_by or None)

    @property
    def memory(self) -> Memory:
        """Size, type, bus and bandwidth."""
        if self._memory is None:
            gib, type_, bus, gbs, low = (self.fields[_CHIP_AT["memory"]].split(";") + [""] * 5)[:5]
            rates = number(gbs), number(low)
            self._memory = Memory(number(gib), unescape(type_) or None, whole(bus), *rates)
        return self._memory

    @property
    def words(self) -> tuple[str, ...]:
        """The words of id and name in lower case, for the code of this package."""
        if self._words is None:
            self._words = tuple(f"{self.id} {self.name}".lower().replace("-", " ").split())
        return self._words

    @property
    def bandwidth(self) -> int | None:
        """Memory bandwidth in bytes per second."""
        gbs = self.memory.gbs
        return None if gbs is None else round(gbs * 1e9)

    @property
    def power(self) -> float | None:
        """Board power in watts."""
        return number(self.fields[_CHIP_AT["power"]])

    @property
    def power_low(self) -> float | None:
        """The lowest board power in watts that the vendor allows, where it gives a range."""
        return number(self.fields[_CHIP_AT["power_low"]])

    @property
    def boards(self) -> int:
        """Devices that one board shows to the operating system."""
        return whole(self.fields[_CHIP_AT["boards"]]) or 1

    @property
    def shown(self) -> int:
        """Devices that a framework shows of one: jax counts the cores of a TPU v3."""
        return whole(self.fields[_CHIP_AT["shown"]]) or 1

    @property
    def form_factor(self) -> str | None:
        """The form that a name may add to the product's own ("L40S PCIe"), or None."""
        return self.fields[_CHIP_AT["form_factor"]] or None

    @property
    def pci(self) -> tuple[str, ...]:
        """PCI keys: `vvvv:dddd`, `vvvv:dddd/ssss:ssss` or `vvvv:dddd@rr`."""
        return self._list("pci")

    @property
    def dt(self) -> tuple[str, ...]:
        """Device-tree compatibles."""
        return self._list("dt")

    @property
    def gpu_id(self) -> tuple[str, ...]:
        """Id registers: `vendor:0xvalue` with an optional `/0xmask`."""
        return self._list("gpu_id")

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other exact spellings that tools print."""
        return self._list("aliases")

    @property
    def sources(self) -> tuple[str, ...]:
        """Keys of the documents behind counts, clocks and memory, for `Database.source`."""
        return self._list("source")

    @property
    def sustained(self) -> "tuple[Sustained, ...]":
        """What others measured, beside the peaks; empty where nobody published a measurement."""
        return tuple(
            Sustained(row) for row in parts(self.fields[_CHIP_AT["sustained"]]) if len(row) == 7
        )

    @property
    def power_limits(self) -> tuple[float, float] | None:
        """The least and the most power limit that the driver accepts, in watts."""
        values = parts(self.fields[_CHIP_AT["power_limits"]])
        return (float(values[0][0]), float(values[0][1])) if values else None

    @property
    def power_limits_at(self) -> "dict[str, str | float]":
        """Where the limits were read: `default` in watts, `board` (PCI subsystem), `driver`.

        Makers of boards set other limits: those of another board may differ. Has what is known.
        """
        row = next(iter(parts(self.fields[_CHIP_AT["power_limits"]])), [])
        known = zip(LIMITS[2:-1], row[2:-1], strict=False)  # A table of an earlier format has none.
        return {
            name: float(value) if name == "default" else value for name, value in known if value
        }

    @property
    def interconnect(self) -> tuple[str, float] | None:
        """Kind of the links to other devices, and 10^9 bytes per second of all, both directions."""
        values = parts(self.fields[_CHIP_AT["interconnect"]])
        return (values[0][0], float(values[0][1])) if values else None

    @property
    def sram(self) -> float | None:
        """MiB of memory on the chip: the last-level cache, or the scratchpads."""
        values = parts(self.fields[_CHIP_AT["sram"]])
        return float(values[0][0]) if values else None

    @property
    def ecc(self) -> float | None:
        """The share of the memory that ECC takes when it is on; 0 or None: none, or not known."""
        values = parts(self.fields[_CHIP_AT["ecc"]])
        return float(values[0][0]) if values else None

    @property
    def beside_sources(self) -> tuple[str, ...]:
        """Keys of the documents behind power limits, links, on-chip memory and ECC."""
        names = ("power_limits", "interconnect", "sram", "ecc")
        rows = [row for name in names for row in parts(self.fields[_CHIP_AT[name]])]
        return tuple(dict.fromkeys(row[-1] for row in rows))

    @property
    def reads(self) -> tuple[tuple[str, ...], ...]:
        """What was read: (rate key, sparsity, source key, place, words) of each figure.

        The rate key is empty for counts, clocks and memory. `Database.source` has the document's
        address and the date.
        """
        return tuple(tuple(row) for row in parts(self.fields[_CHIP_AT["reads"]]))

    @property
    def note(self) -> str | None:
        """What a reader should know, in a sentence."""
        return self._text("note")

    @property
    def explain(self) -> dict[str, str]:
        """Why a published and a derived figure differ by more than 3 %, per rate key."""
        return dict(parts(self.fields[_CHIP_AT["explain"]]))

    @property
    def published(self) -> dict[tuple[str, str], tuple[float, str]]:
        """The vendor's own figures: {(rate key, sparsity): (tflops, source key)}."""
        rows = parts(self.fields[_CHIP_AT["published"]])
        return {
            (rate, sparsity): (float(value), source) for rate, sparsity, value, source, *_ in rows
        }

    def architecture(self) -> "Arch | None":
        """The architecture, or None where it is not known."""
        return self._db.arch(self.arch) if self.arch else None

    def peaks(
        self,
        units: int | None = None,
        clock_mhz: float | None = None,
        clock_source: str | None = None,
        max_mhz: float | None = None,
        power: float | None = None,
    ) -> "tuple[Peak, ...]":
        """Every peak of one device, dense and sparse.

        units: the live count where the driver gives one; peaks then follow it, and say so.
        clock_mhz: replaces the table's clocks, labelled with clock_source ("given" if None).
            A driver's maximum clock is no boost clock: give one only if it is what you mean.
        max_mhz, power: the driver's maximum clock and its power limit in watts. They narrow the
            figures of a part that is sold with a range, and change no other.

        Empty when neither counts nor published figures are known.
        """
        from probe_chipdb.chip_peaks import Live, all_peaks

        live = Live(self, units, clock_mhz, clock_source, max_mhz, power)
        return all_peaks(self, self.architecture(), live)

    def peak(
        self,
        dtype: str,
        accumulate: str | None = None,
        path: str = "matrix",
        sparsity: str = "dense",
        units: int | None = None,
    ) -> "Peak | None":
        """One peak, for instance the denominator of MFU: `chip.peak("bf16", accumulate="fp32")`.

        accumulate None means the usual one: fp32 for a matrix path, the type itself for a vector
        path, int32 for integers. None when the chip has no such path, or its figure is unknown.
        """
        from probe_chipdb.chip_peaks import find, natural_accumulator

        rate = f"{dtype}.{path}.{accumulate or natural_accumulator(dtype, path)}"
        return find(self.peaks(units=units), rate, sparsity)

    def formats(self) -> "tuple[Cell, ...]":
        """Number formats of its architecture, by the hardware and by programs; with reasons."""
        from probe_chipdb.formats import cells

        return cells(self.fields[4], self._db.formats())

    def why_no_peaks(self, units: int | None = None) -> str | None:
        """The reason for an empty `peaks()`, or None when there are some."""
        from probe_chipdb.chip_peaks import Live, why_none

        return why_none(self, self.architecture(), Live(self, units, None, None))

    def __repr__(self) -> str:
        return f"<Chip {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chip) and other.fields == self.fields

    def __hash__(self) -> int:
        return hash(self.id)


# Which live unit counts an entry stands for that has no single count of its own.
#
# A SoC's own entry is that of modules with several counts. The marketing name of a licensed design
# depends on the number of its cores: a Mali GPU of id 0xd000 is a Mali-G725 with 6 to 9 and an
# Immortalis-G925 with 10 or more (Arm's libGPUInfo).


def stated(chip: "Chip") -> tuple[int, ...]:
    """The counts that a chip may have: its own, those of its entry, or none where any fits."""
    return (chip.units,) if chip.units else _each(items(chip.fields[_COUNTS]))


def counts_text(chip: "Chip") -> str:
    """The counts of a chip's entry in words: "10, 12 to 16"."""
    return ", ".join(text.replace("-", " to ") for text in items(chip.fields[_COUNTS]))


def _each(ranges: "Iterable[str]") -> tuple[int, ...]:
    """Every count of "4" and "6-9"."""
    return tuple(
        count
        for first, _, last in (text.partition("-") for text in ranges)
        for count in range(int(first), int(last or first) + 1)
    )
