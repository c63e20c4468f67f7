"""One device per physical thing: join sightings on strong ids, remember the source of each field.

Pure data in, pure data out. Names, ordinals and memory sizes never join anything. How a field is
merged is said in the table of fields.
"""

from __future__ import annotations

from probe_core.model.field import FACTS, FIRST, LINKS, PARTS, TABLE, UNION, filled
from probe_core.model.fields import FIELDS
from probe_core.model.ids import strength
from probe_core.pipeline.identity import Observation, conflicts, group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import DeviceDoc, FindingDoc, Json
    from probe_core.model.field import Field
    from probe_core.pipeline.identity import Group

__all__ = ["merge"]


def merge(observations: Iterable[Observation]) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    """Return the devices, in the order in which the best prober named them, and conflicts.

    A device has the sightings' fields, and `id`, `sources` (field path to prober), `others`
    (field path to what other probers report for it) and `seen_by` (probers, best first). What the
    later steps fill in (memory, chip, peaks …) is there from the start, empty.
    """
    groups = group(sorted(observations, key=lambda observation: -observation.priority))
    _point_at_parents(groups)
    always = [field for field in FIELDS.values() if field.always]
    devices = [_filled(_Merger(device).device(), always) for device in groups]
    return devices, list(conflicts(groups))


def _point_at_parents(groups: Sequence[Group]) -> None:
    """Point each `parent` at the id that the parent device will have."""
    sightings = (member.sighting for device in groups for member in device.members.values())
    parts = [sighting for sighting in sightings if sighting.get("parent") is not None]
    if not parts:
        return
    names = {identity: device.name for device in groups for identity in device.ids}
    for sighting in parts:
        sighting["parent"] = names.get(sighting["parent"], sighting["parent"])


class _Merger:
    """One device while its sightings are united, the most believed first."""

    __slots__ = ("_fields", "_group", "_others", "_sources", "_unknown")

    def __init__(self, device: Group) -> None:
        ids = sorted(device.ids, key=strength)
        self._group = device
        self._fields: dict[str, Any] = {"id": ids[0], "ids": ids}
        self._sources: dict[str, str] = {}
        self._others: dict[str, list[dict[str, Json]]] = {}
        self._unknown: dict[str, str] = {}

    def device(self) -> dict[str, Any]:
        """Return the device."""
        observations = self._group.observations
        for observation in observations:
            self._add(observation.sighting, observation.prober)
        for prober, identity in self._group.stray:
            self._others.setdefault("ids", []).append({"prober": prober, "value": identity})
        probers = dict.fromkeys(observation.prober for observation in observations)
        self._fields["sources"] = self._sources
        self._fields["others"] = self._others
        self._fields["unknown"] = {
            field: reason for field, reason in self._unknown.items() if field not in self._sources
        }
        self._fields["seen_by"] = list(probers)
        return self._fields

    def _add(self, sighting: Mapping[str, Any], prober: str) -> None:
        fields, sources = self._fields, self._sources
        for name, value in sighting.items():
            if name == "ids":  # united by the group already
                sources.setdefault(name, prober)
            elif name == "unknown":
                for field, reason in value.items():
                    self._unknown.setdefault(field, f"{prober}: {reason}")
            elif name not in fields and FIELDS[name].merge == FIRST:
                # As `_put` does: most fields of most devices have one source.
                fields[name] = value
                sources[name] = prober
            else:
                self._merge(FIELDS[name], name, value, prober)

    def _merge(self, field: Field, name: str, value: Any, prober: str) -> None:
        """Merge `value` of `prober` into the field, by the field's rule."""
        fields, rule = self._fields, field.merge
        if rule == FIRST:
            self._put(fields, field, name, name, value, prober)
        elif rule == TABLE:
            self._merge_table(fields.setdefault(name, {}), field, value, prober)
        elif rule == UNION:
            fields[name] = list(dict.fromkeys([*fields.get(name, ()), *value]))
            self._sources.setdefault(name, prober)
        elif rule == LINKS:
            self._add_links(fields.setdefault(name, []), name, value, prober)
        elif rule == FACTS:
            fields.setdefault(name, []).extend({**fact, "prober": prober} for fact in value)

    def _merge_table(self, table: dict[str, Any], field: Field, value: Any, prober: str) -> None:
        """Merge a table name by name."""
        inner, sources, prefix = field.fields or {}, self._sources, field.name + "."
        for key, item in value.items():
            part = inner.get(key)
            if part is not None and part.merge == PARTS:
                self._add_parts(table.setdefault(key, {}), prefix + key, item, prober)
            elif key not in table:
                table[key] = item
                sources[prefix + key] = prober
            else:
                self._put(table, part, key, prefix + key, item, prober)

    def _put(
        self, table: dict[str, Any], field: Field | None, name: str, path: str, value: Any, by: str
    ) -> None:
        """Keep the most believed value; a different later one is remembered, not used."""
        if name not in table:
            table[name] = value
            self._sources[path] = by
        elif table[name] != value and not (field and field.volatile):
            self._others.setdefault(path, []).append({"prober": by, "value": value})

    def _add_links(self, links: list[Any], path: str, value: Any, by: str) -> None:
        """Take links of the kinds that no more believed prober reported.

        Two libraries count the same NVLink or PCIe link differently; both would be listed twice.
        """
        kinds = {link["kind"] for link in links}
        new = [link for link in value if link["kind"] not in kinds]
        links += new
        if new:
            self._sources.setdefault(path, by)

    def _add_parts(self, parts: dict[str, Any], path: str, value: Any, by: str) -> None:
        """Take parts of the memory that no more believed prober reported."""
        for name, size in value.items():
            if name not in parts:
                parts[name] = size
                self._sources[f"{path}.{name}"] = by


def _filled(device: dict[str, Any], always: Sequence[Field]) -> DeviceDoc:
    """Give a device what every report has, where no prober reported it; the order comes later."""
    for field in always:
        name = field.name
        if name not in device:
            device[name] = None if field.empty is None else field.absent()
        elif field.is_part and field.fields is not None:
            device[name] = filled(device[name], field.fields)
    return device  # type: ignore[return-value]


def with_every_field(device: Mapping[str, object]) -> DeviceDoc:
    """Return a device in the table's order, with what every report has, null where unknown."""
    return filled(device, FIELDS)  # type: ignore[return-value]
