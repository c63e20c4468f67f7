"""Which sightings are of one device: those that share a strong id, unless that would join two.

A device has one PCI address, and one UUID of its vendor's. So a sighting that names ids of two
devices (firmware that gives two cards one UUID, a prober that mixes up two lists) belongs to the
device of its strongest id, and its other ids count for nothing: no mistake makes a GPU vanish.
"""

from __future__ import annotations

from probe_core.model.findings import finding
from probe_core.model.ids import single, strength

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import FindingDoc

__all__ = ["Group", "Said", "conflicts", "group"]


class Said:
    """One sighting and who made it; `priority` is the prober's."""

    __slots__ = ("priority", "prober", "sighting")

    def __init__(self, prober: str, priority: int, sighting: dict[str, Any]) -> None:
        self.prober = prober
        self.priority = priority
        self.sighting = sighting


class Group:
    """The sightings of one device.

    `members` maps places in the order of belief to sightings. `owns` maps what a device has but
    once (``pci``, ``uuid``) to its id. `foreign` holds (prober, id) of what is not its own.
    """

    __slots__ = ("foreign", "ids", "members", "owns")

    def __init__(self) -> None:
        self.members: dict[int, Said] = {}
        self.ids: set[str] = set()
        self.owns: dict[str, str] = {}
        self.foreign: dict[tuple[str, str], None] = {}

    @property
    def name(self) -> str:
        """The strongest id."""
        return min(self.ids, key=strength)

    @property
    def said(self) -> list[Said]:
        """The sightings, the most believed first."""
        return [self.members[place] for place in sorted(self.members)]

    def take(self, place: int, one: Said, own: Iterable[str], foreign: Iterable[str]) -> None:
        """Add a sighting, with those of its ids that are this device's and those that are not."""
        self.members[place] = one
        for identity in own:
            self.ids.add(identity)
            self.owns |= _owned(identity)
        self.foreign |= dict.fromkeys((one.prober, identity) for identity in foreign)

    def absorb(self, other: Group) -> None:
        """Take all that another group has: it is the same device."""
        self.members |= other.members
        self.ids |= other.ids
        self.owns |= other.owns
        self.foreign |= other.foreign


def group(ordered: Iterable[Said]) -> list[Group]:
    """Return one group for each device; `ordered` are the sightings, the most believed first."""
    home: dict[str, Group] = {}
    for place, one in enumerate(ordered):
        own, foreign = _own(one.sighting["ids"], home)
        target = _joined([home[identity] for identity in own if identity in home])
        target.take(place, one, own, foreign)
        for identity in target.ids:
            home[identity] = target
    return sorted(dict.fromkeys(home.values()), key=_place)


def _own(ids: Collection[str], home: Mapping[str, Group]) -> tuple[list[str], list[str]]:
    """Part a sighting's ids, the strongest first, into those of one device and those of others."""
    owns: dict[str, str] = {}
    own: list[str] = []
    foreign: list[str] = []
    for identity in sorted(ids, key=strength):
        more = home[identity].owns if identity in home else _owned(identity)
        if any(owns.get(what, value) != value for what, value in more.items()):
            foreign.append(identity)
        else:
            own.append(identity)
            owns |= more
    return own, foreign


def _owned(identity: str) -> dict[str, str]:
    what = single(identity)
    return {what: identity} if what else {}


def _joined(groups: Sequence[Group]) -> Group:
    """Return the first of `groups` with all the others in it; a new one for none."""
    if not groups:
        return Group()
    first, *others = sorted(dict.fromkeys(groups), key=_place)
    for other in others:
        first.absorb(other)
    return first


def _place(one: Group) -> int:
    return min(one.members)


def conflicts(groups: Sequence[Group]) -> Iterator[FindingDoc]:
    """Tell each id that was not believed."""
    home = {identity: one.name for one in groups for identity in one.ids}
    for one in groups:
        for prober, identity in one.foreign:
            what = f"{prober} gives the device {one.name} the id {identity}, which is not its own"
            own = one.owns.get(single(identity) or "")
            why = f"that is {home[identity]}" if identity in home else f"its own is {own}"
            fix = "disable the prober that is wrong (PROBE_DISABLE)"
            yield finding("identity-conflict", what, why, fix, device=one.name)
        unsure = sorted(i for i in one.ids if i.startswith("uuid:") and not single(i))
        if len(unsure) > 1:
            what = f"the device {one.name} has {len(unsure)} UUIDs: {', '.join(unsure)}"
            why = f"sightings of {', '.join(_probers(one))} share another id"
            fix = "if these are two devices, disable the prober that joined them (PROBE_DISABLE)"
            yield finding("identity-conflict", what, why, fix, device=one.name)


def _probers(one: Group) -> list[str]:
    return list(dict.fromkeys(said.prober for said in one.said))
