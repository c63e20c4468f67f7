"""Says which processes use a DRM or accel device, and how much: the kernel's fdinfo files.

Drivers write the same keys there since Linux 5.19 (Documentation/gpu/drm-usage-stats.rst).
Without root only a user's own processes can be read: `Usage` counts the others, so that "none" and
"none that may be seen" stay apart.
"""

from __future__ import annotations

from probe_core import proc
from probe_core.machine import decimal
from probe_core.sysfs import power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_core.machine import Machine

__all__ = ["Client", "Usage", "clients", "parse"]

MAX_PROCESSES = 32_768
"""Processes looked at: pid_max's default. `Usage.complete` says when there were more."""
MAX_DESCRIPTORS = 65_536
"""Descriptors looked at in all, at 5 µs each: 11,112 of 408 processes took 57 ms."""
MAX_CLIENTS = 4096
"""Clients kept: a bound on memory alone."""
LIMIT = 16_384
"""Bytes of one fdinfo file, which has some thirty lines: room for ten times as many."""

# Node's folder in /dev → the class folder that leads to its device.
_FOLDERS = {"/dev/dri/": "/sys/class/drm/", "/dev/accel/": "/sys/class/accel/"}
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# What is resident counts; of drivers that do not tell it apart what is bound, else all that exists.
_MEMORY = ("drm-resident-", "drm-memory-", "drm-total-")
_ENGINE, _CAPACITY = "drm-engine-", "drm-engine-capacity-"
_CYCLES, _TOTAL = "drm-cycles-", "drm-total-cycles-"


class Client:
    """One use of a device: descriptors that a process dup'ed or passed on share one client.

    `pids` are the processes that hold it, `node` the name of the opened node ("renderD128"),
    `driver`, `address` (PCI; None of others) and `number` (the client's, per device) as the driver
    writes them; None where the device sleeps and was not asked. `memory` maps regions ("vram0",
    "gtt", "system") to bytes, `engines` names ("gfx", "render") to nanoseconds busy (xe counts
    cycles instead and has none; panfrost and panthor count only where root turned profiling on).
    `cycles` maps xe's to (cycles busy, cycles passed); `capacities` say how many engines share a
    name, where more than one do. `key` is the same in each look.
    """

    def __init__(self, node: str, lines: Mapping[str, str]) -> None:
        self.node = node
        self.pids: list[int] = []
        self.driver = lines.get("drm-driver") or None
        self.address = lines.get("drm-pdev") or None
        self.number = decimal(lines.get("drm-client-id", ""))
        self.memory = _memory(lines)
        self.engines = {
            name[len(_ENGINE) :]: busy
            for name, value in lines.items()
            if name.startswith(_ENGINE)
            and not name.startswith(_CAPACITY)
            and (busy := decimal(value.removesuffix("ns").strip())) is not None
        }
        self.cycles = {
            name[len(_CYCLES) :]: (cycles, total)
            for name, value in lines.items()
            if name.startswith(_CYCLES)
            and (cycles := decimal(value)) is not None
            and (total := decimal(lines.get(f"{_TOTAL}{name[len(_CYCLES) :]}", ""))) is not None
        }
        self.capacities = {
            name[len(_CAPACITY) :]: count
            for name, value in lines.items()
            if name.startswith(_CAPACITY) and (count := decimal(value))
        }
        self.key: tuple[object, ...] = ()


class Usage:
    """The clients found, and what could not be looked at.

    `processes` were listed, `unreadable` of them belong to others (or ended meanwhile); `complete`
    is False when a bound was reached.
    """

    def __init__(self) -> None:
        self.clients: list[Client] = []
        self.processes = 0
        self.unreadable = 0
        self.complete = True


def clients(machine: Machine, nodes: frozenset[str] | None = None) -> Usage:
    """Return who uses the devices with these `nodes` ("renderD128", "accel0"); None: all devices.

    Costs 5 µs for each open file of the machine: ask seldom. A sleeping device's driver is not
    asked for figures, which could wake it; that a process holds it is still said.
    """
    usage = Usage()
    merged: dict[tuple[object, ...], Client] = {}
    asleep: dict[str, bool] = {}
    for pid, descriptor, node, folder in _descriptors(machine, usage):
        name = node.rpartition("/")[2]
        if nodes is not None and name not in nodes:
            continue
        # Asked once a node: a sweep meets the same node in every process that computes.
        if name not in asleep:
            asleep[name] = power.asleep(power.status(machine, f"{folder}{name}/device"))
        path = f"/proc/{pid}/fdinfo/{descriptor}"
        lines = {} if asleep[name] else parse(machine.read(path, LIMIT) or "")
        client = Client(name, lines)
        client.key = _key(client, pid, descriptor)
        client = merged.setdefault(client.key, client)
        if pid not in client.pids:
            client.pids.append(pid)
        if len(merged) >= MAX_CLIENTS:
            usage.complete = False
            break
    usage.clients = list(merged.values())
    return usage


def _key(client: Client, pid: int, descriptor: str) -> tuple[object, ...]:
    """Return what is the same for all descriptors of one client, in whatever process.

    Counted by descriptor a process "used" 7.7 GB of a 3.6 GB card (xpumanager#145). Client numbers
    are per device: the card and the render node of one share them.
    """
    if client.number is not None:
        return (client.address or client.node, client.number)
    return (client.node, pid, descriptor if client.driver else None)


def parse(text: str) -> dict[str, str]:
    """Return the ``drm-…`` lines of an fdinfo file; none when it is no DRM client's."""
    lines: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.startswith("drm-"):
            lines.setdefault(name, value.strip())
    return lines


def _memory(lines: Mapping[str, str]) -> dict[str, int]:
    memory: dict[str, int] = {}
    for stem in _MEMORY:
        for name, value in lines.items():
            size = _bytes(value) if name.startswith(stem) else None
            if size is not None:
                memory.setdefault(name[len(stem) :], size)
    return memory


def _bytes(text: str) -> int | None:
    """Return "1234 KiB" in bytes; a number without a unit counts bytes."""
    number, _, unit = text.partition(" ")
    count, factor = decimal(number), _UNITS.get(unit.strip())
    return count * factor if count is not None and factor else None


def _descriptors(machine: Machine, usage: Usage) -> Iterator[tuple[int, str, str, str]]:
    """Yield (process, descriptor, opened node, its class folder) of each open device node."""
    budget, root = MAX_DESCRIPTORS, machine.root.rstrip("/")
    for pid in proc.processes(root):
        if usage.processes >= MAX_PROCESSES or budget <= 0:
            usage.complete = False
            return
        usage.processes += 1
        names = proc.descriptor_numbers(pid, root)
        if names is None:  # somebody else's: the folder is mode 0500
            usage.unreadable += 1
            continue
        for name in sorted(names)[:budget]:
            target = proc.target(pid, name, root) or ""
            # In a recorded tree links are relative: as many steps up as the descriptor lies deep.
            path = target if target.startswith("/") else f"/{target.removeprefix('../../../')}"
            for stem, folder in _FOLDERS.items():
                if path.startswith(stem):
                    yield pid, name, path, folder
        budget -= len(names)
