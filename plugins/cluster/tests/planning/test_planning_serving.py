"""Many requests at once: against published speeds, and what a layout may and may not be."""

from __future__ import annotations

import copy
import importlib
import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_cluster import ClusterError, Links, Member
from probe_cluster.planning.choice import choices
from probe_cluster.planning.efficiency import range_of, table
from probe_cluster.planning.engines import file_form
from probe_cluster.planning.links import KINDS
from probe_cluster.planning.members import with_engine
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.predict import RESERVE
from probe_cluster.planning.reading import read_members
from probe_cluster.planning.serving import (
    USABLE,
    Load,
    Serving,
    _buffers,
    _copies,
    _server_widths,
    device_of,
    layout_of,
    layouts,
    serve,
)
from probe_core.cli import main

BENCH = Path(__file__).parents[4] / "tests" / "bench"


def have(machines: str, engine: str) -> list[Member]:
    return [with_engine(member, engine) for member in read_members([], have=[machines])]


@pytest.mark.heavy
def test_published_throughput_is_within_a_factor_in_four_of_five(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    bench = importlib.import_module("bench_serving")
    errors = [abs(error) for error, _ in bench.errors(bench.rows(), table())]
    assert len(errors) >= 220
    assert sum(error <= math.log(1.5) for error in errors) / len(errors) >= 0.88


@pytest.mark.heavy
def test_what_decodes_without_sampling_tells_nothing_of_its_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    bench = importlib.import_module("bench_serving")
    rows = [row for row in bench.rows() if row.engine == "llama.cpp"]
    assert {row.source for row in rows if not row.server} == {
        "dgx-spark", "m2-ultra-batched", "braid",
    }  # fmt: skip
    dearer = copy.deepcopy(table())
    dearer["serving"]["llama-cpp"]["request"] *= 2
    for (usual, row), (slower, _) in zip(
        bench.errors(rows, table()), bench.errors(rows, dearer), strict=True
    ):
        assert (slower < usual) == row.server, row.label


def test_the_printed_range_comes_from_errors_without_the_publication() -> None:
    found = served("8x H100 SXM", "llama-3.3-70b", "fp8", Load(64, 2048), "vllm")
    like = range_of("vllm", "hbm", "serving")
    assert found.like == like
    assert like is not None
    assert (like.cases >= 140, like.publications >= 14, like.wider) == (True, True, "")
    assert like.factor > 1.4
    layout = found.layouts[0][1]
    assert found.total_range(layout) == (layout.total / like.factor, layout.total * like.factor)
    macs = served("Mac Studio M3 Ultra 256GB", "qwen3-30b-a3b", "4bit", Load(4, 512), "mlx")
    assert (macs.like, macs.total_range(macs.layouts[0][1])) == (None, None)


def served(machines: str, model: str, bits: str, load: Load, engine: str, **more: Any) -> Serving:
    found = parse_model({"model": model, "bits": bits, "form": file_form(engine)})
    return serve(have(machines, engine), found, load, engine=engine, **more)


def named(found: Serving) -> dict[str, Any]:
    return {reason: layout for reasons, layout in found.layouts for reason in reasons.split(", ")}


def test_replicas_win_where_each_device_holds_the_model() -> None:
    best = named(served("8x H100 SXM", "llama-3.1-8b", "fp8", Load(256, 1024, 256), "vllm"))
    most = best["throughput"]
    assert (most.replicas * most.tensor, most.stages) == (8, 1)
    assert (most.tensor, most.name) == (1, "8 replicas")
    assert best["fewest devices"].devices == 1
    alone = named(served("8x H100 SXM", "llama-3.1-8b", "fp8", Load(1, 1024, 256), "vllm"))
    assert alone["one user"].tensor > 1
    assert alone["one user"].each > most.each


def test_what_no_device_holds_is_split() -> None:
    best = named(served("8x H100 SXM", "llama-3.1-405b", "fp8", Load(16, 1024, 256), "vllm"))
    # Six hold it, at 65 of 76 GiB each.
    assert best["fewest devices"].devices == 6
    for layout in best.values():
        assert layout.tensor * layout.stages >= 6
        assert layout.memory <= layout.room
        assert layout.waiting == 0


@pytest.mark.parametrize(
    ("chip", "model", "bits", "engine", "requests"),
    [
        ("H200", "llama-3.3-70b", "fp8", "vllm", 64),
        ("H200", "qwen3-235b", "fp8", "vllm", 64),
        ("RTX 4090", "qwen3-30b-a3b", "q4", "llama.cpp", 64),
        # Of more requests one Mac is too slow to use, and more of them are not.
        ("Mac Studio M3 Ultra 512GB", "deepseek-v3.1", "4bit", "exo", 8),
    ],
)
def test_more_devices_never_give_less(
    chip: str, model: str, bits: str, engine: str, requests: int
) -> None:
    totals, users, fewest = [], [], []
    for count in range(2, 9):
        best = named(served(f"{count}x {chip}", model, bits, Load(requests, 2048, 256), engine))
        totals.append(best["throughput"].total)
        users.append(best["one user"].each)
        fewest.append(best["fewest devices"].devices)
    for figures in (totals, users):
        # Equal layouts differ by rounding.
        assert all(more >= less * (1 - 1e-9) for less, more in pairwise(figures))
    assert fewest == [fewest[0]] * 7


def test_requests_without_room_wait_and_are_counted() -> None:
    found = served("RTX 4090", "llama-3.1-8b", "fp8", Load(500, 8192, 512), "vllm")
    for _, layout in found.layouts:
        assert layout.running + layout.waiting == 500
        assert layout.waiting > 0
        # 8,704 tokens at 128 KiB each, on 24 GB less 5 % and the weights.
        assert layout.running == 13


def test_a_layout_needs_room_for_the_weights_and_one_request() -> None:
    model = parse_model({"model": "llama-3.1-8b", "bits": "4bit", "form": "gguf", "context": 1000})
    device = device_of(have("RTX 4090", "llama.cpp"), model, Links(), RESERVE)
    assert device is not None
    least = 4_517_021_952 + 131_072_000

    def running(memory: int) -> int | None:
        one = replace(device, memory=memory)
        found = layout_of(one, model, Load(2, 872, 128), "llama.cpp", 1, 1, 1, False)
        return found and found.running

    assert [running(least + more) for more in (-1, 0, 131_071_999, 131_072_000)] == [None, 1, 1, 2]


def test_first_tokens_come_after_all_prompts_before() -> None:
    ((_, alone),) = served("H100", "llama-3.1-8b", "fp8", Load(1, 4096, 64), "vllm").layouts
    ((_, many),) = served("H100", "llama-3.1-8b", "fp8", Load(8, 4096, 64), "vllm").layouts
    assert alone.first_token == alone.last_first_token == many.first_token
    assert many.first_token is not None
    assert many.last_first_token == pytest.approx(8 * many.first_token)
    # 65.8 TFLOP of weights at 1979 x 0.77 x 0.91 x 0.90, 4.4 of attention at 989 x 0.77 x 0.91, and
    # 32 layers and the scheduler in one step of at most 8192 tokens.
    assert alone.first_token == pytest.approx(0.0642, rel=0.01)


def test_who_waits_for_room_waits_for_answers_before() -> None:
    """Of 500 requests 13 have room, so the last begins after the answers of some 487."""
    ((_, layout),) = served("RTX 4090", "llama-3.1-8b", "fp8", Load(500, 8192, 512), "vllm").layouts
    assert layout.first_token is not None
    assert layout.last_first_token is not None
    before = (500 - layout.running) * 512 / layout.total
    wait = layout.last_first_token - layout.running * layout.first_token
    assert wait == pytest.approx(before)


def test_a_prompt_shares_the_steps_of_answers() -> None:
    """Eight short prompts cost less than as many passes: their steps read the weights anyway."""
    load = Load(8, 64, 64)
    (layout,) = {each for _, each in served("H100", "llama-3.3-70b", "q4", load, "vllm").layouts}
    assert layout.first_token is not None
    sequential = 8 * 64 / (8 * layout.first_token + 64 * 8 / (layout.each * 8))
    assert layout.total > sequential


def test_experts_are_spread_by_servers_alone() -> None:
    load = Load(512, 1024, 256)
    for engine, name, spread in (
        ("vllm", "qwen3-235b", True),
        ("sglang", "qwen3-235b", True),
        ("vllm", "llama-3.3-70b", False),
    ):
        model = parse_model({"model": name, "bits": "fp8", "context": 1280})
        device = device_of(have("8x H200", engine), model, Links(), RESERVE)
        assert device is not None
        found = list(layouts(device, 1, model, load, engine))
        assert found
        assert any(each.expert for each in found) is spread


def test_macs_split_layers_over_rdma_alone() -> None:
    load = Load(4, 1024, 256)
    machines = "2x Mac Studio M3 Ultra 256GB"
    slow = served(machines, "llama-3.3-70b", "4bit", load, "exo")
    fast = served(
        machines, "llama-3.3-70b", "4bit", load, "exo", links=Links(default=KINDS["rdma"])
    )
    assert max(layout.tensor for _, layout in slow.layouts) == 1
    assert max(layout.tensor for _, layout in fast.layouts) == 2


@pytest.mark.parametrize(
    ("machines", "model", "load", "sentence"),
    [
        (
            "RTX 4090",
            "llama-3.1-405b",
            Load(1, 1024),
            "1 device of geforce-rtx-4090 with 22.8 GiB does not",
        ),
        ("2x RTX 4090", "llama-3.1-405b", Load(1, 1024), "with 22.8 GiB each do not hold"),
        ("RTX 4090", "llama-3.1-8b", Load(0, 1024), "the requests is 0; it must be 1 to"),
        ("RTX 4090", "llama-3.1-8b", Load(1, 200_000), "was made for 131072 at most"),
        (
            "Mac mini M4 Pro 64GB",
            "llama-3.1-8b",
            Load(1, 1024),
            "how fast vllm is on mac-mini-m4-pro",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(
    machines: str, model: str, load: Load, sentence: str
) -> None:
    with pytest.raises(ClusterError, match=sentence):
        served(machines, model, "fp8", load, "vllm")


def test_many_requests_need_an_engine() -> None:
    with pytest.raises(ClusterError) as error:
        served("4x TPU v5e", "llama-3.1-8b", "bf16", Load(8, 1024), "none")
    assert str(error.value) == "--requests needs an engine, and none is planned for on 4x-tpu-v5e"


def test_a_layout_that_is_too_slow_to_use_is_left_out() -> None:
    """Three Macs hold 405 billion at 16 bits, and 32 users would get 0.6 tokens/s each of them."""
    machines, rdma = "8x Mac Studio M3 Ultra 512GB", Links(default=KINDS["rdma"])
    found = served(machines, "llama-3.1-405b", "bf16", Load(32, 64), "exo", links=rdma)
    assert all(layout.each >= USABLE for _, layout in found.layouts)
    assert named(found)["fewest devices"].devices == 4
    (note,) = found.notes
    assert note.startswith(
        "pipeline 3 of 3 devices is left out: 0.59 token/s each; below 1 token/s"
    )


def test_where_all_layouts_are_too_slow_they_are_shown_with_the_reason() -> None:
    load = Load(8, 1024)
    found = served("8x Mac mini M4 Pro 64GB", "llama-3.1-405b", "4bit", load, "exo")
    assert all(layout.each < USABLE for _, layout in found.layouts)
    assert found.notes == (
        "no layout is fast enough: below 1 token/s for each user is too slow to use",
    )


def test_nodes_of_another_kind_are_told() -> None:
    nodes = read_members([], have=["2x RTX 4090", "RTX 3060"])
    model = parse_model({"model": "llama-3.1-8b", "bits": "q4"})
    (choice,) = choices(nodes, model, Links(), "auto")
    found = serve(choice.members, model, Load(4, 512), engine=choice.engine)
    assert found.nodes == ("2x-geforce-rtx-4090",)
    assert found.notes == ("geforce-rtx-3060: another kind of device, not used",)


def test_the_command_prints_the_few_layouts_and_their_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["partition", "--have", "8x H100 SXM", "--model", "llama-3.3-70b", "--bits", "fp8"]
    asked += ["--requests", "64", "--prompt", "2k"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert "64 requests of 2048 tokens, 256 tokens of answer each" in printed
    assert "throughput" in printed
    assert main([*asked, "--json", "--answer", "128"]) == 0
    serving = json.loads(capsys.readouterr().out)["serving"]
    assert serving["load"] == {"requests": 64, "prompt": 2048, "answer": 128}
    assert {"replicas", "tensor", "total", "first_token", "best_at"} <= set(serving["layouts"][0])
    assert main([*asked[:-2]]) == 2
    assert "--requests needs --prompt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("heads", "kv_heads", "kind", "widths"),
    [
        (32, 8, "dense", [2, 4, 8]),
        (32, 2, "dense", [2, 4, 8]),
        (28, 4, "dense", [2, 4]),
        (24, 3, "dense", []),
        (24, 3, "mla", [2, 4, 8]),
        (8, None, "dense", [2, 4, 8]),
        (None, None, "dense", []),
    ],
)
def test_into_how_many_parts_a_server_splits_heads(
    heads: int | None, kv_heads: int | None, kind: str, widths: list[int]
) -> None:
    model = parse_model({"model": "llama-3.1-8b", "bits": "4bit"})
    assert _server_widths(replace(model, heads=heads, kv_heads=kv_heads, kind=kind)) == widths


@pytest.mark.parametrize(
    ("most", "more"), [(1, []), (15, []), (16, []), (17, [17]), (32, [32]), (100, [32, 64, 100])]
)
def test_of_many_copies_each_number_up_to_sixteen_and_then_the_doubled(
    most: int, more: list[int]
) -> None:
    assert _copies(most) == [*range(1, min(most, 16) + 1), *more]


@pytest.mark.parametrize(
    ("computes", "hidden", "active", "experts", "tensor", "expected"),
    [
        # Of each of the 100 tokens of a step: 16 bits of 12,000,000 / 4 / 1000 widths and of four
        # vectors of 1000, with experts of three and one for each, and half of a vocabulary.
        ("vllm", 1000, None, None, 1, 100 * (2 * (3000 + 4 * 1000) + 75_000)),
        ("vllm", 1000, None, None, 2, 100 * (2 * (1500 + 4 * 1000) + 75_000)),
        ("vllm", 1000, 4_000_000, (8, 2), 1, 100 * (2 * (1000 + 5 * 1000) + 75_000)),
        ("vllm", None, None, None, 1, 0.0),
        ("llama-cpp", 1000, None, None, 1, 0.0),
    ],
)
def test_what_a_server_keeps_for_one_step(
    computes: str, hidden: int | None, active: int | None, experts: Any, tensor: int,
    expected: float,
) -> None:  # fmt: skip
    device: Any = SimpleNamespace(
        efficiency=SimpleNamespace(computes=computes), costs=SimpleNamespace(chunk=100)
    )
    model: Any = SimpleNamespace(
        hidden=hidden, active_params=active, params=12_000_000, layers=4, experts=experts
    )
    assert _buffers(device, model, SimpleNamespace(tensor=tensor)) == expected  # type: ignore[arg-type]
