"""What starts a plan: every figure with its reason, refused where an engine cannot do it.

The engines' own parsers are asked where their programs are on PATH (`mlx_lm.server` and
`mlx.launch` of mlx-lm with mlx[cpu] run without a Mac). Elsewhere the arguments stand against
those that their documentation lists.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from probe_cluster import ClusterError, Links, Member, Model
from probe_cluster.planning.answer import Answer, answer
from probe_cluster.planning.launch import Line, _even, _longest, _of_devices, _utilisation, launch
from probe_cluster.planning.links import parse_kind
from probe_cluster.planning.reading import read_members
from probe_cluster.planning.serving import Load, serve
from probe_core.cli import main

# vLLM 0.15, docs.vllm.ai, `vllm serve`; llama.cpp common/arg.cpp and tools/rpc (2026).
DOCUMENTED = {
    "vllm": {
        "--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size",
        "--enable-expert-parallel", "--max-model-len", "--max-num-seqs",
        "--gpu-memory-utilization", "--kv-cache-dtype", "--distributed-executor-backend",
    },
    "llama-server": {"-m", "-ngl", "-c", "-np", "-ts", "--rpc", "-ctk", "-ctv", "--fit"},
    "rpc-server": {"-H", "-p"},
    "mlx_lm.server": {"--model", "--decode-concurrency", "--kv-bits", "--pipeline"},
    "mlx.launch": {"--backend", "--hostfile"},
    "ray": {"--address"},
}  # fmt: skip


def asked(
    have: list[str], model: str, bits: str, engine: str, link: str = "1gbe", **more: Any
) -> Answer:
    links = Links(default=parse_kind(link))
    members = read_members([], have=have, links=links)
    return answer(members, {"model": model, "bits": bits, **more}, links=links, engine=engine)


LINES = [
    (["8x H100 SXM"], "llama-3.1-405b", "fp8", "vllm", "1gbe"),
    (["2x DGX H200"], "deepseek-v3", "fp8", "vllm", "ndr"),
    (["RTX 4090", "RTX 3090"], "llama-3.3-70b", "q4", "llama.cpp", "10gbe"),
    (["4x RTX 3090 + PC 64GB"], "llama-3.3-70b", "q4", "llama.cpp", "1gbe"),
    (["Mac mini M4 Pro 64GB"], "qwen3-30b-a3b", "4bit", "mlx", "1gbe"),
    (["2x Mac Studio M3 Ultra 512GB"], "deepseek-v3.1", "4bit", "mlx", "rdma"),
    (["2x Mac mini M4 Pro 64GB"], "llama-3.3-70b", "8bit", "mlx", "thunderbolt5"),
    (["2x Mac Studio M3 Ultra 512GB"], "deepseek-v3.1", "4bit", "exo", "rdma"),
]


def programs(line: Line) -> list[list[str]]:
    """Return the programs of a line with their arguments; mlx.launch starts another."""
    words = shlex.split(line.text)
    if words[0] == "mlx.launch":
        at = words.index("mlx_lm.server")
        return [words[:at], words[at:]]
    return [words]


@pytest.mark.parametrize(("have", "model", "bits", "engine", "link"), LINES)
def test_every_argument_is_documented_and_every_figure_has_a_reason(
    have: list[str], model: str, bits: str, engine: str, link: str
) -> None:
    for line in launch(asked(have, model, bits, engine, link), engine):
        if engine == "exo":
            body = json.loads(line.text.removeprefix("POST /place_instance "))
            # PlaceInstanceParams of exo b5375f8.
            assert set(body) == {"model_id", "sharding", "instance_meta", "min_nodes"}
            assert {name for name, _ in line.why} == set(body)
            continue
        reasons = " ".join(figure for figure, _ in line.why)
        for program, *words in programs(line):
            for at, word in enumerate(words):
                if word.startswith("-"):
                    option = word.partition("=")[0]
                    assert option in DOCUMENTED[program], option
                elif any(char.isdigit() for char in word):
                    assert word in reasons or words[at - 1].partition("=")[0] == "-H", word


@pytest.mark.parametrize("program", sorted(DOCUMENTED))
def test_the_engines_own_parser_knows_the_arguments(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    words = [program, "serve", "--help=all"] if program == "vllm" else [program, "--help"]
    printed = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    for option in DOCUMENTED[program]:
        assert option in printed.stdout + printed.stderr, option


@pytest.mark.parametrize(("have", "model", "bits", "engine", "link"), LINES)
def test_the_engines_own_parser_takes_the_values(
    have: list[str], model: str, bits: str, engine: str, link: str
) -> None:
    for line in launch(asked(have, model, bits, engine, link), engine):
        for program, *words in programs(line) if engine == "mlx" else ():
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed here")
            # argparse refuses a wrong value before it comes to --help.
            run = subprocess.run(
                [program, *words, "--help"], capture_output=True, timeout=120, check=False
            )
            assert run.returncode == 0, run.stderr


def test_vllm_of_a_server() -> None:
    (line,) = launch(asked(["8x H100 SXM"], "llama-3.3-70b", "fp8", "vllm", context="32k"), "vllm")
    assert line.text == (
        'vllm serve "$MODEL" --tensor-parallel-size 8 --pipeline-parallel-size 1'
        " --max-model-len 32768 --max-num-seqs 1 --gpu-memory-utilization 0.95"
    )
    assert dict(line.why)["--max-model-len 32768"] == "as asked for with --context"


def test_vllm_of_many_requests() -> None:
    found = asked(["8x H100 SXM"], "llama-3.3-70b", "fp8", "vllm")
    load = Load(64, 2048, 256)
    served = serve(found.choice.members, found.model, load, engine="vllm", links=found.links)
    layout = next(each for best_at, each in served.layouts if "throughput" in best_at)
    (line,) = launch(found, "vllm", layout=layout, load=load)
    assert "--data-parallel-size 2" in line.text
    assert "--max-model-len 2304 --max-num-seqs 32" in line.text


VLLM = 'vllm serve "$MODEL" --tensor-parallel-size {} --pipeline-parallel-size {}'
LLAMA = 'llama-server -m "$MODEL" -ngl {} -c {} -np {}'
MLX = 'mlx_lm.server --model "$MODEL" --decode-concurrency {}'
RING = "mlx.launch --backend {} --hostfile hosts.json "
EXO = (
    'POST /place_instance {{"model_id": "$MODEL", "sharding": "{}", "instance_meta": "{}",'
    ' "min_nodes": {}}}'
)


@pytest.mark.parametrize(
    ("have", "model", "bits", "engine", "link", "cache", "texts"),
    [
        (
            "2x RTX 4090 + PC 64GB", "llama-3.3-70b", "q4", "llama.cpp", "1gbe", 16,
            [LLAMA.format(81, 8192, 1) + " -ts 24,24 --fit off"],
        ),
        (
            "RTX 4090", "llama-3.1-8b", "q4", "llama.cpp", "1gbe", 8.5,
            [LLAMA.format(33, 8192, 1) + " -ctk q8_0 -ctv q8_0 --fit off"],
        ),
        (
            "RTX 4090", "llama-3.1-8b", "q4", "llama.cpp", "1gbe", 5.5,
            [LLAMA.format(33, 8192, 1) + " -ctk q5_0 -ctv q5_0 --fit off"],
        ),
        (
            "RTX 4090", "llama-3.1-8b", "q4", "llama.cpp", "1gbe", 4.5,
            [LLAMA.format(33, 8192, 1) + " -ctk q4_0 -ctv q4_0 --fit off"],
        ),
        (
            "Mac mini M4 Pro 64GB", "llama-3.1-8b", "4bit", "mlx", "1gbe", 4,
            [MLX.format(1) + " --kv-bits 4"],
        ),
        (
            "RTX 4090", "llama-3.1-8b", "fp8", "vllm", "1gbe", 8,
            [
                VLLM.format(1, 1) + " --max-model-len 8192 --max-num-seqs 1"
                " --gpu-memory-utilization 0.95 --kv-cache-dtype fp8"
            ],
        ),
        (
            "2x DGX H100", "llama-3.1-405b", "bf16", "vllm", "10gbe", 16,
            [
                VLLM.format(8, 2) + " --max-model-len 8192 --max-num-seqs 1"
                " --gpu-memory-utilization 0.95 --distributed-executor-backend ray",
                "ray start --address=dgx-h100-2:6379",
            ],
        ),
        ("Mac mini M4 Pro 64GB", "llama-3.1-8b", "4bit", "mlx", "1gbe", 16, [MLX.format(1)]),
        (
            "Mac mini M4 Pro 64GB", "llama-3.1-8b", "4bit", "mlx", "1gbe", 8,
            [MLX.format(1) + " --kv-bits 8"],
        ),
        (
            "2x Mac Studio M3 Ultra 512GB", "deepseek-v3.1", "4bit", "mlx", "rdma", 16,
            [RING.format("jaccl") + MLX.format(1)],
        ),
        (
            "2x Mac mini M4 Pro 64GB", "llama-3.3-70b", "8bit", "mlx", "thunderbolt5", 16,
            [RING.format("ring") + MLX.format(1) + " --pipeline"],
        ),
        (
            "2x Mac Studio M3 Ultra 512GB", "deepseek-v3.1", "4bit", "exo", "rdma", 16,
            [EXO.format("Tensor", "MlxJaccl", 2)],
        ),
        (
            "2x Mac mini M4 Pro 64GB", "llama-3.3-70b", "8bit", "exo", "1gbe", 16,
            [EXO.format("Pipeline", "MlxRing", 2)],
        ),
        (
            "Mac mini M4 Pro 64GB", "gemma-4-31b", "4bit", "exo", "rdma", 16,
            [EXO.format("Pipeline", "MlxRing", 1)],
        ),
    ],
)  # fmt: skip
def test_the_lines_of_a_plan(
    have: str, model: str, bits: str, engine: str, link: str, cache: float, texts: list[str]
) -> None:
    found = asked([have], model, bits, engine, link, context="8k", kv_bits=cache)
    assert [line.text for line in launch(found, engine)] == texts


@pytest.mark.parametrize(
    ("have", "model", "bits", "engine", "load", "texts"),
    [
        (
            "2x DGX H100", "llama-3.3-70b", "fp8", "vllm", Load(64, 2048, 256),
            [
                VLLM.format(4, 1) + " --data-parallel-size 4 --max-model-len 2304 --max-num-seqs 16"
                " --gpu-memory-utilization 0.95 --distributed-executor-backend ray",
                "ray start --address=dgx-h100-1:6379",
            ],
        ),
        (
            "RTX 4090", "llama-3.1-8b", "q4", "llama.cpp", Load(8, 512, 256),
            [LLAMA.format(33, 8 * 768, 8) + " --fit off"],
        ),
        (
            "2x Mac mini M4 Pro 64GB", "llama-3.3-70b", "8bit", "mlx", Load(8, 512, 256),
            [RING.format("ring") + MLX.format(8) + " --pipeline"],
        ),
    ],
)  # fmt: skip
def test_the_lines_of_a_layout(
    have: str, model: str, bits: str, engine: str, load: Load, texts: list[str]
) -> None:
    found = asked([have], model, bits, engine)
    served = serve(found.choice.members, found.model, load, engine=engine, links=found.links)
    lines = launch(found, engine, layout=served.layouts[0][1], load=load)
    assert [line.text for line in lines] == texts
    assert len({line.node for line in lines}) == len(lines)


def laid_out(have: str, model: str, bits: str, engine: str, **layout: Any) -> tuple[Any, Any]:
    """Return an answer, and the first layout of 64 requests with other figures."""
    found = asked([have], model, bits, engine)
    load = Load(64, 512, 256)
    served = serve(found.choice.members, found.model, load, engine=engine, links=found.links)
    return found, replace(served.layouts[0][1], **layout)


@pytest.mark.parametrize(
    ("have", "model", "bits", "engine", "layout", "expected"),
    [
        (
            "DGX H200", "deepseek-v3", "fp8", "vllm", {"tensor": 4, "stages": 2, "expert": True},
            VLLM.format(4, 2) + " --enable-expert-parallel --max-model-len",
        ),
        (
            "DGX H200", "deepseek-v3", "fp8", "vllm", {"tensor": 8, "stages": 1, "replicas": 1},
            VLLM.format(8, 1) + " --max-model-len",
        ),
        (
            "2x Mac mini M4 Pro 64GB", "llama-3.1-8b", "4bit", "mlx",
            {"tensor": 2, "devices": 2, "replicas": 1, "running": 3},
            RING.format("ring") + MLX.format(3),
        ),
        (
            "2x Mac mini M4 Pro 64GB", "llama-3.1-8b", "4bit", "mlx",
            {"tensor": 1, "devices": 1, "replicas": 1, "running": 3},
            MLX.format(3),
        ),
        (
            "Mac Studio M3 Ultra 512GB", "llama-3.1-8b", "4bit", "exo",
            {"tensor": 4, "devices": 4}, EXO.format("Tensor", "MlxRing", 4),
        ),
        (  # latent attention has no KV heads to share
            "Mac Studio M3 Ultra 512GB", "deepseek-v3.1", "4bit", "exo",
            {"tensor": 3, "devices": 3}, EXO.format("Tensor", "MlxRing", 3),
        ),
        (
            "Mac Studio M3 Ultra 512GB", "llama-3.1-8b", "4bit", "exo",
            {"tensor": 1, "devices": 3}, EXO.format("Pipeline", "MlxRing", 3),
        ),
    ],
)  # fmt: skip
def test_a_layout_is_what_starts(
    have: str, model: str, bits: str, engine: str, layout: dict[str, Any], expected: str
) -> None:
    found, own = laid_out(have, model, bits, engine, **layout)
    line = launch(found, engine, layout=own)[0]
    assert line.text.startswith(expected)
    assert "--pipeline" not in line.text.split()
    reasons = " ".join(f"{figure} {why}" for figure, why in line.why)
    assert ("--enable-expert-parallel experts are" in reasons) == own.expert
    assert "on each copy" not in reasons
    if engine == "exo":
        split = "nodes split each layer" if own.tensor > 1 else "nodes follow each other"
        assert dict(line.why)["sharding"] == split
        assert dict(line.why)["instance_meta"] == "sockets join them"


@pytest.mark.parametrize(
    ("have", "bits", "engine", "layout", "sentence"),
    [
        ("RTX 4090", "q4", "llama.cpp", {"tensor": 2},
         "one llama-server runs one copy, and splits no layers: not tensor 2"),
        ("RTX 4090", "q4", "llama.cpp", {"replicas": 2},
         "one llama-server runs one copy, and splits no layers: not 2 replicas"),
        ("Mac mini M4 Pro 64GB", "4bit", "mlx", {"replicas": 2},
         "one mlx_lm.server runs one copy: not 2 replicas"),
        ("Mac mini M4 Pro 64GB", "4bit", "exo", {"replicas": 2},
         "one instance of exo is one copy: not 2 replicas"),
        ("Mac mini M4 Pro 64GB", "4bit", "exo", {"tensor": 3, "devices": 3},
         "exo splits layers over as many nodes as divide the KV heads: not 3"),
        # 8 KV heads, and a hidden size of 4096.
        ("Mac mini M4 Pro 64GB", "4bit", "exo", {"tensor": 16, "devices": 16},
         "exo splits layers over as many nodes as divide the KV heads: not 16"),
    ],
)  # fmt: skip
def test_a_layout_that_an_engine_does_not_have_is_refused(
    have: str, bits: str, engine: str, layout: dict[str, Any], sentence: str
) -> None:
    found, own = laid_out(have, "llama-3.1-8b", bits, engine, **layout)
    with pytest.raises(ClusterError) as error:
        launch(found, engine, layout=own)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("pools", "layers", "shares"),
    [
        ((24,), 80, [80]),
        ((24, 24), 80, [40, 40]),
        ((24, 8), 80, [60, 20]),
        ((24, 24), 2, [1, 1]),
        ((24, 24), 1, [1]),
    ],
)
def test_layers_of_a_nodes_devices(pools: tuple[int, ...], layers: int, shares: list[int]) -> None:
    assert _of_devices(member(pools), layers) == shares


@pytest.mark.parametrize(
    ("pools", "memory", "reserve", "share"),
    [
        ((24, 24), 48, 0.05, 0.95),
        ((24, 12), 48, 0.05, 0.475),  # of the GPU with the least
        ((24, 24), 48, 0.0, 0.99),
        ((24, 24), 96, 0.0, 0.5),
        ((24,), None, 0.2, 0.8),
    ],
)
def test_the_share_of_a_gpus_memory(
    pools: tuple[int, ...], memory: int | None, reserve: float, share: float
) -> None:
    found, why = _utilisation(member(pools, memory), reserve)
    assert found == pytest.approx(share)
    assert why == f"what is free now, less {reserve:.0%}, of all memory of a GPU"


def member(pools: tuple[int, ...], memory: int | None = None) -> Member:
    return Member("a", memory, sum(pools), pools, equal=len(pools))


def test_the_longest_context_is_halved_to_256_tokens() -> None:
    unknown = Model(1 << 30, 32, 4.5)
    assert _longest([member((1 << 40,))], unknown, 0.0) == (
        4096, "nobody asked for a context, and the model's cache is not known"
    )  # fmt: skip
    # 16 KiB a token and layer of 2 KV heads of 2,048 in 16 bits: 32 GiB are 65,536 tokens.
    model = Model(32 << 20, 32, 8.0, kv_heads=2, head_dim=2048, longest=None)
    room = model.weight_bytes + (65_536 * 32 * 16 << 10)
    tokens, why = _longest([member((room + (1 << 30),))], model, 0.0)
    assert why == "the longest that the memory holds"
    assert tokens % 256 == 0
    assert 65_536 - 256 <= tokens <= 65_536 + 2048 + 256
    assert _longest([member((1 << 60,))], model, 0.0) == (
        1 << 20, "the longest that the model was made for"
    )  # fmt: skip


def planned(*layers: int, seconds: float | None = 1.0, fits: bool = True) -> Any:
    stages = [SimpleNamespace(node="abc"[at], layers=count) for at, count in enumerate(layers)]
    return SimpleNamespace(stages=stages, seconds_per_token=seconds, fits=fits)


@pytest.mark.parametrize(
    ("plans", "chosen"),
    [
        ([planned(40), planned(20, 20, seconds=0.5)], 1),
        ([planned(21, 20, seconds=2.0), planned(22, 20)], 0),
        ([planned(20, 20, fits=False), planned(20, 20, seconds=3.0)], 1),
        ([planned(20, 20, seconds=None), planned(20, 20, seconds=0.0), planned(20, 20)], 2),
        ([planned(20, 20, seconds=0.25), planned(20, 20, seconds=0.5)], 0),
    ],
)
def test_engines_that_give_nodes_as_many_layers_take_the_fastest_such_plan(
    plans: list[Any], chosen: int
) -> None:
    found: Any = SimpleNamespace(comparison=SimpleNamespace(plans=plans, best=plans[0]))
    assert _even(found, "mlx") is plans[chosen]


def test_without_such_a_plan_the_best_ones_layers_are_named() -> None:
    best = planned(22, 20)
    found: Any = SimpleNamespace(comparison=SimpleNamespace(plans=[best], best=best))
    with pytest.raises(ClusterError) as error:
        _even(found, "vllm")
    assert str(error.value) == (
        "vllm gives every node as many layers, and no plan does: a 22, b 20;"
        " --layers-on sets them by hand"
    )


def test_why_each_figure_is_what_it_is() -> None:
    found = asked(["RTX 4090", "RTX 3090"], "llama-3.3-70b", "q4", "llama.cpp", context="8k")
    remote, own = launch(found, "llama.cpp")
    assert remote.why == (("-p 50052", "rpc-server's usual port, as --rpc names it"),)
    assert own.why == (
        ("-ngl 81", "all layers and the output head on the devices"),
        ("-c 8192", "1 x 8192 tokens: as asked for with --context"),
        ("-np 1", "a plan of one request"),
        ("--rpc geforce-rtx-3090:50052", "the other nodes, where rpc-server runs"),
        ("-ts 38,42", "layers of the plan: geforce-rtx-4090 42, geforce-rtx-3090 38"),
        ("--fit off", "else llama.cpp changes what the plan says"),
    )
    macs = asked(["2x Mac Studio M3 Ultra 512GB"], "deepseek-v3.1", "4bit", "mlx", "rdma")
    (line,) = launch(macs, "mlx")
    hosts = "mac-studio-m3-ultra-1,mac-studio-m3-ultra-2"
    assert line.why == (
        ("--backend jaccl", "RDMA"),
        ("--hostfile hosts.json", f"written by mlx.distributed_config --hosts {hosts}"),
        ("--decode-concurrency 1", "a plan of one request"),
    )


def test_a_context_that_nobody_asks_for_is_the_longest_that_fits() -> None:
    (line,) = launch(asked(["RTX 4090"], "llama-3.1-8b", "q8", "llama.cpp"), "llama.cpp")
    reason = next(why for figure, why in line.why if figure.startswith("-c "))
    assert reason.endswith("the longest that the memory holds")
    tokens = int(line.text.split(" -c ")[1].split()[0])
    assert 110_000 < tokens < 131_072


def test_llama_cpp_of_two_computers_shares_layers_as_planned() -> None:
    remote, own = launch(
        asked(["RTX 4090", "RTX 3090"], "llama-3.3-70b", "q4", "llama.cpp", context="8k"),
        "llama.cpp",
    )
    assert (remote.node, own.node) == ("geforce-rtx-3090", "geforce-rtx-4090")
    assert remote.text == "rpc-server -H 0.0.0.0 -p 50052"
    assert "--rpc geforce-rtx-3090:50052 -ts 38,42" in own.text
    # Each card has a share of its own.
    found = asked(["2x RTX 4090", "RTX 3090"], "llama-3.3-70b", "q6", "llama.cpp", context="8k")
    own = launch(found, "llama.cpp")[-1]
    assert "--rpc geforce-rtx-3090:50052 -ts 16,32,32 " in own.text


@pytest.mark.parametrize(
    ("have", "model", "bits", "engine", "form", "sentence"),
    [
        ("DGX H100", "llama-3.3-70b", "fp8", "vllm", "llama.cpp", "llama.cpp does not run fp8"),
        ("Mac mini M4 Pro 64GB", "qwen3-8b", "4bit", "mlx", "vllm", "vllm runs on GPUs of nvidia"),
        ("RTX 4090", "llama-3.1-405b", "q4", "llama.cpp", "llama.cpp", "there is no plan to start"),
        ("RTX 4090", "llama-3.1-8b", "q4", "llama.cpp", "ollama", "there is no line for 'ollama'"),
        ("2x Mac mini M4 Pro 64GB", "gemma-4-31b", "bf16", "exo", "exo",
         "exo refuses pipelines of Gemma 4"),
        ("Mac mini M4 Pro 48GB + Mac Studio M3 Ultra 96GB", "llama-3.3-70b", "8.5", "mlx", "mlx",
         "mlx gives every node as many layers, and no plan does"),
    ],
)  # fmt: skip
def test_what_an_engine_cannot_start_is_refused(
    have: str, model: str, bits: str, engine: str, form: str, sentence: str
) -> None:
    with pytest.raises(ClusterError, match=sentence):
        launch(asked([have], model, bits, engine), form)


@pytest.mark.parametrize(
    ("have", "bits", "engine", "cache", "sentence"),
    [
        ("RTX 4090", "q4", "llama.cpp", 4, "llama.cpp keeps no cache of 4 bits"),
        ("Mac mini M4 Pro 64GB", "4bit", "mlx", 5.5, "mlx-lm keeps no cache of 5.5 bits; 4 and 8"),
    ],
)
def test_a_cache_that_an_engine_does_not_keep_is_refused(
    have: str, bits: str, engine: str, cache: float, sentence: str
) -> None:
    found = asked([have], "llama-3.1-8b", bits, engine, context="8k", kv_bits=cache)
    with pytest.raises(ClusterError) as error:
        launch(found, engine)
    assert str(error.value) == sentence


def test_the_command_prints_the_line_and_its_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    start = ["partition", "--have", "8x H100 SXM", "--model", "llama-3.3-70b", "--bits", "fp8"]
    assert main([*start, "--as", "vllm"]) == 0
    printed = capsys.readouterr().out
    assert '  vllm serve "$MODEL" --tensor-parallel-size 8' in printed
    assert "--tensor-parallel-size 8: GPUs that split each layer" in printed
    assert main([*start, "--as", "vllm", "--json"]) == 0
    ((line),) = json.loads(capsys.readouterr().out)["launch"]
    assert line["node"] == "8x-h100-80gb-hbm3"
    assert main([*start, "--as", "sglang"]) == 2
    assert "there is no line for 'sglang'; there are vllm, llama.cpp" in capsys.readouterr().err
