"""In what nodes differ, at the bounds of what counts as different: summaries of round figures."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from probe_cluster.gathering.differences import differences
from probe_cluster.gathering.summaries import Expected, Gpu, Summary

GIB = 1 << 30
CARD = Gpu("g0", "gpu", "H100", "nvidia 580", 80 * GIB, False, None, None, None, 16, 18, None)
BARE = Summary("linux", "6.8", "x86_64", "DGX", None, "1.0", "1.0", 2048 * GIB, "Xeon", (), ())
NOBODY = "no plugin detects the others, or the process was not granted them"


def cards(count: int, **changes: Any) -> tuple[Gpu, ...]:
    return tuple(replace(CARD, id=f"g{number}", **changes) for number in range(count))


def node(number: int, gpus: tuple[Gpu, ...] = (), engine: Any = None, **changes: Any) -> Any:
    summary = replace(BARE, gpus=gpus, **changes)
    return SimpleNamespace(id=f"n{number}", name=f"n{number}", engine=engine, summary=summary)


def found(*nodes: Any) -> list[tuple[Any, ...]]:
    return [
        (entry["code"], entry["severity"], entry["nodes"], entry["expected"], entry["what"])
        for entry in differences(nodes)
    ]


def counts(*numbers: int, **changes: Any) -> list[tuple[Any, ...]]:
    return found(*(node(at, cards(number), **changes) for at, number in enumerate(numbers)))


def missing(nodes: list[str], expected: int) -> list[tuple[list[str], str]]:
    return [(nodes, str(expected))]


@pytest.mark.parametrize(
    ("numbers", "nodes", "expected"),
    [
        ((8, 8, 7), ["n2"], 8),
        ((8, 7), ["n1"], 8),  # a power of two, and an odd number of them
        ((8, 6), [], 0),  # two ways to fill a computer
        ((4, 3), ["n1"], 4),
        ((2, 1), [], 0),
        ((6, 5), [], 0),
        ((8, 0), ["n1"], 8),
        ((4, 0), ["n1"], 4),
        ((3, 0), [], 0),
        ((4, 4, 0), ["n2"], 4),
        ((7, 7, 8), [], 0),
        ((8, 8, 8), [], 0),
        ((8, 7, 6), [], 0),
        ((8, 7, 5), ["n1", "n2"], 8),
    ],
)
def test_gpus_that_are_missing(numbers: tuple[int, ...], nodes: list[str], expected: int) -> None:
    entries = [(n, e) for code, _, n, e, _ in counts(*numbers) if code == "missing-gpus"]
    assert entries == ([] if not nodes else missing(nodes, expected))


@pytest.mark.parametrize(
    "other", [{"model": "Other"}, {"model": None}, {"cpu": "EPYC"}, {"vm": "kvm"},
              {"memory": 3000 * GIB}, {"expected": Expected("a file", 7, 0, ())}],
)  # fmt: skip
def test_only_equal_computers_are_compared(other: dict[str, Any]) -> None:
    nodes = [node(0, cards(8)), node(1, cards(8)), node(2, cards(7), **other)]
    assert [entry for entry in found(*nodes) if entry[0] == "missing-gpus"] == []


@pytest.mark.parametrize(("share", "is_alike"), [(1.02, True), (1.021, False), (0.981, True)])
def test_memory_of_computers_of_one_size(share: float, is_alike: bool) -> None:
    nodes = [
        node(0, cards(8)),
        node(1, cards(8)),
        node(2, cards(7), memory=int(2048 * GIB * share)),
    ]
    entries = [entry for entry in found(*nodes) if entry[0] == "missing-gpus"]
    assert bool(entries) is is_alike


def test_an_odd_value_is_named_where_most_have_another() -> None:
    nodes = [node(at, cards(1), kernel="6.8") for at in range(3)]
    nodes[2].summary = replace(nodes[2].summary, kernel="6.5")
    assert found(*nodes) == [
        ("version", "info", ["n2"], "6.8", "kernel: 6.5 on n2; expected is 6.8")
    ]
    assert found(*nodes[1:]) == [
        ("version", "info", ["n1", "n2"], None, "kernel: 6.5 on n2, 6.8 on n1")
    ]
    nodes[2].summary = replace(nodes[2].summary, kernel=None)
    assert found(*nodes) == []


def test_the_most_serious_come_first() -> None:
    nodes = [node(at, cards(8), kernel="6.8") for at in range(3)]
    nodes[1].summary = replace(nodes[1].summary, version="0.9", kernel="6.5")
    nodes[2].summary = replace(nodes[2].summary, expected=Expected("a file", 8, 3, ()))
    assert [(code, severity) for code, severity, *_ in found(*nodes)] == [
        ("missing-gpus", "error"), ("version", "warning"), ("version", "info")
    ]  # fmt: skip


def test_what_a_node_expects_of_itself() -> None:
    own = Expected("probe.toml", 8, 3, (("driver", "580", "570"),))
    assert found(node(0, cards(5), expected=own)) == [
        ("missing-gpus", "error", ["n0"], "8",
         "accelerators that probe.toml expects: 5 on n0; expected is 8"),
        ("unlike-gpus", "warning", ["n0"], "580",
         "driver that probe.toml expects: 570 on n0; expected is 580"),
    ]  # fmt: skip
    assert found(node(0, expected=Expected("a", 2, 3, ())))[0][4].endswith("0 on n0; expected is 2")
    assert found(node(0, expected=Expected("a", 2, 0, ()))) == []


def less(field: str, *values: tuple[int | None, ...]) -> list[tuple[Any, ...]]:
    nodes = [
        node(at, tuple(replace(CARD, id=f"g{n}", **{field: value}) for n, value in enumerate(own)))
        for at, own in enumerate(values)
    ]
    return [entry[1:4] for entry in found(*nodes) if entry[0] == "unlike-gpus"]


def test_a_gpu_that_has_less_than_its_equals() -> None:
    assert less("lanes", (16,), (16,), (8,)) == [("warning", ["n2"], "16")]
    assert less("lanes", (16,), (8,)) == []  # of two nobody can tell
    assert less("lanes", (16,), (16,), (32,)) == []
    assert less("lanes", (16,), (16,), (None,)) == []
    assert less("lanes", (16, 16), (16, 8), (8, 16)) == []  # slots differ, and most agree
    assert less("lanes", (16, 16), (16, 16), (8, 16)) == [("warning", ["n2"], "16")]
    assert less("lanes", (16, 16), (16, 16), (16, 8), (8, 16)) == []  # half is not most
    assert less("nvlinks", (18,), (18,), (17,)) == [("warning", ["n2"], "18")]
    assert less("nvlinks", (18,), (18,), (0,)) == [("info", ["n2"], "18")]
    size = 80 * GIB
    assert less("memory", (size,), (size,), (int(size * 0.985),)) == []
    assert less("memory", (size,), (size,), (int(size * 0.975),)) == [("warning", ["n2"], "80 GiB")]


def test_nearly_all_gpus_tell_what_is_usual_of_a_node_without_equals() -> None:
    full, narrow = (16,) * 8, (16,) * 7 + (8,)
    assert less("lanes", full, narrow) == [("warning", ["n1"], "16")]
    assert less("lanes", (16,) * 4, (16,) * 3 + (8,)) == [("warning", ["n1"], "16")]
    assert less("lanes", (16,) * 3, (16,) * 3 + (8,)) == []  # seven GPUs
    assert less("lanes", narrow, narrow) == []  # a slot that is narrow on each
    assert less("lanes", (16,) * 5, (16, 16, 16, 8, 8)) == [("warning", ["n1"], "16")]
    assert less("lanes", (16,) * 5, (16, 16, 8, 8, 8)) == []


def test_gpus_that_are_divided_otherwise() -> None:
    part = replace(CARD, id="p", parent="g0", profile="1g.10gb")
    nodes = [node(at, cards(1)) for at in range(3)]
    nodes[2].summary = replace(nodes[2].summary, gpus=(*cards(1), part, replace(part, id="q")))
    assert found(*nodes) == [
        ("unlike-gpus", "info", ["n2"], "none",
         "instances of the GPUs: 2 × 1g.10gb on n2; expected is none")
    ]  # fmt: skip
    assert found(*nodes[1:]) == []
    bare = replace(part, profile=None)
    nodes[2].summary = replace(nodes[2].summary, gpus=(*cards(1), bare))
    assert found(*nodes)[0][4].startswith("instances of the GPUs: 1 × part on n2")


def test_drivers_of_equal_and_of_other_nodes() -> None:
    nodes = [node(at, cards(1)) for at in range(3)]
    nodes[2].summary = replace(nodes[2].summary, gpus=cards(1, driver="nvidia 570"))
    (entry,) = found(*nodes)
    assert entry == (
        "driver", "warning", ["n2"], "580", "nvidia driver: 570 on n2; expected is 580"
    )  # fmt: skip
    nodes[2].summary = replace(nodes[2].summary, model="Other")
    assert [one[:2] for one in found(*nodes)] == [("driver", "info")]
    nodes[2].summary = replace(nodes[2].summary, gpus=cards(1, driver="nvidia"))
    assert found(*nodes) == []


def test_blocked_gpus_by_their_step() -> None:
    gpus = (*cards(2, blocked="permission: no access"), replace(CARD, id="x", blocked="driver: b"))
    other = cards(1, blocked="permission: other")
    entries = [
        e for e in differences([node(0, gpus), node(1, other)]) if e["code"] == "blocked-gpus"
    ]
    assert [(e["field"], e["values"], e["why"]) for e in entries] == [
        ("GPUs that are blocked at the step 'driver'", {"1": ["n0"]}, "driver: b"),
        ("GPUs that are blocked at the step 'permission'", {"1": ["n1"], "2": ["n0"]},
         "permission: no access; permission: other"),
    ]  # fmt: skip


def test_gpus_that_are_set_aside_are_a_hint() -> None:
    slice_ = cards(6, blocked="node: not granted", set_aside=True)
    entries = differences([node(0, slice_), node(1, cards(1, blocked="node: gone"))])
    found = [
        (e["severity"], e["field"], e["expected"], e["values"])
        for e in entries
        if e["code"] == "blocked-gpus"
    ]
    assert found == [
        ("warning", "GPUs that are blocked at the step 'node'", "0", {"1": ["n1"]}),
        ("info", "GPUs that are set aside at the step 'node'", None, {"6": ["n0"]}),
    ]


@pytest.mark.parametrize(
    ("sizes", "nodes"),
    [
        ((100, 100, 50), ["n2"]),
        ((100, 100, 99), []),
        ((100, 100, 98), []),
        ((100, 100, 97), ["n2"]),
        ((100, 50), ["n0", "n1"]),
        ((100, 100, None), []),
    ],
)
def test_memory_of_like_nodes(sizes: tuple[int | None, ...], nodes: list[str]) -> None:
    listed = [node(at, memory=size and size * GIB) for at, size in enumerate(sizes)]
    assert [entry[2] for entry in found(*listed)] == ([nodes] if nodes else [])


def test_one_machine_twice_and_one_name_twice() -> None:
    twins = [node(at, machine_id="m") for at in range(2)]
    assert found(*twins) == [
        ("same-machine", "warning", ["n0", "n1"], None, "n0, n1: one machine id on all of them")
    ]
    twins = [node(0), node(1)]
    twins[1].id = "n0#2"
    assert [entry[2:] for entry in found(*twins)] == [
        (["n0", "n0#2"], None, "n0, n1: one name for two nodes")
    ]
    for id_ in ("n0#x", "n9#2", "n0"):
        twins[1].id = id_
        assert [entry for entry in found(*twins) if entry[0] == "same-id"] == []


def engine(count: int | None) -> dict[str, Any]:
    return {"source": "Ray", "gpus": count}


@pytest.mark.parametrize(
    ("count", "gpus", "why", "fix"),
    [
        (2, cards(1) + cards(1, blocked="driver: x"), "g0 is blocked: driver: x",
         "run `probe doctor` there, and lower the engine's count until it is repaired"),
        (5, cards(4, blocked="driver: x"), "g0, g1, g2 and 1 more are blocked: driver: x",
         "run `probe doctor` there, and lower the engine's count until it is repaired"),
        (3, cards(3, blocked="driver: x"), "g0, g1, g2 are blocked: driver: x",
         "run `probe doctor` there, and lower the engine's count until it is repaired"),
        (1, cards(1, hidden="CUDA_VISIBLE_DEVICES"), "g0 is hidden: CUDA_VISIBLE_DEVICES",
         "compare the variable in the engine's environment and in the node's"),
        (2, cards(1), f"the report has 1 GPUs: {NOBODY}",
         "install the plugin for that hardware there, or correct the engine's configuration"),
        (1, cards(2), "the engine is not configured with all of H100",
         "configure the engine with the GPUs; `probe export` writes its form"),
    ],
)  # fmt: skip
def test_why_an_engine_counts_others(count: int, gpus: Any, why: str, fix: str) -> None:
    (entry,) = [
        e for e in differences([node(0, gpus, engine(count))]) if e["code"] == "engine-count"
    ]
    assert (entry["why"], entry["fix"]) == (why, fix)
    usable = entry["field"].rpartition(" ")[2]
    assert entry["field"] == f"GPUs: Ray counts {count}, a process can use {usable}"
    assert entry["values"] == {usable: ["n0"]}


def test_an_engine_that_counts_what_its_peers_have() -> None:
    nodes = [node(0, cards(8)), node(1, cards(6), engine(8))]
    (entry,) = [e for e in differences(nodes) if e["code"] == "engine-count"]
    assert entry["why"] == "2 are missing: other computers of its model have 8"
    nodes = [node(0, cards(2), engine(2)), node(1, cards(2), engine(None))]
    assert differences(nodes) == []
    nodes = [node(0, cards(2), engine(1)), node(1, cards(2), engine(1))]
    assert [entry["nodes"] for entry in differences(nodes)] == [["n0", "n1"]]
