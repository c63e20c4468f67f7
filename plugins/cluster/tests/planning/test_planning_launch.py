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

import pytest

from probe_cluster import ClusterError, Links
from probe_cluster.planning.answer import Answer, answer
from probe_cluster.planning.launch import Line, launch
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
    have: list[str], model: str, bits: str, engine: str, link: str = "1gbe", **more: str
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
