"""How the reference names the values that a field may have; no probe imports it."""

from __future__ import annotations

from probe_core.model.values import UNBOUNDED, Choice, Items, Number, TableOf, Value, figure

__all__ = ["noun_of"]


def noun_of(value: Value) -> str:
    """Return what a value must be: ``a whole number from 1 to 1,000,000``, ``a list of ids``."""
    if isinstance(value, Choice):
        return ", ".join(f"`{choice}`" for choice in value.choices)
    if isinstance(value, Number):
        return _number(value)
    if isinstance(value, Items):
        return f"a list of {_plural(noun_of(value.item))}"
    if isinstance(value, TableOf):
        return f"a table of {_plural(noun_of(value.value))}"
    return value.noun


def _number(value: Number) -> str:
    kind = "a whole number" if value.whole else "a number"
    if value.high >= UNBOUNDED:
        return f"{kind}, {figure(value.low)} or more"
    return f"{kind} from {figure(value.low)} to {figure(value.high)}"


def _plural(noun: str) -> str:
    """Return ``whole numbers from 1 to 9`` for ``a whole number from 1 to 9``."""
    article, *words = noun.split(" ")
    if article not in ("a", "an"):
        return noun if words else f"{noun}s"
    end = next((at for at, word in enumerate(words) if word in ("from", "in", "of")), len(words))
    return " ".join([*words[: end - 1], f"{words[end - 1]}s", *words[end:]])
