"""The runtimes are asked for real, below their own libraries: a faked libcuda and libamdhip64."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_cuda
import pytest
import visibility_nodes as nodes

from probe_core.runtimes.bus_id import bus_id

ROOT = Path(__file__).resolve().parents[2]

CODE = """
import json, os, sys
from probe_core.visibility import see
from probe_core.runtimes import ask, disagreements
devices = json.loads(sys.stdin.read())
answers = ask(see(devices, os.environ), devices, dict(os.environ), deadline_s=float(sys.argv[1]))
print(json.dumps([answers, disagreements(answers)]))
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runtimes")
    return fake_cuda.build(folder, "libcuda.so.1", "libamdhip64.so.6")


def ask(library: Path, devices: list[Any], deadline: str = "20", **environ: str) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, deadline],
        input=json.dumps(devices),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        | {"LD_LIBRARY_PATH": str(library)}
        | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Any] = json.loads(done.stdout)
    return found


def listed(*devices: dict[str, Any]) -> str:
    """Return FAKE_GPUS for made-up devices."""
    told = []
    for device in devices:
        uuid = next((i[9:] for i in device["ids"] if i.startswith("uuid:")), "0" * 32)
        bus = next((i[4:] for i in device["ids"] if i.startswith("pci:")), "0000:00:00.0")
        told.append(f"{uuid.replace('-', '')}/{bus.upper()}")
    return ";".join(told)


FOUR = nodes.h100s(4)


@pytest.mark.heavy
def test_cuda_agrees(library: Path) -> None:
    gpus = listed(FOUR[2], FOUR[0])
    answers, said = ask(library, FOUR, CUDA_VISIBLE_DEVICES="2,0", FAKE_GPUS=gpus)
    assert answers["cuda"]["devices"] == ["pci:0000:03:00.0", "pci:0000:01:00.0"]
    assert (answers["cuda"]["agrees"], answers["cuda"]["status"], said) == (True, "ok", [])


def test_cuda_disagrees(library: Path) -> None:
    answers, said = ask(library, FOUR, CUDA_VISIBLE_DEVICES="2", FAKE_GPUS=listed(FOUR[1]))
    assert answers["cuda"]["agrees"] is False
    assert [one["code"] for one in said] == ["driver-disagrees"]
    assert said[0]["why"] == (
        "it shows pci:0000:02:00.0; by the rules it would be pci:0000:03:00.0"
    )


def test_nothing_visible_is_an_answer(library: Path) -> None:
    answers, _ = ask(library, FOUR, CUDA_VISIBLE_DEVICES="")
    assert (answers["cuda"]["devices"], answers["cuda"]["agrees"]) == ([], True)


def test_the_driver_decides_the_speed_order(library: Path) -> None:
    mixed = [nodes.nvidia(1), nodes.nvidia(2, name="NVIDIA T4")]
    answers, _ = ask(library, mixed, FAKE_GPUS=listed(mixed[1], mixed[0]))
    assert answers["cuda"]["devices"] == ["pci:0000:02:00.0", "pci:0000:01:00.0"]
    assert answers["cuda"]["agrees"] is True
    many = [nodes.nvidia(slot, name=f"model {slot}") for slot in range(1, 7)]
    answers, _ = ask(library, many, FAKE_GPUS=listed(*reversed(many)))
    assert answers["cuda"]["agrees"] is True


def test_mig_instances_are_recognised(library: Path) -> None:
    card = nodes.nvidia(1)
    part = nodes.mig(card, 7, 1)
    answers, _ = ask(library, [card, part], FAKE_GPUS=listed(part | {"ids": [part["id"]]}))
    assert answers["cuda"]["devices"] == [part["id"]]
    assert answers["cuda"]["agrees"] is True


def test_hip_agrees_by_pci_address(library: Path) -> None:
    cards = [nodes.amd(1), nodes.amd(2)]
    answers, said = ask(library, cards, HIP_VISIBLE_DEVICES="1", FAKE_GPUS=listed(cards[1]))
    assert answers["hip"]["devices"] == ["pci:0000:02:00.0"]
    assert (answers["hip"]["agrees"], said) == (True, [])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("mode", "status", "said"),
    [
        ("3", "unavailable", "cuInit answered 3"),
        ("crash", "crashed", "SIGABRT"),
        ("hang", "timeout", "took longer than 1 s"),
    ],
)
def test_a_driver_that_fails_is_told(library: Path, mode: str, status: str, said: str) -> None:
    answers, found = ask(library, FOUR, "1", FAKE_GPU_MODE=mode, FAKE_GPUS=listed(*FOUR))
    assert (answers["cuda"]["status"], answers["cuda"]["agrees"]) == (status, None)
    assert said in answers["cuda"]["reason"]
    assert found == []


def test_a_missing_library_is_told(tmp_path: Path) -> None:
    fake_cuda.skip_beside_a_real_one()
    answers, _ = ask(tmp_path, FOUR)
    assert answers["cuda"]["status"] == "unavailable"
    assert "libcuda.so.1" in answers["cuda"]["reason"]


@pytest.mark.parametrize(
    ("written", "status", "identity"),
    [
        (b"00000000:1B:00.0", 0, "pci:0000:1b:00.0"),
        (b"000f:01:00.0", 0, "pci:000f:01:00.0"),
        (b"00000000:1B:00.0", 101, None),
        (b"", 0, None),
        (b"somewhere", 0, None),
        (b"\xff\xfe:00.0", 0, None),
    ],
)
def test_what_is_no_address_names_no_device(
    written: bytes, status: int, identity: str | None
) -> None:
    def call(text: Any, size: int, device: int) -> int:
        assert (len(text), device) == (size, 3)
        text.value = written
        return status

    assert bus_id(call, 3) == identity
