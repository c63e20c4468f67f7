"""The clusters of a system-on-chip, and the kinds of its cores: where one is no x86.

Arm's kernels number packages by the device tree's clusters: a phone of nine cores in three clusters
shows three packages (Linux 3.10 to 5.17), and with vendors' trees nine.
"""

from __future__ import annotations

from probe_core.machine import MAX_CPUS, cpu_list
from probe_core.probers.cpu_files import CPUS, first_clocks, nodes_of, timed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.probers.cpu_types import Cluster, Core, CpuFacts, Midr, Nodes


MIDR = ("implementer", "part", "variant")
"""What names an Arm core."""

_PHONE = 16
"""Cores of a chip whose clocks are read one by one: a judgement, twice the cores of most phones.

A server has hundreds that are alike.
"""

# Cores with two or four threads: Cortex-A65 and A65AE, Neoverse E1, ThunderX2, Olympus.
_THREADED = frozenset(
    ((0x41, 0xD06), (0x41, 0xD43), (0x41, 0xD4A), (0x42, 0x516), (0x43, 0x0AF), (0x4E, 0x010))
)
# Vendors whose other cores all have one thread.
_ONE_THREADED = frozenset((0x41, 0x46, 0x4E, 0x50, 0x51, 0x53, 0x61, 0x6D, 0xC0))


def whole_chips(
    machine: Machine, packages: list[list[int]], listed: Nodes | None
) -> list[list[list[int]]]:
    """Return the packages of each chip: sockets stay apart, clusters are put together.

    Sockets have NUMA nodes of their own, and firmware that describes them by ACPI numbers packages
    rightly. The clusters of one chip share a node, or there is none.
    """
    if len(packages) < 2:
        return [[members] for members in packages]
    nodes = [set(nodes_of(machine, members, listed)) for members in packages]
    apart = all(nodes) and sum(map(len, nodes)) == len(set().union(*nodes))
    if apart or machine.exists("/sys/firmware/acpi/tables/PPTT"):
        return [[members] for members in packages]
    return [packages]


def one_threaded(cpus: Mapping[int, Midr]) -> bool:
    """Return whether all of these cores are known to have one thread."""
    return all(
        midr["implementer"] in _ONE_THREADED
        and (midr["implementer"], midr["part"]) not in _THREADED
        for midr in cpus.values()
    )


def kinds(
    machine: Machine, chip: Iterable[Sequence[int]], cores: Sequence[Core], facts: CpuFacts
) -> list[Cluster]:
    """Return the kinds of cores of a chip, each with its cores, clock and MIDR; nothing for one.

    Clusters that are alike count as one kind: a server has dozens of them.
    """
    kinds: list[Kind] = []
    for members in chip:
        held = set(members)
        own = [core for core in cores if core[0] in held]
        midrs = _Midrs(machine, members, facts)
        for kind in _kinds_of_package(machine, _by_cluster(machine, own, facts), midrs):
            _add(kinds, kind, same_package=False)
    if facts.get("one_midr") and len({kind.mhz.get("max_mhz") for kind in kinds}) > 1:
        # Kernels before 3.19 describe the core that reads the file; the others stay unknown.
        for kind in kinds:
            kind.midr = {}
    return [kind.table() for kind in kinds] if len(kinds) > 1 else []


class Kind:
    """Cores of one MIDR and clock."""

    def __init__(self, midr: Midr, mhz: dict[str, float], cores: list[Core]) -> None:
        self.midr = midr
        self.mhz = mhz
        self.cores = cores

    def table(self) -> Cluster:
        """Return the entry of the report, and the CPUs of each core as `members`."""
        entry: Cluster = {}
        if self.midr:
            entry |= {"implementer": self.midr["implementer"], "part": self.midr["part"]}
        if "variant" in self.midr:
            entry["variant"] = self.midr["variant"]
        entry |= {"cores": len(self.cores), "threads": sum(map(len, self.cores))}
        entry["first"] = self.cores[0][0]
        timed(entry, self.mhz)["members"] = self.cores
        return entry


def _kinds_of_package(
    machine: Machine, clusters: Iterable[list[Core]], midrs: _Midrs
) -> list[Kind]:
    kinds: list[Kind] = []
    for cluster in clusters:
        mhz = first_clocks(machine, [core[0] for core in cluster])
        _add(kinds, Kind(midrs.of(cluster[0][0]), mhz, cluster), same_package=True)
    return kinds


def _add(kinds: list[Kind], kind: Kind, *, same_package: bool) -> None:
    """Add the cores to those that are alike, else as a new kind."""
    for listed in kinds:
        # A CPU that a phone has just switched off shows no clock.
        silent = same_package and not (listed.mhz and kind.mhz)
        if listed.midr == kind.midr and (listed.mhz == kind.mhz or silent):
            listed.mhz = listed.mhz or kind.mhz
            listed.cores = [*listed.cores, *kind.cores]
            return
    kinds.append(kind)


class _Midrs:
    """What names each core of a package: /proc/cpuinfo's lines, else the register in /sys.

    A core that was off while /proc/cpuinfo was read is of the kind of its package, where that has
    but one.
    """

    def __init__(self, machine: Machine, members: Iterable[int], facts: CpuFacts) -> None:
        self._machine = machine
        self._cpus: Mapping[int, Midr] = facts.get("cpus", {})
        listed = [self._cpus[cpu] for cpu in members if cpu in self._cpus]
        alike = bool(listed) and all(midr == listed[0] for midr in listed)
        self._only: Midr = listed[0] if alike else {}

    def of(self, cpu: int) -> Midr:
        """Return implementer, part and variant; empty where nothing tells them."""
        if midr := self._cpus.get(cpu):
            return midr
        path = f"{CPUS}/cpu{cpu}/regs/identification/midr_el1"
        number = self._machine.read_int(path)
        if number is None or not 0 < number < 1 << 32:
            return self._only
        return {
            "implementer": number >> 24,
            "part": number >> 4 & 0xFFF,
            "variant": number >> 20 & 0xF,
        }


def _by_cluster(machine: Machine, cores: Sequence[Core], facts: CpuFacts) -> list[list[Core]]:
    """Return the cores of each cluster and kind: clusters of the kernel, else of one clock."""
    listed: dict[tuple[object, ...], list[Core]] = {}
    places: dict[int, int] = {}
    own = {core[0] for core in cores}
    for core in cores:
        first = core[0]
        if first not in places:
            shared = _neighbours(machine, first, len(cores))
            places |= {cpu: first for cpu in (*shared, first) if cpu in own}
        midr = facts.get("cpus", {}).get(first, {})
        listed.setdefault((places[first], *midr.items()), []).append(core)
    return list(listed.values())


def _neighbours(machine: Machine, cpu: int, cores: int) -> Iterable[int]:
    """Return the CPUs of the cluster of `cpu`; all that may be where no file tells."""
    text = machine.read(f"{CPUS}/cpu{cpu}/topology/cluster_cpus_list")  # Linux 5.16
    if text is None and cores <= _PHONE:
        text = machine.read(f"{CPUS}/cpu{cpu}/cpufreq/related_cpus")
        text = ",".join(text.split()) if text else str(cpu)
    return range(MAX_CPUS) if text is None else cpu_list(text)
