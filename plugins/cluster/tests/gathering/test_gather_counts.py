"""What an engine counts on its nodes, and what of a report nodes are compared by."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from probe_cluster.gathering.answers import LONGER
from probe_cluster.gathering.lines import Stream
from probe_cluster.gathering.model import Sink
from probe_cluster.gathering.ray import _connect, _take, _target
from probe_cluster.gathering.slurm import _gpus, _parsed, expand
from probe_cluster.gathering.summaries import Expected, Gpu, Nic, Summary, summary_of
from probe_cluster.shared import ClusterError

MOST_NODES = 100_000


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("a,b", ["a", "b"]),
        (" a, ,b\n", ["a", " ", "b"]),
        ("n[08-10,2]", ["n08", "n09", "n10", "n2"]),
        ("r[1-2]n[3-4]x", ["r1n3x", "r1n4x", "r2n3x", "r2n4x"]),
        ("n[5-4]", []),
        ("n[1-", ["n[1-"]),
        ("n[a-b],m", ["n[a-b]", "m"]),
        ("n[1-1000000000]", ["n[1-1000000000]"]),
    ],
)
def test_names_of_a_list_of_nodes(text: str, names: list[str]) -> None:
    assert expand(text) == names


def test_a_list_of_nodes_has_a_bound() -> None:
    names = expand("n[1-999999999]")
    assert (len(names), names[-1]) == (MOST_NODES, f"n{MOST_NODES}")


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("", 0),
        ("(null)", 0),
        ("gpu", 1),
        ("gpu:0", 0),
        ("gpu:h100", 1),
        ("gpu:8", 8),
        ("gpu:h100:8(S:0-1,3),gpu:a100:2,shard:4", 10),
        ("gpu:h100:x", 0),
        ("mps:200,gpu:1", 1),
        (f"gpu:{'9' * 15}", 10**15 - 1),
        (f"gpu:a:{'9' * 16}", 0),
    ],
)
def test_gpus_that_slurm_counts(gres: str, count: int) -> None:
    assert _gpus(gres) == count


def test_a_node_as_slurmctld_prints_it() -> None:
    text = (
        "NodeName=a CPUTot=64 RealMemory=3 Gres=gpu:2 State=IDLE OS=Linux 6.8 State=DOWN\n"
        "NodeName=b CPUTot=x Reason=not a=b\n"
        "no node here\n"
    )
    common = {"source": "scontrol show node"}
    assert dict(_parsed(text)) == {
        "a": {**common, "gpus": 2, "cpus": 64, "memory": 3 << 20, "state": "IDLE"},
        "b": {**common, "gpus": 0, "cpus": None, "memory": None, "state": None},
    }


@pytest.mark.parametrize(
    ("resources", "gpus", "cpus", "memory"),
    [
        ({"GPU": 2, "CPU": 4.5, "memory": 7.9}, 2.0, 4.5, 7),
        ({"GPU": True, "CPU": "4"}, 0.0, None, None),
        ([], 0.0, None, None),
    ],
    ids=range(3),
)
def test_a_node_as_ray_lists_it(
    resources: Any, gpus: float, cpus: float | None, memory: int | None
) -> None:
    target = _target("n", {"engine": resources, "name": "desk", "state": "alive"})
    assert (target.id, target.name) == ("n", "desk")
    assert target.engine == {
        "source": "ray.nodes()", "gpus": gpus, "cpus": cpus, "memory": memory, "state": "alive",
    }  # fmt: skip
    assert _target("n", {"engine": None}).name == ""


@pytest.mark.parametrize(
    ("message", "took"),
    [
        ({"kind": "node", "engine": {"GPU": 1}, "name": "desk"}, ["desk"]),
        ({"kind": "lost", "reason": "its actor died"},
         [("missing", "its actor died", "see `ray status` and `ray list nodes`")]),
        ({"kind": "lost"},
         [("missing", "it gave no reason", "see `ray status` and `ray list nodes`")]),
        ({"kind": "start"}, []),
        ({"kind": "need"}, []),
        ({"kind": "late"}, [("timeout", "`probe --json` did not end there in time", LONGER)]),
        ([], [("invalid", "its program prints what cannot be read", "run it again")]),
    ],
    ids=range(7),
)  # fmt: skip
def test_what_rays_driver_prints_of_a_node(message: Any, took: list[Any]) -> None:
    stream, found = Stream("n"), list[Any]()
    stream.add("0", json.dumps(message).encode())
    stream.add("end", b"plain 1")
    sink = Sink(
        lambda answer: found.append((answer.status, answer.reason, answer.fix)),
        lambda target: found.append(target.name),
        found.append,
    )
    _take(stream, sink)
    assert found == took


@pytest.mark.parametrize("address", ["a", "a:", "a:x", "a:0", "a:65536", "ray://a", "6379"])
def test_an_address_of_ray_has_a_port(address: str) -> None:
    with pytest.raises(ClusterError) as error:
        asyncio.run(_connect(address))
    assert str(error.value) == f"--ray {address}: write HOST:PORT, such as 10.0.0.1:6379"


BLOCKED = {
    "state": "blocked", "broken": "permission",
    "steps": [{"step": "permission", "status": "failed", "evidence": "no access",
               "code": "permission.render", "severity": "error"}],
}  # fmt: skip
REPORT: dict[str, Any] = {
    "schema": 1, "probe_core": "1.2", "chipdb": "3", "devices": [
        {"id": "cpu:0", "kind": "cpu"},
        {"id": "cpu:1", "kind": "cpu", "name": "EPYC"},
        {"id": "g", "kind": "gpu", "vendor": "nvidia", "name": "H100", "power_state": "active",
         "driver": {"name": "nvidia", "version": "580"},
         "memory": {"kind": "dedicated", "total": 9},
         "links": [{"kind": "nvlink", "local_width": 2}, {"kind": "pcie", "local_width": 16}],
         "extra": {"nvlink": {"active": 0}}, "readiness": {"state": "ready"}},
        {"id": "h", "kind": "accelerator", "vendor": "acme", "chip": {"name": "A1"}, "parent": "g",
         "profile": "half", "power_state": "suspended", "memory": {"kind": "unified", "total": 0},
         "driver": {"version": "2"}, "links": [{"kind": "pcie", "local_width": 8}],
         "extra": {"nvlink": {"active": -1}}, "readiness": BLOCKED},
        {"kind": "npu", "vendor": "amd", "readiness": {"state": "ready"}},
        {"id": "d", "kind": "display"},
    ],
    "node": {"os": "linux", "kernel": "6.8", "arch": "x86_64", "model": "Box", "id": "m",
             "vm": "kvm", "memory": {"total": 7}, "network": [
                 {"name": "eth0", "kind": "ethernet", "bandwidth": 1.25e9},
                 {"name": "tb0", "kind": "thunderbolt"}, {"name": "ib0", "kind": "infiniband"}]},
    "findings": [{"severity": "error", "code": "b"}, {"severity": "warning", "code": "c"},
                 {"severity": "error", "code": "a"}, {"severity": "error"}],
    "expected": {"source": "a file", "count": 4, "absent": [{"count": 2}, {"count": -1}],
                 "unlike": [{"fact": "driver", "expected": "580"}] * 2},
}  # fmt: skip


def test_what_of_a_report_is_compared() -> None:
    assert summary_of(REPORT) == Summary(
        "linux", "6.8", "x86_64", "Box", "m", "1.2", "3", 7, "EPYC",
        (
            Gpu("g", "gpu", "H100", "nvidia 580", 9, False, None, None, None, 16, 0, None),
            Gpu("h", "accelerator", "A1", "2", None, True, "g", "permission: no access", None, None,
                None, "half"),
            Gpu("unknown", "npu", "amd", None, None, False, None, None, None, None, None, None),
        ),
        ("a", "b"),
        "kvm",
        Expected("a file", 4, 2, (("driver", "580", "unknown"),)),
        {"eth0": Nic("ethernet", 1.25e9), "ib0": Nic("infiniband", None)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"schema": 2}, "its report has schema 2"),
        ({"schema": "x" * 41}, f"its report has schema {'x' * 39}…"),
        ({"devices": []}, "its report has no devices"),
        ({"devices": {}}, "its report has no devices"),
    ],
)
def test_what_is_no_report_of_this_schema(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        summary_of(REPORT | changes)


@pytest.mark.parametrize(
    "expected", [None, {"count": 4}, {"source": "s", "count": "4"},
                 {"source": "s", "count": 4, "unknown": True}],
)  # fmt: skip
def test_an_expectation_that_nobody_can_compare_is_none(expected: Any) -> None:
    assert summary_of(REPORT | {"expected": expected}).expected is None


def test_which_gpus_an_engine_counts() -> None:
    def ids(*gpus: dict[str, Any]) -> list[list[str]]:
        summary = summary_of(REPORT | {"devices": list(gpus)})
        lists = (summary.whole, summary.gpus_alone, summary.usable, summary.schedulable)
        return [[gpu.id for gpu in own] for own in lists]

    ready = {"kind": "gpu", "readiness": {"state": "ready"}}
    card, part = {**ready, "id": "c"}, {**ready, "id": "p", "parent": "c"}
    small = {**ready, "id": "i", "memory": {"kind": "shared"}}
    npu, broken = {**ready, "id": "n", "kind": "npu"}, {**card, "id": "b", "readiness": BLOCKED}
    assert ids(card, part, npu) == [["c", "n"], ["c"], ["p"], ["p"]]
    assert ids(small, card) == [["i", "c"], ["i", "c"], ["i", "c"], ["c"]]
    assert ids(small, npu) == [["i", "n"], ["i"], ["i"], ["i"]]
    assert ids(broken, small) == [["b", "i"], ["b", "i"], ["i"], []]
