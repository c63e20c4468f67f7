"""The processes that use devices: who they are, which started which, and how one is signalled.

A process is known by its number *and* when it began, so that a number which was given to another
process never stands for the first one. What /proc says is read of this computer alone, and of a
process whose user is known: a container counts processes otherwise, and the same number is another.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from functools import partial

from attrs import define, field

from probe_core import proc
from probe_core.commands import within
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from probe_core.model.document import LeaseDoc
    from probe_watch.node import Row

SIGNALS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}
"""What a process can be sent, by the word that the screen asks with."""

_NAME_LIMIT, _COMMAND_LIMIT = 64, 400
_GENERATIONS = 40
"""Ancestors that are looked at: beyond every chain of shells and launchers (a judgement)."""

READ_S = 2.0
"""Seconds that a file of a process may take to read; that of one that hangs in a driver takes for
ever."""

_MOST_HELD, _MOST_COMMANDS = 4, 4096
"""Processes that may each hold a thread for ever, and command lines that are kept: two hung ones
and more are rare (a judgement)."""

_NOT_HERE = "it has ended, or runs in another container"

_CONTAINER = re.compile(
    r"(docker|libpod|cri-containerd|crio|lxc\.payload|machine)[-./]"
    r"([0-9a-f]{12})[0-9a-f]{20,}|/(?:lxc\.payload\.|lxc/|machine\.slice/machine-)([^/\n]+)"
)
_ENGINES = {"libpod": "podman", "cri-containerd": "containerd", "crio": "cri-o"}
_MASKED = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL|AUTH", re.IGNORECASE)


@define
class Task:
    """One process on the screen. `memory` is bytes of each device, None where it is not known.

    `started` is in clock ticks since boot, None where /proc does not say; `parent` is its number.
    A task without `devices` uses none and stands there for what it has started.
    """

    pid: int | None
    user: str | None
    devices: dict[str, int | None] = field(factory=dict)
    started: int | None = None
    age: float | None = None
    name: str | None = None
    command: str | None = None
    container: str | None = None
    lease: str | None = None
    parent: int | None = None
    depth: int = 0

    @property
    def key(self) -> str:
        """Return what tells it from every other process of this computer, of any time."""
        return f"{self.pid}@{self.started}" if self.pid is not None else f"?{sorted(self.devices)}"

    @property
    def memory(self) -> int | None:
        """Return the bytes of all devices' memory that it holds; None where none is known."""
        known = [count for count in self.devices.values() if count is not None]
        return sum(known) if known else None

    @property
    def title(self) -> str:
        """Return its command line, else the name of its program."""
        return self.command or self.name or "–"


ORDERS: dict[str, Callable[[Task], object]] = {
    "memory": lambda task: -(task.memory or 0),
    "device": lambda task: sorted(task.devices),
    "user": lambda task: task.user or "~",
    "pid": lambda task: task.pid or 0,
    "age": lambda task: -(task.age or 0.0),
}
"""What processes are sorted by."""


class Table:
    """Looks processes up; what cannot change of one is read once. `root` is for tests.

    `unread` are the processes whose command line is wanted.
    """

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._known: dict[tuple[int, int], Task] = {}
        self._commands: dict[tuple[int, int], str | None] = {}
        self.unread: list[tuple[int, int]] = []
        self._held: set[tuple[int, int]] = set()

    def tasks(self, rows: Sequence[Row], leases: Sequence[LeaseDoc] = ()) -> list[Task]:
        """Return the processes of some devices of this computer, each once."""
        now, listed = proc.uptime(self._root), gathered(rows)
        for task in listed:
            if task.pid is not None and task.user is not None:
                self._complete(task, now)
        pids = {(task.pid, task.started) for task in listed}
        self._known = {key: known for key, known in self._known.items() if key in pids}
        parents = {task.pid: task.parent for task in listed}
        for task in listed:
            task.lease = _lease(task, leases, parents)
        return listed

    def _complete(self, task: Task, now: float | None) -> None:
        assert task.pid is not None
        process = proc.status(task.pid, self._root)
        if process is None or process.ended:
            return
        task.started, task.parent = process.started, process.parent
        key = (task.pid, process.started)
        known = self._known.setdefault(key, Task(task.pid, task.user))
        if known.name is None:
            known.name = clean_text(process.name.decode("utf-8", "replace"), _NAME_LIMIT)
            known.container = container_of(proc.groups(task.pid, self._root) or "")
        task.name, task.container = known.name, known.container
        # A process that hangs in a driver holds the lock that reading its arguments waits for.
        if not process.stuck and key not in self._commands:
            if len(self._commands) >= _MOST_COMMANDS:
                self._commands.clear()
            self._commands[key] = None
            self.unread.append(key)
        task.command = self._commands.get(key)
        if now is not None:
            task.age = max(0.0, now - process.started / os.sysconf("SC_CLK_TCK"))

    async def read_commands(self) -> None:
        """Read the command lines that `tasks` found wanting, for its next call."""
        while self.unread and len(self._held) < _MOST_HELD:
            key = self.unread.pop(0)
            self._held.add(key)
            try:
                await within(partial(self._read_command, key), READ_S)
            except TimeoutError:  # the thread notes it when the process lets it be read
                pass

    def _read_command(self, key: tuple[int, int]) -> None:
        parts = proc.arguments(key[0], self._root)
        # Read before, so that the text is that of the process which began then.
        status = proc.status(key[0], self._root)
        if status is not None and status.started == key[1] and parts:
            text = " ".join(part.decode("utf-8", "replace") for part in parts)
            self._commands[key] = clean_text(text, _COMMAND_LIMIT)
        self._held.discard(key)

    def tree(self, tasks: Sequence[Task]) -> list[Task]:
        """Return tasks below what started them, in their own order otherwise.

        Of the ancestors those are added that started a task themselves, or more than one.
        """
        present = {task.pid: task for task in tasks if task.started is not None}
        lines = {pid: list(self._ancestors(task.parent)) for pid, task in present.items()}
        counts = Counter(pid for line in lines.values() for pid in line)
        children: dict[int | None, list[Task]] = {}
        made: dict[int, Task] = {}

        def place(task: Task, line: Sequence[int]) -> None:
            shown = [pid for pid in line if pid in present or counts[pid] > 1 or pid == line[0]]
            children.setdefault(shown[0] if shown else None, []).append(task)
            if shown and shown[0] not in present and shown[0] not in made:
                parent = made[shown[0]] = self._ancestor(shown[0])
                place(parent, line[line.index(shown[0]) + 1 :])

        for task in tasks:
            place(task, lines.get(task.pid, ()))
        return list(_walk(children, None, 0))

    def _ancestors(self, pid: int | None) -> Iterator[int]:
        for _ in range(_GENERATIONS):
            if pid is None or pid <= 1:  # the first process started everything
                return
            yield pid
            process = proc.status(pid, self._root)
            pid = process.parent if process else None

    def _ancestor(self, pid: int) -> Task:
        task = Task(pid, proc.user_name(proc.user(pid, self._root)))
        self._complete(task, proc.uptime(self._root))
        return task


def gathered(rows: Sequence[Row]) -> list[Task]:
    """Return the processes of devices, each once, without what only /proc knows."""
    tasks: dict[int | str, Task] = {}
    for row in rows:
        if row.number is None:
            continue  # those of the node itself are all that run
        for process in row.sample["processes"] or ():
            pid = process["pid"]
            task = tasks.setdefault(pid or f"{row.short} {len(tasks)}", Task(pid, process["user"]))
            task.devices[row.short] = process["memory"]
    return list(tasks.values())


def _walk(
    children: Mapping[int | None, Sequence[Task]], pid: int | None, depth: int
) -> Iterator[Task]:
    for task in children.get(pid, ()):
        task.depth = depth
        yield task
        if task.pid is not None:
            yield from _walk(children, task.pid, depth + 1)


def _lease(
    task: Task, leases: Sequence[LeaseDoc], parents: Mapping[int | None, int | None]
) -> str | None:
    """Return how the lease that a process runs under shares its device; None without one."""
    line = {task.pid, task.parent, parents.get(task.parent)} - {None}
    for lease in leases:
        if not line.isdisjoint({lease["pid"], *lease["kept_by"]}):
            reserve = lease["reserve"]
            if reserve is not None:
                return f"{reserve / (1 << 30):.1f} GiB"
            return "shared" if lease["share"] else "exclusive"
    return None


def container_of(cgroup: str) -> str | None:
    """Return ``docker 1a2b3c4d5e6f`` of the text of /proc/PID/cgroup; None outside a container."""
    found = _CONTAINER.search(cgroup)
    if found is None:
        return None
    engine, identity, name = found.groups()
    if name is not None:
        return f"lxc {clean_text(name.removesuffix('.scope'), 24)}"
    pod = "pod " if "kubepods" in cgroup else ""
    return f"{pod}{_ENGINES.get(engine, engine)} {identity}"


class Refused(Exception):
    """Why a process is not looked into or signalled: one sentence."""


class Handle:
    """Holds on to one process: what is sent reaches it or nobody, whoever has its number then."""

    def __init__(self, task: Task) -> None:
        if task.pid is None or task.user is None or task.started is None:
            raise Refused(_NOT_HERE)
        if not hasattr(os, "pidfd_open"):
            raise Refused("this system has no pidfd_open: its number alone may be another's soon")
        try:
            self._handle = os.pidfd_open(task.pid)
        except OSError as error:
            raise Refused(f"it has ended ({error.strerror})") from None
        # The descriptor is of whoever has the number now: it must have begun when the task did.
        if proc.started(task.pid) != task.started:
            self.close()
            raise Refused("it has ended, and another process has its number")

    def send(self, number: int) -> None:
        """Send a signal. Raises `Refused` with the system's reason."""
        try:
            signal.pidfd_send_signal(self._handle, number)
        except OSError as error:
            raise Refused(error.strerror or str(error)) from None

    def close(self) -> None:
        os.close(self._handle)


def environment(task: Task) -> list[str]:
    """Return the environment of one of the user's own processes, with secrets masked.

    Raises `Refused` for other users' processes, which the kernel keeps shut, and ended ones.
    """
    if task.pid is None or task.user is None or task.started is None:
        raise Refused(_NOT_HERE)
    if proc.user(task.pid) != os.geteuid():
        raise Refused("only that of your own processes is read")
    entries = proc.environment(task.pid)
    if entries is None or proc.started(task.pid) != task.started:
        raise Refused("it cannot be read, or the process has ended")
    return sorted(_shown(entry) for entry in entries)


def _shown(entry: bytes) -> str:
    name, _, value = clean_text(entry.decode("utf-8", "replace"), _COMMAND_LIMIT).partition("=")
    return f"{name}=***" if _MASKED.search(name) else f"{name}={value}"


def age(seconds: float | None) -> str:
    """Return ``03:11:40``, and from a hundred hours on ``4 d``."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest:02}" if hours < 100 else f"{hours // 24} d"
