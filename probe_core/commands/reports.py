"""Reports as plain data, for commands and hosts that need no typed view of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.machine import Machine
    from probe_core.model.document import NodeMemoryDoc, ReportDoc

__all__ = ["probe_document", "read_report", "system_memory"]


def probe_document(
    machine: Machine | None = None, environ: Mapping[str, str] | None = None
) -> ReportDoc:
    """Probe this computer, or `machine`, and return the report's document; nothing is cached.

    Settings are read from `environ`, by default the machine's own. Takes as long as
    `probe_core.probe` at most, and raises nothing that hardware, drivers or plugins could cause.
    """
    from probe_core.machine import Machine
    from probe_core.pipeline.settings import load_settings
    from probe_core.probing import document

    machine = machine or Machine()
    config, ignored = load_settings({}, machine.environ if environ is None else environ)
    report: Any = document(config, ignored, machine=machine)
    typed: ReportDoc = report
    return typed


def read_report(path: str) -> ReportDoc:
    """Return the document of a file that `probe --json` wrote, checked and complete.

    Its text is fit for a terminal. Raises `OSError` for a file that cannot be read, `ValueError`
    with the reason for one that is no report, and `RecursionError` for one nested too deep.
    """
    from probe_core.pipeline.static import read_document

    document: Any = read_document(path)
    typed: ReportDoc = document
    return typed


def system_memory(machine: Machine) -> NodeMemoryDoc:
    """Return ``total``, ``available`` and ``limit`` of the system's memory in bytes; None: unknown.

    Reads two or three small files, so it may be called every second.
    """
    from probe_core.pipeline.node import memory

    amounts: Any = memory(machine)
    typed: NodeMemoryDoc = amounts
    return typed
