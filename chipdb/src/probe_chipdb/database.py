"""The object that programs use: the built table, and what sites and vendors add to it."""

import os

from probe_chipdb import table
from probe_chipdb.peaks import Arch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from probe_chipdb.chip import Chip
    from probe_chipdb.cpu import CpuMatch
    from probe_chipdb.matching import Match
    from probe_chipdb.packages import Package
    from probe_chipdb.peaks import Peak
    from probe_chipdb.rules import Rules

    Answer = TypeVar("Answer", Match, CpuMatch)
    Added = tuple[Sequence[table.Table], Sequence[table.Table], tuple[str, ...]]
    """Tables of sites, tables of packages, and what was left out of them."""

# Answers kept. A node has a handful of devices, a fleet's collector some hundreds.
_MEMO = 4096
_READ = 512  # chips that stay read: those of a name are looked at several times


def load(
    extra: "Iterable[str]" = (),
    packages: bool = True,
    path: "Sequence[str] | None" = None,
    accept: "Callable[[str], str | None] | None" = None,
    added: "Added | None" = None,
) -> "Database":
    """The database. Reads the built table; everything else waits for the first question.

    extra: TOML files of the site, which override everything.
    packages: whether to look for vendor packages (entry point group `probe_core.chipdb.v1`).
    path: where to look for them; sys.path when None.
    accept: called once per file of a vendor package; a returned reason leaves the file out.
    added: what another process has read of extra and packages, so that nothing is read here.

    Raises OSError when the built table is missing. Bad extra files raise nothing: they are left
    out, and `Database.problems` says why.
    """
    return Database(table.built(), _paths(extra), packages, path, accept, added)


def load_by_position(
    extra: "Iterable[str]" = (),
    packages: bool = True,
    accept: "Callable[[str], str | None] | None" = None,
    added: "Added | None" = None,
) -> "Database":
    """The same for a process that asks about the devices of one computer, and forgets it.

    Reads of the built table what it is asked. Every question raises OSError once those files were
    replaced, as by an update.
    """
    return Database(table.built_by_position(), _paths(extra), packages, None, accept, added)


def _paths(extra: object) -> tuple[str, ...]:
    """Paths as texts, from one or several; what is no path becomes one that cannot be read."""
    if isinstance(extra, str | bytes | os.PathLike) or not hasattr(extra, "__iter__"):
        extra = () if extra is None else (extra,)
    return tuple(
        os.fsdecode(path)
        if isinstance(path, str | bytes | os.PathLike)
        else f"<{type(path).__name__}>"
        for path in extra
    )


class Database:
    """Chips, architectures and sources, by id and by everything that identifies them."""

    __slots__ = (
        "_accept", "_added", "_archs", "_built", "_chips", "_cores", "_extra", "_memo", "_packages",
        "_path", "_problems", "_readers", "_tables", "version",
    )  # fmt: skip

    def __init__(
        self,
        built: "table.Table",
        extra: tuple[str, ...] = (),
        packages: bool = False,
        path: "Sequence[str] | None" = None,
        accept: "Callable[[str], str | None] | None" = None,
        added: "Added | None" = None,
    ) -> None:
        self.version = built.version
        self._built = built
        self._extra = extra
        self._packages = packages
        self._path = path
        self._accept = accept
        self._added = added
        self._tables: tuple[table.Table, ...] | None = None
        self._problems: tuple[str, ...] = ()
        self._readers: tuple[tuple[Database, Rules], ...] | None = None
        self._archs: dict[str, Arch | None] = {}
        self._chips: dict[str, Chip] = {}
        self._memo: dict[object, Match] = {}
        self._cores: dict[object, CpuMatch] = {}

    def tables(self) -> "tuple[table.Table, ...]":
        """Site files first, then the built table, then vendor packages."""
        if self._tables is None:
            sites, packages, self._problems = self._read_extras()
            self._tables = (*sites, self._built, *packages)
        return self._tables

    def _read_extras(self) -> "Added":
        if self._added is not None:
            return self._added
        packages: list[Package] = []
        if self._packages:
            from probe_chipdb.packages import find

            packages = find(self._path)
        if not (packages or self._extra):
            return [], [], ()
        # Imported only where there is something to read: TOML costs 15 ms.
        from probe_chipdb.entry.extras import read_extras

        named = Database(self._built).ids_of_name
        return read_extras(self._built, self._extra, packages, self._accept, named)

    def readers(self) -> "tuple[tuple[Database, Rules], ...]":
        """Each package that has rules of names: its table alone, and our rules with its own behind.

        What a package's rules make of a name is looked up in the package alone, and only where
        nothing else knows the name: so they can take no name of anybody else.
        """
        if self._readers is None:
            from probe_chipdb.rules import Rules

            self._readers = tuple(
                (Database(own), Rules(table.built_text(table.RULES), own.rules))
                for own in self.tables()
                if own.rules
            )
        return self._readers

    def ids_of_name(self, name: str) -> tuple[str, ...]:
        """The ids of the chips that a name alone means: one, several that share it, or none."""
        from probe_chipdb.matching import ids_of_name

        return ids_of_name(self, name)

    def own_name(self, name: str) -> str | None:
        """How the rules of names read a chip's own name: the vendor that it claims, and its key.

        A space is between them; None of any other text, and of a name that tells more. Whatever
        sites and packages add, the rules are those of the built table.
        """
        return self._built.index.find(f"o:{name}")

    @property
    def problems(self) -> tuple[str, ...]:
        """What was left out of site files and vendor packages: what, whose, why, and the fix."""
        self.tables()
        return self._problems

    def ids(self, key: str) -> tuple[str, ...]:
        """The chips under one index key. A site's file hides the rest; packages only add.

        No table owns an architecture with a unit count: there, the chips of all tables count.
        """
        ids: tuple[str, ...] = ()
        for source in self.tables():
            own = source.ids(key)
            ids += own
            exclusive = source is self._built or source.origin.startswith("site:")
            if own and exclusive and not key.startswith("u:"):
                return ids
        return tuple(dict.fromkeys(ids))

    def chip(self, id_: str) -> "Chip | None":
        """The chip of this id, or None."""
        chip = self._chips.get(id_)
        if chip is None and (chip := self._find_chip(id_)):
            if len(self._chips) >= _READ:
                self._chips.clear()
            self._chips[id_] = chip
        return chip

    def read(self, ids: "Iterable[str]") -> "list[Chip]":
        """The chips of these ids."""
        return [chip for id_ in ids if (chip := self.chip(id_))]

    def _find_chip(self, id_: str) -> "Chip | None":
        from probe_chipdb.chip import Chip

        for source in self.tables():
            columns = source.chips.find(id_)
            if columns is not None:
                return Chip(self, [id_, *columns.split("\t")], source.origin)
        return None

    def chips(self) -> "tuple[Chip, ...]":
        """Every chip, in the order of the ids."""
        ids = {id_ for source in self.tables() for id_, _ in source.chips}
        return tuple(chip for id_ in sorted(ids) if (chip := self._find_chip(id_)))

    def arch(self, id_: str) -> Arch | None:
        """The architecture of this id (or ids joined by `+`: what they share), or None."""
        if id_ not in self._archs:
            self._archs[id_] = self._find_arch(id_)
        return self._archs[id_]

    def _find_arch(self, id_: str) -> Arch | None:
        if "+" in id_:
            from probe_chipdb.shared import shared

            archs = [arch for part in id_.split("+") if (arch := self.arch(part))]
            return shared(archs) if archs else None
        for source in self.tables():
            columns = source.archs.find(id_)
            if columns is not None:
                return Arch([id_, *columns.split("\t")])
        return None

    def archs(self) -> tuple[Arch, ...]:
        """Every architecture, in the order of the ids."""
        ids = {id_ for source in self.tables() for id_, _ in source.archs}
        return tuple(arch for id_ in sorted(ids) if (arch := self.arch(id_)))

    def formats(self) -> str:
        """Number formats: what packages say of architectures of their own, then the built ones."""
        own = "".join(source.formats for source in self.tables() if source is not self._built)
        return own + (self._built.formats or table.built_text(table.FORMATS))

    def source(self, key: str) -> dict[str, str] | None:
        """title, publisher, ref and status of a source, or None."""
        from probe_chipdb.table import SOURCE, unescape

        for source in self.tables():
            columns = source.sources.find(key)
            if columns is not None:
                return dict(zip(SOURCE[1:], map(unescape, columns.split("\t")), strict=True))
        return None

    def match(
        self,
        *,
        pci: str | None = None,
        subsystem: str | None = None,
        revision: str | None = None,
        gpu_id: str | None = None,
        dt: "Sequence[str]" = (),
        arch: str | None = None,
        compute_capability: str | None = None,
        gfx: str | None = None,
        vendor: str | None = None,
        units: int | None = None,
        memory: int | None = None,
        name: str | None = None,
        name_kind: str = "name",
    ) -> "Match":
        """Which chip this is, by the precedence of docs/matching; never a guess.

        pci, subsystem: "vvvv:dddd". revision: two hex digits. gpu_id: "arm:0xa867". dt:
        compatibles, most specific first. arch: an architecture's id. compute_capability: "8.9".
        gfx: "gfx1100". units: SMs, CUs or cores that the driver counts.
        memory: the live total in bytes.
        name, name_kind: what a tool printed, and which (see KINDS).

        Raises ValueError for an unknown name_kind, and nothing else.
        """
        # In the order of the facts, and written out: from locals() a look-up that is repeated
        # takes four times as long.
        key = (
            pci, subsystem, revision, gpu_id, tuple(dt), arch, compute_capability, gfx, vendor,
            units, memory, name, name_kind,
        )  # fmt: skip
        answer = self._memo.get(key)
        if answer is not None:
            return answer
        from probe_chipdb.matching import match

        return _remember(self._memo, key, match(self, key))

    def arch_for(
        self,
        *,
        compute_capability: str | None = None,
        gfx: str | None = None,
        name: str | None = None,
        metal_family: str | None = None,
        gpu_id: str | None = None,
        dt: "Sequence[str]" = (),
        pci: str | None = None,
    ) -> tuple[Arch | None, str]:
        """The architecture that a driver's own words fix, and the reason for the answer.

        Where the words leave several sets of rates open, the answer is what they share.
        """
        from probe_chipdb.candidates import arch_for
        from probe_chipdb.facts import Query

        query = Query(
            compute_capability=compute_capability,
            gfx=gfx,
            name=name,
            gpu_id=gpu_id,
            dt=dt,
            pci=pci,
        )
        return arch_for(self, query, metal_family)

    def derive(
        self,
        arch_id: str,
        *,
        units: int | None,
        clock_mhz: float | None,
        clock: str = "max",
        source: str = "the driver",
    ) -> "tuple[Peak, ...]":
        """Peaks of an unknown chip of a known architecture, each labelled derived.

        clock: what kind of clock clock_mhz is ("max" is an upper bound, no boost clock).
        source: where units and clock come from. Empty when the architecture, units or clock is
        unknown, or when the architecture's rates need more than its id to be fixed.
        """
        arch = self.arch(arch_id)
        if arch is None or not arch.derivable or not units or not clock_mhz:
            return ()
        from probe_chipdb.peaks import from_rates

        clocks = {path: (clock, float(clock_mhz)) for path in ("vector", "matrix")}
        note = f"; {arch.note}" if "+" in arch.id else ""
        origin = f"rates [{', '.join(arch.sources)}]{note}, counts and clock [{source}]"
        return tuple(from_rates(arch, units, clocks, origin))

    def cpu(
        self,
        *,
        vendor: str | None = None,
        family: int | str | None = None,
        model: int | str | None = None,
        stepping: int | str | None = None,
        implementer: int | str | None = None,
        part: int | str | None = None,
        variant: int | str | None = None,
        architecture: int | str | None = None,
        name: str | None = None,
        flags: "Iterable[str]" = (),
        before_name: "Callable[[], object]" = bool,
    ) -> "CpuMatch":
        """The microarchitecture of a CPU core and the rates that its flags allow.

        vendor, family, model, stepping: cpuid's. implementer, part, variant: MIDR's (Arm).
        architecture: the version of Arm's architecture, 6 to 9. name: the brand string.
        flags: as /proc/cpuinfo prints them; without any, only what needs none is counted.
        before_name: called before the brand string alone is read, which imports
        `probe_chipdb.cpu_brand`: for programs that import where nobody waits.
        """
        shown = frozenset(flags)
        key = (
            vendor, family, model, stepping, implementer, part, variant, architecture, name, shown,
        )  # fmt: skip
        answer = self._cores.get(key)  # of two sockets, and of a node that is asked again
        if answer is not None:
            return answer
        from probe_chipdb.cpu import CpuFacts, find_cpu

        facts = CpuFacts(
            vendor=vendor,
            family=family,
            model=model,
            stepping=stepping,
            implementer=implementer,
            part=part,
            variant=variant,
            architecture=architecture,
            name=name,
            flags=shown,
            before_name=before_name,
        )
        return _remember(self._cores, key, find_cpu(self, facts))

    def of_machine_type(self, name: str) -> "tuple[Chip, ...]":
        """Return what a cloud's type of machine has, `p5.48xlarge`: one of these; () of no type."""
        from probe_chipdb.name_lookup import chips_of_machine
        from probe_chipdb.spelling import normalise

        key = normalise(name)
        if self.ids(f"n:{key}"):  # a chip's own name: TPU v5e
            return ()
        return tuple(self.read(chips_of_machine(self, key)))

    def near(self, query: str, n: int = 5) -> "tuple[Chip, ...]":
        """The n chips whose names look most like the query. For people, never for matching."""
        from probe_chipdb.near import near

        return near(self, query, n)

    def __repr__(self) -> str:
        return f"<chipdb {self.version}>"


def _remember(memo: "dict[object, Answer]", key: object, answer: "Answer") -> "Answer":
    if len(memo) >= _MEMO:
        memo.clear()
    memo[key] = answer
    return answer
