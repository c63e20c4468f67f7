"""One difference between nodes: facts for code, and a sentence made of them for people."""

from __future__ import annotations

from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    class DifferenceDoc(TypedDict):
        """One difference; it has a finding's names, and `what` is made of the facts."""

        code: str
        severity: str
        nodes: list[str]
        field: str
        expected: str | None
        values: dict[str, list[str]]
        what: str
        why: str | None
        fix: str | None


__all__ = ["difference"]

_NAMED = 5
"""Nodes that a sentence names: the document has all of them."""


def difference(
    code: str,
    severity: str,
    nodes: Sequence[str],
    field: str,
    *,
    expected: str | None,
    values: Mapping[str, Sequence[str]],
    cause: str | None = None,
    fix: str = "",
) -> DifferenceDoc:
    """Return a difference.

    `nodes` are those that are unlike the others, `expected` is the value of most nodes (None where
    no value has a majority), `values` are the nodes of each value.
    """
    return {
        "code": code,
        "severity": severity,
        "nodes": list(nodes),
        "field": field,
        "expected": expected,
        "values": {value: list(ids) for value, ids in values.items()},
        "what": _sentence(nodes, field, expected, values),
        "why": cause,
        "fix": fix or None,
    }


def _sentence(
    nodes: Sequence[str],
    field: str,
    expected: str | None,
    values: Mapping[str, Sequence[str]],
) -> str:
    odd = set(nodes)
    parts = [
        f"{value} on {names(ids)}"
        for value, ids in values.items()
        if expected is None or odd.intersection(ids)
    ]
    tail = f"; expected is {expected}" if expected is not None else ""
    return f"{field}: {', '.join(parts)}{tail}"


def names(ids: Sequence[str]) -> str:
    """Return ``a, b and 3 more nodes``, for a sentence."""
    if len(ids) <= _NAMED:
        return ", ".join(ids)
    return f"{', '.join(ids[: _NAMED - 1])} and {counted(len(ids) - _NAMED + 1, 'more node')}"
