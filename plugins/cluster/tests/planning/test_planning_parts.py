"""Parts of a plan at their bounds: layers by speed, stages of a group, figures that are missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_cluster.planning.offers import _flops
from probe_cluster.planning.options import layers_of
from probe_cluster.planning.predict import _split_stages
from probe_cluster.planning.search import balanced
from probe_core.commands import CommandError


@pytest.mark.parametrize(
    ("seconds", "caps", "layers", "counts"),
    [
        ([1.0, 1.0], [9, 9], 3, [2, 1]),  # among equals to the earlier one
        ([1.0, 2.0], [9, 9], 6, [4, 2]),
        ([1.0, 2.0], [1, 9], 6, [1, 5]),
        ([1.0, 0.1, 1.0], [9, 0, 1], 3, [2, 0, 1]),
        ([float("inf"), 1.0], [9, 9], 2, [0, 2]),
        ([1.0], [1], 0, [0]),
    ],
)
def test_layers_go_where_they_end_first(
    seconds: list[float], caps: list[int], layers: int, counts: list[int]
) -> None:
    assert balanced(seconds, caps, layers) == counts


def test_a_group_is_a_stage_for_each_member_with_one_hop() -> None:
    share: Any = SimpleNamespace(
        members=[SimpleNamespace(id=name) for name in "abc"], rooms=[7, 8, 9], layers=4, memory=5,
        most=6, seconds=0.5, link=None, hop=0.25,
    )  # fmt: skip
    stages = _split_stages(share, 10)
    assert [(stage.node, stage.room, stage.hop_seconds, stage.split_with) for stage in stages] == [
        ("a", 7, 0.25, ("b", "c")), ("b", 8, 0.0, ("a", "c")), ("c", 9, 0.0, ("a", "b"))
    ]  # fmt: skip
    assert {(stage.start_layer, stage.end_layer) for stage in stages} == {(10, 13)}


def test_a_figure_is_the_sum_of_those_that_are_known() -> None:
    def device(number: int, fp16: float | None, threads: int = 1) -> dict[str, Any]:
        return {"id": f"gpu:{number}", "fp16": fp16, "allowed": {"threads": threads}}

    reasons: dict[str, str] = {}
    assert _flops([device(0, 2.0), device(1, 3.0)], "fp16", reasons) == 5.0
    assert reasons == {}
    assert _flops([device(0, 2.0), device(1, None)], "fp16", reasons) == 2.0
    assert reasons.pop("fp16").startswith("fp16 of gpu:1 is unknown")
    assert _flops([device(0, 2.0, threads=0)], "fp16", reasons) is None
    assert reasons == {}
    assert _flops([], "fp16", reasons) is None
    assert reasons == {"fp16": "the report has no device that counts"}


def test_layers_by_hand() -> None:
    assert layers_of(["studio=32", "a=b=0", "c=999999"]) == {"studio": 32, "a=b": 0, "c": 999_999}
    for text in ("=1", "a=", "a", "a=-1", "a=1.0", "a=1000000"):
        with pytest.raises(CommandError, match=f"^--layers-on {text}: write it as studio=32$"):
            layers_of([text])
