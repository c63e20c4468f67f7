"""Alerts: when a figure is one, and which are active.

80 °C and 85 % of the memory are usual under load on many cards (a trainer fills its memory), so a
rule warns; the device's own slowdown temperature is an error. The clearing threshold lies three
units below the alert's, so that a figure that swings around it gives a line and not a hundred.

An alert has an edge where a figure exceeds its threshold long enough, and one back. A single sample
is no alert whatever its duration says: a counter's first reading may be of another second. An
unknown value neither starts an alert nor clears it at once, for a file may answer EBUSY now and
then; it clears one when it stays unknown for as long as the alert took to start.
"""

from __future__ import annotations

from probe_watch.figures import NO_PEER, NODE, Figure, figure_of_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_core.model.document import SampleDoc
    from probe_watch.peer import Peer


_DAY_S = 86_400.0
"""An alert that takes longer is no alert."""

_KEYS = ("above", "clear", "seconds")


class RuleError(ValueError):
    """A threshold that cannot be used: one sentence."""


class Rule:
    """One alert. `above` and `clear` are in `unit`; `seconds` is how long it must be exceeded.

    Units: "" for a fraction from 0 to 1, ``ms``, ``°C``. `margin` is the default distance of
    `clear` below `above`, `most` the bound of both.
    """

    def __init__(
        self, name: str, above: float, seconds: float, unit: str, margin: float, most: float
    ) -> None:
        self.name = name
        self.above = above
        self.seconds = seconds
        self.unit = unit
        self.margin = margin
        self.most = most
        self.clear = max(0.0, above - margin)

    def text(self, value: float) -> str:
        """Return a value of the rule for a sentence: ``82 °C``, ``91 %``, ``120 ms``."""
        return f"{round(value, 1):g} {self.unit}" if self.unit else f"{value * 100:.3g} %"


DEFAULTS = {
    rule.name: rule
    for rule in (
        Rule("utilisation", 0.90, 5.0, "", 0.03, 1.0),
        Rule("memory", 0.85, 3.0, "", 0.03, 1.0),
        Rule("latency", 100.0, 1.0, "ms", 3.0, 60_000.0),
        Rule("temperature", 80.0, 10.0, "°C", 3.0, 150.0),
    )
}
"""The rules where the file of settings has no others, by name."""


def rules_of(table: object) -> dict[str, Rule]:
    """Return the rules that a table ``[command.watch.alerts]`` leaves; raises `RuleError`.

    A name set to false has no rule; a name that is absent has the default one.
    """
    if not isinstance(table, dict):
        raise RuleError("command.watch.alerts: expected a table, such as memory = { above = 0.9 }")
    rules = dict(DEFAULTS)
    for name, value in table.items():
        if name not in DEFAULTS:
            known = ", ".join(DEFAULTS)
            raise RuleError(f"command.watch.alerts.{name} is no alert; the alerts are {known}")
        if value is False:
            del rules[name]
        elif value is not True:
            rules[name] = _rule(DEFAULTS[name], value)
    return rules


def _rule(rule: Rule, value: object) -> Rule:
    place = f"command.watch.alerts.{rule.name}"
    if not isinstance(value, dict):
        raise RuleError(f"{place}: expected true, false, or {{ above = {rule.above:g} }}")
    for key in value:
        if key not in _KEYS:
            raise RuleError(f"{place}.{key} is no key; the keys are {', '.join(_KEYS)}")
    unit = f"a {rule.unit or 'fraction'} from"
    above = _number(value.get("above", rule.above), f"{place}.above", unit, rule.most)
    seconds = _number(value.get("seconds", rule.seconds), f"{place}.seconds", "seconds,", _DAY_S)
    changed = Rule(rule.name, above, seconds, rule.unit, rule.margin, rule.most)
    if "clear" in value:
        changed.clear = _number(value["clear"], f"{place}.clear", unit, rule.most)
        if changed.clear > above:
            problem = f"{changed.clear:g} lies above the threshold, {above:g}"
            raise RuleError(f"{place}.clear = {problem}")
    return changed


def _number(value: object, place: str, unit: str, most: float) -> float:
    # A bool is an int, but `above = true` is a slip.
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most:
        return float(value)
    raise RuleError(f"{place} = {repr(value)[:40]}: expected {unit} 0 to {most:g}")


LEAST_SAMPLES = 2
WARNING, ERROR = "warning", "error"

REMOVED = "the device is removed"
"""Why an alert of a device ends that is in no sample any more."""


class Edge:
    """An alert that starts (`state` "on"), becomes an error ("on" again) or ends ("off").

    `value` and `threshold` are in the rule's unit; `value` is None where it is not known. `reason`
    is the device's own word for an error, or why an alert ends without a value. `since` is when
    the threshold was exceeded first, in seconds since 1970 as `time`.
    """

    def __init__(
        self,
        state: _State,
        word: str,
        time: float,
        value: float | None,
        reason: str | None = None,
    ) -> None:
        self.device = state.device
        self.rule = state.rule
        self.severity = state.severity
        self.since = state.since
        self.state = word
        self.time = time
        self.value = value
        self.threshold = state.rule.above if word == "on" else state.rule.clear
        self.reason = reason


class _State:
    """One rule at one device."""

    def __init__(self, device: str, rule: Rule) -> None:
        self.device = device
        self.rule = rule
        self.reset()

    def reset(self) -> None:
        self.active = False
        self.count = 0
        self.severity = WARNING
        self.since = 0.0
        self.started = 0.0
        self.unknown_from: float | None = None


class Alerts:
    """The alerts of all devices. `update` takes each round, `active` says what is on now.

    `peer` measures the latency of the node, None where none is measured.
    """

    def __init__(self, rules: Mapping[str, Rule], peer: Peer | None = None) -> None:
        self.rules = rules
        self.peer = peer
        self.forget()

    def forget(self) -> None:
        """Begin anew: no sample has come."""
        self._states: dict[str, list[_State]] = {}

    @property
    def latency(self) -> Figure:
        """Return the latency to the peer in milliseconds, as it was measured last."""
        return Figure(None, NO_PEER) if self.peer is None else self.peer.figure

    def active(self, device: str) -> dict[str, str]:
        """Return the active alerts of a device: name to severity."""
        states = self._states.get(device, ())
        return {state.rule.name: state.severity for state in states if state.active}

    def update(self, now: float, time: float, samples: Iterable[SampleDoc]) -> list[Edge]:
        """Return the edges of a round: `now` is monotonic, `time` the wall clock, in seconds."""
        edges: list[Edge] = []
        absent = set(self._states)
        for sample in samples:
            device = sample["device"]
            absent.discard(device)
            if device not in self._states:
                self._states[device] = [_State(device, rule) for rule in self.rules.values()]
            for state in self._states[device]:
                edge = _step(state, self._figure(state.rule.name, sample), now, time)
                if edge is not None:
                    edges.append(edge)
        for device in sorted(absent):
            states = self._states.pop(device)
            edges += [_end(state, time, None, REMOVED) for state in states if state.active]
        return edges

    def _figure(self, name: str, sample: SampleDoc) -> Figure:
        latency = self.latency if sample["device"] == NODE else Figure(None)
        return figure_of_rule(name, sample) or latency


def _step(state: _State, figure: Figure, now: float, time: float) -> Edge | None:
    value = figure.value
    if value is None and figure.critical is None:
        return _unknown(state, now, time)
    state.unknown_from = None
    if state.active:
        if figure.critical is not None:
            return None if state.severity == ERROR else _start(state, figure, time)
        return _end(state, time, value) if value is not None and value <= state.rule.clear else None
    if figure.critical is None and (value is None or value <= state.rule.above):
        state.reset()
        return None
    if not state.count:
        state.started, state.since = now, time
    state.count += 1
    if state.count < LEAST_SAMPLES or now - state.started < state.rule.seconds:
        return None
    return _start(state, figure, time)


def _unknown(state: _State, now: float, time: float) -> Edge | None:
    if not state.active:
        state.reset()
        return None
    if state.unknown_from is None:
        state.unknown_from = now
    if now - state.unknown_from < state.rule.seconds:
        return None
    return _end(state, time, None, "its value is not known any more")


def _start(state: _State, figure: Figure, time: float) -> Edge:
    state.active = True
    state.severity = WARNING if figure.critical is None else ERROR
    return Edge(state, "on", time, figure.value, figure.critical)


def _end(state: _State, time: float, value: float | None, reason: str | None = None) -> Edge:
    edge = Edge(state, "off", time, value, reason)
    state.reset()
    return edge
