"""The node itself: system, model, network, and how much memory this process may really use."""

from __future__ import annotations

from probe_core.fastpath import blake2s
from probe_core.machine import NODES, decimal
from probe_core.machine.surroundings import (
    cgroup_kind,
    cgroup_text,
    container,
    hypervisor,
    memory_limits,
)
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.background import OwnThread
    from probe_core.machine import Machine
    from probe_core.model.document import NetworkDoc, NodeDoc, NodeMemoryDoc

    Load = Callable[[str], object]
    Rate = tuple[float | None, str | None]
    """Bytes per second, and why they are not known."""
    Question = Callable[[], tuple[Rate, str | None]]
    """Asks a driver: the rate, and the state where the driver alone knows it."""

_MODEL_FILES = (
    "/sys/firmware/devicetree/base/model",
    "/proc/device-tree/model",
    "/sys/class/dmi/id/product_name",
)
# What board makers leave in DMI when they do not fill it in.
_PLACEHOLDERS = ("to be filled by o.e.m.", "system product name", "default string", "none", "")


def describe(
    machine: Machine,
    *,
    anonymous: bool = False,
    hostname: bool = False,
    load: Load = bool,
) -> NodeDoc:
    """Return the report's `node`: its system, identity, surroundings and network.

    `anonymous` leaves out its id, and those of its links; its name is there for `hostname` alone.
    `load` is called with the part of `gate` that rare links need. What `memory` returns is added
    once children have answered, which take some of it; psutil, which tells it on other systems,
    is imported now all the same.
    """
    is_linux = machine.os == "linux"
    unread: NodeMemoryDoc = {"total": None, "available": None, "limit": None}
    # Drivers are asked while the rest is read.
    links = begin_network(machine, anonymous, load) if is_linux else list
    cgroup = cgroup_text(machine) if is_linux else ""
    inside = container(machine, cgroup)
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
        "vm": hypervisor(machine) if is_linux else None,
        "cgroup": cgroup_kind(cgroup),
        "memory": unread if is_linux else memory(machine),
        "network": links(),
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


# How this node is linked to others: interfaces of hardware, RDMA ports, Thunderbolt connections.
#
# From /sys alone: no packet is sent, no socket opened, and a sleeping device is not asked.
# Interfaces without hardware (bridges, tunnels, those of containers) are left out; so are virtual
# functions beside their card, whose link they share.


_waits: tuple[int, OwnThread] | None = None
"""Process and work of a thread that a driver keeps: only one, however often a host asks."""


_NET, RDMA, BUS = "/sys/class/net", "/sys/class/infiniband", "/sys/bus/thunderbolt/devices"

MAX_LINKS = 64
"""Links of each kind at most. A judgement: an HGX node has a dozen; a switch's hosts may have more
interfaces than a report should."""

MAX_BRIDGES = 32
"""Bridges above a device at most: a real chain has fewer than ten."""

MAX_NAMES = 4096
"""Names of interfaces looked at: a host of containers has one for each."""

LIMIT_S = 0.2
"""Seconds for all drivers together to say how fast their links are; a healthy one takes 0.1 ms."""

_ETHERNET, _INFINIBAND, _RAW_IP = "1", "32", "519"
_KINDS = {_ETHERNET: "ethernet", _INFINIBAND: "infiniband", _RAW_IP: "wwan"}
"""Hardware types of interfaces (linux/if_arp.h)."""

_MEGABIT = 125_000
"""Bytes."""


def network(machine: Machine, anonymous: bool = False, load: Load = bool) -> list[NetworkDoc]:
    """Return the links, by kind and name; none where nothing can be read.

    `anonymous` leaves out the ids of Thunderbolt hosts, and the digits of names made of a MAC.
    `load` is as `describe` has it.
    """
    return begin_network(machine, anonymous, load)()


def begin_network(machine: Machine, anonymous: bool, load: Load) -> Callable[[], list[NetworkDoc]]:
    """Begin to ask drivers; return what waits for their answers and returns the links."""
    links, questions = _interfaces(machine)
    adapters, others = machine.listdir(RDMA), machine.listdir(BUS)[:MAX_NAMES]
    if adapters or others:
        load("fabric")
        from probe_core.pipeline import fabric

        ports, more_questions = fabric.ports(machine, adapters)
        links, questions = links + ports, questions + more_questions
    await_answers = _ask(links, questions, machine.live)

    def finish() -> list[NetworkDoc]:
        await_answers()
        if others:
            links.extend(fabric.connections(machine, others, anonymous))
        if anonymous:
            for link in links:
                link["name"] = _without_identity(link["name"])
        return links

    return finish


def _interfaces(machine: Machine) -> tuple[list[NetworkDoc], list[Question]]:
    links: list[NetworkDoc] = []
    questions: list[Question] = []
    for name in machine.listdir(_NET)[:MAX_NAMES]:
        hardware = f"{_NET}/{name}/device"
        if machine.exists(hardware) and not shares(machine, hardware, "net"):
            links.append(_interface(machine, name))
            questions.append(_speed_of(machine, name, links[-1]))
            if len(links) == MAX_LINKS:
                break
    return links, questions


def shares(machine: Machine, folder: str, kind: str) -> bool:
    """Return whether this is a virtual function of a card that has `kind` here itself.

    In a container it has not: the kernel lists the interfaces of the reader's namespace alone.
    """
    return bool(machine.listdir(f"{folder}/physfn/{kind}"))


def _interface(machine: Machine, name: str) -> NetworkDoc:
    folder = f"{_NET}/{name}"
    link: NetworkDoc = {
        "name": clean_text(name),
        "kind": _kind(machine, folder),
        "state": machine.read(f"{folder}/operstate", 32),
        "bandwidth": None,
        "reason": None,
    }
    if (mtu := machine.read_int(f"{folder}/mtu")) is not None:
        link["mtu"] = mtu
    place(machine, f"{folder}/device", link)
    if link.get("driver") == "thunderbolt-net":
        link["kind"] = "thunderbolt-net"
    return link


def _kind(machine: Machine, folder: str) -> str:
    kind = _KINDS.get(machine.read(f"{folder}/type", 16) or "", "other")
    if kind == "ethernet" and machine.exists(f"{folder}/phy80211"):
        return "wifi"
    return kind


def place(machine: Machine, folder: str, link: NetworkDoc) -> None:
    """Add driver, PCI address, bridges and NUMA node of the device at `folder`.

    What `probe_core.sysfs` has for that is not imported: nodes without accelerators need it nowhere
    else.
    """
    if driver := machine.readlink(f"{folder}/driver").rpartition("/")[2]:
        link["driver"] = clean_text(driver)
    # Folders around its own, from its PCI function up to the root bus. Of virtio and USB it is the
    # function that the bus hangs on.
    names = [name for name in reversed(machine.realpath(folder).split("/")) if _is_function(name)]
    if names:
        link["device"] = f"pci:{names[0]}"
    if len(names) > 1:
        link["bridges"] = names[1:][:MAX_BRIDGES]
    node = machine.read_int(f"{folder}/numa_node")
    if node is not None and node >= 0:  # -1 where firmware does not say
        link["numa_node"] = node


def _is_function(name: str) -> bool:
    return name.count(":") == 2 and name.partition(".")[0].replace(":", "").isalnum()


def _speed_of(machine: Machine, name: str, link: NetworkDoc) -> Question:
    folder = f"{_NET}/{name}"

    def ask() -> tuple[Rate, str | None]:
        if link["state"] == "down":
            return (None, "the link is down"), None
        if sleeps(machine, f"{folder}/device"):
            return (None, "the device is suspended"), None
        # A kernel's own number: -1 where the driver does not know, as virtio's and Wi-Fi's.
        speed = decimal(machine.read(f"{folder}/speed", 32) or "")
        if not speed or speed >= 0xFFFFFFFF:
            return (None, "the driver reports no speed"), None
        return (speed * _MEGABIT, None), None

    return ask


def sleeps(machine: Machine, folder: str) -> bool:
    status = machine.read(f"{folder}/power/runtime_status", 32)
    return status in ("suspended", "suspending")


def _ask(links: list[NetworkDoc], questions: list[Question], live: bool) -> Callable[[], object]:
    """Ask what drivers alone know; return what waits for the answers and fills them in.

    The kernel asks a NIC's driver under a lock of all interfaces (net-sysfs.c, rtnl_trylock), and
    an RDMA device's firmware for each port. Where either is stuck a read never returns, and no
    signal but SIGKILL ends it: so a thread reads, which is left to itself after `LIMIT_S`.

    A thread that an earlier call left to a driver still holds that driver's lock: no other thread
    would fare better, and exo asks every few seconds.
    """
    if not questions:
        return bool
    if not live:
        for link, question in zip(links, questions, strict=True):
            _answer(link, question())
        return bool
    from os import getpid
    from time import monotonic

    from probe_core.background import OwnThread

    answers: dict[int, tuple[Rate, str | None]] = {}

    def ask_all() -> None:
        for number, question in enumerate(questions):
            answers[number] = question()

    def await_answers() -> None:
        global _waits
        if not is_held:
            asking.wait(until)
            if asking.over:
                asking.join()
            else:
                _waits = getpid(), asking
        known = dict(answers)
        late = (None, f"the kernel did not answer within {LIMIT_S:g} s"), None
        for number, link in enumerate(links):
            _answer(link, known.get(number, late))

    is_held = _waits is not None and _waits[0] == getpid() and not _waits[1].over
    asking, until = OwnThread(ask_all), monotonic() + LIMIT_S
    if not is_held:
        asking.begin(in_place=False)  # without a thread nobody is asked
    return await_answers


def _answer(link: NetworkDoc, answer: tuple[Rate, str | None]) -> None:
    (link["bandwidth"], link["reason"]), state = answer
    if state:
        link["state"] = clean_text(state)


def _without_identity(name: str) -> str:
    """Return a name without a MAC or GUID: udev's policies `mac` and `by-guid` make such names."""
    stem = name.rstrip("0123456789abcdef")
    return stem if len(name) - len(stem) >= 12 else name
