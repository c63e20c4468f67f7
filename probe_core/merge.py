"""One device per physical thing: join sightings on strong ids, remember who said what.

Pure data in, pure data out. Names, ordinals and memory sizes never join anything.
"""

from __future__ import annotations

from probe_core.findings import finding
from probe_core.ids import strength

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from probe_core.findings import Finding

__all__ = ["Said", "merge"]

_NESTED = frozenset({"pci", "clocks", "memory", "driver", "share", "node_index", "extra"})
_UNITED = frozenset({"ids", "backends", "dt"})
_LISTS = frozenset({"links"})
_PARTS = "memory.parts"
# Values that change between two looks: differing is no conflict.
_VOLATILE = frozenset(
    {"memory.free", "memory.used", "memory.usable", "processes", "power_state", "cpu"}
)


class Said:
    """One sighting and who made it; `priority` is the prober's."""

    __slots__ = ("priority", "prober", "sighting")

    def __init__(self, prober: str, priority: int, sighting: dict[str, Any]) -> None:
        self.prober = prober
        self.priority = priority
        self.sighting = sighting


def merge(said: Iterable[Said]) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Return the devices, in the order in which the best prober named them, and conflicts.

    A device has the sightings' fields, and `id`, `sources` (field path to prober), `others`
    (field path to what other probers said instead) and `seen_by` (probers, best first).
    """
    ordered = sorted(said, key=lambda one: -one.priority)
    groups = _groups(ordered)
    _adopt(groups)
    devices = [_unite(group) for group in groups]
    return devices, [clash for device in devices for clash in _clashes(device)]


def _groups(ordered: Sequence[Said]) -> list[list[Said]]:
    """Group sightings that share an id, directly or through a third one."""
    home: dict[str, int] = {}
    groups: list[list[Said]] = []
    for one in ordered:
        touched = sorted({home[i] for i in one.sighting["ids"] if i in home})
        if not touched:
            touched = [len(groups)]
            groups.append([])
        target = touched[0]
        groups[target].append(one)
        for other in touched[1:]:
            groups[target] += groups[other]
            groups[other] = []
        for member in groups[target]:
            for identity in member.sighting["ids"]:
                home[identity] = target
    return [sorted(group, key=lambda one: -one.priority) for group in groups if group]


def _adopt(groups: list[list[Said]]) -> None:
    """Point each `parent` at the id that the parent device will have."""
    names = {
        identity: _name(group)
        for group in groups
        for one in group
        for identity in one.sighting["ids"]
    }
    for group in groups:
        for one in group:
            parent = one.sighting.get("parent")
            if parent is not None:
                one.sighting["parent"] = names.get(parent, parent)


def _name(group: Sequence[Said]) -> str:
    best: str = min((i for one in group for i in one.sighting["ids"]), key=strength)
    return best


def _unite(group: Sequence[Said]) -> dict[str, Any]:
    device: dict[str, Any] = {"id": _name(group)}
    sources: dict[str, str] = {}
    others: dict[str, list[dict[str, Any]]] = {}
    unknown: dict[str, str] = {}
    for one in group:
        for key, value in one.sighting.items():
            if key == "unknown":
                for field, reason in value.items():
                    unknown.setdefault(field, f"{one.prober}: {reason}")
            elif key in _NESTED:
                table = device.setdefault(key, {})
                for name, item in value.items():
                    path = f"{key}.{name}"
                    if path == _PARTS:
                        _add_parts(table, item, one, sources)
                    else:
                        _put(table, name, item, path, one, sources, others)
            elif key in _UNITED:
                device[key] = list(dict.fromkeys([*device.get(key, ()), *value]))
                sources.setdefault(key, one.prober)
            elif key in _LISTS:
                _add_links(device, value, one, sources)
            else:
                _put(device, key, value, key, one, sources, others)
    device["ids"].sort(key=strength)
    device["sources"] = sources
    device["others"] = others
    device["unknown"] = {f: r for f, r in unknown.items() if f not in sources}
    device["seen_by"] = list(dict.fromkeys(one.prober for one in group))
    return device


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


def _clashes(device: dict[str, Any]) -> Iterable[Finding]:
    """A device that has two PCI addresses or two UUIDs was joined by a lie of one of them."""
    for kind in ("pci", "uuid"):
        ids = [i for i in device["ids"] if i.startswith(kind + ":")]
        if len(ids) > 1:
            yield finding(
                "identity-conflict",
                f"the device {device['id']} has {len(ids)} {kind} ids: {', '.join(ids)}",
                f"sightings of {', '.join(device['seen_by'])} share an id",
                "disable the prober that is wrong (PROBE_DISABLE)",
                device=device["id"],
            )
