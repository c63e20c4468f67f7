"""Packages, cores, threads and clocks from /sys/devices/system/cpu, with as few reads as can be."""

from __future__ import annotations

from probe_core.machine import decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.machine import Machine

__all__ = ["clocks", "cpu_list", "packages"]

CPUS = "/sys/devices/system/cpu"
MAX_CPUS = 65_536
"""CPU numbers that are believed: eight times what Linux can be built for (NR_CPUS 8192)."""


def cpu_list(text: str | None) -> list[int]:
    """Return the numbers of a kernel CPU list ("0-3,8"); bad parts are left out.

    At most `MAX_CPUS` numbers: a recorded list may repeat itself without an end.
    """
    numbers: list[int] = []
    for part in (text or "").split(","):
        low, dash, high = part.strip().partition("-")
        first, last = decimal(low), decimal(high if dash else low)
        if first is None or last is None or not first <= last < MAX_CPUS:
            continue
        numbers += range(first, last + 1)
        if len(numbers) > MAX_CPUS:
            break
    return numbers[:MAX_CPUS]


def packages(machine: Machine) -> list[dict[str, Any]]:
    """Return for each package its cores, threads, first CPU and NUMA node.

    One read per core, not per thread: a CPU's list of siblings covers all of its core.
    """
    remaining = dict.fromkeys(cpu_list(machine.read(f"{CPUS}/online")))
    sockets = []
    while remaining:
        first = next(iter(remaining))
        folder = f"{CPUS}/cpu{first}/topology"
        members = cpu_list(machine.read(f"{folder}/package_cpus_list")) or cpu_list(
            machine.read(f"{folder}/core_siblings_list")
        )
        members = [cpu for cpu in members if cpu in remaining] or list(remaining)
        sockets.append(_package(machine, members))
        for cpu in members:
            remaining.pop(cpu, None)
    return sockets


def _package(machine: Machine, members: list[int]) -> dict[str, Any]:
    package: dict[str, Any] = {"first": members[0], "threads": len(members)}
    cores = _cores(machine, members)
    if cores:
        package["cores"] = cores
    nodes = [n[4:] for n in machine.listdir(f"{CPUS}/cpu{members[0]}") if n[:4] == "node"]
    if nodes and nodes[0].isdecimal():
        package["numa_node"] = int(nodes[0])
    clusters = _clusters(machine, set(members))
    if clusters:
        package["clusters"] = clusters
    return package


def _cores(machine: Machine, members: list[int]) -> int | None:
    remaining, cores = set(members), 0
    while remaining:
        cpu = min(remaining)
        folder = f"{CPUS}/cpu{cpu}/topology"
        text = machine.read(f"{folder}/core_cpus_list") or machine.read(
            f"{folder}/thread_siblings_list"
        )
        if text is None:
            return None  # an unknown count is better than threads counted as cores
        remaining -= {cpu, *cpu_list(text)}
        cores += 1
    return cores


def _clusters(machine: Machine, members: set[int]) -> list[dict[str, Any]]:
    """Return performance and efficiency cores of Intel's hybrids, which the kernel lists apart."""
    kinds = []
    for name in ("cpu_core", "cpu_atom", "cpu_lowpower"):
        cpus = [c for c in cpu_list(machine.read(f"/sys/devices/{name}/cpus")) if c in members]
        cores = _cores(machine, cpus) if cpus else None
        if cores:
            mhz, _ = clocks(machine, cpus[0], None)
            kinds.append({"kind": name, "cores": cores, "threads": len(cpus), **mhz})
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
