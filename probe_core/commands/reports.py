"""Reports as plain data, of this machine or a recorded one, for those that need no typed view."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine import Machine
    from probe_core.model.document import Json, NetworkDoc, NodeMemoryDoc, ReportDoc


def probe_document(
    machine: Machine | None = None, environ: Mapping[str, str] | None = None
) -> ReportDoc:
    """Probe this computer, or `machine`, and return the report's document; nothing is cached.

    Settings are read from `environ`, by default the machine's own. Takes as long as
    `probe_core.probe` at most, and raises nothing that hardware, drivers or plugins could cause.
    """
    from probe_core.machine import Machine
    from probe_core.pipeline.run import document
    from probe_core.pipeline.settings import load_settings

    machine = machine or Machine()
    config, ignored = load_settings({}, machine.environ if environ is None else environ)
    return document(config, ignored, machine=machine)


def read_report(path: str) -> ReportDoc:
    """Return the document of a file that `probe --json` wrote, checked and complete.

    Its text is fit for a terminal. Raises `OSError` for a file that cannot be read, `ValueError`
    with the reason for one that is no report, and `RecursionError` for one nested too deep.
    """
    from probe_core.pipeline.static import read_document

    return read_document(path)


def read_report_text(path: str, limit: int | None = None) -> bytes:
    """Return the bytes of a report file as they are, without blocking on a pipe.

    At most `limit` bytes; None: 4 MiB, as many as a report may have. Raises `OSError` for a file
    that cannot be read, and `ValueError` for one that is too long.
    """
    from probe_core.pipeline.static import read_text

    return read_text(path) if limit is None else read_text(path, limit)


def parse_report(text: bytes) -> ReportDoc:
    """Return the document in the text of `probe --json`, checked and complete, as `read_report`.

    Raises `ValueError` with the reason for one that is no report, `RecursionError` for one nested
    too deep.
    """
    from probe_core.pipeline.static import parse_document

    return parse_document(text)


def parse_json(text: bytes) -> Json:
    """Return what a JSON text holds, unchecked and three times as fast as `parse_report`.

    Raises `ValueError` for what is no JSON, NaN and Infinity among it, and `RecursionError`.
    """
    from probe_core.jsontext import parse_strict

    value: Json = parse_strict(text)
    return value


def write_json(data: object) -> str:
    """Return data as one line of JSON in ASCII. Raises `TypeError` or `ValueError`."""
    from probe_core.jsontext import write

    return write(data)


def write_json_lines(table: Mapping[str, object]) -> str:
    """Return a table as JSON with a line for each key, and for each table in a list; in ASCII."""
    from probe_core.jsontext import write_lines

    return write_lines(table)


def system_memory(machine: Machine) -> NodeMemoryDoc:
    """Return ``total``, ``available`` and ``limit`` of the system's memory in bytes; None: unknown.

    Reads two or three small files, so it may be called every second.
    """
    from probe_core.pipeline.node import memory

    return memory(machine)


def node_network(machine: Machine) -> list[NetworkDoc]:
    """Return the links of the node as the report's ``node.network`` has them, read now.

    From /sys, without a packet; empty on other systems. Takes 0.2 s at most where a driver hangs.
    """
    if machine.os != "linux":
        return []
    from probe_core.pipeline.node import network

    return network(machine)


def numa_cpus(machine: Machine) -> dict[int, list[int]]:
    """Return the numbers of the CPUs of each NUMA node that has some; Linux only, else nothing.

    All that run on the machine, whether this process may use them or not.
    """
    if machine.os != "linux":
        return {}
    from probe_core.probers.cpu_files import nodes, nodes_of, online, sockets

    running, listed = online(machine), nodes(machine)
    if listed is not None and len(listed) == 1:
        return dict.fromkeys(listed, running)
    if listed is not None:
        return {node: own for node, cpus in listed.items() if (own := sorted(cpus or ()))}
    found: dict[int, list[int]] = {}  # the packages stand for nodes without lists of CPUs
    for members in sockets(machine, running):
        for node in nodes_of(machine, members)[:1]:
            found.setdefault(node, []).extend(members)
    return found
