"""Layouts put devices that are linked together, the same way every time."""

from __future__ import annotations

from typing import Any

import pytest
import visibility_nodes as nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from probe_core.selection.layout import _count, _divisions, best_group, divide


def ids(groups: list[list[Any]]) -> list[list[int]]:
    return [nodes.slots([device["id"] for device in group]) for group in groups]


def linked(*pairs: tuple[int, int], count: int = 4, **more: Any) -> list[Any]:
    devices = [nodes.nvidia(slot, links=[], **more) for slot in range(1, count + 1)]
    for one, two in pairs:
        link = {"kind": "nvlink", "peer": nodes.pci(two), "count": 4}
        devices[one - 1]["links"].append(link)
    return devices


def test_nvlink_pairs_stay_together() -> None:
    assert ids(divide(linked((1, 3), (2, 4)), 2, 2)) == [[1, 3], [2, 4]]


def test_numa_nodes_stay_together() -> None:
    devices = [nodes.nvidia(slot, numa_node=slot % 2) for slot in range(1, 5)]
    assert ids(divide(devices, 2, 2)) == [[1, 3], [2, 4]]


def test_a_fabric_link_counts_more_than_a_numa_node() -> None:
    devices = linked((1, 4), (2, 3))
    for device, numa in zip(devices, (0, 0, 1, 1), strict=True):
        device["numa_node"] = numa
    assert ids(divide(devices, 2, 2)) == [[1, 4], [2, 3]]


def test_a_common_switch_brings_together() -> None:
    devices = linked()
    for device, switch in zip(devices, ("a", "b", "b", "a"), strict=True):
        device["links"] = [{"kind": "pcie", "peer": f"pci-switch:{switch}"}]
    assert ids(divide(devices, 2, 2)) == [[1, 4], [2, 3]]


def test_vendors_are_mixed_last() -> None:
    devices = [nodes.nvidia(1), nodes.amd(2), nodes.nvidia(9), nodes.amd(10)]
    assert ids(divide(devices, 2, 2)) == [[1, 9], [2, 10]]


def test_equals_are_taken_in_order() -> None:
    same = [nodes.nvidia(slot) | {"id": f"uuid:{slot}", "ids": []} for slot in range(1, 9)]
    assert [[d["id"][5:] for d in group] for group in divide(same, 4, 2)] == [
        ["1", "2"],
        ["3", "4"],
        ["5", "6"],
        ["7", "8"],
    ]


def test_a_part_of_the_devices_is_the_closest_part() -> None:
    assert ids([best_group(linked((2, 4)), 2)]) == [[2, 4]]


def test_sixteen_devices_are_divided_the_greedy_way() -> None:
    pairs = [(slot, slot + 8) for slot in range(1, 9)]
    assert ids(divide(linked(*pairs, count=16), 8, 2)) == [[one, two] for one, two in pairs]


def test_too_few() -> None:
    with pytest.raises(ValueError, match="3x2 needs 6 devices, there are 4"):
        divide(nodes.h100s(4), 3, 2)


@pytest.mark.parametrize(("total", "groups", "size"), [(8, 4, 2), (6, 2, 2), (5, 1, 3), (4, 2, 2)])
def test_divisions_are_counted_and_each_comes_once(total: int, groups: int, size: int) -> None:
    found = list(_divisions(tuple(range(total)), groups, size))
    assert len(found) == len(set(found)) == _count(total, groups, size)


@given(
    shape=st.sampled_from([(4, 2), (2, 4), (2, 3), (1, 5), (8, 1)]),
    pairs=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8))),
)
@settings(max_examples=50, deadline=None)
def test_each_device_is_used_once_and_always_alike(
    shape: tuple[int, int], pairs: list[tuple[int, int]]
) -> None:
    devices = linked(*pairs, count=8)
    groups = ids(divide(devices, *shape))
    used = [slot for group in groups for slot in group]
    assert len(set(used)) == len(used) == shape[0] * shape[1]
    assert groups == ids(divide(devices, *shape))
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)
