"""Which node this is, when it was probed, and what the process runs inside.

So that the latest of several reports of one node wins, on plain files, without a service.
"""

from __future__ import annotations

from probe_core.fastpath import blake2s
from probe_core.machine.surroundings import cgroup_kind, cgroup_text, container, is_wsl
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import NodeDoc

__all__ = ["identify"]

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


def identify(node: NodeDoc, machine: Machine, config: Config) -> None:
    """Add id, host, time, container, vm and cgroup to a node, as far as they are known and wanted.

    `config.anonymous` leaves the id out; the host's name is there where `config.hostname` asks.
    """
    text = cgroup_text(machine) if machine.os == "linux" else ""
    inside = container(machine, text)
    node["id"] = None if config.anonymous else _identity(machine, inside)
    node["host"] = _host_name(machine) if config.hostname else None
    # A recording is replayed at another time than its machine was looked at.
    node["time"] = _now() if machine.live else None
    node["container"] = inside
    node["vm"] = _hypervisor(machine) if machine.os == "linux" else None
    node["cgroup"] = cgroup_kind(text)


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
