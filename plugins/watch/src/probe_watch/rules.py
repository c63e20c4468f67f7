"""When a figure is an alert: thresholds, how long they must be exceeded, and the file's own values.

80 °C and 85 % of the memory are usual under load on many cards (a trainer fills its memory), so a
rule warns; the device's own slowdown temperature is an error. The clearing threshold lies three
units below the alert's, so that a figure that swings around it gives a line and not a hundred.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

__all__ = ["DEFAULTS", "Rule", "RuleError", "rules_of"]

_MAX_SECONDS = 86_400.0
"""A day: an alert that takes longer is no alert."""

_KEYS = ("above", "clear", "seconds")


class RuleError(ValueError):
    """A threshold that cannot be used: one sentence."""


class Rule:
    """One alert. `above` and `clear` are in `unit`; `seconds` is how long it must be exceeded.

    Units: "" for a fraction from 0 to 1, ``ms``, ``°C``. `margin` is the default distance of
    `clear` below `above`, `least` and `most` are the bounds of both.
    """

    __slots__ = ("above", "clear", "least", "margin", "most", "name", "seconds", "unit")

    def __init__(
        self,
        name: str,
        above: float,
        seconds: float,
        unit: str,
        margin: float,
        bounds: tuple[float, float],
        clear: float | None = None,
    ) -> None:
        self.name = name
        self.above = above
        self.seconds = seconds
        self.unit = unit
        self.margin = margin
        self.least, self.most = bounds
        self.clear = max(self.least, above - margin) if clear is None else clear

    def changed(self, above: float, seconds: float, clear: float | None) -> Rule:
        """Return the rule with other thresholds."""
        bounds = (self.least, self.most)
        return Rule(self.name, above, seconds, self.unit, self.margin, bounds, clear)

    def text(self, value: float) -> str:
        """Return a value of the rule for a sentence: ``82 °C``, ``91 %``, ``120 ms``."""
        return f"{value:g} {self.unit}" if self.unit else f"{value * 100:.3g} %"


_FRACTION = (0.0, 1.0)

DEFAULTS = {
    rule.name: rule
    for rule in (
        Rule("utilisation", 0.90, 5.0, "", 0.03, _FRACTION),
        Rule("memory", 0.85, 3.0, "", 0.03, _FRACTION),
        Rule("latency", 100.0, 1.0, "ms", 3.0, (0.0, 60_000.0)),
        Rule("temperature", 80.0, 10.0, "°C", 3.0, (0.0, 150.0)),
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
    above = _number(value, "above", rule.above, rule, place)
    seconds = _seconds(value.get("seconds", rule.seconds), place)
    clear = _number(value, "clear", -1.0, rule, place) if "clear" in value else None
    if clear is not None and clear > above:
        raise RuleError(f"{place}.clear = {clear:g} lies above the threshold, {above:g}")
    return rule.changed(above, seconds, clear)


def _number(table: Mapping[str, object], key: str, default: float, rule: Rule, place: str) -> float:
    value = table.get(key, default)
    if _is_number(value) and rule.least <= value <= rule.most:
        return float(value)
    unit = rule.unit or "fraction"
    bounds = f"{rule.least:g} to {rule.most:g}"
    raise RuleError(f"{place}.{key} = {_shown(value)}: expected a {unit} from {bounds}")


def _seconds(value: object, place: str) -> float:
    if _is_number(value) and 0 <= value <= _MAX_SECONDS:
        return float(value)
    raise RuleError(f"{place}.seconds = {_shown(value)}: expected seconds, 0 to 86400")


def _is_number(value: object) -> TypeGuard[float]:
    # A bool is an int, but `above = true` is a slip.
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return repr(value)[:40]
