"""What the screen shows: the devices in their order, the panel below, and what the keys changed.

Nothing here draws. The program of a process, and since when it runs, are from one file of /proc,
but not from ``/proc/PID/cmdline``: reading that waits for the lock of the process's memory, which
one that hangs in a driver holds for ever (`ps` hangs so, too). Nor are arguments shown so.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import NamedTuple

from probe_core.model.ids import short_id, short_ids
from probe_core.proc import status, uptime
from probe_core.wording import clean_text
from probe_watch.figures import NODE, History, memory_fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, EventDoc, ReportDoc, SampleDoc
    from probe_watch.alerts import Alerts, Edge


NOTE_S = 30.0
"""Seconds that a note is shown: enough to read it, and a hang that goes on is a line above."""

RECENT = 4
"""Alerts and events that are still shown when they are over."""


class Row:
    """One device on the screen. `number` is its place in the report, None of a device without.

    `history` has each figure's last values; `is_shared` says whether the CPU shares its memory.
    """

    __slots__ = ("alerts", "history", "is_shared", "kind", "name", "number", "sample", "short")

    def __init__(
        self,
        sample: SampleDoc,
        *,
        kind: str,
        name: str,
        short: str,
        number: int | None,
        alerts: Mapping[str, str],
        history: Mapping[str, Sequence[float | None]],
        is_shared: bool = False,
    ) -> None:
        self.sample = sample
        self.kind = kind
        self.name = name
        self.short = short
        self.number = number
        self.alerts = alerts
        self.history = history
        self.is_shared = is_shared

    @property
    def state(self) -> str:
        """Return what decides colour and order: a status, or how severe the alerts are."""
        if self.sample["status"] != "ok":
            return self.sample["status"]
        severities = self.alerts.values()
        return "error" if "error" in severities else "warning" if severities else "ok"


_RANKS = ("unresponsive", "error", "warning", "unavailable", "pending", "ok", "asleep")
"""States as they are sorted: what needs a person comes first."""


def _by_state(row: Row) -> float:
    return _RANKS.index(row.state)


def _by_device(row: Row) -> float:
    return 0.0


def _falling(value: float | None) -> float:
    return 1.0 if value is None else -value


ORDERS: dict[str, Callable[[Row], float]] = {
    "state": _by_state,
    "device": _by_device,
    "busy": lambda row: _falling(row.sample["busy"]),
    "memory": lambda row: _falling(memory_fraction(row.sample)),
    "temperature": lambda row: _falling(row.sample["temperature_c"]),
}
"""What the key `s` goes through. Equal devices stay in the order of the report."""


class View:
    """The state of the screen. `update` takes each round, `key` each key."""

    def __init__(self, report: ReportDoc, alerts: Alerts, interval: float) -> None:
        self.interval = interval
        self.order = "state"
        self.paused = False
        self.rounds = 0
        self.panel = Panel()
        self.programs = Programs()
        self.recent: list[tuple[float, Edge | EventDoc]] = []
        self.alerts = alerts
        self._note = (0.0, "")
        self._history = History()
        self._devices = {device["id"]: device for device in report["devices"]}
        self._numbers = {identity: number for number, identity in enumerate(self._devices)}
        self._short = short_ids(self._devices)
        self._latest: tuple[float, Sequence[SampleDoc]] = (0.0, ())
        self._rows: list[Row] = []
        self.time = 0.0

    def update(self, time: float, samples: Sequence[SampleDoc]) -> None:
        """Take a round; a paused screen goes on collecting its history."""
        self.rounds += 1
        self._history.add(samples)
        self._latest = (time, samples)
        if not self.paused:
            self._show()

    def _show(self) -> None:
        self.time, samples = self._latest
        self._rows = [self._row(sample) for sample in samples]

    @property
    def note(self) -> str:
        """Return the last note, "" when it is old: what it told of may be over."""
        time, note = self._note
        return note if self.time - time < NOTE_S else ""

    def annotate(self, time: float, notes: Sequence[str]) -> None:
        """Take the notes of a round."""
        if notes:
            self._note = (time, notes[-1])

    @property
    def latency(self) -> str | None:
        """Return ``desk:22 0.4 ms``; None where no latency is measured."""
        peer = self.alerts.peer
        if peer is None:
            return None
        value = peer.figure.value
        return f"{peer.name} {'–' if value is None else f'{value:.1f} ms'}"

    def short(self, device: str) -> str:
        """Return a device's id as people write it."""
        return self._short.get(device, short_id(device))

    def remember(self, time: float, happened: Edge | EventDoc) -> None:
        """Keep an alert or an event for the lines below the devices."""
        self.recent = [(time, happened), *self.recent][:RECENT]

    def _row(self, sample: SampleDoc) -> Row:
        identity = sample["device"]
        device = self._devices.get(identity)
        return Row(
            sample,
            kind=device["kind"] if device else "",
            name=(device["name"] or "") if device else "",
            short="node" if identity == NODE else self.short(identity),
            number=self._numbers.get(identity),
            alerts=self.alerts.active(identity),
            history=self._history.all(identity),
            is_shared=_is_shared(device),
        )

    def rows(self) -> list[Row]:
        """Return the devices in the chosen order: accelerators, then processors, then the node."""
        rank = ORDERS[self.order]
        return sorted(self._rows, key=lambda row: (_group(row), rank(row)))

    def key(self, key: str) -> bool:
        """Take a key; return whether it changes the screen."""
        if key in ("p", " "):
            self.paused = not self.paused
            if not self.paused:
                self._show()
        elif key == "s":
            names = list(ORDERS)
            self.order = names[(names.index(self.order) + 1) % len(names)]
        else:
            return self.panel.press(key, self.last_number, monotonic())
        return True

    @property
    def last_number(self) -> int:
        """Return the highest number of a device; -1 where the report has none."""
        return len(self._numbers) - 1


def _is_shared(device: DeviceDoc | None) -> bool:
    if device is None or device["kind"] == "cpu":
        return False
    memory = device.get("memory")
    return memory is not None and memory["kind"] in ("unified", "shared")


def _group(row: Row) -> int:
    if row.sample["device"] == NODE:
        return 2
    return 1 if row.kind == "cpu" else 0


# What stands below the devices, and the keys that choose it.

COLUMNS = {
    "#, ID, DEVICE": "place in the report, short id, and the name where names differ",
    "BUSY": "share of time in which anything ran, and its history",
    "PEAK": "share of the matrix units' peak, where the hardware counts it",
    "MEMORY": "used and total; * is memory that the CPU shares",
    "TEMP": "temperature of the chip",
    "POWER": "power drawn, and the cap of the driver",
    "CLOCK": "clock of the compute units",
    "LINK": "PCIe generation × lanes of now; 1 is usual when idle",
    "PROC": "processes that use the device",
    "! –": "above its threshold; not known, whose reason is in the history",
}
"""Head of a column, or a mark, to what it means."""

KEYS = {
    "q": "quit; so does Ctrl-C",
    "p, space": "pause the screen; samples and alerts go on",
    "s": "sort by state, device, busy, memory, temperature",
    "t": "thresholds of the alerts",
    "P": "processes, shown or hidden",
    "m, g": "processes by memory, by GPU",
    "0 to 9": "history of the device with that number; 1 and 2 at once is 12",
    "?": "this help; Esc or the same key ends it",
}
"""Key to what it does."""

_TOGGLES = {"t": "thresholds", "?": "help"}
_PROCESS_ORDERS = {"m": "memory", "g": "device"}

TWO_DIGITS_S = 1.0
"""Seconds between the two digits of a number."""


class Panel:
    """What is shown: "processes", "thresholds", "history", "help", or "" for nothing."""

    def __init__(self) -> None:
        self.name = "processes"
        self.process_order = "memory"
        self.number = 0
        self._digit_at = -TWO_DIGITS_S

    def press(self, key: str, last: int, now: float) -> bool:
        """Take a key at a monotonic time; return whether it changes the panel.

        `last` is the highest number of a device, -1 where there is none.
        """
        if key in _TOGGLES:
            self._toggle(_TOGGLES[key])
        elif key == "P":
            self.name = "" if self.name == "processes" else "processes"
        elif key in _PROCESS_ORDERS:
            self.name, self.process_order = "processes", _PROCESS_ORDERS[key]
        elif key == "\x1b":
            self.name = "processes"
        elif key.isascii() and key.isdecimal():
            return self._choose(int(key), last, now)
        else:
            return False
        return True

    def _toggle(self, name: str) -> None:
        self.name = "processes" if self.name == name else name

    def _choose(self, digit: int, last: int, now: float) -> bool:
        is_second = self.name == "history" and now - self._digit_at < TWO_DIGITS_S
        whole = self.number * 10 + digit
        self._digit_at = now
        if is_second and digit < whole <= last:
            self.number = whole
        elif digit > last:
            return False
        elif self.name == "history" and self.number == digit:
            self.name = "processes"
        else:
            self.name, self.number = "history", digit
        return True


def hints(order: str, last: int, columns: int, note: str) -> str:
    """Return the line of keys: all that the screen has room for, then a note."""
    numbers = "0" if last == 0 else f"0–{last}"
    always = ["q quit", "p pause", f"s sort: {order}"]
    others = [*([f"{numbers} history"] if last >= 0 else []), "t thresholds", "P processes"]
    for count in range(0 if note else len(others), -1, -1):
        line = "  ".join([*always, *others[:count], "? help"])
        if len(line) <= columns:
            break
    return f"{line}   {note}" if note else line


def help_lines() -> Iterator[tuple[str, str]]:
    """Yield the lines of the help: what is explained, and its sentence; both empty for a gap."""
    yield from COLUMNS.items()
    yield "", ""
    yield from KEYS.items()


# Which program a process runs, and since when.

_NAME_LIMIT = 64


class Program(NamedTuple):
    """A program's name, and the seconds that the process runs; None where /proc does not say."""

    name: str
    seconds: float | None


class Programs:
    """Looks processes up below `root`, which tests replace."""

    def __init__(self, root: str = "") -> None:
        self._root = root

    def of(self, pid: int) -> Program | None:
        """Return the program of a process; None where it is gone, or where there is no /proc."""
        process = status(pid, self._root)
        if process is None or not process.name:
            return None
        name = clean_text(process.name.decode("utf-8", "replace"), _NAME_LIMIT)
        now = uptime(self._root)
        begun = process.started / os.sysconf("SC_CLK_TCK")
        return Program(name, None if now is None else max(0.0, now - begun))
