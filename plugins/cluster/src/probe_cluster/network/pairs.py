"""Which pairs of nodes are measured, in which order, and what that costs at most."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

from probe_cluster.shared import ClusterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Pair = tuple[str, str]


ALL_UP_TO = 8
"""Nodes up to which all pairs are measured: 28 pairs in 7 rounds, about 20 s."""

_MOST_PAIRS = 5000


def choose_pairs(ids: Sequence[str], names: Mapping[str, str], text: str = "") -> list[Pair]:
    """Return the pairs of `text`: see `Network.pairs`. Raises `ClusterError`.

    Without it all pairs of up to eight nodes; of more a ring, in the engine's order, and as many
    random pairs. The same nodes give the same pairs. `names` are the ids of names.
    """
    if ":" in text:
        return [_explicit(pair, ids, names) for pair in text.split(",") if pair]
    count = len(ids) * (len(ids) - 1) // 2
    if text == "all":
        wanted_count = count
    elif text:
        wanted_count = min(_number(text), count)
    else:
        wanted_count = count if len(ids) <= ALL_UP_TO else 2 * len(ids)
    if wanted_count > _MOST_PAIRS:
        raise ClusterError(f"--network: {wanted_count} pairs; at most {_MOST_PAIRS}: a number")
    if wanted_count == count:
        return list(combinations(ids, 2))
    return _sampled(ids, wanted_count)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 6 or int(text) == 0:
        raise ClusterError(f"--network {text}: write all, a number of pairs, or a:b,c:d")
    return int(text)


def _explicit(text: str, ids: Sequence[str], names: Mapping[str, str]) -> Pair:
    """Return the two ids of ``a:b``; an id may hold a colon itself, as an IPv6 address does."""
    places = [at for at, char in enumerate(text) if char == ":"]
    for at in places:
        ends = [names.get(end, end) for end in (text[:at], text[at + 1 :])]
        if ends[0] in ids and ends[1] in ids:
            if ends[0] == ends[1]:
                raise ClusterError(f"--network {text}: a pair is two nodes")
            return ends[0], ends[1]
    shown = ", ".join(list(ids)[:8]) or "none"
    raise ClusterError(f"--network {text}: no such two nodes gave a report; there are {shown}")


def _sampled(ids: Sequence[str], count: int) -> list[Pair]:
    """Return the ring, or the first of it, and then random pairs."""
    ring = [*pairwise(ids), (ids[-1], ids[0])]
    pairs = dict.fromkeys(ring[:count])
    # Seeded by the nodes: a second run of the same cluster can be compared with the first.
    source = Random(",".join(ids))
    used = {frozenset(pair) for pair in pairs}
    while len(pairs) < count:
        first, second = source.sample(range(len(ids)), 2)
        pair = (ids[min(first, second)], ids[max(first, second)])
        if frozenset(pair) not in used:
            used.add(frozenset(pair))
            pairs[pair] = None
    return list(pairs)


def batches(pairs: Sequence[Pair], most: int) -> Iterator[list[Pair]]:
    """Yield the pairs in groups that hold at most `most` nodes each, at least two."""
    remaining = list(pairs)
    while remaining:
        nodes: set[str] = set()
        batch, later = [], []
        for pair in remaining:
            if len(nodes.union(pair)) <= max(2, most):
                nodes.update(pair)
                batch.append(pair)
            else:
                later.append(pair)
        yield batch
        remaining = later


def rounds(pairs: Sequence[Pair]) -> int:
    """Return how many rounds the pairs need when no node is in two pairs of a round."""
    count = 0
    remaining = list(pairs)
    while remaining:
        busy: set[str] = set()
        later = []
        for pair in remaining:
            if busy.isdisjoint(pair):
                busy.update(pair)
            else:
                later.append(pair)
        remaining = later
        count += 1
    return count
