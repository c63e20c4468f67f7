"""The filter of the screen: ``temp>85 user~ann train`` are three terms, and all must hold."""

from __future__ import annotations

import re
from operator import eq, ge, gt, le, lt, ne

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TEXTS = ("id", "name", "kind", "state", "host", "pid", "user", "command", "container", "lease")
NUMBERS = ("busy", "temp", "power", "memory", "age")
"""What a term can be about: busy in percent, temp in °C, power in W, memory in GiB, age in s."""

_SIGNS = {">": gt, "<": lt, ">=": ge, "<=": le, "=": eq, "~": eq, "!=": ne}

_TERM = re.compile(r"([a-z]+)(>=|<=|!=|[><=~])(.+)")


class QueryError(ValueError):
    """A filter that cannot be understood: one sentence."""


def matches(query: str, facts: Mapping[str, str | float | None]) -> bool:
    """Return whether facts pass a filter. Raises `QueryError`.

    A term ``name OP value`` compares; what is not known passes none. A word without one is sought
    in all texts. Of facts without the name a term says nothing: it passes.
    """
    passes = [_passes(term, facts) for term in query.split()]  # each, for a mistake in any
    return all(passes)


def _passes(term: str, facts: Mapping[str, str | float | None]) -> bool:
    found = _TERM.fullmatch(term)
    if found is None:
        texts = [value.lower() for value in facts.values() if isinstance(value, str)]
        return any(term.lower() in text for text in texts)
    name, sign, wanted = found.groups()
    if name in TEXTS:
        text = facts.get(name)
        return not isinstance(text, str) or _compares_text(text.lower(), sign, wanted.lower())
    if name not in NUMBERS:
        raise QueryError(f"filter: {name} is none of {', '.join((*TEXTS, *NUMBERS))}")
    try:
        number = float(wanted)
    except ValueError:
        raise QueryError(f"filter: {term}: {wanted} is no number") from None
    if name not in facts:
        return True
    value = facts[name]
    return isinstance(value, (int, float)) and _SIGNS[sign](value, number)


def _compares_text(value: str, sign: str, wanted: str) -> bool:
    if sign == "~":
        return wanted in value
    return (value == wanted) == (sign != "!=")
