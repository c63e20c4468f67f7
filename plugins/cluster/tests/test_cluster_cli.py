"""`probe topology` and `probe partition`: tables, JSON, statuses, errors that name files."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from probe_core.cli import main

Home = dict[str, dict[str, Any]]
GIB = 1 << 30


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are as long as whoever runs the tests says; here they are all told the same."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def files(home: Home, tmp_path: Path) -> list[str]:
    found = []
    for name in ("desk", "studio", "rock"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(home[name]))
        found.append(str(path))
    return found


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    said = capsys.readouterr()
    return status, said.out, said.err


def test_topology_puts_all_nodes_on_one_page(
    capsys: pytest.CaptureFixture[str], files: list[str]
) -> None:
    status, out, err = run(capsys, "topology", *files, "--link", "desk:studio=thunderbolt5")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split()[:3] == ["NODE", "CHIP", "MEMORY"]
    assert lines[1].split()[:3] == ["desk", "NVIDIA", "GeForce"]
    (total,) = [line for line in lines if line.startswith("3 nodes: ")]
    assert total == (
        "3 nodes: 24.0 GiB of GPU memory, 144.0 GiB shared by CPU and GPU, 168.0 GiB together"
    )
    assert "desk – studio: thunderbolt5" in lines
    assert any(line.startswith("rock: bandwidth: the memory bandwidth of dt:") for line in lines)


def test_a_default_link_that_was_named_is_not_assumed(
    capsys: pytest.CaptureFixture[str], files: list[str]
) -> None:
    lines = run(capsys, "topology", *files)[1].splitlines()
    assert "all other connections: 1gbe (assumed)" in lines
    lines = run(capsys, "topology", *files, "--default-link", "wifi")[1].splitlines()
    assert "all other connections: wifi" in lines


def test_topology_as_json_is_old_exos(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    status, out, _ = run(capsys, "topology", "--json", "--active", "desk", *files)
    document = json.loads(out)
    assert status == 0
    assert list(document) == ["nodes", "peer_graph", "active_node_id"]
    assert document["nodes"]["desk"]["memory"] == 24564


def test_partition_compares_strategies(
    capsys: pytest.CaptureFixture[str], files: list[str]
) -> None:
    asked = ["--model", "llama-3.1-70b", "--bits", "4.5", "--bandwidth", "rock=17GB/s"]
    status, out, _ = run(capsys, "partition", *asked, *files)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == (
        "llama-3.1-70b, 80 layers: the model needs 37.0 GiB and the nodes have 140.1 GiB for it"
    )
    (chosen,) = [line for line in lines if line.startswith("* ") and "fastest" in line]
    assert chosen.endswith("desk 48, studio 32")


def test_partition_as_json(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    asked = ["--json", "--model", "8b", "--layers", "32", "--strategy", "memory"]
    status, out, _ = run(capsys, "partition", *asked, *files)
    document = json.loads(out)
    (plan,) = document["plans"]
    assert (status, document["schema"], document["best"]) == (0, 1, "memory")
    assert plan["fits"] is True
    assert [stage["node"] for stage in plan["stages"]] == ["studio", "desk", "rock"]
    assert plan["seconds_per_token"] is None
    assert "the time of node 'rock' is unknown" in plan["notes"][-1]


def test_a_model_that_does_not_fit_exits_with_one(
    capsys: pytest.CaptureFixture[str], files: list[str]
) -> None:
    status, out, _ = run(capsys, "partition", "--model", "llama-3.1-405b", *files[:1])
    assert status == 1
    assert "the model needs 756.0 GiB and the nodes have 22.3 GiB for it" in out
    assert "fastest: no plan: " in out


@pytest.mark.parametrize("command", [["fit", "llama-3.1-8b"], ["partition", "--model", "8b"]])
def test_a_gpu_that_cannot_be_used_is_named_where_the_cpu_counts(
    command: list[str], capsys: pytest.CaptureFixture[str], home: Home, tmp_path: Path
) -> None:
    report = deepcopy(home["desk"])
    for device in report["devices"]:
        if device["kind"] == "gpu":
            device["visibility"]["cuda"] = {"visible": False, "reason": "no node"}
    path = tmp_path / "desk.json"
    path.write_text(json.dumps(report))
    _, out, _ = run(capsys, *command, str(path))
    told = "desk: no GPU is counted, so the CPU is; not counted: pci:0000:01:00.0: no node"
    assert told in out.splitlines()


def test_no_time_is_called_least_where_none_is_known(
    capsys: pytest.CaptureFixture[str], home: Home, tmp_path: Path
) -> None:
    report = deepcopy(home["desk"])
    report["devices"][0]["bandwidth"] = None
    path = tmp_path / "desk.json"
    path.write_text(json.dumps(report))
    status, out, _ = run(capsys, "partition", "--model", "8b", "--bits", "q4", str(path))
    assert (status, out.splitlines()[-1]) == (0, "* the time per token is unknown")
    status, out, _ = run(capsys, "partition", "--model", "70b", str(path))
    assert (status, out.splitlines()[-1]) == (1, "no time per token is known")


def test_the_home_policy_decides_alone(
    capsys: pytest.CaptureFixture[str], files: list[str]
) -> None:
    asked = ["partition", "--model", "llama-3.1-8b", "--fit", "home"]
    assert run(capsys, *asked, *files[:1])[0] == 1  # 2 x 15 GiB is more than 24 GiB
    assert run(capsys, *asked, *files[:2])[0] == 0


def test_errors_name_the_file_or_the_node(
    capsys: pytest.CaptureFixture[str], files: list[str], tmp_path: Path
) -> None:
    old = tmp_path / "old.json"
    old.write_text('{"schema": 7, "devices": [{"id": "a"}]}')
    cases = [
        (["topology", "missing.json"], "missing.json: No such file"),
        (["topology", str(old)], "old.json is no usable report: it is no report of schema 1"),
        (["topology", files[0], files[0]], "node 'desk' is in two files"),
        (["topology", files[0], "--link", "desk:pc=wifi"], "a link names node 'pc'"),
        (["topology", files[0], "--link", "desk"], "'desk' is no link"),
        (["topology", files[0], "--link", "wifi"], "--default-link wifi is for all nodes"),
        (["topology", files[0], "--default-link", "string"], "'string' is no kind of link"),
        (
            ["topology", files[0], "--active", "pc"],
            "--active pc: there is no such node; there are desk",
        ),
        (["partition", "--model", "3t", files[0]], "--layers 80"),
        (
            ["partition", "--model", "8b", "--layers", "9", "--strategy", "fast", files[0]],
            "fastest",
        ),
        (["partition", "--model", "8b", "--layers", "9", "--fit", "x", files[0]], "is no policy"),
        (
            ["partition", "--model", "8b", "--layers", "9", "--bandwidth", "pc=1GB/s", files[0]],
            "'pc'",
        ),
        (
            ["partition", "--model", "8b", "--layers", "9", "--bandwidth", "desk=1", files[0]],
            "'1' is",
        ),
    ]
    for arguments, said in cases:
        status, out, err = run(capsys, *arguments)
        assert (status, out) == (2, "")
        assert said in err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema": 7, "devices": [{"id": "a"}]}', "(it has schema 7); write it with"),
        ('{"nodes": {}, "peer_graph": {}}', "(it is a topology of old exo)"),
        ('{"num_hidden_layers": 3}', "(it is a model's config.json: give it with --model)"),
        ("[1]", "(it is a list)"),
        ('{"schema": 1', "old.json is no usable report: "),
    ],
)
def test_a_file_of_another_schema_says_which(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    status, out, err = run(capsys, "topology", str(path))
    assert (status, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_a_node_can_be_named_and_be_there_twice_then(
    capsys: pytest.CaptureFixture[str], files: list[str]
) -> None:
    status, out, _ = run(capsys, "topology", "--json", f"left={files[0]}", f"right={files[0]}")
    assert status == 0
    assert list(json.loads(out)["nodes"]) == ["left", "right"]


def test_one_gpu_of_several_can_be_asked_for(
    capsys: pytest.CaptureFixture[str], home: Home, tmp_path: Path
) -> None:
    path = tmp_path / "twin.json"
    path.write_text(json.dumps(home["twin"]))
    memory = {}
    for which in ("all", "primary", "cpu"):
        _, out, _ = run(capsys, "topology", "--json", "--devices", which, str(path))
        memory[which] = json.loads(out)["nodes"]["twin"]["memory"]
    assert memory == {"all": 49128, "primary": 24564, "cpu": 131072}
