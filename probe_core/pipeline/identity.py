"""Which sightings are of one device: those that share a strong id, unless that would join two.

A device has one PCI address, and one UUID of its vendor's. So a sighting that names ids of two
devices (firmware that gives two cards one UUID, a prober that mixes up two lists) belongs to the
device of its strongest id, and its other ids are ignored: no mistake makes a GPU vanish.
"""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.model.ids import single, strength

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from probe_core.model.document import FindingDoc, Sighting

__all__ = ["Group", "Observation", "conflicts", "group"]


class Observation:
    """One sighting with its source: the prober's name and priority."""

    __slots__ = ("priority", "prober", "sighting")

    def __init__(self, prober: str, priority: int, sighting: Sighting) -> None:
        self.prober = prober
        self.priority = priority
        self.sighting = sighting


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
    def observations(self) -> list[Observation]:
        """The observations, the most believed first."""
        return [self.members[rank] for rank in sorted(self.members)]

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
    for rank, observation in sorted(enumerate(ranked), key=lambda pair: _is_cpu(pair[1])):
        is_cpu = _is_cpu(observation)
        own, stray = _split_ids(observation.sighting["ids"], owners, is_cpu)
        if not own:
            for identity in stray:
                owners[identity].refused[observation.prober, identity] = None
            continue
        target = _joined([owners[identity] for identity in own if identity in owners], is_cpu)
        target.add(rank, observation, own, stray)
        for identity in target.ids:
            owners[identity] = target
    return sorted(dict.fromkeys(owners.values()), key=_best_rank)


def _is_cpu(observation: Observation) -> bool:
    return observation.sighting.get("kind") == "cpu"


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


def _joined(groups: Sequence[Group], is_cpu: bool) -> Group:
    """Return the first of `groups` with all the others in it; a new one for none."""
    if not groups:
        return Group(is_cpu)
    if len(groups) == 1:
        return groups[0]
    first, *duplicates = sorted(dict.fromkeys(groups), key=_best_rank)
    for duplicate in duplicates:
        first.absorb(duplicate)
    return first


def _best_rank(device: Group) -> int:
    return min(device.members)


def conflicts(groups: Sequence[Group]) -> Iterator[FindingDoc]:
    """Report each id that was not believed."""
    owners: dict[str, str] = {}
    if any(device.stray for device in groups):
        owners = {identity: device.name for device in groups for identity in device.ids}
    for device in groups:
        for prober, identity in device.stray:
            yield _stray_id(device, prober, identity, owners.get(identity))
        for prober, identity in device.refused:
            yield _refused(device, prober, identity)
        # Vulkan and Level Zero make up UUIDs of their own: two of them prove nothing.
        vague = [i for i in device.ids if i.startswith("uuid:") and not single(i)]
        if len(vague) > 1:
            yield _several_uuids(device, sorted(vague))


def _stray_id(device: Group, prober: str, identity: str, owner: str | None) -> FindingDoc:
    own = device.unique_ids.get(single(identity) or "")
    return finding(
        "identity-conflict",
        f"{prober} gives the device {device.name} the id {identity}, which is not its own",
        f"that is {owner}" if owner else f"its own is {own}",
        "disable the prober that is wrong (PROBE_DISABLE)",
        device=device.name,
        prober=prober,
        evidence=identity,
    )


def _refused(device: Group, prober: str, identity: str) -> FindingDoc:
    return finding(
        "identity-conflict",
        f"{prober} reports a processor under the id {identity}",
        f"that is {device.name}, which is no processor; the report has no other id of it",
        "disable the prober that is wrong (PROBE_DISABLE)",
        device=device.name,
        prober=prober,
        evidence=identity,
    )


def _several_uuids(device: Group, uuids: Sequence[str]) -> FindingDoc:
    probers = dict.fromkeys(observation.prober for observation in device.observations)
    return finding(
        "identity-conflict",
        f"the device {device.name} has {len(uuids)} UUIDs: {', '.join(uuids)}",
        f"sightings of {', '.join(probers)} share another id",
        "if these are two devices, disable the prober that joined them (PROBE_DISABLE)",
        device=device.name,
        evidence=", ".join(uuids),
    )
