"""One watched computer: what its devices are, what they do now, and what happened lately.

Nothing here draws. A node is filled round by round, by samplers of this computer, by the lines that
another prints, or by those of a file.
"""

from __future__ import annotations

from collections import deque

from probe_core.model.ids import driver_text, driver_version
from probe_core.model.naming import short_id, short_ids, short_name
from probe_watch.figures import NODE, History, memory_fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, EventDoc, SampleDoc
    from probe_watch.alerts import Alerts, Edge
    from probe_watch.rounds import Happening

RECENT = 200
"""Alerts and events that are kept of a node: some screens of them."""

_STATES = ("unresponsive", "error", "warning", "unavailable", "pending", "ok", "asleep")
"""States as they are sorted: what needs a person comes first."""


class Row:
    """One device on the screen. `number` is its place in the report, None of a device without.

    `history` has each figure's last values; `is_shared` says whether the CPU shares its memory.
    """

    def __init__(self, node: Node, sample: SampleDoc) -> None:
        identity = sample["device"]
        device = node.devices.get(identity)
        memory = device.get("memory") if device else None
        self.sample = sample
        self.kind = device["kind"] if device else ""
        self.model = (device["name"] or "") if device else ""
        self.name = node.names.get(identity, "")
        self.short = node.short(identity)
        self.number = node.numbers.get(identity)
        self.alerts = node.alerts.active(identity)
        self.history = node.history.of(identity)
        kind = memory["kind"] if memory else None
        self.is_shared = self.kind != "cpu" and kind in ("unified", "shared")

    @property
    def state(self) -> str:
        """Return what decides colour and order: a status, or how severe the alerts are."""
        if self.sample["status"] != "ok":
            return self.sample["status"]
        severities = self.alerts.values()
        return "error" if "error" in severities else "warning" if severities else "ok"

    @property
    def group(self) -> int:
        """Return 0 of an accelerator, 1 of a processor, 2 of the node itself."""
        return 2 if self.sample["device"] == NODE else self.kind == "cpu"


def _falling(value: float | None) -> float:
    return 1.0 if value is None else -value


ORDERS: dict[str, Callable[[Row], float]] = {
    "state": lambda row: _STATES.index(row.state),
    "device": lambda row: 0.0,
    "busy": lambda row: _falling(row.sample["busy"]),
    "memory": lambda row: _falling(memory_fraction(row.sample)),
    "temperature": lambda row: _falling(row.sample["temperature_c"]),
    "power": lambda row: _falling(row.sample["power_w"]),
}
"""What devices are sorted by. Equal ones stay in the order of the report."""


class Node:
    """A computer whose devices are watched. `name` is its host name, "" of this computer.

    `lost` is why no samples come, None while they do; `time` is when the last round began. `about`
    is what else its title has where there is room, such as drivers.
    """

    def __init__(self, name: str, alerts: Alerts) -> None:
        self.name = name
        self.alerts = alerts
        self.lost: str | None = None
        self.about: Sequence[str] = ()
        self.devices: Mapping[str, DeviceDoc] = {}
        self.numbers: Mapping[str, int] = {}
        self.names: Mapping[str, str] = {}
        self._short: Mapping[str, str] = {}
        self.forget()

    def forget(self) -> None:
        """Begin anew: no round has come."""
        self.time = 0.0
        self.rounds = 0
        self.history = History()
        self.alerts.forget()
        self.recent: deque[tuple[float, Edge | EventDoc]] = deque(maxlen=RECENT)
        self._rows: Sequence[Row] = ()
        self._latest: tuple[float, Sequence[SampleDoc]] = (0.0, ())

    def describe(self, devices: Sequence[DeviceDoc]) -> None:
        self.devices = {device["id"]: device for device in devices}
        self.numbers = {identity: number for number, identity in enumerate(self.devices)}
        self.names = short_names(devices)
        self._short = short_ids(self.devices)

    def take(self, happening: Happening, *, shown: bool = True) -> None:
        """Take a round; one that is not shown waits for `catch_up`."""
        if happening.edges is None:
            moment = happening.time
            happening.edges = self.alerts.update(moment, moment, happening.samples)
        self._latest = happening.time, happening.samples
        self.rounds += 1
        self.lost = None
        self.history.add(happening.samples)
        self.recent.extendleft((happening.time, event) for event in happening.events)
        self.recent.extendleft((happening.time, edge) for edge in happening.edges)
        if shown:
            self.catch_up()

    def catch_up(self) -> None:
        self.time, samples = self._latest
        self._rows = [Row(self, sample) for sample in samples]

    def short(self, device: str) -> str:
        """Return a device's id as people write it."""
        return "node" if device == NODE else self._short.get(device, short_id(device))

    def rows(self, order: str = "device", *, falling: bool = False) -> list[Row]:
        """Return the devices in an order: accelerators, then processors, then the node."""
        rank, sign = ORDERS[order], -1 if falling else 1
        return sorted(self._rows[::sign], key=lambda row: (row.group, sign * rank(row)))


def short_names(devices: Sequence[DeviceDoc]) -> dict[str, str]:
    """Return a name for each device by id, without what tells none of them apart.

    The vendor's word goes, then words without digits that all accelerators share at their head:
    ``GeForce RTX 4090`` beside ``GeForce RTX 4060 Ti`` are ``RTX 4090`` and ``RTX 4060 Ti``. What
    is left has a letter and a digit, as models have, and begins with the letter.
    """
    words: dict[str, list[str]] = {}
    for device in devices:
        name = short_name(device).split() if device["name"] else []
        is_first = len(name) > 1 and name[0].lower() == (device.get("vendor") or "").lower()
        words[device["id"]] = name[1:] if is_first else name
    models = [words[d["id"]] for d in devices if d["kind"] != "cpu" and words[d["id"]]]
    while models and all(_is_model(rest[1:]) for rest in models):
        first = models[0][0]
        if any(c.isdigit() for c in first) or any(rest[0] != first for rest in models):
            break
        for rest in models:
            del rest[0]
    return {identity: " ".join(rest) for identity, rest in words.items()}


def _is_model(words: Sequence[str]) -> bool:
    text = "".join(words)
    has_both = any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
    return has_both and not text[0].isdigit()  # the RTX of "RTX 6000 Ada" is part of the model


def drivers(devices: Sequence[DeviceDoc]) -> list[str]:
    """Return the drivers of accelerators that have versions, each once: ``nvidia 550.163.01``."""
    texts = (driver_text(d) for d in devices if d["kind"] != "cpu" and driver_version(d))
    return list(dict.fromkeys(filter(None, texts)))


def summary(rows: Sequence[Row]) -> str:
    """Return ``8 × NVIDIA H100 80GB HBM3``: the accelerators, in the order of the report.

    Of several models the names are those of the table, which fit a line.
    """
    listed = sorted((row.number, row.model, row.name) for row in rows if row.number is not None
                    and row.kind != "cpu" and row.model)  # fmt: skip
    is_one = len({model for _, model, _ in listed}) == 1
    models = [model if is_one else name for _, model, name in listed]
    counts = {model: models.count(model) for model in models}
    parts = [f"{count} × {model}" if count > 1 else model for model, count in counts.items()]
    return " + ".join(parts) or "no accelerator"
