"""The memory of a node and of its NUMA nodes: without that of GPUs, within what a cpuset allows."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from trees import Tree

from probe_core.machine import Machine
from probe_core.machine.numa import node_of, nodes, numbers
from probe_core.pipeline.node import memory as node_s_memory
from probe_core.pipeline.node_memory import correct, limit_of_nodes

NODES = "/sys/devices/system/node"
MEMS = "/sys/fs/cgroup/a/cpuset.mems.effective"


def node(tree: Tree, number: int, total: int, free: int = 0, inactive: int | None = None) -> None:
    lines = [f"Node {number} MemTotal: {total} kB", f"Node {number} MemFree: {free} kB"]
    lines += [f"Node {number} Inactive(file): {inactive} kB"] if inactive is not None else []
    tree.file(f"{NODES}/node{number}/meminfo", "\n".join([*lines, "odd", ""]))


def gpu(tree: Tree, number: object, at: int = 1) -> None:
    text = f"Node: {number}\nNUMA initialized: 1\nStatus: online\n"
    tree.file(f"/proc/driver/nvidia/gpus/0000:0{at}:00.0/numa_status", text)


def memory(total: int | None, available: int | None = None, **fields: Any) -> Any:
    scaled = {name: value and value * 1024 for name, value in fields.items()}
    known = {"total": total and total * 1024, "available": available and available * 1024}
    return {**known, "limit": None, **scaled}


def corrected(tree: Tree, given: Any) -> Any:
    correct(tree.machine(), given)
    return given


def test_only_the_line_of_the_node_names_one(tree: Tree) -> None:
    node(tree, 255, 40)
    node(tree, 1, 10)  # "NUMA initialized: 1" is no node
    gpu(tree, 255)
    assert corrected(tree, memory(100)) == memory(60, devices=40)


def test_the_memory_of_gpus_is_not_the_nodes(tree: Tree) -> None:
    node(tree, 255, 40, 30)
    node(tree, 254, 10, 5)
    gpu(tree, 255)
    gpu(tree, 254, 2)
    gpu(tree, 255, 3)  # the same node once more
    expected = memory(50, 25) | {"devices": 50 * 1024}
    assert corrected(tree, memory(100, 60)) == expected
    assert corrected(tree, memory(100, None)) == memory(50) | {"devices": 50 * 1024}
    assert corrected(tree, memory(100, 20))["available"] == 0
    assert corrected(tree, memory(51))["total"] == 1024


@pytest.mark.parametrize("total", [None, 40, 39])
def test_what_cannot_be_the_gpus_stays(total: int | None, tree: Tree) -> None:
    node(tree, 255, 40)
    gpu(tree, 255)
    assert corrected(tree, memory(total)) == memory(total)


@pytest.mark.parametrize("number", ["none", "-1", ""])
def test_gpus_without_a_node_change_nothing(number: str, tree: Tree) -> None:
    node(tree, 255, 40)
    gpu(tree, number)
    assert corrected(tree, memory(100)) == memory(100)
    gpu(tree, 254)  # of which nothing is known
    assert corrected(tree, memory(100)) == memory(100)


def limited(tree: Tree, given: Any, mems: str = "0") -> Any:
    tree.file("/proc/self/cgroup", "0::/a\n")
    tree.file(MEMS, f"{mems}\n")
    tree.file(f"{NODES}/has_memory", "0-1\n")
    limit_of_nodes(tree.machine(), given)
    return given


def two(tree: Tree) -> None:
    node(tree, 0, 60, 20, 5)
    node(tree, 1, 40, 10, 5)


def test_only_the_allowed_nodes_count(tree: Tree) -> None:
    two(tree)
    own = {"limit": 60 * 1024, "limited_by": MEMS}
    assert limited(tree, memory(100, 90)) == memory(100, 25) | own
    assert limited(tree, memory(100, 24)) == memory(100, 24) | own
    assert limited(tree, memory(100)) == memory(100) | own
    one = {"limit": 40 * 1024, "limited_by": MEMS}
    assert limited(tree, memory(100, 90, limit=41), "1") == memory(100, 15) | one


def test_a_node_of_unknown_size_counts_nothing(tree: Tree) -> None:
    two(tree)
    tree.file(f"{NODES}/node2/meminfo", "odd")
    assert limited(tree, memory(100), "0,2") == memory(100) | {
        "limit": 60 * 1024,
        "limited_by": MEMS,
    }


@pytest.mark.parametrize(
    ("given", "mems"),
    [
        (memory(100), "0-1"),
        (memory(100), ""),
        (memory(None), "0"),
        (memory(60), "0"),
        (memory(100, limit=60), "0"),
        (memory(100), "7"),
    ],
)
def test_a_cpuset_that_limits_nothing(given: Any, mems: str, tree: Tree) -> None:
    two(tree)
    assert limited(tree, {**given}, mems) == given


def test_the_nodes_of_gpus_are_no_part_of_what_is_allowed(tree: Tree) -> None:
    two(tree)
    gpu(tree, 1)
    whole = memory(60, devices=40)
    assert limited(tree, {**whole}) == whole


def test_the_cpus_of_each_node(tree: Tree) -> None:
    machine = tree.machine()
    assert (numbers(machine), nodes(machine), node_of(machine, [0])) == ([], None, None)
    tree.file(f"{NODES}/node3/cpulist", "0-1\n")
    machine = tree.machine()
    assert (numbers(machine), nodes(machine)) == ([3], {3: None})
    assert (node_of(machine, [9]), node_of(machine, [])) == (3, 3)  # the only one holds everything
    tree.file(f"{NODES}/node10/cpumap", "0000000c\n")
    tree.file(f"{NODES}/node4/cpulist", "\n")
    tree.file(f"{NODES}/node5/other", "")
    machine = tree.machine()
    assert numbers(machine) == [3, 4, 5, 10]
    assert nodes(machine) == {3: {0, 1}, 4: set(), 10: {2, 3}}
    cpus = [[0], [0, 1], [2], [1, 2], [], [9]]
    assert [node_of(machine, near) for near in cpus] == [3, 3, 10, None, None, None]


def test_of_nodes_with_the_same_cpus_the_first_has_them(tree: Tree) -> None:
    for number in range(3):
        tree.file(f"{NODES}/node{number}/cpulist", "0-7\n")
    assert nodes(tree.machine()) == {0: set(range(8)), 1: set(), 2: set()}
    assert node_of(tree.machine(), [1]) == 0


def test_a_list_of_nodes_goes_before_their_folders(tree: Tree) -> None:
    tree.file(f"{NODES}/online", "0,2\n")
    tree.file(f"{NODES}/node7/cpulist", "0\n")
    assert numbers(tree.machine()) == [0, 2]


UNKNOWN = {"total": None, "available": None, "limit": None}


@pytest.mark.parametrize("error", [ImportError("none"), RuntimeError("not on this system"), None])
def test_where_there_is_no_proc_psutil_tells_what_it_can(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> SimpleNamespace:
        if error:
            raise error
        return SimpleNamespace(total=7, available=5)

    psutil = ModuleType("psutil")
    vars(psutil)["virtual_memory"] = asked
    monkeypatch.setitem(sys.modules, "psutil", psutil)
    told = {"total": 7, "available": 5, "limit": None}
    machine = Machine(os="windows")
    assert node_s_memory(machine) == (UNKNOWN if error else told)
    machine.live = False
    assert node_s_memory(machine) == UNKNOWN
