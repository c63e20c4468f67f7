"""Who uses DRM and accel devices now, and how busy that keeps them: fdinfo, swept seldom.

A sweep costs 5 µs for each open file of the machine: 57 ms with 408 processes and 11,112
descriptors. One every five seconds is 1.1 % of a core, so where it takes longer it comes later.
"""

from __future__ import annotations

from time import monotonic

from probe_core.sysfs import fdinfo
from probe_core.sysfs.rates import NEEDS_TWO
from probe_core.sysfs.users import Users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from probe_core.machine import Machine
    from probe_core.sysfs.fdinfo import Client, Usage

__all__ = ["DrmUse", "Use"]

SWEEP_S = 5.0
"""Seconds between two sweeps at least."""

_COST_SHARE = 200
"""Times as long as a sweep took until the next: half a percent of a core."""

_LOCAL = ("vram", "local", "lmem")
"""How drivers call memory on the card; where there is none, all that a client has counts."""

_NO_ENGINES = "the driver's fdinfo files count no engine"

Counters = dict[tuple[tuple[object, ...], str], tuple[int, int]]
"""Client and engine to (busy, passed): nanoseconds or cycles; passed is 0 of nanoseconds."""


class Use:
    """How one device is used.

    `busy` is 0 to 1, or None with the `reason`. `processes` are those that may be seen, each with
    `pid`, `user` and `memory`; `others` says how many may not.
    """

    def __init__(self) -> None:
        self.busy: float | None = None
        self.reason: str | None = None
        self.processes: list[dict[str, str | int]] = []
        self.others: str | None = None


class DrmUse:
    """The clients of all devices, from one sweep to the next."""

    def __init__(self, machine: Machine, clock: Callable[[], float] = monotonic) -> None:
        self._machine = machine
        self._clock = clock
        self._users = Users(machine)
        self._usage: Usage | None = None
        self._before: Counters = {}
        self._now: Counters = {}
        self._passed: float | None = None
        self._swept = 0.0
        self._due = float("-inf")

    def refresh(self) -> None:
        """Sweep, if it is time to."""
        begin = self._clock()
        if begin < self._due:
            return
        self._usage = fdinfo.clients(self._machine)
        end = self._clock()
        middle = (begin + end) / 2
        self._passed = middle - self._swept if self._now or self._swept else None
        self._swept = middle
        self._before, self._now = self._now, _counters(self._usage.clients, self._now)
        self._due = begin + max(SWEEP_S, (end - begin) * _COST_SHARE)

    def of(self, nodes: Collection[str]) -> Use:
        """Return the use of the device with these nodes ("card0", "renderD128", "accel0")."""
        use = Use()
        usage = self._usage
        if usage is None:
            use.reason = NEEDS_TWO
            return use
        clients = [client for client in usage.clients if client.node in nodes]
        use.processes = _processes(clients, self._users)
        if usage.unreadable:
            readable = usage.processes - usage.unreadable
            use.others = f"{readable} of {usage.processes} processes are readable by this user"
            use.reason = use.others
        elif not usage.complete:
            use.reason = use.others = "there are more processes than a sweep looks at"
        elif self._passed is None:
            use.reason = NEEDS_TWO
        else:
            use.busy, use.reason = self._busy(clients)
        return use

    def _busy(self, clients: list[Client]) -> tuple[float | None, str | None]:
        """Return the busiest engine's share of the time since the last sweep, or the reason."""
        shares: dict[str, float] = {}
        for client in clients:
            for engine in (*client.engines, *client.cycles):
                share = self._share(client, engine) / client.capacities.get(engine, 1)
                shares[engine] = shares.get(engine, 0.0) + share
        if clients and not shares:
            return None, _NO_ENGINES
        return min(1.0, max(shares.values(), default=0.0)), None

    def _share(self, client: Client, engine: str) -> float:
        """Return the share of time that a client kept an engine busy.

        A client that was not there at the last sweep began since.
        """
        busy, passed = self._now[client.key, engine]
        busy_before, passed_before = self._before.get((client.key, engine), (0, 0))
        if passed:
            return (busy - busy_before) / (passed - passed_before) if passed > passed_before else 0
        grown = min(busy - busy_before, (self._passed or 0) * 1e9)
        return grown / ((self._passed or 1) * 1e9)


def _counters(clients: list[Client], before: Counters) -> Counters:
    """Return what each client's engines counted; of one that steps back the larger value stays.

    Drivers may report a value late (Documentation/gpu/drm-usage-stats.rst).
    """
    counters: Counters = {}
    for client in clients:
        values = {name: (busy, 0) for name, busy in client.engines.items()} | client.cycles
        for engine, (busy, passed) in values.items():
            key = (client.key, engine)
            old = before.get(key, (0, 0))
            counters[key] = (max(busy, old[0]), max(passed, old[1]))
    return counters


def _processes(clients: list[Client], users: Users) -> list[dict[str, str | int]]:
    """Return the processes that hold a client.

    A client that several processes hold counts for the first of them: its memory is there once.
    """
    memory: dict[int, int] = {}
    for client in clients:
        for place, pid in enumerate(client.pids):
            memory.setdefault(pid, 0)
            if place == 0:
                memory[pid] += _size(client)
    processes = []
    for pid, size in memory.items():
        process: dict[str, str | int] = {"pid": pid, "memory": size}
        if user := users.of(pid):
            process["user"] = user
        processes.append(process)
    return processes


def _size(client: Client) -> int:
    local = {name: size for name, size in client.memory.items() if name.startswith(_LOCAL)}
    return sum((local or client.memory).values())
