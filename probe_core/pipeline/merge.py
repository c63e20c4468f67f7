"""One device per physical thing: join sightings on strong ids, remember who said what.

Pure data in, pure data out. Names, ordinals and memory sizes never join anything.
"""

from __future__ import annotations

from probe_core.model.ids import strength
from probe_core.pipeline.identity import Said, conflicts, group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from probe_core.model.document import FindingDoc
    from probe_core.pipeline.identity import Group

__all__ = ["Said", "merge", "with_every_field"]

_NESTED = frozenset({"pci", "clocks", "memory", "driver", "share", "node_index", "extra"})
_UNITED = frozenset({"backends", "dt"})
_LISTS = frozenset({"links"})
_PARTS = "memory.parts"
# Values that change between two looks: differing is no conflict.
_VOLATILE = frozenset(
    {"memory.free", "memory.used", "memory.usable", "processes", "power_state", "cpu"}
)


def merge(said: Iterable[Said]) -> tuple[list[dict[str, Any]], list[FindingDoc]]:
    """Return the devices, in the order in which the best prober named them, and conflicts.

    A device has the sightings' fields, and `id`, `sources` (field path to prober), `others`
    (field path to what other probers said instead) and `seen_by` (probers, best first).
    """
    groups = group(sorted(said, key=lambda one: -one.priority))
    _adopt(groups)
    return [with_every_field(_unite(one)) for one in groups], list(conflicts(groups))


def with_every_field(device: dict[str, Any]) -> dict[str, Any]:
    """Return a device with the fields that visibility and what comes after it read as required."""
    memory: dict[str, Any] = {
        "kind": None,
        "total": None,
        "free": None,
        "usable": None,
        "parts": {},
    }
    empty: dict[str, Any] = {
        **dict.fromkeys(("vendor", "name", "arch", "units", "pci", "driver", "power_state")),
        "parent": None,
        "backends": [],
        "links": [],
    }
    return {**empty, **device, "memory": {**memory, **device.get("memory", {})}}


def _adopt(groups: Sequence[Group]) -> None:
    """Point each `parent` at the id that the parent device will have."""
    names = {identity: one.name for one in groups for identity in one.ids}
    for sighting in (said.sighting for one in groups for said in one.said):
        parent = sighting.get("parent")
        if parent is not None:
            sighting["parent"] = names.get(parent, parent)


def _unite(one_group: Group) -> dict[str, Any]:
    ids = sorted(one_group.ids, key=strength)
    device: dict[str, Any] = {"id": ids[0], "ids": ids}
    sources: dict[str, str] = {}
    others: dict[str, list[dict[str, Any]]] = {}
    unknown: dict[str, str] = {}
    for one in one_group.said:
        for key, value in one.sighting.items():
            if key == "ids":
                sources.setdefault(key, one.prober)
            elif key == "unknown":
                for field, reason in value.items():
                    unknown.setdefault(field, f"{one.prober}: {reason}")
            elif key in _NESTED:
                _nest(device.setdefault(key, {}), key, value, one, sources, others)
            elif key in _UNITED:
                device[key] = list(dict.fromkeys([*device.get(key, ()), *value]))
                sources.setdefault(key, one.prober)
            elif key in _LISTS:
                _add_links(device, value, one, sources)
            else:
                _put(device, key, value, key, one, sources, others)
    for prober, identity in one_group.foreign:
        others.setdefault("ids", []).append({"prober": prober, "value": identity})
    device["sources"] = sources
    device["others"] = others
    device["unknown"] = {f: r for f, r in unknown.items() if f not in sources}
    device["seen_by"] = list(dict.fromkeys(one.prober for one in one_group.said))
    return device


def _nest(
    table: dict[str, Any],
    key: str,
    values: dict[str, Any],
    one: Said,
    sources: dict[str, str],
    others: dict[str, list[dict[str, Any]]],
) -> None:
    for name, item in values.items():
        path = f"{key}.{name}"
        if path == _PARTS:
            _add_parts(table, item, one, sources)
        else:
            _put(table, name, item, path, one, sources, others)


def _put(
    table: dict[str, Any],
    name: str,
    value: Any,
    path: str,
    one: Said,
    sources: dict[str, str],
    others: dict[str, list[dict[str, Any]]],
) -> None:
    """Keep the first value of a field; a different later one is remembered, not used."""
    if name not in table:
        table[name] = value
        sources[path] = one.prober
    elif table[name] != value and path not in _VOLATILE:
        others.setdefault(path, []).append({"prober": one.prober, "value": value})


def _add_links(
    device: dict[str, Any], links: list[dict[str, Any]], one: Said, sources: dict[str, str]
) -> None:
    """Take a later prober's links of the kinds that no better prober reported."""
    known = device.setdefault("links", [])
    kinds = {link["kind"] for link in known}
    fresh = [link for link in links if link["kind"] not in kinds]
    known += fresh
    if fresh:
        sources.setdefault("links", one.prober)


def _add_parts(
    memory: dict[str, Any], parts: dict[str, int], one: Said, sources: dict[str, str]
) -> None:
    """Take a later prober's parts of the memory that no better prober reported."""
    known = memory.setdefault("parts", {})
    for name, size in parts.items():
        if name not in known:
            known[name] = size
            sources[f"{_PARTS}.{name}"] = one.prober
