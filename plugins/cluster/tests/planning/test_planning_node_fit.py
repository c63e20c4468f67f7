"""`probe fit`: one device, several, host memory besides, and what would fit."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probe_cluster import ClusterError
from probe_cluster.planning.fitting import node_fit, raised_room
from probe_cluster.planning.members import capacity
from probe_cluster.planning.model_spec import parse_model
from probe_core.cli import main

GIB = 1 << 30
Home = dict[str, dict[str, Any]]


def test_a_model_that_fits_on_one_gpu_says_by_how_much(home: Home) -> None:
    model = parse_model({"model": "llama-3.1-8b", "bits": 4.5, "context": 8192})
    answer = node_fit(home["desk"], model, reserve=0.0)
    assert (answer.answer, answer.bits) == ("yes", None)
    assert answer.need == 8_030_261_248 * 4.5 / 8 + GIB
    assert answer.spare == 25_200_000_000 - answer.need
    assert [(device.ok, device.layers) for device in answer.devices] == [(True, 32)]
    # What the weights leave would hold 157,798 tokens.
    assert (answer.context, answer.context_by) == (131_072, "model")
    # 128 KiB a token in what the weights leave, by whole layers
    wide = node_fit(home["desk"], parse_model({"model": "llama-3.1-8b", "bits": 8.5}), reserve=0.0)
    weights = 8_030_261_248 * 8.5 / 8
    assert wide.context == pytest.approx((25_200_000_000 - weights) / 131_072, abs=300)
    assert wide.context_by == "memory"


def test_two_gpus_hold_what_neither_holds(home: Home) -> None:
    model = parse_model({"model": "llama-3.1-70b", "bits": 4.5})
    answer = node_fit(home["twin"], model)
    assert answer.answer == "yes"
    assert [(device.ok, device.layers) for device in answer.devices] == [(False, 48), (False, 48)]
    assert (answer.device_layers, answer.host_layers) == (80, 0)


def test_each_device_of_a_node_has_its_own_room(home: Home) -> None:
    offer = capacity(home["twin"])
    model = parse_model({"model": "llama-3.1-70b", "bits": 4.5})
    answer = node_fit(home["twin"], model, reserve=0.25)
    assert [(d.device, d.name, d.free, d.room) for d in answer.devices] == [
        (device, name, pool, int(pool * 0.75))
        for device, name, pool in zip(offer.devices, (offer.chip, None), offer.pools, strict=True)
    ]


@pytest.mark.parametrize(
    ("vendor", "unified", "kind", "total", "room"),
    [
        ("apple", True, "gpu", 100, 75),
        ("apple", True, "gpu", None, 0),
        ("amd", True, "gpu", 100, 0),
        ("apple", False, "gpu", 100, 0),
        ("apple", True, "cpu", 100, 0),
    ],
)
def test_only_a_mac_s_limit_can_be_raised(
    home: Home, vendor: str, unified: bool, kind: str, total: int | None, room: int
) -> None:
    offer = replace(
        capacity(home["studio"]), vendor=vendor, unified=unified, kind=kind, ram_total=total
    )
    assert raised_room(offer, 0.25) == room


@pytest.mark.parametrize(("more", "wired"), [(0, True), (-1, False)])
def test_a_raised_limit_helps_where_the_whole_memory_would_do(
    home: Home, more: int, wired: bool
) -> None:
    model = parse_model({"model": "llama-3.1-70b", "bits": 16})
    report = copy.deepcopy(home["studio"])
    report["node"]["memory"]["total"] = model.total_bytes + more
    answer = node_fit(report, model, reserve=0.0)
    assert (answer.answer, answer.wired) == ("no", wired)


def test_layers_that_the_gpu_lacks_lie_in_host_memory(home: Home) -> None:
    model = parse_model({"model": "llama-3.1-70b", "bits": 4.5})
    answer = node_fit(home["desk"], model)
    assert (answer.answer, answer.device_layers, answer.host_layers) == ("offload", 48, 32)
    assert answer.bits == 2.6
    assert answer.sentence == (
        "yes, with offload: it needs 37.0 GiB; 48 of 80 layers fit on the devices,"
        " 32 in host memory; at 2.6 bits it would fit on the devices"
    )


def test_unified_memory_counts_once_and_offloads_nowhere(home: Home) -> None:
    model = parse_model({"model": "llama-3.1-70b"})  # 131.4 GiB
    answer = node_fit(home["studio"], model, reserve=0.0)
    assert (answer.answer, answer.host_layers) == ("no", 0)
    assert answer.spare == 110 * GIB - model.total_bytes
    assert answer.sentence == (
        "no: it needs 131.4 GiB, 21.4 GiB more than there is;"
        " at 8.5 bits it would fit on the devices"
    )


def test_a_node_of_unknown_memory_is_an_error() -> None:
    model = parse_model({"model": "llama-3.1-8b"})
    with pytest.raises(ClusterError, match="the memory of the node is unknown: the report has no"):
        node_fit({"schema": 1, "devices": [{"id": "cpu:0"}]}, model)
    with pytest.raises(ClusterError, match="the reserve is a share"):
        node_fit({"schema": 1, "devices": []}, model, reserve=1.5)


@pytest.fixture
def files(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "100")
    paths = []
    for name in ("desk", "studio", "rock"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(home[name]))
        paths.append(str(path))
    return paths


def test_the_command_answers_for_each_file(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "meta-llama/Llama-3.3-70B-Instruct", *files, "--bits", "4.5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # The answers come first, and beneath them nothing of what does not fit.
    answers = [line.split(":")[:2] for line in lines[:4] if not line.startswith(" ")]
    assert answers[0] == ["desk", " yes, with offload"]
    assert [answer[:2] for answer in answers if len(answer) == 2][-1] == ["rock", " no"]
    assert "llama-3.3-70b: 70.55 billion parameters, 80 layers, 37.0 GiB at 4.5 bits" in lines
    assert [line for line in lines if line.endswith(":")] == ["desk:", "studio:"]
    assert "longest context: 131072 tokens, as the model allows" in lines


def test_the_command_as_json_and_its_statuses(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "llama-3.1-405b", files[2], "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (node,) = document["nodes"]
    assert (document["schema"], node["node"], node["answer"]) == (1, "rock", "no")
    assert document["model"]["weight_bytes"] == 811_706_777_600
    assert node["spare"] < -750 * 10**9
    for arguments, sentence in (
        (["fit", "lama-3.1-8b", files[0]], "close: llama-3.1-8b"),
        (["fit", "llama-3.1-8b", files[0], "--bits", "q9_k"], "no number; perhaps q6_k or q5_k"),
        (["fit", "llama-3.1-8b", files[0], "--reserve", "2"], "desk: the reserve is a share"),
    ):
        assert main(arguments) == 2
        assert sentence in capsys.readouterr().err


def test_a_recorded_machine_can_be_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 14000000 kB\n")
    assert main(["fit", "llama-3.2-3b", "--bits", "4.5", "--machine", str(tmp_path)]) == 0
    assert "this computer: yes: it needs 1.7 GiB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("chip", "bits", "refused", "unplanned"),
    [
        ("TPU v5e", "q4_k_m", "llama.cpp is not known to run on TPU v5e, which is no GPU", None),
        (
            "Trainium2",
            "awq",
            None,
            "no engine that is planned for is known to run on AWS Trainium2, which is no GPU",
        ),
        (
            "TPU v5e",
            "8",
            None,
            "no engine that is planned for is known to run on TPU v5e, which is no GPU",
        ),
        (
            "RTX 2080 Ti",
            "nvfp4",
            "vllm runs nvfp4 from Ampere on; NVIDIA GeForce RTX 2080 Ti is Turing",
            None,
        ),
        # MLX reads it, although llama.cpp is usual there.
        ("RTX 3090", "4bit_gs32", None, None),
        ("RTX 3090", "q4_k_m", None, None),
    ],
)
def test_what_no_engine_runs_does_not_fit(
    chip: str,
    bits: str,
    refused: str | None,
    unplanned: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["fit", "llama-3.2-3b", "--bits", bits, "--have", chip, "--json"]
    assert main(asked) == (1 if refused else 0)
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["refused"], node["unplanned"]) == (refused, unplanned)
    assert node["answer"] == ("no" if refused else "yes")
    end = refused or unplanned or "more are free"
    assert node["sentence"].endswith(end)
    # It is a matter of engines, not of memory.
    assert node["spare"] > 0
    assert (node["bits"], node["context"] is None) == (None, bool(refused))
