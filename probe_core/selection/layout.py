"""Divides devices into groups that work well together: always the same groups for one node."""

from __future__ import annotations

from probe_core.selection.links import closeness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["best_group", "divide"]

_EXACT = 3_000
"""Layouts tried at most before the greedy way is taken: 8 devices in pairs are 105."""


def divide(devices: Sequence[Device], groups: int, size: int) -> list[list[Device]]:
    """Return `groups` lists of `size` devices each, as close together as can be.

    Among equally good divisions the one that comes first in the devices' own order is taken, and
    the groups come in the order of their first device. Raises `ValueError` when there are too few
    devices.
    """
    if groups * size > len(devices):
        raise ValueError(f"{groups}x{size} needs {groups * size} devices, there are {len(devices)}")
    score = _scores(devices)
    everyone = tuple(range(len(devices)))
    if size == 1:
        chosen: Sequence[tuple[int, ...]] = [(at,) for at in everyone[:groups]]
    elif _count(len(devices), groups, size) <= _EXACT:
        chosen = _exact(everyone, groups, size, score)
    else:
        chosen = _greedy(everyone, groups, size, score)
    return [[devices[at] for at in group] for group in chosen]


def best_group(devices: Sequence[Device], size: int) -> list[Device]:
    """Return the `size` devices that are closest together, the first of equals."""
    return divide(devices, 1, size)[0]


def _scores(devices: Sequence[Device]) -> list[list[int]]:
    return [[closeness(one, two) for two in devices] for one in devices]


def _count(total: int, groups: int, size: int) -> int:
    """Return in how many ways `groups` unordered groups of `size` can be taken of `total`."""
    ways, left = 1, total
    for _ in range(groups):
        for part in range(size):
            ways *= left - part
        left -= size
        if ways > 1 << 80:
            break
    for divisor in (*range(2, groups + 1), *(n for n in range(2, size + 1) for _ in range(groups))):
        ways //= divisor
    return ways


def _together(group: Sequence[int], score: Sequence[Sequence[int]]) -> int:
    return sum(score[one][two] for at, one in enumerate(group) for two in group[at + 1 :])


def _exact(
    everyone: tuple[int, ...], groups: int, size: int, score: Sequence[Sequence[int]]
) -> list[tuple[int, ...]]:
    best: list[tuple[int, ...]] = []
    best_score: int | None = None
    for division in _divisions(everyone, groups, size):
        total = sum(_together(group, score) for group in division)
        if best_score is None or total > best_score:
            best, best_score = list(division), total
    return best


def _divisions(
    rest: tuple[int, ...], groups: int, size: int
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield each division once: the first device of a group comes before those of later groups."""
    if groups == 0:
        yield ()
        return
    for at in range(len(rest) - groups * size + 1):
        first, others = rest[at], rest[at + 1 :]
        for partners in _combinations(others, size - 1):
            left = tuple(one for one in others if one not in partners)
            for tail in _divisions(left, groups - 1, size):
                yield ((first, *partners), *tail)


def _combinations(items: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    if size == 0:
        yield ()
        return
    for at in range(len(items) - size + 1):
        for tail in _combinations(items[at + 1 :], size - 1):
            yield (items[at], *tail)


def _greedy(
    everyone: tuple[int, ...], groups: int, size: int, score: Sequence[Sequence[int]]
) -> list[tuple[int, ...]]:
    """Grow one group after another from the first device left, by the closest to the group."""
    rest, found = list(everyone), []
    for _ in range(groups):
        group = [rest.pop(0)]
        while len(group) < size:
            nearest = max(rest, key=lambda one: (sum(score[one][two] for two in group), -one))
            rest.remove(nearest)
            group.append(nearest)
        found.append(tuple(sorted(group)))
    return sorted(found)
