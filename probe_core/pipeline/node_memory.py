"""What the node's memory is less by: GPUs' memory that Linux counts, memory nodes, cgroups."""

from __future__ import annotations

from probe_core.machine import NODES, cpu_list, decimal
from probe_core.machine.engines import raised
from probe_core.machine.numa import numbers
from probe_core.machine.surroundings import hierarchies
from probe_core.model.findings import finding
from probe_core.sizes import gib
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc, NodeMemoryDoc


GPUS = "/proc/driver/nvidia/gpus"
_MEMS_FILES = {2: "cpuset.mems.effective", 1: "cpuset.mems", 0: "mems"}


def correct(machine: Machine, memory: NodeMemoryDoc) -> None:
    """Take the memory of GPUs out of the node's, in place, and note it as `devices`.

    POWER9 with V100 and Grace Hopper list each GPU's memory as a NUMA node; MemTotal counts it.
    """
    nodes = _gpu_nodes(machine)
    if not nodes:
        return
    sizes = [_sizes(machine, node) for node in nodes]
    own = sum(size.get("MemTotal", 0) for size in sizes)
    free = sum(size.get("MemFree", 0) for size in sizes)
    if not own or memory["total"] is None or own >= memory["total"]:
        return
    memory["total"] -= own
    memory["devices"] = own
    if memory["available"] is not None:
        memory["available"] = max(0, memory["available"] - free)


def _gpu_nodes(machine: Machine) -> list[int]:
    """Return the nodes that NVIDIA's driver made: "Node: 255", "Status: online"."""
    nodes = []
    for address in machine.listdir(GPUS):
        for line in (machine.read(f"{GPUS}/{address}/numa_status", 4096) or "").splitlines():
            key, _, value = line.partition(":")
            number = decimal(value.strip())
            if key.strip() == "Node" and number is not None:
                nodes.append(number)
    return list(dict.fromkeys(nodes))


def limit_of_nodes(machine: Machine, memory: NodeMemoryDoc) -> None:
    """Narrow the limit to the nodes that this process's cpuset allows, in place."""
    allowed, place = _allowed_nodes(machine)
    total = memory["total"]
    if not allowed or total is None:
        return
    gpus = _gpu_nodes(machine) if "devices" in memory else []
    own = [node for node in numbers(machine) if node not in gpus]
    if not own or allowed.issuperset(own):
        return
    sizes = [_sizes(machine, node) for node in own if node in allowed]
    held = sum(size.get("MemTotal", 0) for size in sizes)
    smallest = memory["limit"] if memory["limit"] is not None else total
    if not 0 < held < smallest:
        return
    memory["limit"], memory["limited_by"] = held, place
    free = sum(size.get("MemFree", 0) + size.get("Inactive(file)", 0) for size in sizes)
    if memory["available"] is not None:
        memory["available"] = min(memory["available"], free)


def _allowed_nodes(machine: Machine) -> tuple[frozenset[int], str]:
    for version, folders in hierarchies(machine, "cpuset"):
        for folder in folders:
            path = f"{folder}/{_MEMS_FILES[version]}"
            nodes = cpu_list(machine.read(path, 4096))
            if nodes:
                return frozenset(nodes), path
    return frozenset(), ""


def _sizes(machine: Machine, node: int) -> dict[str, int]:
    """Return the sizes in bytes of "Node 0 MemTotal:  129839104 kB" and its kin."""
    return dict(_pairs((machine.read(f"{NODES}/node{node}/meminfo", 16 << 10) or "").splitlines()))


def _pairs(lines: Iterable[str]) -> Iterable[tuple[str, int]]:
    for line in lines:
        _, _, name, size, *_ = [*line.split(), "", "", "", ""]
        number = decimal(size)
        if number is not None:
            yield name.rstrip(":"), number * 1024


def memory_limited(limit: int, file: str, engine: str | None) -> FindingDoc:
    """Return the finding of a limit in bytes, which a cgroup's `file` holds, in a container."""
    if "mems" in file.rpartition("/")[2]:
        fix = "allow more memory nodes: `docker run --cpuset-mems`, or `AllowedMemoryNodes=`"
    else:
        fix = f"raise the limit: {raised('memory', file, engine)}"
    return finding(
        "memory-limited",
        f"this process may use {gib(limit)} of memory",
        f"{clean_text(file) or 'a cgroup'} limits it; the machine has more",
        fix,
        severity="info",
        evidence=file or None,
    )
