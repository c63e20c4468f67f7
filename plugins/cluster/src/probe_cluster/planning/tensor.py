"""Tensor parallelism across nodes: teams split each layer, and a pipeline joins teams and nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

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
"""Up to this many nodes with such links all groups are compared: 8 Macs take 40 ms."""


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
    """Return all groups that can split layers; none where layers are given by hand.

    Each two of a group have a link of their own, and a width divides the heads.
    """
    costs = _reduces(setting)
    names = [member.id for member in setting.members]
    joined = [at for at, name in enumerate(names) if any(name in pair for pair in costs)]
    if setting.pinned or len(joined) > TEAM_NODES:
        return []
    groups: list[Team] = []
    for width in widths(setting.model):
        for group in combinations(joined, width):
            pairs = [tuple(sorted((names[a], names[b]))) for a, b in combinations(group, 2)]
            if all(pair in costs for pair in pairs):
                groups += _team(setting, group, max(costs[pair] for pair in pairs))
    return groups


def _team(setting: Setting, group: tuple[int, ...], reduce: float) -> list[Team]:
    """Return the group as a team; nothing where a speed is not known or no layer fits."""
    members = [setting.members[at] for at in group]
    seconds = split_seconds(members, setting.model, reduce)
    room = min(setting.rooms[at] for at in group)
    most = int(room // part_bytes(setting, len(group)))
    return [] if seconds is None or not most else [Team(group, seconds, most, reduce)]


def part_bytes(setting: Setting, width: int) -> float:
    """Return what a node keeps of one layer; of MLA the whole cache."""
    model = setting.model
    own = model.kv_bytes if model.kind == "mla" else model.kv_bytes / width
    return (model.weight_bytes / width + own) / model.layers


def disjoint(units: Sequence[Team]) -> list[tuple[tuple[Team, ...], int]]:
    """Return each choice of teams that share no node, and its nodes as bits.

    The empty choice is left out. Eight nodes that are all joined have 1,499.
    """
    bits = [(team, sum(1 << at for at in team.nodes)) for team in units]
    choices: list[tuple[tuple[Team, ...], int]] = []

    def add(chosen: tuple[Team, ...], used: int, start: int) -> None:
        for at in range(start, len(bits)):
            team, own = bits[at]
            if not own & used:
                choice = (*chosen, team)
                choices.append((choice, used | own))
                add(choice, used | own, at + 1)

    add((), 0, 0)
    return choices


def _reduces(setting: Setting) -> dict[tuple[str, ...], float]:
    """Return the seconds of an all-reduce of each two nodes whose link can carry it.

    Of many nodes that only the default link joins, the fastest as many as can be compared.
    """
    cables, names = setting.cables, [member.id for member in setting.members]
    costs: dict[tuple[str, ...], float] = {
        pair: link.reduce for pair, link in cables.named().items() if link.reduce is not None
    }
    default = cables.default.reduce
    if default is None:
        return costs
    some = [names[unit.nodes[0]] for unit in _alone(setting)[:TEAM_NODES]]
    for pair in combinations(sorted(some), 2):
        if pair not in cables.named():
            costs[pair] = default
    return costs


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
    groups = teams(setting)
    if not groups:
        return None
    best: _Best | None = None
    for least, chosen, units in _choices(setting, groups):
        if best is not None and least >= best.seconds:
            break
        best = _faster(best, _cheapest(setting, units, chosen))
    return None if best is None else _planned(setting, best)


def _choices(setting: Setting, groups: Sequence[Team]) -> list[tuple[float, int, Sequence[Team]]]:
    """Return (seconds without hops, number of teams, teams and other nodes), the least first."""
    alone, layers = _alone(setting), setting.model.layers
    choices: list[tuple[float, int, Sequence[Team]]] = []
    for chosen, used in disjoint(groups):
        singles = [unit for unit in alone if not used >> unit.nodes[0] & 1]
        # All others up to ten nodes; of more the fastest, as `strategies` does.
        units = [*chosen, *singles[: EXACT_NODES - len(chosen)]]
        choices.append((_filled(units, layers), len(chosen), units))
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
        [0.0] * count,
        [0] * count,
        [min(unit.most, layers) for unit in units],
        lambda first, second: hops[first][second],
        range(split),
    )
    counts = cheapest(costs, layers)
    if counts is None:
        return None
    order = [at for at, _ in counts]
    ring = zip(order, [*order[1:], order[0]], strict=True) if len(order) > 1 else ()
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
