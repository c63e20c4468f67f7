"""What the kernel's files say of processors, with as few reads as can be.

That is /proc/cpuinfo, whose lines differ by architecture, and /sys/devices/system/cpu: packages,
cores, threads and clocks.
"""

from __future__ import annotations

import os

from probe_core.machine import MAX_CPUS, cpu_list, cpu_mask, decimal, has_one_node, named_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.probers.cpu_types import Cluster, Core, CpuFacts, Nodes, Package, Place


IDENTITY = (
    "vendor_id",
    "family",
    "model",
    "stepping",
    "implementer",
    "part",
    "variant",
    "architecture",
)
"""Keys that name a microarchitecture: x86's family and model, Arm's implementer and part."""

PEAK_FLAGS = frozenset(
    """
    sse2 sse4_2 avx avx2 fma fma4 f16c avx512f avx512_bf16 avx512_fp16 avx512_vnni avx_vnni
    avx_vnni_int8 amx_tile amx_bf16 amx_int8 amx_fp16 avx10_1 avx10_2
    asimd asimdhp asimddp asimdfhm bf16 i8mm sve sve2 svebf16 svei8mm sme sme2
    thumb vfp neon vfpv4 altivec vsx mma zve64d zvfh v lsx lasx hypervisor
    """.split()
)
"""Flags that decide peaks, as Linux spells them."""

_X86_VENDORS = {
    "GenuineIntel": "intel",
    "AuthenticAMD": "amd",
    "HygonGenuine": "hygon",
    "CentaurHauls": "zhaoxin",
    "Shanghai": "zhaoxin",  # two spaces on either side, which are stripped
}
_X86_NUMBERS = (
    ("family", "cpu family", 0),
    ("model", "model", 0),
    ("stepping", "stepping", 0),
    ("cores", "cpu cores", 1),
    ("threads", "siblings", 1),
)
"""Fact, the line that has it, and the least number that is one."""

_FIRST_BLOCK = 16 << 10
"""Bytes of /proc/cpuinfo read at first: eleven times an AMD EPYC's block of 1,436 bytes."""


def facts(machine: Machine) -> CpuFacts:
    """Return what the file says of the processor; empty when it cannot be read.

    x86 blocks are alike, and 256 of them take the kernel milliseconds to print: the first ones are
    enough, with the count of the others left to /sys. Arm's differ on big.LITTLE: all are read.
    """
    text = machine.read("/proc/cpuinfo", _FIRST_BLOCK)
    if text is None:
        return {}
    if len(text) > _FIRST_BLOCK // 2:
        if "vendor_id" in text[:_FIRST_BLOCK] and "cpu family" in text:
            # The last block may be cut off in the middle of its flags.
            text = text.rpartition("\n\n")[0] or text
        else:
            text = machine.read("/proc/cpuinfo") or text
    return parse(text)


def parse(text: str) -> CpuFacts:
    """Return name, vendor, identity and flags from the text of a /proc/cpuinfo.

    `cpus` maps the processors that Arm's kernels describe to their MIDR; `cores` and `threads` are
    those of one x86 package; `numbers` lists the processors of all other kernels.
    """
    # LoongArch and s390 begin with a block of the system, Arm and MIPS end with the board's.
    blocks = [block for block in map(named_lines, text.split("\n\n")) if block]
    first = _first(blocks)
    processor: CpuFacts = {}
    if ("vendor_id" in first or "cpu family" in first) and first.get("vendor_id") != "IBM/S390":
        processor |= _x86(first)
    elif blocks:
        from probe_core.probers.cpuinfo_other import ibm_z, identity

        is_ibm_z = "vendor_id" in first
        processor |= ibm_z(text) if is_ibm_z else identity(first, blocks, text)
    # x86; LoongArch; MIPS; POWER; RISC-V. Arm's line "Model" is the board's.
    keys = ("model name", "Model Name", "cpu model", "cpu", "uarch")
    name = next(filter(None, map(first.get, keys)), None)
    if name and "implementer" not in processor:
        processor.setdefault("name", " ".join(name.split()))
    processor["flags"] = sorted(_flags(blocks))
    mhz = _float(first.get("cpu MHz") or first.get("clock", "").removesuffix("MHz"))
    if mhz:
        processor["mhz"] = mhz
    return processor


def _first(blocks: list[dict[str, str]]) -> dict[str, str]:
    """Return the first processor's lines, and what only later blocks hold."""
    if not blocks or "vendor_id" in blocks[0]:
        return blocks[0] if blocks else {}
    first: dict[str, str] = {}
    for block in reversed(blocks):
        first |= block
    return first


def _flags(blocks: list[dict[str, str]]) -> frozenset[str]:
    """Return the flags that all cores have: a peak counts every core."""
    texts = {
        block.get("flags") or block.get("Features") or block.get("hart isa") or block.get("isa")
        for block in blocks
    }
    sets = [_flags_of(text.lower()) for text in texts if text]
    return PEAK_FLAGS.intersection(*sets) if sets else frozenset()


def _flags_of(text: str) -> set[str]:
    if not text.startswith("rv"):
        return set(text.split())
    # RISC-V: "rv64imafdcv_zicbom_zvfh": letters behind the width, then longer names.
    base, *extensions = text.split("_")
    return {*base[4:], *extensions}


def _x86(first: dict[str, str]) -> CpuFacts:
    identity: CpuFacts = {}
    vendor = first.get("vendor_id", "")
    if vendor:
        identity |= {"vendor_id": vendor, "vendor": _X86_VENDORS.get(vendor, vendor.lower())}
    for key, name, least in _X86_NUMBERS:
        number = whole(first.get(name))
        if number is not None and number >= least:
            identity[key] = number  # type: ignore[literal-required]  # of the table
    return identity


def whole(text: str | None) -> int | None:
    """Return a number as kernels print it, decimal or with 0x; None where there is none."""
    try:
        return int(text, 0) if text and len(text) <= 20 else None
    except ValueError:
        return None


def _float(text: str | None) -> float | None:
    try:
        value = float(text) if text else 0.0
    except ValueError:
        return None
    return value if 1 <= value <= 20_000 else None


# Where x86's /proc/cpuinfo puts each processor: read where /sys does not show it.

_LONGEST = 8 << 20
"""Bytes of the file: 4,096 processors of 1.5 KiB each print six million."""


def places(machine: Machine) -> dict[int, Place]:
    """Return the place of each processor that the file lists."""
    listed: dict[int, Place] = {}
    for block in (machine.read("/proc/cpuinfo", _LONGEST) or "").split("\n\n"):
        lines = named_lines(block)
        number = whole(lines.get("processor"))
        if number is not None and number >= 0:
            listed[number] = whole(lines.get("physical id")) or 0, whole(lines.get("core id"))
    return listed


def packages_of(listed: Mapping[int, Place]) -> list[list[int]]:
    """Return the processors of each package."""
    groups: dict[int, list[int]] = {}
    for cpu, (package, _) in listed.items():
        groups.setdefault(package, []).append(cpu)
    return list(groups.values())


def cores_at(listed: Mapping[int, Place], members: Sequence[int]) -> list[list[int]] | None:
    """Return the processors of each core of a package; None where one has no core's number."""
    cores: dict[Place, list[int]] = {}
    for cpu in members:
        place = listed.get(cpu)
        if place is None or place[1] is None:
            return None
        cores.setdefault(place, []).append(cpu)
    return list(cores.values())


# Packages, cores, threads and clocks from /sys/devices/system/cpu.

CPUS = "/sys/devices/system/cpu"

# Lists since Linux 5.2; lists; masks of kernels before 2.6.30, and what some gather tools keep.
PACKAGE = ("package_cpus_list", "core_siblings_list", "package_cpus", "core_siblings")
CORE = ("core_cpus_list", "thread_siblings_list", "core_cpus", "thread_siblings")


def online(machine: Machine) -> list[int]:
    """Return the CPUs that run; nothing when no file tells them."""
    text = machine.read(f"{CPUS}/online")
    if text is not None:
        return cpu_list(text)
    # Kernels before 2.6.27 have no such file, and gather tools may leave it out.
    shown, described = [], []
    for name in machine.listdir(CPUS):
        cpu = decimal(name[3:]) if name[:3] == "cpu" else None
        if cpu is not None and machine.read_int(f"{CPUS}/{name}/online") != 0:
            shown.append(cpu)
            if machine.exists(f"{CPUS}/{name}/topology"):
                described.append(cpu)
    return sorted(described or shown)[:MAX_CPUS]


def own_cpus(machine: Machine) -> frozenset[int] | None:
    """Return the CPUs this process may run on; None on a recorded machine: its process is gone."""
    if not (machine.live and hasattr(os, "sched_getaffinity")):
        return None
    try:
        return frozenset(os.sched_getaffinity(0))
    except OSError:
        return None


def offline(machine: Machine, running: Collection[int]) -> int:
    """Return how many CPUs are there and do not run."""
    return len(set(cpu_list(machine.read(f"{CPUS}/present"))).difference(running))


def siblings(machine: Machine, cpu: int, names: Sequence[str]) -> list[int]:
    """Return the CPUs that share a package or core with `cpu`, from the first file that tells."""
    for name in names:
        text = machine.read(f"{CPUS}/cpu{cpu}/topology/{name}")
        if text is not None:
            return cpu_list(text) if name.endswith("_list") else cpu_mask(text)
    return []


def sockets(machine: Machine, running: Iterable[int]) -> list[list[int]]:
    """Return the CPUs of each package, as the kernel groups them."""
    remaining = dict.fromkeys(running)
    groups = []
    while remaining:
        first = next(iter(remaining))
        members = [cpu for cpu in siblings(machine, first, PACKAGE) if cpu in remaining]
        # A package that does not list its own CPU says nothing.
        members = members if first in members else list(remaining)
        groups.append(members)
        for cpu in members:
            del remaining[cpu]
    return groups


def package(
    machine: Machine,
    members: Sequence[int],
    cores: Sequence[Core] | None,
    nodes: Nodes | None = None,
    *,
    hybrid: bool = True,
) -> Package:
    """Return the counts of one package: of its `cores` where the kernel shows them.

    `nodes` are those of the machine, where they are read already. `hybrid` says whether to look
    for the kernel's list of efficiency cores.
    """
    counts: Package = {"first": members[0], "threads": len(members)}
    if cores:
        counts["cores"] = len(cores)
    own = nodes_of(machine, members, nodes)
    if own:
        counts["numa_node"] = own[0]
    if len(own) > 1:
        counts["numa_nodes"] = own
    clusters = _hybrid(machine, cores or ()) if hybrid else []
    if clusters:
        counts["clusters"] = clusters
    return counts


def cores_of(
    machine: Machine, members: Iterable[int], *, single: bool = False
) -> list[Core] | None:
    """Return the CPUs of each core; None when the kernel does not show which share one.

    One read per core, not per thread: a CPU's list of siblings covers all of its core. `single`
    says that a core of this kind has one thread, which counts CPUs that have no topology: one that
    was switched off while the files were read, or a kernel without topology.
    """
    remaining = dict.fromkeys(members)
    cores = []
    while remaining:
        cpu = next(iter(remaining))
        shared = siblings(machine, cpu, CORE)
        if not (shared or single):
            return None  # an unknown count is better than threads counted as cores
        core = [cpu, *(other for other in shared if other != cpu and other in remaining)]
        for member in core:
            del remaining[member]
        cores.append(core)
    return cores


def nodes(machine: Machine) -> Nodes | None:
    """Return the CPUs of each NUMA node; None where the kernel lists no nodes.

    Read once for all packages: a machine of 128 packages has 64 nodes.
    """
    if has_one_node(machine):  # nothing to import
        return {0: None}
    from probe_core.machine import numa

    return numa.nodes(machine)


def nodes_of(machine: Machine, members: Sequence[int], listed: Nodes | None = None) -> list[int]:
    """Return the NUMA nodes of these CPUs; several where a package has several (Opteron, Kunpeng).

    Nodes without CPUs, such as the memory of a GPU or of CXL, are not among them.
    """
    listed = nodes(machine) if listed is None else listed
    if listed is not None:
        return [n for n, cpus in listed.items() if cpus is None or not cpus.isdisjoint(members)]
    names = [n[4:] for n in machine.listdir(f"{CPUS}/cpu{members[0]}") if n[:4] == "node"]
    return [int(names[0])] if names and names[0].isdecimal() else []


def _hybrid(machine: Machine, cores: Sequence[Core]) -> list[Cluster]:
    """Return performance and efficiency cores of Intel's hybrids, which the kernel lists apart."""
    kinds: list[Cluster] = []
    for name in ("cpu_core", "cpu_atom", "cpu_lowpower"):
        text = machine.read(f"/sys/devices/{name}/cpus")
        if text is None and name == "cpu_core":
            break  # no hybrid, or a kernel before 5.13: two reads less
        held = set(cpu_list(text))
        own = [core for core in cores if not held.isdisjoint(core)]
        if own:
            mhz, _ = clocks(machine, own[0][0], None)
            threads = sum(cpu in held for core in own for cpu in core)
            kind: Cluster = {"kind": name, "cores": len(own), "threads": threads}
            kinds.append(timed({**kind, "members": own}, mhz))
    return kinds


def clocks(machine: Machine, cpu: int, current_mhz: float | None) -> tuple[dict[str, float], str]:
    """Return (clocks in MHz, why there are none).

    `max_mhz` is the driver's highest frequency (single-core turbo on most x86), `base_mhz` the
    guaranteed one where the driver says it, `current_mhz` what /proc/cpuinfo showed just now: in
    virtual machines that is the base clock.
    """
    folder = f"{CPUS}/cpu{cpu}/cpufreq"
    frequencies = {}
    for key, name in (("max_mhz", "cpuinfo_max_freq"), ("base_mhz", "base_frequency")):
        khz = machine.read_int(f"{folder}/{name}")
        if khz and 1_000 <= khz <= 20_000_000:
            frequencies[key] = khz / 1000
    if not frequencies and current_mhz:
        frequencies["current_mhz"] = current_mhz
    return frequencies, "neither cpufreq nor /proc/cpuinfo gives a frequency"


def timed(cluster: Cluster, mhz: Mapping[str, float]) -> Cluster:
    """Return the cluster with its clocks."""
    if "max_mhz" in mhz:
        cluster["max_mhz"] = mhz["max_mhz"]
    if "base_mhz" in mhz:
        cluster["base_mhz"] = mhz["base_mhz"]
    return cluster


# The kinds of cores of a hybrid without a list of them; those of a system-on-chip: `clusters`.

_TRIES = 4
"""CPUs of a cluster that are asked for its clock: a phone may have switched the first ones off.

A judgement: half of a cluster of eight.
"""

_GAP = 0.9
"""A core whose highest clock is below nine tenths of the fastest core's is an efficiency core.

Favoured performance cores differ by at most 6 % (i9-14900K: 6.0 and 5.7 GHz), efficiency cores by
16 % or more (Core Ultra 9 285K: 5.5 and 4.6 GHz).
"""


def first_clocks(machine: Machine, cpus: Sequence[int]) -> dict[str, float]:
    """Return the clocks of the first of these CPUs that shows some."""
    for cpu in cpus[:_TRIES]:
        if mhz := clocks(machine, cpu, None)[0]:
            return mhz
    return {}


def split(machine: Machine, cores: Sequence[Core]) -> list[Cluster]:
    """Return performance and efficiency cores of a processor whose kernel does not list them.

    Efficiency cores have one thread and a lower clock. Whether the processor is a hybrid at all is
    known to chipdb alone: a Xeon one of whose threads is off looks the same.
    """
    if len({len(core) for core in cores}) > 1:
        most = max(map(len, cores))
        flags = [len(core) < most for core in cores]
    else:
        flags = _slower(machine, cores)
    groups = []
    for kind, small in (("performance", False), ("efficiency", True)):
        own = [core for core, flag in zip(cores, flags, strict=True) if flag is small]
        if own:
            mhz = first_clocks(machine, [core[0] for core in own])
            group: Cluster = {"kind": kind, "cores": len(own), "threads": sum(map(len, own))}
            groups.append(timed({**group, "guessed": True, "members": own}, mhz))
    return groups if len(groups) > 1 else []


def _slower(machine: Machine, cores: Sequence[Core]) -> list[bool]:
    """Return for each core whether it is slower than the others: by base clock, else by maximum."""
    ends = [clocks(machine, core[0], None)[0] for core in (cores[0], cores[-1])]
    for key, factor in (("base_mhz", 1.0), ("max_mhz", _GAP)):
        first, last = (end.get(key) for end in ends)
        if first and last and min(first, last) < factor * max(first, last):
            mhz = [clocks(machine, core[0], None)[0].get(key, 0.0) for core in cores]
            return [value < factor * max(mhz) for value in mhz]
    return [False] * len(cores)
