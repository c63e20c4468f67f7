"""The topology of one computer as tables for a terminal of 80 columns."""

from __future__ import annotations

from probe_cluster.computer.model import address_of
from probe_core.commands import folded, grid_rows
from probe_core.model.distance import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_cluster.computer.model import Topology

_GAP = 2


def lines_of(topology: Topology, width: int) -> Iterator[str]:
    """Yield the NUMA nodes, the devices, the matrix in blocks of columns, and its words."""
    nodes = [(str(node.number), node.processor, node.cpus or UNKNOWN) for node in topology.nodes]
    if nodes:
        yield from _table([("NUMA", "PROCESSOR", "CPUS"), *nodes], width, "PROCESSOR")
    else:
        yield "No NUMA node is known."
    if topology.link:
        yield f"Packages are linked by {topology.link}."
    yield ""
    if not topology.devices:
        yield "No accelerator and no network card on a PCI bus."
        return
    devices = [("DEVICE", "NAME", "ADDRESS", "NUMA", "CPUS"), *_devices(topology)]
    yield from _table(devices, width, "NAME")
    if len(topology.devices) > 1:
        yield ""
        yield from _matrix(topology, width)
        yield ""
        yield from folded(". ".join(topology.meanings) + ".", width)
    if topology.silent:
        shown = ", ".join(topology.silent)
        yield from folded(f"NVLink or xGMI of {shown}: not known, the driver lists none.", width)


def _devices(topology: Topology) -> list[tuple[str, ...]]:
    return [
        (
            device.label,
            device.name,
            address_of(device.place),
            UNKNOWN if device.place.numa_node is None else str(device.place.numa_node),
            device.cpus or UNKNOWN,
        )
        for device in topology.devices
    ]


def _table(rows: Sequence[tuple[str, ...]], width: int, wrap: str) -> Iterator[str]:
    for lines in grid_rows(rows, width, wrap=wrap):
        yield from lines


def _matrix(topology: Topology, width: int) -> Iterator[str]:
    """Yield the matrix; columns that do not fit follow in a block of their own."""
    labels = [device.label for device in topology.devices]
    cell = max(len(text) for row in (labels, *topology.rows) for text in row) + _GAP
    fitting = max(1, (width + _GAP) // cell - 1)
    for start in range(0, len(labels), fitting):
        if start:
            yield ""
        end = start + fitting
        yield from _block([("", *labels[start:end])], cell)
        cells = zip(labels, topology.rows, strict=True)
        yield from _block([(label, *row[start:end]) for label, row in cells], cell)


def _block(rows: list[tuple[str, ...]], cell: int) -> Iterator[str]:
    for row in rows:
        yield "".join(text.ljust(cell) for text in row).rstrip()
