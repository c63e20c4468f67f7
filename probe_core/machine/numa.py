"""The NUMA nodes of a machine, and the CPUs of each."""

from __future__ import annotations

from probe_core.machine import NODES, cpu_list, cpu_mask, decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.machine import Machine


def numbers(machine: Machine) -> list[int]:
    """Return the numbers of the nodes, lowest first; nothing where the kernel lists none."""
    text = machine.read(f"{NODES}/online", 4096)
    if text is not None:
        return cpu_list(text)
    # Old kernels have no such file: seen in hwloc's recordings of Itanium and of POWER.
    names = (name[4:] for name in machine.listdir(NODES) if name[:4] == "node")
    return sorted(number for name in names if (number := decimal(name)) is not None)


def nodes(machine: Machine) -> dict[int, frozenset[int] | None] | None:
    """Return the CPUs of each node; None where there are no nodes, and for the CPUs of an only one.

    A CPU is of one node. Where buggy firmware lists the same CPUs in several nodes, the first node
    has them: hwloc's recording of such a machine has eight CPUs in each of eight nodes.
    """
    listed = numbers(machine)
    if len(listed) < 2:
        return {listed[0]: None} if listed else None
    cpus: dict[int, frozenset[int] | None] = {}
    taken: set[frozenset[int]] = set()
    for number in listed:
        own = _cpus(machine, number)
        if own is not None:
            cpus[number] = frozenset() if own in taken else own
            taken.add(own)
    return cpus or None


def _cpus(machine: Machine, node: int) -> frozenset[int] | None:
    """Return a node's CPUs: from the list, or the mask, which old recordings have alone."""
    text = machine.read(f"{NODES}/node{node}/cpulist", 64 << 10)
    if text is not None:
        return frozenset(cpu_list(text))
    mask = machine.read(f"{NODES}/node{node}/cpumap", 64 << 10)
    return None if mask is None else frozenset(cpu_mask(mask))


def node_of(machine: Machine, near: Iterable[int]) -> int | None:
    """Return the node that holds all of these CPUs; None where there are none or several hold them.

    The only node of a machine holds everything.
    """
    listed = nodes(machine) or {}
    if len(listed) == 1:
        return next(iter(listed))
    wanted = frozenset(near)
    own = [number for number, cpus in listed.items() if cpus and wanted and wanted <= cpus]
    return own[0] if len(own) == 1 else None
