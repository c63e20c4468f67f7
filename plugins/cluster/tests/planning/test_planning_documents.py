"""Plans as plain data, key by key, of plans that are made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from probe_cluster import Links, Member, Model, Plan
from probe_cluster.planning.document import comparison_document, model_document, plan_document
from probe_cluster.planning.efficiency import Range
from probe_cluster.planning.fitting import Fit
from probe_cluster.planning.links import KINDS
from probe_cluster.planning.predict import Stage, _too_big
from probe_cluster.planning.setting import Setting
from probe_cluster.planning.strategies import Comparison

MODEL = Model(
    1 << 20, 2, 8.0, active_params=1 << 19, hidden=512, context=64, name="m", quant="fp8",
    longest=128, source="a file", kv_heads=2, head_dim=4,
)  # fmt: skip
FIT = Fit(True, "available", 5, 7, 2, 8.0, 1 << 21)
STAGE = Stage("a", 0, 1, 10, 12, 3, 0.25, "10gbe", 0.5, ("b",))


def plan(**changes: Any) -> Plan:
    facts: dict[str, Any] = {
        "strategy": "fastest", "stages": (STAGE,), "seconds_per_token": 0.5, "slowest_stage": 0.25,
        "seconds_per_prompt_token": 0.125, "hop_seconds": 0.5, "fits": True, "notes": ("n",),
    }  # fmt: skip
    return Plan(**facts | changes)


def test_a_plan() -> None:
    known = plan(parallel="tensor", gap=0.0, basis=("b",), like=Range(2.0, 30, 4, "x"), bound=False)
    assert plan_document(known) == {
        "strategy": "fastest",
        "parallel": "tensor",
        "gap": 0.0,
        "fits": True,
        "seconds_per_token": 0.5,
        "tokens_per_second": 2.0,
        "basis": ["b"],
        "range": [1.0, 4.0],
        "measured_cases": 30,
        "measured_publications": 4,
        "measured_wider": "x",
        "lower_bound": False,
        "slowest_stage": 0.25,
        "seconds_per_prompt_token": 0.125,
        "hop_seconds": 0.5,
        "stages": [
            {
                "node": "a", "start_layer": 0, "end_layer": 1, "layers": 2, "memory": 10,
                "room": 12, "seconds": 0.25, "split_with": ["b"], "link": "10gbe",
                "hop_seconds": 0.5,
            }
        ],
        "notes": ["n"],
    }  # fmt: skip


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_a_plan_of_unknown_time(seconds: float | None) -> None:
    document = plan_document(plan(seconds_per_token=seconds, like=Range(2.0, 30, 4)))
    assert (document["tokens_per_second"], document["range"]) == (None, None)
    assert document["measured_cases"] == 30
    unlike = plan_document(plan())
    assert (unlike["gap"], unlike["range"], unlike["lower_bound"]) == (None, None, True)
    measured = [unlike[f"measured_{name}"] for name in ("cases", "publications", "wider")]
    assert measured == [0, 0, ""]


def test_the_model() -> None:
    assert model_document(MODEL) == {
        "name": "m",
        "params": 1 << 20,
        "active_params": 1 << 19,
        "layers": 2,
        "bits": 8.0,
        "quant": "fp8",
        "context": 64,
        "longest_context": 128,
        "weight_bytes": 1 << 20,
        "read_bytes": None,
        "kv_bytes": MODEL.kv_bytes,
        "kind": "dense",
        "source": "a file",
    }


def setting(count: int) -> Setting:
    members = [
        Member(f"n{number}", 1 << 30, 1 << 30, (1 << 30,), bandwidth=1e9, fp16=1.0)
        for number in range(count)
    ]
    return Setting(members, MODEL, Links(default=KINDS["10gbe"]), "available", 0.0)


def test_a_comparison_with_its_costs() -> None:
    comparison = Comparison((plan(fits=False), plan()), (("tensor", "no heads"),), setting(2))
    document = comparison_document(MODEL, FIT, comparison)
    costs = document.pop("costs")
    assert document == {
        "schema": 1,
        "model": model_document(MODEL),
        "fit": {
            "ok": True, "policy": "available", "required": 5, "have": 7, "layers": 2, "bits": 8.0,
            "params": 1 << 21, "sentence": FIT.sentence,
        },
        "best": "fastest",
        "plans": [plan_document(plan(fits=False)), plan_document(plan())],
        "refused": [{"strategy": "tensor", "reason": "no heads"}],
    }  # fmt: skip
    links = setting(2).links
    hop = links.default.seconds(MODEL.hop_bytes) + links.software
    # What one token reads of a layer, at 1 GB/s.
    layer = MODEL.layer_read_bytes / 1e9
    assert costs["nodes"] == {
        name: {"layer_seconds": layer, "fixed_seconds": 0.0, "most": setting(2).caps[0]}
        for name in ("n0", "n1")
    }
    assert costs["hops"] == {"n0": {"n1": hop}, "n1": {"n0": hop}}
    assert (costs["default_hop"], costs["teams"]) == (hop, [])


@pytest.mark.parametrize(("count", "pairs"), [(64, 64), (65, 0)])
def test_hops_are_left_out_of_large_clusters(count: int, pairs: int) -> None:
    comparison = Comparison((), (), setting(count))
    document = comparison_document(MODEL, FIT, comparison)
    assert document["best"] is None
    assert len(document["costs"]["hops"]) == pairs
    assert len(document["costs"]["nodes"]) == count
    assert comparison_document(MODEL, FIT, Comparison((), ()))["costs"] is None


@pytest.mark.parametrize(
    ("layers", "most", "sentence"),
    [
        (3, 3, None),
        (3, 2, "node 'a' has 1 GiB for its 3 layers, which need 2 GiB: 2 would fit"),
        (1, 0, "node 'a' has 1 GiB for its 1 layer, which needs 2 GiB: 0 would fit"),
    ],
)
def test_a_stage_that_does_not_fit(layers: int, most: int, sentence: str | None) -> None:
    stage = Stage("a", 4, 3 + layers, 2 << 30, 1 << 30, most, None, None, 0.0)
    assert _too_big(stage) == sentence
