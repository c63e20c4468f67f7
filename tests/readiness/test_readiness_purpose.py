"""A card that is for computing alone is blocked by what only limits a graphics card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from readiness_nodes import LIBRARIES, Node, amd, intel, verdict

from probe_core.readiness.purpose import computes_alone

INSTINCTS = {"MI300X": "1002:74a1", "MI210": "1002:740f", "MI100": "1002:738c"}
OTHERS = {"RX 7900 XTX": "1002:744c", "RX 6800": "1002:73bf", "Radeon 780M": "1002:15bf"}
MAX_1550, ARC_B580, FLEX_170 = "8086:0bd5", "8086:e20b", "8086:56c0"


def without_kfd(node: Node) -> Node:
    node.nodes("/dev/kfd", answer="missing")
    for path in sorted((node.tree.root / "sys/class/kfd").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (node.tree.root / "sys/class/kfd").rmdir()
    return node


def without_rocm(node: Node) -> Node:
    node.remove("/opt/rocm/lib/libhsa-runtime64.so.1")
    return node


def left_out(node: Node) -> Node:
    node.file("/sys/class/kfd/kfd/topology/nodes/1/properties", "location_id 768\ndomain 0\n")
    return node


def without_level_zero(node: Node) -> Node:
    node.remove(f"{LIBRARIES}/libze_intel_gpu.so.1")
    node.file(f"{LIBRARIES}/libze_loader.so.1")
    return node


Break = Callable[[Node], Node]
BREAKS: dict[str, Break] = {
    "kfd-missing": without_kfd,
    "rocm-missing": without_rocm,
    "kfd-no-gpu": left_out,
}


def told(node: Node, code: str) -> tuple[Any, ...]:
    report = node.report()
    device = report["devices"][0]
    state, _, cause = verdict(device)
    severities = [f["severity"] for f in report["findings"] if f["code"] == code]
    return state, cause, severities, report["primary"] == device["id"]


@pytest.mark.parametrize("code", BREAKS)
@pytest.mark.parametrize("card", INSTINCTS)
def test_an_instinct_without_its_runtime_is_blocked(card: str, code: str, tmp_path: Path) -> None:
    node = BREAKS[code](amd(tmp_path, ids=INSTINCTS[card], pci_class="038000"))
    assert told(node, code) == ("blocked", code, ["error"], False)
    report = node.report()
    found = next(f for f in report["findings"] if f["code"] == code)
    assert "Vulkan" not in found["what"] + found["fix"]
    assert report["fallback"] == "degraded"
    step = next(s for s in report["devices"][0]["readiness"]["steps"] if s["code"] == code)
    assert step["blocks"] is True


@pytest.mark.parametrize("code", BREAKS)
@pytest.mark.parametrize("card", OTHERS)
def test_a_graphics_card_without_it_is_limited_and_no_error(
    card: str, code: str, tmp_path: Path
) -> None:
    node = BREAKS[code](amd(tmp_path, ids=OTHERS[card]))
    assert told(node, code) == ("limited", code, ["info"], True)
    steps = node.report()["devices"][0]["readiness"]["steps"]
    assert [step for step in steps if "blocks" in step] == []


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (MAX_1550, ("blocked", "level-zero-missing", ["error"], False)),
        (FLEX_170, ("limited", "level-zero-missing", ["info"], True)),
        (ARC_B580, ("limited", "level-zero-missing", ["info"], True)),
    ],
)
def test_intels_cards_by_what_they_are_for(
    ids: str, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    driver = "xe" if ids == ARC_B580 else "i915"
    node = without_level_zero(intel(tmp_path, ids=ids, driver=driver, pci_class="038000"))
    assert told(node, "level-zero-missing") == expected


@pytest.mark.parametrize("card", INSTINCTS)
def test_a_sound_instinct_stays_ready(card: str, tmp_path: Path) -> None:
    node = amd(tmp_path, ids=INSTINCTS[card], pci_class="038000")
    assert verdict(node.device()) == ("ready", None, None)


def test_a_chip_that_nobody_knows_by_its_architecture_or_isa() -> None:
    nothing: Any = {"chip": {"id": None, "candidates": []}, "arch": None}
    assert not computes_alone(nothing)
    assert computes_alone({**nothing, "arch": "cdna3"})
    assert computes_alone({**nothing, "gfx": "gfx942"})
    assert not computes_alone({**nothing, "gfx": "gfx906"})  # Radeon VII as well as MI50
    mixed = {"id": None, "candidates": ["amd/radeon-instinct-mi50", "amd/radeon-vii"]}
    assert not computes_alone({**nothing, "chip": mixed})
