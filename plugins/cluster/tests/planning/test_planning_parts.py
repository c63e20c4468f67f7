"""Parts of a plan at their bounds: layers by speed, stages of a group, figures that are missing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_cluster import ClusterError, Links, Model
from probe_cluster.partition_command import _time
from probe_cluster.planning.answer import answer
from probe_cluster.planning.architecture import _routed
from probe_cluster.planning.choice import choices
from probe_cluster.planning.config_json import ConfigTable
from probe_cluster.planning.efficiency import hop_software, kind_factor
from probe_cluster.planning.engines import file_form, usual_engine
from probe_cluster.planning.members import with_engine
from probe_cluster.planning.model_spec import _form_of, parse_model
from probe_cluster.planning.offers import _bandwidth, _flops, _system
from probe_cluster.planning.options import layers_of
from probe_cluster.planning.precision import as_run_by
from probe_cluster.planning.predict import _split_stages, undivided
from probe_cluster.planning.reading import read_members
from probe_cluster.planning.search import balanced
from probe_cluster.planning.strategies import _connected
from probe_core.commands import CommandError


@pytest.mark.parametrize(
    ("seconds", "caps", "layers", "counts"),
    [
        ([1.0, 1.0], [9, 9], 3, [2, 1]),  # among equals to the earlier one
        ([1.0, 2.0], [9, 9], 6, [4, 2]),
        ([3.0, 1.0], [9, 9], 2, [0, 2]),
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


@pytest.mark.parametrize(
    ("total", "limit", "available", "memory"),
    [
        (8, None, 5, (8, 5)),
        (8, 4, 5, (4, 4)),
        (8, 9, 9, (8, 8)),
        (None, 4, 3, (4, 3)),
        (None, 4, None, (4, None)),
        (None, None, 3, (None, 3)),
    ],
)
def test_the_systems_memory_within_its_limit(
    total: int | None, limit: int | None, available: int | None, memory: tuple[Any, Any]
) -> None:
    node = {"memory": {"total": total, "limit": limit, "available": available}}
    assert _system(node) == memory


def test_bandwidth_is_weighed_by_memory() -> None:
    def device(total: int | None, bandwidth: float | None) -> dict[str, Any]:
        return {"id": "g", "memory": {"total": total}, "bandwidth": bandwidth}

    reasons: dict[str, str] = {}
    assert _bandwidth([device(3, 30.0), device(1, 10.0)], reasons) == 4 / (3 / 30 + 1 / 10)
    assert _bandwidth([device(None, 30.0), device(None, 10.0)], reasons) == pytest.approx(15)
    assert reasons == {}
    assert _bandwidth([device(3, 30.0), device(1, None)], reasons) is None
    assert reasons.pop("bandwidth") == "the memory bandwidth of g is unknown"
    assert _bandwidth([], reasons) is None
    assert reasons == {"bandwidth": "the report has no device that counts"}


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ({"params": 1, "layers": 1, "bits": 0.1, "kv_bits": 0.1}, None),
        ({"bits": 64, "kv_bits": 64, "layers": 4096, "params": 10**17}, None),
        ({"active_params": 100}, None),
        ({"context": 8, "longest": 8, "kv_heads": 1, "head_dim": 1}, None),
        ({"params": 0}, "params is 0; it must be at least 1"),
        ({"params": 10**18}, "params is 1000000000000000000; it must be at least 1"),
        ({"bits": 0.09}, "bits is 0.09; it must be at least 0.1"),
        ({"bits": 64.5}, "bits is 64.5; it must be at most 64"),
        ({"kv_bits": 0.09}, "kv_bits is 0.09; it must be at least 0.1"),
        ({"kv_bits": 64.5}, "kv_bits is 64.5; it must be at most 64"),
        ({"layers": 4097}, "layers is 4097; it must be at most 4096"),
        ({"context": -1}, "context is -1; it must be at least 0"),
        ({"active_params": 0}, "active_params is 0, of 100 in all"),
        ({"active_params": 101}, "active_params is 101, of 100 in all"),
    ],
    ids=range(14),
)  # fmt: skip
def test_the_bounds_of_a_model(own: dict[str, Any], problem: str | None) -> None:
    usual: dict[str, Any] = {"params": 100, "layers": 2, "bits": 16.0}
    if problem is None:
        Model(**usual | own)
        return
    with pytest.raises(ClusterError) as error:
        Model(**usual | own)
    assert str(error.value) == f"the model's {problem}"


def test_a_context_is_no_longer_than_the_model_was_made_for_and_needs_its_heads() -> None:
    longer = r"^the context is 9 tokens; x was made for 8 at most: give --context 8$"
    with pytest.raises(ClusterError, match=longer):
        Model(100, 2, 16.0, context=9, longest=8, kv_heads=1, head_dim=1, name="x")
    for own in ({"kv_heads": 1}, {"head_dim": 1}):
        with pytest.raises(ClusterError, match=r"^the KV cache of 9 tokens needs kv_heads and"):
            Model(100, 2, 16.0, context=9, **own)


@pytest.mark.parametrize(
    ("config", "kind", "routed"),
    [
        ({}, "full", [1, 1, 1, 1]),
        ({"mlp_layer_types": ["dense", "sparse"]}, "full", [0, 1, 1, 1]),
        ({"moe_layer_freq": [0, 1, 2]}, "full", [0, 1, 0, 1]),
        ({"first_k_dense_replace": 2}, "experts", [1, 1, 1, 1]),
        ({"moe_layers_enum": "1,3"}, "full", [0, 1, 0, 1]),
        ({"first_k_dense_replace": 2}, "full", [0, 0, 1, 1]),
        ({"mlp_only_layers": [1]}, "full", [1, 0, 1, 1]),
        ({"expert_layer_period": 2, "expert_layer_offset": 1}, "full", [0, 1, 0, 1]),
        ({"expert_layer_period": 3}, "full", [1, 0, 0, 1]),
        ({"interleave_moe_layer_step": 2}, "full", [0, 1, 0, 1]),
        ({"decoder_sparse_step": 3, "num_dense_layers": 1}, "full", [0, 0, 1, 0]),
    ],
    ids=range(11),
)
def test_layers_that_have_experts(config: dict[str, Any], kind: str, routed: list[int]) -> None:
    found = [_routed(ConfigTable(config, "it"), kind, place) for place in range(4)]
    assert found == [bool(one) for one in routed]


def test_what_an_engine_runs_and_reads() -> None:
    classes = ("hbm", "hbm-cdna", "apple-max", "gddr", None)
    assert [usual_engine(class_) for class_ in classes] == [
        "vllm", "vllm", "mlx", "llama.cpp", "llama.cpp",
    ]  # fmt: skip
    forms = (file_form("llama.cpp"), file_form("mlx"), file_form("none"))
    assert forms == ("gguf", "mlx", None)
    own = [as_run_by("mxfp4", form) for form in ("gguf", "mlx", "safetensors", None)]
    assert own == ["mxfp4_moe", "mxfp4_q8", "mxfp4", "mxfp4"]
    assert [as_run_by("fp8", form) for form in ("gguf", None)] == ["fp8", "fp8"]
    assert hop_software("none") == 0
    assert hop_software("llama.cpp") > 0


@pytest.mark.parametrize(
    ("machine", "bits", "engine", "reason"),
    [
        ("RTX 4090", "q4_k_m", "llama.cpp", "q4_k_m is a GGUF file"),
        ("RTX 4090", "awq", "vllm", "awq is of safetensors"),
        ("RTX 4090", None, "llama.cpp", "it runs on any device"),
        ("H100 SXM", "awq", "vllm", "it is usual on GPUs with HBM"),
        ("H100 SXM", "q4_k_m", "llama.cpp", "q4_k_m is a GGUF file"),
    ],
)
def test_why_an_engine_is_usual(machine: str, bits: str | None, engine: str, reason: str) -> None:
    model = parse_model({"model": "llama-3.1-8b", "bits": bits})
    (found,) = choices(read_members([], have=[machine]), model, Links(), "auto", many=False)
    assert (found.engine, found.reason) == (engine, reason)
    if bits is not None:
        nameless = replace(model, quant=None)
        (found,) = choices(read_members([], have=[machine]), nameless, Links(), "auto", many=False)
        assert found.reason == reason.replace(bits, "the file")


def test_nodes_of_several_kinds_have_an_engine_for_all_and_each_its_own() -> None:
    nodes = read_members([], have=["RTX 4090", "Mac mini M4 Pro 64GB", "H100 SXM"])
    gpu, mac, server = (node.id for node in nodes)
    model = parse_model({"model": "llama-3.1-8b", "bits": "4bit"})

    def found(many: bool) -> list[tuple[str, str, list[str]]]:
        own = choices(nodes, model, Links(), "auto", many=many)
        return [(one.engine, one.reason, [node.id for node in one.members]) for one in own]

    everywhere = ("llama.cpp", "it runs on all of these computers", [gpu, mac, server])
    own = ("mlx", f"it is made for Apple silicon, on {mac} alone", [mac])
    usual = ("vllm", f"it is usual on GPUs with HBM, on {server} alone", [server])
    assert found(False) == [everywhere, own, usual]
    together = ("vllm", "it computes many requests together", [gpu, server])
    assert found(True) == [everywhere, own, together]


@pytest.mark.parametrize(
    ("machine", "model", "engine", "weights"),
    [
        ("RTX 4090", {"model": "gpt-oss-20b"}, "llama.cpp", 12_065_982_900),
        ("Mac Studio M2 Ultra 192GB", {"model": "gpt-oss-20b"}, "mlx", 12_065_982_900),
        ("H100 SXM", {"model": "gpt-oss-20b"}, "vllm", 13_751_376_000),
        ("H100 SXM", {"model": "llama-3.1-8b", "bits": "4bit"}, "vllm", 4_517_021_952),
    ],
)
def test_published_mxfp4_is_weighed_as_the_chosen_engines_files_keep_it(
    machine: str, model: dict[str, Any], engine: str, weights: int
) -> None:
    found = answer(read_members([], have=[machine]), model)
    assert (found.choice.engine, found.model.weight_bytes) == (engine, weights)


@pytest.mark.parametrize(
    ("joined", "groups"),
    [
        ([(0, 1), (2, 3)], [{0, 1}, {2, 3}]),
        ([(0, 1), (2, 3), (4, 5), (3, 1)], [{4, 5}, {0, 1, 2, 3}]),
        ([(0, 1), (1, 0), (1, 2)], [{0, 1, 2}]),
        ([], []),
    ],
    ids=range(4),
)
def test_groups_that_fast_links_join(joined: list[tuple[int, int]], groups: list[set[int]]) -> None:
    assert _connected(joined) == groups


@pytest.mark.parametrize(
    ("computes", "kind", "arch", "factor"),
    [
        ("vllm", "mla", "cdna3", 5.0),
        ("vllm", "mla", "hopper", 3.0),
        ("vllm", "experts", "cdna3", 4.0),
        ("mlx", "mla", "cdna3", 2.0),
        ("mlx", "dense", "", 1.0),
        ("mlx", "vllm", "", 1.0),
    ],
)
def test_what_a_kind_of_model_costs(computes: str, kind: str, arch: str, factor: float) -> None:
    own = {"cdna": {"mla": 5.0}, "vllm": {"mla": 3.0, "experts": 4.0}, "mla": 2.0}
    figures: Any = {"kind": own}
    assert kind_factor(figures, computes, kind, arch) == factor


@pytest.mark.parametrize(
    ("config", "form"),
    [
        (None, "safetensors"),
        ({}, "safetensors"),
        ({"quantization": {"bits": 4, "group_size": 64}}, "mlx"),
        ({"quantization": {"bits": 4}, "quantization_config": {"bits": 4}}, "mlx"),
        ({"quantization": {"bits": 4}, "quantization_config": {"quant_method": "awq"}},
         "safetensors"),
        ({"quantization": 4}, "safetensors"),
    ],
    ids=range(6),
)  # fmt: skip
def test_the_form_of_a_folder(config: Any, form: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    if config is not None:
        path.write_text(json.dumps(config))
    assert _form_of(str(path)) == form


def test_layers_are_split_unless_unequal_memories_hold_more_without() -> None:
    model = parse_model({"model": "llama-3.1-8b", "bits": "4bit"})
    (equal,) = read_members([], have=["2x RTX 4090"])
    equal = with_engine(equal, "vllm")
    assert equal.width == 2
    assert undivided(equal, model, "available", 0.1) is equal
    unequal = replace(equal, pools=(24 << 30, 4 << 30))
    assert undivided(unequal, model, "available", 0.1) == replace(unequal, width=1)
    alone = replace(unequal, width=1)
    assert undivided(alone, model, "available", 0.1) is alone


def test_layers_by_hand() -> None:
    assert layers_of(["studio=32", "a=b=0", "c=999999"]) == {"studio": 32, "a=b": 0, "c": 999_999}
    for text in ("=1", "a=", "a", "a=-1", "a=1.0", "a=1000000"):
        with pytest.raises(CommandError, match=f"^--layers-on {text}: write it as studio=32$"):
            layers_of([text])


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"), (0.0, "0 ms"), (0.0123456, "12.3 ms"), (0.9994, "999 ms"), (1.0, "1 s"),
        (599.4, "599 s"), (600.0, "10 min"), (7200.0, "120 min"),
    ],
)  # fmt: skip
def test_how_a_plan_shows_a_time(seconds: float | None, shown: str) -> None:
    assert _time(seconds) == shown
