"""What the screen shows: the devices in their order, and what the keys have changed of it."""

from __future__ import annotations

from time import monotonic

from probe_core.model.ids import short_id, short_ids
from probe_watch.figures import NODE, memory_fraction
from probe_watch.history import History
from probe_watch.panel import Panel
from probe_watch.programs import Programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, EventDoc, ReportDoc, SampleDoc
    from probe_watch.alerts import Alerts, Edge

__all__ = ["ORDERS", "Row", "View"]

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


_RANKS = ("unresponsive", "error", "warning", "unavailable", "ok", "asleep")
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
