"""Nodes with made-up GPUs: a prober registered with the core says what a test wants to be there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import probe_core
from probe_core.machine import Machine

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "machines"))

Device = dict[str, Any]


def rtx_4090(slot: int = 1, **more: Any) -> Device:
    return {
        "ids": [f"pci:0000:{slot:02x}:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "NVIDIA GeForce RTX 4090",
        "pci": {"id": "10de:2684"},
        "memory": {"kind": "dedicated", "total": 25_757_220_864, "free": 25_200_000_000},
        "backends": ["cuda"],
    } | more


@pytest.fixture
def gpu() -> Callable[..., Device]:
    """Make what a prober says of an RTX 4090 in a slot."""
    return rtx_4090


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Make this node have these devices, and no other accelerators."""
    path = tmp_path / "devices.json"

    def give(*devices: Device) -> None:
        from probe_exo.node import node_document

        path.write_text(json.dumps(devices))
        node_document(refresh=True)

    path.write_text("[]")
    monkeypatch.setenv("EXO_TEST_DEVICES", str(path))
    monkeypatch.setenv("PROBE_ONLY", "given")
    monkeypatch.setenv("PROBE_DISABLE", "bus")  # it would show the GPUs of the computer itself
    for name in ("CUDA_VISIBLE_DEVICES", "OVERRIDE_MEMORY_MB", "EXO_PROBE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    probe_core.register("given", "exo_given_prober")
    yield give
    probe_core.unregister("given")


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[dict[str, str]], Machine]:
    """Make a recorded machine of path → text."""

    def make(files: dict[str, str]) -> Machine:
        for path, text in files.items():
            place = tmp_path / "root" / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return Machine(str(tmp_path / "root"))

    return make
