"""`probe visible` and `probe layout` on a faked node: tables, JSON, statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lease_node import Node, gpu

from probe_core.cli import main


def test_visible_for_one_runtime(node: Node) -> None:
    done = node.run("visible", "--for", "cuda", "--json", CUDA_VISIBLE_DEVICES="1")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "visible": ["pci:0000:02:00.0"],
        "hidden": {"pci:0000:01:00.0": "CUDA_VISIBLE_DEVICES='1' does not name it"},
        "variable": "CUDA_VISIBLE_DEVICES",
        "value": "1",
        "certain": True,
        "devices": [
            _seen("pci:0000:02:00.0", 0, None),
            _seen("pci:0000:01:00.0", None, "CUDA_VISIBLE_DEVICES='1' does not name it")
            | {"step": "visible", "code": "hidden-by-variable"},
        ],
    }


def _seen(name: str, index: int | None, reason: str | None) -> dict[str, object]:
    said = {"id": name, "visible": index is not None, "index": index, "reason": reason}
    return said | {"variable": "CUDA_VISIBLE_DEVICES"}


def test_visible_for_all(node: Node) -> None:
    told = json.loads(node.run("visible", "--json", CUDA_VISIBLE_DEVICES="-1").stdout)
    assert list(told) == [
        "cuda",
        "sycl",
        "opencl",
        "vulkan",
        "ggml-vulkan",
        "nvidia-container",
        "tinygrad",
    ]
    assert told["cuda"]["visible"] == told["sycl"]["visible"] == []
    assert len(told["vulkan"]["visible"]) == 2


def test_visible_as_a_table(node: Node) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": "1,7", "COLUMNS": "200"}
    done = node.run("visible", "--for", "cuda", **variables)
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    head = "DEVICE   NAME                   STATE    WHY"
    assert rows[0] == ["RUNTIME", "INDEX", head]
    assert rows[1][:2] == ["cuda", "0"]
    assert rows[2][:2] == ["cuda", "hidden"]
    assert rows[2][2].startswith("01:00.0")
    assert "CUDA stops reading at '7'" in rows[2][2]
    assert [row[2].split()[5] for row in rows[1:]] == ["unknown", "hidden"]


@pytest.mark.heavy
def test_an_order_that_is_not_known_is_shown_as_such(tmp_path: Path) -> None:
    node = Node(tmp_path, 2, [gpu(1), gpu(2, name="NVIDIA T4")])
    rows = node.run("visible", "--for", "cuda", COLUMNS="400").stdout.splitlines()
    assert [row.split()[1] for row in rows[1:]] == ["0/1", "0/1"]
    told = json.loads(node.run("visible", "--for", "cuda", "--json").stdout)
    assert told["one_of"] == [told["possible"], told["possible"][::-1]]
    assert "CUDA_DEVICE_ORDER" in told["uncertain"]


def test_tinygrads_version_matters(node: Node) -> None:
    words = ("visible", "--for", "tinygrad", "--json")
    new = json.loads(node.run(*words, CUDA_VISIBLE_DEVICES="1").stdout)
    old = node.run(*words, "--tinygrad", "0.11.0", CUDA_VISIBLE_DEVICES="1").stdout
    assert len(new["visible"]) == 2
    assert json.loads(old)["visible"] == ["pci:0000:02:00.0"]


def test_a_runtime_that_nobody_knows(node: Node) -> None:
    done = node.run("visible", "--for", "directx")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cuda, rocr, hip" in done.stderr


def test_a_runtime_without_devices_here(node: Node) -> None:
    told = json.loads(node.run("visible", "--for", "hip", "--json").stdout)
    assert (told["visible"], told["hidden"]) == ([], {})


@pytest.mark.heavy
def test_layout_prints_each_process(node: Node) -> None:
    done = node.run("layout", "2x1")
    lines = done.stdout.splitlines()
    heads = [line for line in lines if line.startswith("# process")]
    assert [head.split()[3] for head in heads] == ["pci:0000:01:00.0", "pci:0000:02:00.0"]
    assert sum("CUDA_VISIBLE_DEVICES=" in line for line in lines) == 2
    assert node.run("layout", "2x1").stdout == done.stdout


def test_layout_as_json(node: Node) -> None:
    told = json.loads(node.run("layout", "2x1", "--index", "1", "--json").stdout)
    (instance,) = told["instances"]
    assert (instance["index"], instance["devices"]) == (1, ["pci:0000:02:00.0"])
    assert instance["set"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@pytest.mark.parametrize(
    ("words", "status"),
    [(("3x1",), 3), (("2",), 2), (("axb",), 2), (("2x1", "--index", "2"), 3), (("0x1",), 2)],
)
def test_layouts_that_cannot_be(node: Node, words: tuple[str, ...], status: int) -> None:
    done = node.run("layout", *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert "Traceback" not in done.stderr


def test_a_reason_is_shown_whole(node: Node) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": "9,GPU-" + "0" * 60}
    done = node.run("visible", "--for", "cuda", COLUMNS="400", **variables)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.endswith("and it is not named before that") for line in lines[1:])
    narrow = node.run("visible", "--for", "cuda", COLUMNS="80", **variables).stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert "".join(lines[1].split("hidden  ")[-1].split()) in "".join(narrow.split())


@pytest.mark.heavy
def test_exec_takes_the_ids_of_the_table(node: Node) -> None:
    long, short, uuid = (
        node.run("exec", "--device", device, "--dry-run")
        for device in ("pci:0000:02:00.0", "02:00.0", "GPU-00000002")
    )
    assert (long.returncode, long.stderr) == (0, "")
    assert "CUDA_VISIBLE_DEVICES=" in long.stdout
    assert long.stdout == short.stdout == uuid.stdout
    unknown = node.run("exec", "--device", "07:00.0", "--dry-run")
    assert unknown.returncode != 0
    assert "no device is called '07:00.0'" in unknown.stderr


@pytest.mark.parametrize(
    ("words", "processes"),
    [(("2x1",), [[0], [1]]), (("2x1", "--index", "0"), [[0]]), (("1x2",), [[0, 1]])],
)
def test_a_layout_in_this_process(
    words: tuple[str, ...],
    processes: list[list[int]],
    node: Node,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    command = ["layout", *words, "--static", str(node.folder / "report.json")]
    uuids = [f"GPU-0000000{n}-0000-0000-0000-00000000000{n}" for n in (1, 2)]
    assert main(command) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line.startswith(("#", "export CUDA_V"))] == [
        line
        for number, places in enumerate(processes)
        for line in (
            f"# process {number}: "
            + ", ".join(f"{node.devices[at]['id']} ({node.devices[at]['name']})" for at in places),
            f"export CUDA_VISIBLE_DEVICES={','.join(uuids[at] for at in places)}",
        )
    ]
    assert main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["layout"], document["consumer"]) == (words[0], "cuda")
    assert [entry["devices"] for entry in document["instances"]] == [
        [node.devices[at]["id"] for at in places] for places in processes
    ]
    for index, status in ((len(uuids), 3), (-1, 3)):
        assert main(["layout", "2x1", "--index", str(index), *command[-2:]]) == status
        sentence = f"probe layout: there is no process {index}; 0 to 1 exist\n"
        assert capsys.readouterr().err == sentence
