"""Which engine runs a model where none is named, and what an engine or a chip cannot run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from model_files import gguf

from probe_cluster import ClusterError, Links, Member, member
from probe_cluster.planning.answer import answer, answer_many
from probe_cluster.planning.engines import ENGINES, engine_name
from probe_cluster.planning.fitting import RAISED
from probe_cluster.planning.links import KINDS
from probe_cluster.planning.model_spec import parse_model
from probe_cluster.planning.precision import FORMATS, PRECISIONS, bits_per_weight, precision_name
from probe_cluster.planning.reading import read_members
from probe_cluster.planning.serving import Load
from probe_core.cli import main

GIB = 1 << 30
Home = dict[str, dict[str, Any]]


def server(
    chip: str, vendor: str, arch: str, count: int = 8, gib: int = 141, os: str = "linux"
) -> Member:
    """A server of equal GPUs; 4.8 TB/s each."""
    memory = {"kind": "dedicated", "total": gib * GIB, "free": gib * GIB}
    devices = [
        {"id": f"pci:{at}", "kind": "gpu", "vendor": vendor, "name": chip, "arch": arch,
         "memory": memory, "bandwidth": 4.8e12, "fp16": 989.0, "readiness": {"state": "ready"}}
        for at in range(count)
    ]  # fmt: skip
    node = {"os": os, "memory": {"total": 1024 * GIB, "available": 1000 * GIB, "limit": None}}
    return member("s", {"schema": 1, "node": node, "devices": devices})


H200 = server("NVIDIA H200", "nvidia", "hopper")
MI300X = server("AMD Instinct MI300X", "amd", "cdna3", gib=192)
V100 = server("Tesla V100-SXM2-32GB", "nvidia", "volta", gib=32)
RTX8000 = server("Quadro RTX 8000", "nvidia", "turing", gib=48)
WINDOWS = server("NVIDIA A100-SXM4-80GB", "nvidia", "ampere", 1, 80, "windows")
MI50 = server("AMD Radeon Instinct MI50", "amd", "gcn51", gib=32)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("llama.cpp", "llama.cpp"), ("Llama-CPP", "llama.cpp"), ("llamacpp", "llama.cpp"),
        ("ollama", "ollama"), ("LM Studio", "lm-studio"), ("lmstudio", "lm-studio"),
        ("exo", "exo"), ("sglang", "sglang"), ("TensorRT-LLM", "tensorrt-llm"),
        ("trt-llm", "tensorrt-llm"), ("vLLM", "vllm"), ("mlx-lm", "mlx"), ("none", "none"),
    ],
)  # fmt: skip
def test_names_of_engines_as_people_write_them(text: str, name: str) -> None:
    assert engine_name(text) == name


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("distributed-llama", "'distributed-llama' is not planned for: it splits .* is llama.cpp"),
        ("exllamav2", "no published speeds of it are in the table; the nearest engine is vllm"),
        ("vlm", "'vlm' is no engine: the nearest is vllm; there are auto, llama.cpp"),
        ("zzz", r"'zzz' is no engine: there are auto, llama\.cpp, ollama"),
    ],
)
def test_what_is_no_engine_is_refused_with_the_nearest(text: str, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        engine_name(text)


def test_hbm_servers_run_vllm_and_gguf_files_llama_cpp() -> None:
    found = answer([H200], {"model": "llama-3.1-405b", "bits": "fp8"})
    assert (found.choice.engine, found.choice.reason) == ("vllm", "it is usual on GPUs with HBM")
    assert found.comparison.best is not None
    # Published: 37.4 tokens/s (recalled) and 49.6 of eight H200; llama.cpp's figures gave 5.6.
    assert found.comparison.best.tokens_per_second == pytest.approx(33.64, abs=0.1)
    gguf = answer([H200], {"model": "llama-3.1-70b", "bits": "q4_k_m"})
    assert (gguf.choice.engine, gguf.choice.reason) == ("llama.cpp", "q4_k_m is a GGUF file")


@pytest.mark.parametrize(
    ("machines", "bits", "requests", "engine"),
    [
        ("4x L40S", None, 2, "vllm"),
        ("4x L40S", None, 1, "llama.cpp"),
        ("4x L40S", "q4_k_m", 32, "llama.cpp"),  # asked for as a GGUF file
        ("2x Tesla P40", None, 32, "llama.cpp"),  # vLLM begins with Turing
        ("Mac Studio M3 Ultra 96GB", None, 32, "mlx"),
    ],
)
def test_many_requests_take_vllm_where_it_gives_more(
    machines: str, bits: str | None, requests: int, engine: str
) -> None:
    members = read_members([], have=[machines])
    asked = {"model": "llama-3.1-8b", "bits": bits}
    found, served = answer_many(members, asked, Load(requests, 1024))
    assert found.choice.engine == engine
    named, alone = answer_many(members, asked, Load(requests, 1024), engine=engine)
    assert (named.choice.reason, alone) == ("as asked for", served)


def test_macs_run_mlx_and_exo_where_thunderbolt_joins_them(home: Home) -> None:
    asked = {"model": "llama-3.1-8b", "bits": "4bit"}
    one = answer([member("a", home["studio"])], asked)
    assert (one.choice.engine, one.choice.reason) == ("mlx", "it is made for Apple silicon")
    macs = [member(name, home["studio"]) for name in ("a", "b")]
    slow = answer(macs, asked)
    fast = answer(macs, asked, links=Links(default=KINDS["thunderbolt5"]))
    assert (slow.choice.engine, fast.choice.engine) == ("mlx", "exo")
    assert fast.choice.reason == "it runs MLX on Macs that thunderbolt5 joins"


def test_of_mixed_nodes_the_fastest_engine_is_taken_and_a_node_more_is_never_worse(
    home: Home,
) -> None:
    asked = {"model": "llama-3.1-70b", "bits": "4.5"}
    studio, desk, nas = (member(name, home[name]) for name in ("studio", "desk", "nas"))
    alone = answer([studio], asked)
    both = answer([studio, desk], asked)
    assert alone.seconds < float("inf")
    assert both.seconds <= alone.seconds
    assert answer([studio, desk, nas], asked).seconds <= both.seconds
    # The 4090 is faster than the Mac, and holds most of the layers.
    assert both.choice.engine == "llama.cpp"
    slow = answer([studio, desk], {"model": "llama-3.1-70b", "bits": "8.5"})
    assert slow.seconds <= answer([studio], {"model": "llama-3.1-70b", "bits": "8.5"}).seconds


@pytest.mark.parametrize(
    ("node", "engine", "bits", "sentence"),
    [
        (
            H200,
            "vllm",
            "4bit_gs32",
            "vllm does not run 4bit_gs32; lm-studio, mlx, exo, exo-ring do",
        ),
        (H200, "llama.cpp", "awq", "llama.cpp does not run awq; vllm, sglang, tensorrt-llm do"),
        (
            H200,
            "sglang",
            "q4_k_m",
            "sglang does not run q4_k_m; llama.cpp, ollama, lm-studio, vllm do",
        ),
        (MI300X, "vllm", "awq", "vllm does not run awq on GPUs of AMD"),
        (MI300X, "vllm", "nvfp4", "vllm does not run nvfp4 on GPUs of AMD"),
        (MI300X, "tensorrt-llm", "fp8", "tensorrt-llm runs on GPUs of nvidia, not on AMD Instinct"),
        (V100, "vllm", "fp16", "vllm runs on GPUs of NVIDIA from Turing on, and Tesla V100"),
        (V100, "mlx", "4bit", "mlx runs on GPUs of NVIDIA from Turing on, and Tesla V100"),
        (RTX8000, "vllm", "nvfp4", "vllm runs nvfp4 from Ampere on; Quadro RTX 8000 is Turing"),
        (
            MI50,
            "sglang",
            "fp16",
            "sglang runs on GPUs of AMD from MI100 and RX 7000 on",
        ),
        (MI300X, "mlx", "4bit", "mlx runs on GPUs of apple, nvidia, not on AMD Instinct"),
        *(
            (WINDOWS, engine, "fp16", f"{engine} does not run on Windows: run it in WSL, or --en")
            for engine in ("vllm", "sglang", "tensorrt-llm")
        ),
        (WINDOWS, "vllm", "awq", "vllm does not run on Windows: run it in WSL$"),
        *(
            (H200, engine, "4bit", f"{engine} uses one GPU of a computer, and 8 count on ")
            for engine in ("mlx", "exo", "exo-ring")
        ),
    ],
)
def test_what_an_engine_or_a_chip_cannot_run_is_refused(
    node: Member, engine: str, bits: str, sentence: str
) -> None:
    with pytest.raises(ClusterError, match=sentence):
        answer([node], {"model": "llama-3.1-8b", "bits": bits}, engine=engine)


def test_the_usual_engine_of_a_gpu_with_hbm_on_windows_is_llama_cpp() -> None:
    found = answer([WINDOWS], {"model": "llama-3.1-8b", "bits": None})
    assert (found.choice.engine, found.choice.reason) == ("llama.cpp", "it runs on any device")


def test_ollama_uses_one_computer(home: Home) -> None:
    nodes = [member(name, home["desk"]) for name in ("a", "b")]
    with pytest.raises(ClusterError, match="ollama runs a model on one computer, and there are 2"):
        answer(nodes, {"model": "llama-3.1-8b", "bits": "q4"}, engine="ollama")


def test_published_weights_that_an_engine_does_not_read_are_told(home: Home) -> None:
    found = answer([member("a", home["studio"])], {"model": "minimax-m2", "bits": None})
    (note,) = found.notes
    assert note == (
        "the weights are published as fp8, which mlx does not read:"
        " give --bits of the file that you have"
    )


def test_gpt_oss_keeps_attention_as_the_engines_files_do(home: Home) -> None:
    def bits(node: Member, engine: str) -> float:
        return answer([node], {"model": "gpt-oss-120b"}, engine=engine).model.bits

    # 16-bit attention as published, 8 in GGUF and MLX files.
    assert bits(H200, "vllm") == pytest.approx(4.46, abs=0.01)
    assert bits(H200, "llama.cpp") == pytest.approx(4.33, abs=0.01)


@pytest.mark.parametrize(
    ("text", "name", "bits"),
    [
        ("int8", "int8", 8.004), ("q4", "q4_k_m", 4.89), ("Q4_K_M", "q4_k_m", 4.89),
        ("iq2_xxs", "iq2_xxs", 2.38), ("w4a16", "gptq", 4.16), ("bnb-4bit", "bnb_4bit", 4.5),
        ("nvfp4", "nvfp4", 4.5), ("mxfp4", "mxfp4", 4.25), ("q8", "q8_0", 8.5),
        ("4-bit", "4bit", 4.5), ("8 bits", "8bit", 8.5), ("UD-Q4_K_XL", "q4_k_xl", 4.9),
        ("w8a8", "int8", 8.004),
    ],
)  # fmt: skip
def test_bits_as_people_write_them(text: str, name: str, bits: float) -> None:
    assert precision_name(text) == name
    assert PRECISIONS[name].experts == bits
    assert parse_model({"model": "llama-3.1-8b", "bits": text}).quant == name


def test_bits_are_those_of_the_engines_own_files() -> None:
    asked = {"model": "llama-3.1-8b", "bits": "q4"}
    macs = read_members([], have=["Mac Studio M3 Ultra 96GB"])
    engines = ("mlx", "exo", "llama.cpp")
    quants = [answer(macs, asked, engine=name).model.quant for name in engines]
    assert quants == ["4bit", "4bit", "q4_k_m"]


def test_macs_that_would_hold_it_with_the_limit_raised_are_told_so() -> None:
    macs = read_members([], have=["Mac Studio M3 Ultra 512GB"])
    asked = {"model": "deepseek-v3", "bits": "q4_k_m"}
    assert answer(macs, asked).notes == (RAISED,)
    assert answer(macs, {**asked, "bits": "q6_k"}).notes == ()
    assert answer(macs, {**asked, "bits": "q3_k_m"}).notes == ()


def test_bits_that_nobody_knows_are_refused_with_the_nearest() -> None:
    assert bits_per_weight("4.0bpw") == parse_model({"model": "8b", "bits": "4.0 bpw"}).bits == 4.0
    with pytest.raises(ClusterError, match="bits is 'q4km', which is no number; perhaps q4_k_m or"):
        parse_model({"model": "8b", "bits": "q4km"})


def test_every_kind_of_file_has_an_engine() -> None:
    read = {form for engine in ENGINES.values() for form in engine.forms}
    assert read == set(FORMATS.values())


@pytest.mark.parametrize(
    ("model", "longest"),
    [
        ("gpt-oss-120b", 131_072), ("llama-3-8b", 8192), ("llama-3.1-8b", 131_072),
        ("Qwen/Qwen3-4B-Instruct-2507", 262_144), ("qwen3-4b", 40_960), ("13b", None),
    ],
)  # fmt: skip
def test_the_longest_context_is_the_models(model: str, longest: int | None) -> None:
    assert parse_model({"model": model}).longest == longest


def test_a_context_beyond_the_models_is_refused() -> None:
    sentence = r"the context is 262144 tokens; llama-3\.1-8b was made for 131072 at most"
    with pytest.raises(ClusterError, match=sentence):
        parse_model({"model": "llama-3.1-8b", "context": "256k"})


def test_a_gguf_says_its_longest_context_and_runs_by_llama_cpp(tmp_path: Path) -> None:
    keys = {
        "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
        "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
        "llama.context_length": 4096,
    }  # fmt: skip
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(keys, [("blk.0.ffn_up.weight", [64, 64], 0)]) + bytes(16384))
    model = parse_model({"model": str(path)})
    assert (model.longest, model.form) == (4096, "gguf")
    found = answer([H200], {"model": str(path)})
    assert (found.choice.engine, found.choice.reason) == ("llama.cpp", "the file is a GGUF file")
    with pytest.raises(ClusterError, match=r"mlx does not run gguf files; llama\.cpp, ollama"):
        answer([H200], {"model": str(path)}, engine="mlx")


def test_the_prompts_of_a_step_of_each_device() -> None:
    assert [ENGINES["llama.cpp"].chunk(size << 30, None) for size in (0, 1, 80)] == [2048] * 3
    vllm = ENGINES["vllm"]
    assert vllm.chunk(80 << 30, "H100 SXM") > vllm.chunk(80 << 30, "A100 SXM4 80GB")


def test_yarn_in_a_config_json_stretches_the_context(tmp_path: Path) -> None:
    config = {
        "model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 36, "vocab_size": 151936,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 9728, "max_position_embeddings": 40960,
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert parse_model({"model": str(path)}).longest == 40_960
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    path.write_text(json.dumps(config | {"rope_scaling": yarn}))
    assert parse_model({"model": str(path), "context": "128k"}).longest == 131_072


def test_a_size_alone_has_the_usual_shape(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = parse_model({"model": "13b", "bits": 8})
    assert (model.params, model.layers, model.hidden) == (13_000_000_000, 40, 5120)
    assert model.source == "the usual shape of 13b: that of llama-2-13b"
    path = tmp_path / "desk.json"
    path.write_text(json.dumps(home["desk"]))
    assert main(["fit", "13b", str(path), "--bits", "8"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("desk: yes: it needs 12.1 GiB and")
    assert "the usual shape of 13b: that of llama-2-13b" in printed
    # Between Llama 3.1's sizes, far from each.
    with pytest.raises(ClusterError, match="the layers of '200b' are not known; give them"):
        parse_model({"model": "200b"})


def test_the_document_and_the_page_say_which_engine(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "studio.json"
    path.write_text(json.dumps(home["studio"]))
    start = ["partition", str(path), "--model", "llama-3.1-8b", "--bits", "4bit"]
    assert main([*start, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["engine"] == {
        "name": "mlx", "reason": "it is made for Apple silicon", "nodes": ["studio"], "notes": [],
    }  # fmt: skip
    assert (document["model"]["quant"], document["model"]["longest_context"]) == ("4bit", 131_072)
    assert main(start) == 0
    assert "engine mlx: it is made for Apple silicon" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("engine", "gib", "chip", "tokens"),
    [
        ("vllm", 80, "NVIDIA H100 80GB HBM3", 8192),
        ("vllm", 80, None, 8192),
        ("vllm", 70, None, 8192),
        ("vllm", 69, None, 2048),
        ("vllm", 80, "NVIDIA A100-SXM4-80GB", 2048),
        ("sglang", 80, "NVIDIA A100-SXM4-80GB", 8192),
        ("sglang", 156, None, 16384),
        ("sglang", 155, None, 8192),
        ("sglang", 57, None, 4096),
        ("sglang", 34, None, 4096),
        ("sglang", 33, None, 2048),
    ],
)
def test_tokens_of_a_prompt_in_a_step(engine: str, gib: int, chip: str | None, tokens: int) -> None:
    assert ENGINES[engine].chunk(gib << 30, chip) == tokens
