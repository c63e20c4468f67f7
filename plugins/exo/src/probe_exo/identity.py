"""Who this node is, in the words of current exo's `StaticNodeInformation`, on every system."""

from __future__ import annotations

import platform
import socket
from dataclasses import dataclass

from probe_core.machine import Machine
from probe_exo.rule import UNKNOWN_CHIP, UNKNOWN_MODEL
from probe_exo.static_part import node_document

__all__ = ["NodeIdentity", "node_identity"]

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
        return _mac()
    report = node_document(machine=machine)
    from probe_cluster.planning.members import capacity

    return NodeIdentity(
        model=report["node"].get("model") or UNKNOWN_MODEL,
        chip=capacity(report).chip or UNKNOWN_CHIP,
        os_version=_release(target) or target.os.capitalize(),
        os_build_version=report["node"].get("kernel") or _UNKNOWN,
        friendly_name=_name(target),
    )


def _mac() -> NodeIdentity:
    from probe_exo.mac import mac_facts

    facts = mac_facts()
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
