"""One difference between nodes: facts for code, and a sentence made of them for people."""

from __future__ import annotations

from probe_cluster.naming import names

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


__all__ = ["difference", "names", "with_names"]

COUNTS = "engine-count"

_WHOLE = (COUNTS, "same-machine", "same-id")


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
    """Return a difference, with a sentence that names the nodes by their ids.

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
        "what": _sentence(code, nodes, field, expected, values),
        "why": cause,
        "fix": fix or None,
    }


def with_names(entry: DifferenceDoc, names_of: Mapping[str, str]) -> DifferenceDoc:
    """Return the difference with a sentence that calls each node by its name, where it has one.

    Ids stay in the facts: of Ray they are 56 hexadecimal digits.
    """
    values = {
        value: [names_of.get(id_, id_) for id_ in ids] for value, ids in entry["values"].items()
    }
    nodes = [names_of.get(id_, id_) for id_ in entry["nodes"]]
    return {
        **entry,
        "what": _sentence(entry["code"], nodes, entry["field"], entry["expected"], values),
    }


def _sentence(
    code: str,
    nodes: Sequence[str],
    field: str,
    expected: str | None,
    values: Mapping[str, Sequence[str]],
) -> str:
    if code in _WHOLE:  # the field says it all
        return f"{names(nodes)}: {field}"
    odd = set(nodes)
    parts = [
        f"{value} on {names(ids)}"
        for value, ids in values.items()
        if expected is None or odd.intersection(ids)
    ]
    tail = f"; expected is {expected}" if expected is not None else ""
    return f"{field}: {', '.join(parts)}{tail}"
