"""The processors of a node in Slurm's words: sockets, cores, threads, and the cores near a GPU.

Slurm counts *logical* cores (hwloc's L#), socket by socket. Where packages differ, or a package has
several NUMA nodes, that order is not known here, and nothing is written: a wrong core drains.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["cores_near", "node_keys"]

_MIB = 1 << 20
_ROOM = 100
"""One part of so many of the memory is left out: slurmd drains a node that has less than
RealMemory, and the kernel's own share differs from start to start."""


def node_keys(report: ReportDoc) -> str:
    """Return ``Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=…`` as far as known."""
    parts = []
    if layout := _layout(report):
        parts = [
            f"Sockets={layout[0]}",
            f"CoresPerSocket={layout[1]}",
            f"ThreadsPerCore={layout[2]}",
        ]
    memory = report["node"]["memory"]["total"]
    if memory is not None:
        parts.append(f"RealMemory={(memory - memory // _ROOM) // _MIB}")
    return " ".join(parts)


def cores_near(device: DeviceDoc, report: ReportDoc) -> str:
    """Return the logical cores of the GPU's own socket, ``16-31``; "" where that is not sure."""
    layout, packages = _layout(report), _packages(report)
    nodes = [package.get("numa_node") for package in packages]
    own = device.get("numa_node")
    split = any(package.get("numa_nodes") for package in packages)
    if layout is None or len(packages) < 2 or split or len(set(nodes)) != len(nodes):
        return ""
    if own is None or own not in nodes:
        return ""
    first = nodes.index(own) * layout[1]
    return f"{first}-{first + layout[1] - 1}"


def _packages(report: ReportDoc) -> list[DeviceDoc]:
    packages = [device for device in report["devices"] if device["id"].startswith("cpu:")]
    return sorted(packages, key=lambda device: (len(device["id"]), device["id"]))


def _layout(report: ReportDoc) -> tuple[int, int, int] | None:
    """Return sockets, cores a socket and threads a core; None where packages differ."""
    packages = _packages(report)
    shapes = {(package["units"], package.get("threads")) for package in packages}
    if len(shapes) != 1 or any((package.get("cpu") or {}).get("clusters") for package in packages):
        return None
    cores, threads = shapes.pop()
    if not cores or not threads or threads % cores:
        return None
    return len(packages), cores, threads // cores
