"""The kinds of value an entry may hold: each knows how to judge one and how to say so in a schema.

One source of truth: the check, the reader of third-party files and the JSON Schema all use it.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

# One sentence about one bad value: which file, entry and field, what is wrong, and the fix.


class Problem:
    """Something wrong in the data. level is "error" or "warning"."""

    __slots__ = ("entry", "fault", "field", "file", "fix", "level")

    def __init__(
        self, file: str, entry: str, field: str, fault: str, fix: str, level: str = "error"
    ) -> None:
        self.file = file
        self.entry = entry
        self.field = field
        self.fault = fault
        self.fix = fix
        self.level = level

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.entry, self.field) if part)
        return f"{where}: {self.fault}; {self.fix}"

    def __repr__(self) -> str:
        return f"<{self.level} {self}>"


Fault = tuple[str, str, str]  # field, what is wrong, how to correct it
Json = dict[str, object]

# The deepest entry, an architecture's models of a cpuid, nests six deep; two more leave room.
MAX_DEPTH = 8
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Spec(ABC):
    """A kind of value. `about` is the sentence that editors show."""

    about: str = ""

    @abstractmethod
    def faults(self, value: object, field: str) -> Iterator[Fault]:
        """Everything wrong with a value."""

    @abstractmethod
    def _json(self) -> Json:
        """The JSON Schema of the value."""

    def json_schema(self) -> Json:
        """The JSON Schema of the value, with its description."""
        return {**self._json(), "description": self.about} if self.about else self._json()


class Text(Spec):
    """A text; pattern must match it whole."""

    def __init__(self, about: str = "", pattern: str = "", hint: str = "", most: int = 256) -> None:
        self.about, self.pattern, self.hint, self.most = about, pattern, hint, most

    def faults(self, value: object, field: str) -> Iterator[Fault]:
        if not isinstance(value, str):
            yield field, f"{_show(value)} is no text", "write it in double quotes"
        elif not value.strip() or len(value) > self.most:
            yield (
                field,
                f"a text of {len(value)} characters",
                f"write 1 to {self.most}, or leave it out",
            )
        elif CONTROL.search(value):
            yield field, f"{_show(value)} has a control character", "remove it"
        elif self.pattern and not re.fullmatch(self.pattern, value):
            yield field, f"{_show(value)} is not well formed", self.hint

    def _json(self) -> Json:
        out: Json = {"type": "string", "minLength": 1, "maxLength": self.most}
        return {**out, "pattern": f"^(?:{self.pattern})$"} if self.pattern else out


class Choice(Spec):
    """One of a few texts."""

    def __init__(self, about: str, *choices: str) -> None:
        self.about, self.choices = about, choices

    def faults(self, value: object, field: str) -> Iterator[Fault]:
        if value not in self.choices:
            yield field, f"{_show(value)} is unknown", f"write one of {', '.join(self.choices)}"

    def _json(self) -> Json:
        return {"enum": list(self.choices)}


def _plain(value: float) -> str:
    """Return a number as people write it: ``1048576``, which ``g`` makes ``1.04858e+06``."""
    is_whole = abs(value) < 1e15 and float(value).is_integer()
    return str(int(value)) if is_whole else f"{value:g}"


class Number(Spec):
    """A finite number within bounds that a real chip can have; `whole` forbids fractions."""

    def __init__(
        self, about: str, low: float, high: float, unit: str = "", whole: bool = False
    ) -> None:
        self.about, self.low, self.high, self.unit, self.whole = about, low, high, unit, whole

    def faults(self, value: object, field: str) -> Iterator[Fault]:
        bounds = f"{_plain(self.low)} to {_plain(self.high)} {self.unit}".strip()
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield field, f"{_show(value)} is no number", f"write {bounds}"
        elif not math.isfinite(value):
            yield field, f"{value} is not finite", "leave out what is not known"
        elif not self.low <= value <= self.high:
            slip = self._slip(value)
            yield field, f"{_plain(value)} is out of bounds", f"it should be {bounds}{slip}"
        elif self.whole and isinstance(value, float):
            yield field, f"{value} should be whole", "drop the fraction"

    def _slip(self, value: float) -> str:
        for factor in (1000, 1e-3, 1e6, 1e-6):
            if self.low <= value * factor <= self.high:
                return f" (a slip of x{_plain(1 / factor)}? {_plain(value * factor)} would do)"
        return ""

    def _json(self) -> Json:
        kind = "integer" if self.whole else "number"
        return {"type": kind, "minimum": self.low, "maximum": self.high}


class Flag(Spec):
    """true or false."""

    def __init__(self, about: str) -> None:
        self.about = about

    def faults(self, value: object, field: str) -> Iterator[Fault]:
        if not isinstance(value, bool):
            yield (
                field,
                f"{_show(value)} is not true or false",
                "write true or false, without quotes",
            )

    def _json(self) -> Json:
        return {"type": "boolean"}


class ListOf(Spec):
    """A list without duplicates."""

    def __init__(self, each: Spec, about: str = "", most: int = 64) -> None:
        self.each, self.about, self.most = each, about, most

    def faults(self, value: object, field: str) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield field, f"{_show(value)} is no list", "put it in square brackets"
            return
        if not 1 <= len(value) <= self.most:
            yield field, f"a list of {len(value)}", f"write 1 to {self.most}, or leave it out"
            value = value[: self.most]  # the rest is left out; each is compared with all before
        for at, item in enumerate(value):
            yield from self.each.faults(item, f"{field}[{at}]")
            if item in value[:at]:
                yield f"{field}[{at}]", f"{_show(item)} is there twice", "remove one"

    def _json(self) -> Json:
        items = self.each.json_schema()
        return {
            "type": "array",
            "items": items,
            "minItems": 1,
            "maxItems": self.most,
            "uniqueItems": True,
        }


class Table(Spec):
    """A table with known keys; `need` are required."""

    def __init__(
        self, keys: Mapping[str, Spec], need: tuple[str, ...] = (), about: str = ""
    ) -> None:
        self.keys, self.need, self.about = keys, need, about

    def faults(self, value: object, field: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield field, f"{_show(value)} is no table", "write { key = value, ... }"
            return
        prefix = f"{field}." if field else ""
        for key in self.need:
            if key not in value:
                yield prefix + key, "is missing", "add it"
        for key, item in value.items():
            if key in self.keys:
                yield from self.keys[key].faults(item, prefix + key)
            else:
                yield prefix + key, "is no known key", did_you_mean(key, self.keys)

    def _json(self) -> Json:
        keys = {key: spec.json_schema() for key, spec in self.keys.items()}
        out: Json = {"type": "object", "properties": keys, "additionalProperties": False}
        return {**out, "required": list(self.need)} if self.need else out


class MapOf(Spec):
    """A table whose keys follow a pattern."""

    def __init__(self, pattern: str, each: Spec, about: str, hint: str) -> None:
        self.pattern, self.each, self.about, self.hint = pattern, each, about, hint

    def faults(self, value: object, field: str) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield field, f"{_show(value)} is no table", "write { key = value, ... }"
            return
        for key, item in value.items():
            name = f'{field}."{key}"'
            if not re.fullmatch(self.pattern, key):
                yield name, "the key is not well formed", self.hint
            yield from self.each.faults(item, name)

    def _json(self) -> Json:
        return {
            "type": "object",
            "patternProperties": {f"^(?:{self.pattern})$": self.each.json_schema()},
            "additionalProperties": False,
        }


def did_you_mean(key: str, allowed: Mapping[str, object] | tuple[str, ...]) -> str:
    """The nearest allowed key, or all of them."""
    from difflib import get_close_matches

    near = get_close_matches(key, list(allowed), n=1)
    return f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(allowed)}"


def depth(value: object, limit: int = MAX_DEPTH) -> int:
    """How deeply tables and lists nest, looked at no deeper than `limit`."""
    if limit <= 0 or not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((depth(item, limit - 1) for item in inner), default=0)


def _show(value: object) -> str:
    if isinstance(value, str):
        text = repr(value[:61])
    elif isinstance(value, list | dict) and len(value) > 20:
        return f"a {'list' if isinstance(value, list) else 'table'} of {len(value)}"
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
