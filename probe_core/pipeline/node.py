"""The node itself: system, model, and how much memory this process may really use."""

from __future__ import annotations

from probe_core.fastpath import blake2s
from probe_core.machine import decimal
from probe_core.machine.files import NODES
from probe_core.machine.surroundings import (
    cgroup_kind,
    cgroup_text,
    container,
    is_wsl,
    memory_limits,
)
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.model.document import NetworkDoc, NodeDoc, NodeMemoryDoc


_MODEL_FILES = (
    "/sys/firmware/devicetree/base/model",
    "/proc/device-tree/model",
    "/sys/class/dmi/id/product_name",
)
# What board makers leave in DMI when they do not fill it in.
_PLACEHOLDERS = ("to be filled by o.e.m.", "system product name", "default string", "none", "")


def describe(machine: Machine, *, anonymous: bool = False, hostname: bool = False) -> NodeDoc:
    """Return the report's `node`: its system, identity and surroundings, memory and network.

    `anonymous` leaves out its id, and those of its links; its name is there for `hostname` alone.
    """
    is_linux = machine.os == "linux"
    cgroup = cgroup_text(machine) if is_linux else ""
    inside = container(machine, cgroup)
    links: list[NetworkDoc] = []
    if is_linux:
        from probe_core.pipeline.network import network

        links = network(machine, anonymous)
    return {
        "os": machine.os,
        "kernel": _kernel(machine),
        "arch": machine.arch,
        "model": _model(machine),
        "id": None if anonymous else _identity(machine, inside),
        "host": _host_name(machine) if hostname else None,
        # A recording is replayed at another time than its machine was looked at.
        "time": _now() if machine.live else None,
        "container": inside,
        "vm": _hypervisor(machine) if is_linux else None,
        "cgroup": cgroup_kind(cgroup),
        "memory": memory(machine),
        "network": links,
    }


def _kernel(machine: Machine) -> str | None:
    text = machine.read("/proc/sys/kernel/osrelease", 256) if machine.os == "linux" else None
    if text:
        return clean_text(text)
    import os

    return os.uname().release if machine.live and hasattr(os, "uname") else None


def _model(machine: Machine) -> str | None:
    if machine.os == "darwin" and machine.live:
        from probe_core.probers.cpu_other import sysctl

        return sysctl("hw.model")
    for path in _MODEL_FILES:
        text = machine.read(path, 256)
        if text and text.lower() not in _PLACEHOLDERS:
            return clean_text(text)
    return None


def memory(machine: Machine) -> NodeMemoryDoc:
    """Return total, available and limit in bytes; None for what cannot be known.

    `total` is the machine's, `limit` the smallest limit of the control groups this process is in,
    `available` what can be taken now without swapping, within that limit. NUMA totals are not
    used: in virtual machines they can be far off.
    """
    if machine.os != "linux":
        return _from_psutil(machine)
    info = _meminfo(machine)
    total, available = info.get("MemTotal"), info.get("MemAvailable")
    limit, room, place = memory_limits(machine)
    memory: NodeMemoryDoc = {"total": total, "available": available, "limit": None}
    has_nodes = "," in (nodes := machine.read(f"{NODES}/online", 4096) or "") or "-" in nodes
    if has_nodes:
        # Here, and `gate` knows when: most machines have one node.
        from probe_core.pipeline.node_memory import correct, limit_of_nodes

        correct(machine, memory)
        total, available = memory["total"], memory["available"]
    if limit is not None and (total is None or limit < total):
        memory["limit"], memory["limited_by"] = limit, place
        if room is not None and available is not None:
            memory["available"] = min(available, room)
    if has_nodes:
        limit_of_nodes(machine, memory)
    return memory


_WANTED = ("MemTotal:", "MemAvailable:")


def _meminfo(machine: Machine) -> dict[str, int]:
    sizes = {}
    for line in (machine.read("/proc/meminfo", 16 << 10) or "").splitlines():
        if line.startswith(_WANTED):  # of sixty: reading all of them doubles the time
            name, _, value = line.partition(":")
            number, *_ = [*value.split(), ""]
            size = decimal(number)
            if size is not None:
                sizes[name] = size * 1024  # the kernel writes "kB" and means KiB
    return sizes


def _from_psutil(machine: Machine) -> NodeMemoryDoc:
    unknown: NodeMemoryDoc = {"total": None, "available": None, "limit": None}
    if not machine.live:
        return unknown
    try:
        import psutil

        memory = psutil.virtual_memory()
    except Exception:  # psutil raised on macOS 26 and 27 betas; a node must start all the same
        from probe_core.probers.cpu_other import sysctl_int

        unknown["total"] = sysctl_int("hw.memsize") if machine.os == "darwin" else None
        return unknown
    return {"total": memory.total, "available": memory.available, "limit": None}


# Which node this is, when it was probed, and what the process runs inside.
#
# So that the latest of several reports of one node wins, on plain files, without a service.

_MACHINE_ID = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_HEXADECIMAL = frozenset("0123456789abcdef")
_KEY = b"probe-core node.id"

# Containers of these kinds share the machine id of their image, or have none: two nodes with one
# id would be worse than a node without.
_SHARED_BY_IMAGE = ("docker", "podman", "kubernetes", "container")

# Beginning of a DMI vendor's or product's name to the hypervisor, as systemd-detect-virt reads it.
_BY_DMI = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Oracle Corporation VirtualBox", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "hyper-v"),
    ("Apple Virtualization", "apple"),
)
_DMI = "/sys/class/dmi/id"
_DMI_FILES = ("product_name", "sys_vendor", "board_vendor", "bios_vendor")


def _identity(machine: Machine, inside: str | None) -> str | None:
    """Return 32 digits made of the machine id, which itself is confidential (machine-id(5))."""
    if inside in _SHARED_BY_IMAGE and not _is_mounted(machine):
        return None
    for path in _MACHINE_ID:
        text = (machine.read(path, 64) or "").lower()
        # "uninitialized" stands there on the first start.
        if len(text) == 32 and _HEXADECIMAL.issuperset(text) and text.strip("0"):
            return blake2s(text.encode(), _KEY, 16)
    return None


def _is_mounted(machine: Machine) -> bool:
    """Return whether the host's machine id was mounted into the container, on purpose."""
    for line in (machine.read("/proc/self/mountinfo") or "").splitlines():
        if line.split()[4:5] == [_MACHINE_ID[0]]:
            return True
    return False


def _host_name(machine: Machine) -> str | None:
    text = machine.read("/proc/sys/kernel/hostname", 256) if machine.os == "linux" else None
    if text is None and machine.live:
        import socket

        text = socket.gethostname()
    return clean_text(text) if text else None


def _now() -> str:
    """Return the time in UTC as RFC 3339 writes it; as text it sorts by time."""
    from time import gmtime, strftime, time

    seconds = time()
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def _hypervisor(machine: Machine) -> str | None:
    """Return the kind of virtual machine; "vm" where only its being one is known."""
    if is_wsl(machine):
        return "wsl"
    if machine.read("/sys/hypervisor/type", 32) == "xen":
        return "xen"
    texts = [text for name in _DMI_FILES if (text := machine.read(f"{_DMI}/{name}", 128))]
    for start, kind in _BY_DMI:
        if any(text.startswith(start) for text in texts):
            return None if kind == "amazon" and _is_metal(texts) else kind
    if "Microsoft Corporation" in texts and "Virtual Machine" in texts:
        return "hyper-v"
    return "vm" if _has_hypervisor_flag(machine) else None


def _is_metal(texts: list[str]) -> bool:
    """Return whether an instance is the whole machine: its type is the product ("g4dn.metal")."""
    return any(text.endswith(".metal") or ".metal-" in text for text in texts)


def _has_hypervisor_flag(machine: Machine) -> bool:
    """Look at the first processor alone: the file of a large server is long."""
    head = machine.read("/proc/cpuinfo", 4096) or ""
    flags = next((line for line in head.splitlines() if line.startswith("flags")), "")
    return "hypervisor" in flags.split()
