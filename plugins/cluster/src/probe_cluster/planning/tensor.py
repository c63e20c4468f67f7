"""Tensor parallelism across nodes: teams split each layer, and a pipeline joins teams and nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple

from probe_cluster.planning.links import Link
from probe_cluster.planning.predict import (
    Plan,
    Share,
    split,
    split_seconds,
    token_seconds,
    widths,
)
from probe_cluster.planning.search import EXACT_NODES, Costs, cheapest
from probe_cluster.planning.setting import Setting

# Groups of nodes that split each layer among them, over links whose all-reduce is known.

TEAM_NODES = 8
"""So many nodes split layers at most, and of up to so many all groups are compared: 8 Macs take
40 ms."""

# The choices of three kinds are 794, fewer than of eight different nodes; of four over 4,000.
TEAM_KINDS = 3
"""Up to so many kinds of nodes, however many nodes there are, all groups are compared too."""

Choice = tuple["Team", ...]
"""Teams that share no node."""


class Team(NamedTuple):
    """Nodes that compute each of their layers together."""

    nodes: tuple[int, ...]
    """Their places."""
    layer: float
    """Seconds of one layer."""
    most: int
    """Layers that the least memory of them holds its part of."""
    reduce: float
    """Seconds of their slowest all-reduce, which is also what spreading an input takes."""


def teams(setting: Setting) -> list[Team]:
    """Return the groups that are compared; none where layers are given by hand.

    Each two of a group have a link that carries an all-reduce, and a width divides the heads. Of
    more than `TEAM_NODES` nodes, those of one kind stand for each other.
    """
    found = {team for choice in _teamed(setting) for team in choice}
    return sorted(found, key=lambda team: (len(team.nodes), team.nodes))


def _teamed(setting: Setting) -> list[Choice]:
    """Return each choice of teams that is compared.

    All of them, for few nodes or few kinds. Else all of the fastest nodes and all of those with
    most memory, and of the other teams those that are the fastest for the layers that they hold.
    """
    joined = [] if setting.pinned else _joined(setting)
    if len(joined) <= TEAM_NODES:
        return disjoint(_groups(setting, joined))
    kinds = _kinds(setting, joined)
    if len(kinds) <= TEAM_KINDS:
        return _choices_of(setting, kinds)
    fast, large = joined[:TEAM_NODES], sorted(joined, key=lambda at: -setting.rooms[at])
    pools = {tuple(sorted(pool)) for pool in (fast, large[:TEAM_NODES])}
    choices = [choice for pool in sorted(pools) for choice in disjoint(_groups(setting, pool))]
    return [*choices, *((team,) for team in _fastest(setting, joined))]


def _joined(setting: Setting) -> list[int]:
    """Return the nodes of known speed that have such a link, the fastest first."""
    cables = setting.cables
    named = {name for pair, link in cables.named().items() if link.reduce for name in pair}
    steps = {
        at: step
        for at, member in enumerate(setting.members)
        if (step := token_seconds(member, setting.model)) is not None
        and (cables.default.reduce is not None or member.id in named)
    }
    return sorted(steps, key=lambda at: (steps[at], at))


def _groups(setting: Setting, nodes: Sequence[int]) -> list[Team]:
    """Return all teams of a few nodes."""
    groups = [
        _team(setting, group)
        for width in widths(setting.model)
        for group in combinations(sorted(nodes), width)
    ]
    return [team for team in groups if team is not None]


def _kinds(setting: Setting, nodes: Sequence[int]) -> list[list[int]]:
    """Return the nodes by kind: as fast, with room for as many layers, and with the same links."""
    model = setting.model
    parts = [(width, part_bytes(setting, width)) for width in widths(model)]
    links = _like_linked(setting)
    kinds: dict[object, list[int]] = {}
    for at in nodes:
        member, room = setting.members[at], setting.rooms[at]
        split_layers = tuple(
            (split_seconds([member] * width, model, 0.0), room // part) for width, part in parts
        )
        key = (token_seconds(member, model), setting.caps[at], split_layers, links.get(member.id))
        kinds.setdefault(key, []).append(at)
    return list(kinds.values())


_Links = frozenset[tuple[str, Link]]


def _like_linked(setting: Setting) -> dict[str, _Links]:
    """Return for each node with named links what equals that of nodes with the same links.

    Of two that are linked with each other it counts that link for itself too, so that all of a
    clique are alike.
    """
    links: dict[str, set[tuple[str, Link]]] = {}
    for (first, second), link in setting.cables.named().items():
        links.setdefault(first, set()).add((second, link))
        links.setdefault(second, set()).add((first, link))
    closed = {
        name: [frozenset({*own, (name, link)}) for link in {link for _, link in own}]
        for name, own in links.items()
    }
    count = Counter(each for own in closed.values() for each in own)
    return {
        name: next((each for each in closed[name] if count[each] > 1), frozenset(own))
        for name, own in links.items()
    }


def _choices_of(setting: Setting, kinds: Sequence[Sequence[int]]) -> list[Choice]:
    """Return each choice of teams by how many nodes of each kind they have."""
    sets = [
        [group.count(kind) for kind in range(len(kinds))]
        for width in widths(setting.model)
        for group in combinations_with_replacement(range(len(kinds)), width)
    ]
    found: list[Choice] = []

    def add(chosen: Choice, taken: Sequence[int], start: int) -> None:
        for at in range(start, len(sets)):
            after = [old + more for old, more in zip(taken, sets[at], strict=True)]
            lacking = any(end > len(kind) for end, kind in zip(after, kinds, strict=True))
            if sum(after) > TEAM_NODES or lacking:
                continue
            spans = zip(kinds, taken, after, strict=True)
            group = sorted(node for kind, first, end in spans for node in kind[first:end])
            team = _team(setting, tuple(group))
            if team is not None:
                found.append((*chosen, team))
                add(found[-1], after, at)

    add((), [0] * len(kinds), 0)
    return found


def _fastest(setting: Setting, nodes: Sequence[int]) -> list[Team]:
    """Return teams of which none holds as many layers in less time; `nodes` are sorted by speed.

    Where all links are alike the fastest team whose least node has so much room is that node and
    the fastest others with no less.
    """
    found: list[Team] = []
    most = max(widths(setting.model), default=0)
    for least in nodes:
        group = [least]
        for at in nodes:
            if len(group) == most:
                break
            roomy = at != least and setting.rooms[at] >= setting.rooms[least]
            if roomy and all(_reduce(setting, at, other) is not None for other in group):
                group.append(at)
        some = [width for width in widths(setting.model) if width <= len(group)]
        teams_ = [_team(setting, tuple(sorted(group[:width]))) for width in some]
        found += [team for team in teams_ if team is not None]
    best: list[Team] = []
    for team in sorted(found, key=lambda team: (team.layer, -team.most, team.nodes)):
        if not best or team.most > best[-1].most:
            best.append(team)
    return best


def _reduce(setting: Setting, first: int, second: int) -> float | None:
    """Return the seconds of an all-reduce of two nodes; None where their link cannot carry it."""
    members = setting.members
    return setting.cables.between(members[first].id, members[second].id).reduce


def _team(setting: Setting, group: tuple[int, ...]) -> Team | None:
    """Return the group as a team; None where a link or a speed is missing, or no layer fits."""
    members = [setting.members[at] for at in group]
    slowest = 0.0
    for first, second in combinations(group, 2):
        reduce = _reduce(setting, first, second)
        if reduce is None:
            return None
        slowest = max(slowest, reduce)
    seconds = split_seconds(members, setting.model, slowest)
    room = min(setting.rooms[at] for at in group)
    most = int(room // part_bytes(setting, len(group)))
    return None if seconds is None or not most else Team(group, seconds, most, slowest)


def part_bytes(setting: Setting, width: int) -> float:
    """Return what a node keeps of one layer; of MLA the whole cache."""
    model = setting.model
    own = model.kv_bytes if model.kind == "mla" else model.kv_bytes / width
    return (model.weight_bytes / width + own) / model.layers


def disjoint(units: Sequence[Team]) -> list[Choice]:
    """Return each choice of teams that share no node.

    The empty choice is left out. Eight nodes that are all joined have 1,499.
    """
    bits = [(team, sum(1 << at for at in team.nodes)) for team in units]
    choices: list[Choice] = []

    def add(chosen: Choice, used: int, start: int) -> None:
        for at in range(start, len(bits)):
            team, own = bits[at]
            if not own & used:
                choices.append((*chosen, team))
                add(choices[-1], used | own, at + 1)

    add((), 0, 0)
    return choices


_NEVER = float("inf")


class _Best(NamedTuple):
    seconds: float
    units: Sequence[Team]
    counts: Sequence[tuple[int, int]]
    """(place in `units`, its layers), in the order of the ring."""


def tensor_plan(setting: Setting) -> Plan | None:
    """Return the fastest plan in which layers are split; None where none is possible.

    One team may have all layers, or a pipeline goes through teams and nodes. Every choice of teams
    is compared, but those that could not be faster if their hops took no time.
    """
    best: _Best | None = None
    for least, split_units, units in _choices(setting):
        if best is not None and least >= best.seconds:
            break
        best = _faster(best, _cheapest(setting, units, split_units))
    return None if best is None else _planned(setting, best)


def _choices(setting: Setting) -> list[tuple[float, int, Sequence[Team]]]:
    """Return (seconds without hops, number of teams, teams and other nodes), the least first."""
    alone, layers = _alone(setting), setting.model.layers
    roomy = sorted(alone, key=lambda unit: (-unit.most, unit.layer, unit.nodes))
    choices: list[tuple[float, int, Sequence[Team]]] = []
    for chosen in _teamed(setting):
        used = {at for team in chosen for at in team.nodes}
        # All others up to ten nodes; of more the fastest, or where these lack room the largest.
        for others in (alone, roomy):
            few = others[: EXACT_NODES + TEAM_NODES]
            singles = [unit for unit in few if unit.nodes[0] not in used]
            units = [*chosen, *singles[: EXACT_NODES - len(chosen)]]
            seconds = _filled(units, layers)
            if seconds < _NEVER:
                break
        choices.append((seconds, len(chosen), units))
    return sorted(choices, key=lambda choice: choice[:2])


def _alone(setting: Setting) -> list[Team]:
    """Return each node of known speed as a unit of its own, the fastest first."""
    steps = [token_seconds(member, setting.model) for member in setting.members]
    units = [
        Team((at,), step, most, 0.0)
        for at, (step, most) in enumerate(zip(steps, setting.caps, strict=True))
        if step is not None and most
    ]
    return sorted(units, key=lambda unit: (unit.layer, unit.nodes))


def _faster(old: _Best | None, new: _Best | None) -> _Best | None:
    return old if new is None or (old is not None and old.seconds <= new.seconds) else new


def _cheapest(setting: Setting, units: Sequence[Team], split: int) -> _Best | None:
    """Return the fastest pipeline of these units, with all of the first `split`, the teams."""
    layers = setting.model.layers
    hops = [[_hop(setting, a, b) for b in units] for a in units]
    count = len(units)
    costs = Costs(
        [unit.layer for unit in units],
        [0] * count,
        [min(unit.most, layers) for unit in units],
        lambda first, second: hops[first][second],
        range(split),
    )
    counts = cheapest(costs, layers)
    if counts is None:
        return None
    order = [at for at, _ in counts]
    ring = zip(order, [*order[1:], order[0]], strict=True)  # of one unit, a hop of no time
    seconds = sum(units[at].layer * share for at, share in counts)
    seconds += sum(hops[first][second] for first, second in ring)
    return _Best(seconds, units, counts)


def _filled(units: Sequence[Team], layers: int) -> float:
    """Return the seconds of all layers on the fastest units that hold them, without hops."""
    seconds = 0.0
    for step, most in sorted([(unit.layer, unit.most) for unit in units]):
        share = min(layers, most)
        seconds, layers = seconds + step * share, layers - share
    return _NEVER if layers else seconds


def _hop(setting: Setting, first: Team, second: Team) -> float:
    """Return the seconds from one unit to the next: to one of its nodes, which tells the others."""
    if first is second:
        return 0.0
    return min(_pairs(setting, first, second))[0] + second.reduce


def _pairs(setting: Setting, first: Team, second: Team) -> list[tuple[float, int, int]]:
    names, size = [member.id for member in setting.members], setting.model.hop_bytes
    return [
        (setting.links.seconds(names[a], names[b], size), a, b)
        for a in first.nodes
        for b in second.nodes
    ]


def _planned(setting: Setting, best: _Best) -> Plan:
    """Return the plan: each node of a team has a stage of the team's layers."""
    units = [(best.units[at], layers) for at, layers in best.counts]
    shares: list[Share] = []
    for place, (unit, layers) in enumerate(units):
        following = units[(place + 1) % len(units)][0]
        hop, link = 0.0, None
        if len(units) > 1:
            _, a, b = min(_pairs(setting, unit, following))
            members = setting.members
            hop = _hop(setting, unit, following)
            link = setting.links.between(members[a].id, members[b].id).kind
        width = len(unit.nodes)
        memory = part_bytes(setting, width) * layers
        if width == 1:
            memory = setting.model.layer_bytes * layers
        shares.append(
            Share(
                [setting.members[at] for at in unit.nodes],
                [setting.rooms[at] for at in unit.nodes],
                layers,
                int(memory),
                unit.most,
                unit.layer * layers,
                link,
                hop,
            )
        )
    return split(shares, setting.model)
