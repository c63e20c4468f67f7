"""Which sightings are of one device: those that share a strong id, unless that would join two.

A device has one PCI address, and one UUID of its vendor's. So a sighting that names ids of two
devices (firmware that gives two cards one UUID, a prober that mixes up two lists) belongs to the
device of its strongest id, and its other ids are ignored: no mistake makes a GPU vanish.
"""

from __future__ import annotations

from probe_core.model.device import FIELDS
from probe_core.model.field import FACTS, FIRST, LINKS, PARTS, TABLE, UNION, filled
from probe_core.model.ids import single, strength

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import DeviceDoc, FindingDoc, Sighting
    from probe_core.model.field import Field

    Load = Callable[[str], object]
    """Imports a part of what a probe needs, see `gate`."""


class Observation:
    """One sighting with its source: the prober's name and priority."""

    __slots__ = ("is_cpu", "priority", "prober", "sighting")

    def __init__(self, prober: str, priority: int, sighting: Sighting) -> None:
        self.prober = prober
        self.priority = priority
        self.sighting = sighting
        self.is_cpu = sighting.get("kind") == "cpu"


class Group:
    """The observations of one device.

    `members` maps ranks (0 is the most believed) to observations. `unique_ids` maps what a device
    has but once (``pci``, ``uuid``) to its id. `stray` holds (prober, id) of ids that belong to
    another device, `refused` those of processors that have no id of their own, and are left out.
    """

    __slots__ = ("ids", "is_cpu", "members", "refused", "stray", "unique_ids")

    def __init__(self, is_cpu: bool = False) -> None:
        self.is_cpu = is_cpu
        self.members: dict[int, Observation] = {}
        self.ids: set[str] = set()
        self.unique_ids: dict[str, str] = {}
        # A dict as an ordered set: findings come in the order of the sightings.
        self.stray: dict[tuple[str, str], None] = {}
        self.refused: dict[tuple[str, str], None] = {}

    @property
    def name(self) -> str:
        """The strongest id."""
        return min(self.ids, key=strength)

    @property
    def vague(self) -> list[str]:
        """UUIDs that Vulkan or Level Zero made up: two of them prove nothing."""
        return sorted(i for i in self.ids if i.startswith("uuid:") and not single(i))

    def add(
        self, rank: int, observation: Observation, own: Iterable[str], stray: Iterable[str]
    ) -> None:
        """Add an observation, with those of its ids that are this device's and the others."""
        self.members[rank] = observation
        self.ids.update(own)
        for identity in own:
            if kind := single(identity):
                self.unique_ids[kind] = identity
        for identity in stray:
            self.stray[observation.prober, identity] = None

    def absorb(self, other: Group) -> None:
        """Take over another group: it is the same device."""
        self.members |= other.members
        self.ids |= other.ids
        self.unique_ids |= other.unique_ids
        self.stray |= other.stray
        self.refused |= other.refused


def group(ranked: Iterable[Observation]) -> list[Group]:
    """Return one group for each device; `ranked` are the observations, the most believed first.

    No id joins a processor to anything else. Processors come last, so that none that a prober
    invents takes the id of a GPU.
    """
    owners: dict[str, Group] = {}
    for rank, observation in sorted(enumerate(ranked), key=lambda pair: pair[1].is_cpu):
        is_cpu = observation.is_cpu
        own, stray = _split_ids(observation.sighting["ids"], owners, is_cpu)
        if not own:
            for identity in stray:
                owners[identity].refused[observation.prober, identity] = None
            continue
        owned = {owners[identity] for identity in own if identity in owners}
        target, *duplicates = sorted(owned, key=_best_rank) or [Group(is_cpu)]
        for duplicate in duplicates:
            target.absorb(duplicate)
        target.add(rank, observation, own, stray)
        for identity in target.ids:
            owners[identity] = target
    return sorted(dict.fromkeys(owners.values()), key=_best_rank)


def _split_ids(
    ids: Collection[str], owners: Mapping[str, Group], is_cpu: bool
) -> tuple[list[str], list[str]]:
    """Split a sighting's ids, the strongest first, into those of one device and those of others."""
    unique_ids: dict[str, str] = {}
    own: list[str] = []
    stray: list[str] = []
    for identity in sorted(ids, key=strength):
        owner = owners.get(identity)
        if owner is None:
            kind = single(identity)
            fits = kind is None or unique_ids.setdefault(kind, identity) == identity
        else:
            implied = owner.unique_ids
            fits = owner.is_cpu is is_cpu and all(
                unique_ids.get(kind, name) == name for kind, name in implied.items()
            )
            if fits:
                unique_ids |= implied
        (own if fits else stray).append(identity)
    return own, stray


def _best_rank(device: Group) -> int:
    return min(device.members)


# One device per physical thing: join sightings on strong ids, remember the source of each field.
#
# Pure data in, pure data out. Names, ordinals and memory sizes never join anything. How a field is
# merged is said in the table of fields.


def merge(
    observations: Iterable[Observation], load: Load = bool
) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    """Return the devices, in the order in which the best prober named them, and conflicts.

    A device has the sightings' fields, and `id`, `sources` (field path to prober), `others`
    (field path to what other probers report for it) and `seen_by` (probers, best first). What the
    later steps fill in (memory, chip, peaks …) is there from the start, empty.
    """
    ranked = sorted(observations, key=lambda observation: -observation.priority)
    groups = group(ranked)
    if any(observation.sighting.get("parent") is not None for observation in ranked):
        _point_at_parents(groups)
    merged = [_merged(device) for device in groups]
    # The order of the fields comes later: the steps add some, and use others up.
    devices: list[Any] = [filled(fields, FIELDS) for fields in merged]
    # Each id that was not believed is reported.
    if not any(device.stray or device.refused or len(device.vague) > 1 for device in groups):
        return devices, []
    load("failures")
    from probe_core.pipeline.failures import identity_conflicts

    return devices, identity_conflicts(groups)


def _point_at_parents(groups: Sequence[Group]) -> None:
    """Point each `parent` at the id that the parent device will have."""
    names = {identity: device.name for device in groups for identity in device.ids}
    for member in (member for device in groups for member in device.members.values()):
        parent = member.sighting.get("parent")
        if parent is not None:
            member.sighting["parent"] = names.get(parent, parent)


def _merged(group: Group) -> dict[str, Any]:
    """Return the device of a group: of each field the most believed value, with its source."""
    ids = sorted(group.ids, key=strength)
    device: dict[str, Any] = {"id": ids[0], "ids": ids, "sources": {}, "others": {}, "unknown": {}}
    members = [member for _, member in sorted(group.members.items())]
    for member in members:
        _add(device, member.sighting, member.prober)
    for prober, identity in group.stray:
        _add_other(device, "ids", identity, prober)
    sources, reasons = device["sources"], device["unknown"]
    device["unknown"] = {name: reason for name, reason in reasons.items() if name not in sources}
    device["seen_by"] = list(dict.fromkeys(member.prober for member in members))
    return device


def _add(device: dict[str, Any], sighting: Mapping[str, Any], prober: str) -> None:
    sources, reasons = device["sources"], device["unknown"]
    for name, value in sighting.items():
        if name == "ids":  # united by the group already
            sources.setdefault(name, prober)
        elif name == "unknown":
            for field, reason in value.items():
                reasons.setdefault(field, f"{prober}: {reason}")
        elif name not in device and FIELDS[name].merge == FIRST:
            device[name] = value
            sources[name] = prober
        else:
            _merge(device, FIELDS[name], value, prober)


def _merge(device: dict[str, Any], field: Field, value: Any, prober: str) -> None:
    """Merge `value` of `prober` into the field, by the field's rule."""
    name, rule = field.name, field.merge
    if rule == FIRST:
        if device[name] != value and not field.volatile:
            _add_other(device, name, value, prober)
    elif rule == TABLE:
        _merge_table(device, field, value, prober)
    elif rule == UNION:
        device[name] = list(dict.fromkeys([*device.get(name, ()), *value]))
        device["sources"].setdefault(name, prober)
    elif rule == LINKS:
        _add_links(device, name, value, prober)
    elif rule == FACTS:
        device.setdefault(name, []).extend({**fact, "prober": prober} for fact in value)


def _merge_table(device: dict[str, Any], field: Field, value: Any, prober: str) -> None:
    """Merge a table name by name."""
    table, sources = device.setdefault(field.name, {}), device["sources"]
    for key, item in value.items():
        if key not in table and type(item) is not dict:
            table[key] = item
            sources[f"{field.name}.{key}"] = prober
        elif table.get(key) != item:
            _merge_item(device, field, key, item, prober)


def _merge_item(device: dict[str, Any], field: Field, key: str, item: Any, prober: str) -> None:
    """Merge what a table may have already; of the memory's parts one by one."""
    table, sources = device[field.name], device["sources"]
    part, path = (field.fields or {}).get(key), f"{field.name}.{key}"
    if part is not None and part.merge == PARTS:
        parts = table.setdefault(key, {})
        new = {name: size for name, size in item.items() if name not in parts}
        parts |= new
        sources |= {f"{path}.{name}": prober for name in new}
    elif key not in table:
        table[key] = item
        sources[path] = prober
    elif not (part and part.volatile):
        _add_other(device, path, item, prober)


def _add_links(device: dict[str, Any], name: str, value: Any, prober: str) -> None:
    """Take links of the kinds that no more believed prober reported.

    Two libraries count the same NVLink or PCIe link differently; both would be listed twice.
    """
    links = device.setdefault(name, [])
    kinds = {link["kind"] for link in links}
    new = [link for link in value if link["kind"] not in kinds]
    links += new
    if new:
        device["sources"].setdefault(name, prober)


def _add_other(device: dict[str, Any], path: str, value: Any, prober: str) -> None:
    """Remember what differs from the most believed value; it is not used."""
    device["others"].setdefault(path, []).append({"prober": prober, "value": value})
