"""What a node is does not change while it runs: probe once, share it among threads and callers."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from probe_core.commands import probe_document
from probe_core.machine import Machine

__all__ = ["node_document"]

# What decides who sees which device; another value is another answer.
_DECIDES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "PROBE_STATIC",
)

_lock = threading.Lock()
_reports: dict[object, Mapping[str, Any]] = {}


def node_document(refresh: bool = False, machine: Machine | None = None) -> Mapping[str, Any]:
    """Return this node's report as plain data, probed once for the process.

    `refresh` probes again; a `machine` of one's own is always probed. Threads that ask at the same
    time share one probe. Takes as long as `probe_core.probe` at most, and raises nothing that
    hardware, drivers or plugins could cause.
    """
    if machine is not None:
        return _probed(machine)
    key = (os.getpid(), *map(os.environ.get, _DECIDES))
    report = _reports.get(key)
    if report is not None and not refresh:
        return report
    # Whoever waited for the lock while another thread refreshed takes that thread's report.
    before = report
    with _lock:
        report = _reports.get(key)
        if report is None or (refresh and report is before):
            report = _probed(Machine())
            _reports.clear()
            _reports[key] = report
    return report


def _probed(machine: Machine) -> Mapping[str, Any]:
    # A recorded machine's environment is no choice of the person who asks.
    return probe_document(machine, machine.environ if machine.live else {})


def _forget() -> None:
    """A forked child shares no lock with its parent: its owner may be gone."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
