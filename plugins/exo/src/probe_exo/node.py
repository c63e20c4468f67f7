"""What a node is, in the words of current exo: identity, backends, compute; probed once."""

from __future__ import annotations

import os
import platform
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe_cluster.planning.members import capacity
from probe_core.commands import document_of, probe_document
from probe_core.machine import Machine
from probe_exo.figures import UNKNOWN_CHIP, UNKNOWN_MODEL, engines
from probe_exo.installed import installed_engines

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


@dataclass(frozen=True, slots=True)
class NodeBackends:
    """Which of exo's engines are installed and can run here."""

    backends: tuple[str, ...]
    """Values of exo's `Backend`: ``MlxCpu``, ``MlxMetal``, ``MlxCuda``, ``Vllm``."""
    why_not: Mapping[str, str] = field(default_factory=dict)
    """Backend → why it cannot."""


@dataclass(frozen=True, slots=True)
class NodeCompute:
    """Peaks of the devices that count; None is unknown, see `reasons`."""

    fp16_tflops: float | None
    """Dense, accumulating in fp32 where the chip can; summed over the devices."""
    memory_bandwidth: float | None
    """Bytes per second of the memory that a model lies in."""
    devices: tuple[str, ...]
    """Ids of the devices that count."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is unknown or incomplete."""


def node_backends(report: Any = None) -> NodeBackends:
    """Return the engines that are installed here and find their device; of a `report` those that
    its hardware could run, for it does not have what is installed there.

    Blocks for the first probe, which has a deadline; exo's own count of NVML devices has none.
    """
    if report is not None:
        return NodeBackends(*engines(document_of(report)))
    return NodeBackends(*engines(node_document(), installed_engines()))


def node_compute(report: Any = None, devices: str = "all") -> NodeCompute:
    """Return what this node, or the node of a `report`, computes and moves at best.

    `devices` chooses as `probe_cluster.capacity` says; raises its `ClusterError` for an id
    that is not there. Blocks for the first probe.
    """
    document = document_of(node_document() if report is None else report)
    offer = capacity(document, devices)
    names = {"fp16": "fp16_tflops", "bandwidth": "memory_bandwidth", "devices": "devices"}
    reasons = {names[key]: reason for key, reason in offer.reasons.items() if key in names}
    return NodeCompute(offer.fp16, offer.bandwidth, offer.devices, reasons)


_UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Model and chip as people know them; ``Unknown …`` as exo writes it where nobody knows."""

    model: str
    chip: str
    os_version: str
    os_build_version: str
    friendly_name: str


def node_identity(machine: Machine | None = None) -> NodeIdentity:
    """Return who this node is, or a recorded `machine`. Blocks: call it in a thread.

    Exo's own answer on Linux is ("Unknown Model", "Unknown Chip").
    """
    target = machine or Machine()
    if target.os == "darwin" and target.live:
        return _mac_identity()
    report = node_document(machine=machine)
    from probe_cluster.planning.members import capacity

    return NodeIdentity(
        model=report["node"].get("model") or UNKNOWN_MODEL,
        chip=capacity(report).chip or UNKNOWN_CHIP,
        os_version=_release(target) or target.os.capitalize(),
        os_build_version=report["node"].get("kernel") or _UNKNOWN,
        friendly_name=_name(target),
    )


def _mac_identity() -> NodeIdentity:
    from probe_exo.mac import hardware

    facts = hardware()
    return NodeIdentity(
        model=facts.model,
        chip=facts.chip,
        os_version=platform.mac_ver()[0] or _UNKNOWN,
        os_build_version=_build() or _UNKNOWN,
        friendly_name=socket.gethostname() or _UNKNOWN,
    )


def _build() -> str:
    import subprocess

    try:
        raw = subprocess.check_output(["sw_vers", "-buildVersion"], timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return raw.decode("utf-8", "replace").strip()


def _release(machine: Machine) -> str | None:
    """Return the distribution's PRETTY_NAME; on Windows its release."""
    if machine.os == "windows" and machine.live:
        return f"Windows {platform.release()}".strip()
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        for line in (machine.read(path, 8192) or "").splitlines():
            name, _, value = line.partition("=")
            if name == "PRETTY_NAME" and value.strip("\"' "):
                return value.strip("\"' ")
    return None


def _name(machine: Machine) -> str:
    if machine.live:
        return socket.gethostname() or _UNKNOWN
    return machine.read("/etc/hostname", 256) or _UNKNOWN
