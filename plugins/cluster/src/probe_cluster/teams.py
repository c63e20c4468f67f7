"""Groups of nodes that split each layer among them, over links whose all-reduce is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from probe_cluster.efficiency import table
from probe_cluster.links import Links
from probe_cluster.setting import Setting
from probe_cluster.stages import split_seconds, widths

__all__ = ["TEAM_NODES", "Team", "disjoint", "teams"]

# distributed-llama splits layers over sockets too, at 0.9 ms an all-reduce; exo and vLLM do not.
_LINKS = ("rdma", "roce", "infiniband")

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
    costs = _reduces(setting.cables)
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


def _reduces(links: Links) -> dict[tuple[str, ...], float]:
    costs = {kind: table()["reduce"][kind] * 1e-6 for kind in _LINKS}
    named = links.named().items()
    return {pair: costs[link.kind] for pair, link in named if link.kind in costs}
