"""What the processor of an AMD GPU is called, and whether it is part of a processor."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe_amd.gfx import from_discovery, from_target, is_integrated
from probe_core.machine import Machine


@pytest.mark.parametrize(
    ("version", "name"),
    [(90010, "gfx90a"), (90012, "gfx90c"), (90402, "gfx942"), (90500, "gfx950"), (80003, "gfx803"),
     (100306, "gfx1036"), (110501, "gfx1151"), (120001, "gfx1201")],
)  # fmt: skip
def test_kfds_version(version: int, name: str) -> None:
    assert from_target(version) == name


@pytest.mark.parametrize(
    ("version", "name"),
    [((9, 4, 3), "gfx942"), ((9, 4, 2), "gfx90a"), ((10, 3, 7), "gfx1036"), ((11, 0, 3), "gfx1101"),
     ((12, 0, 1), "gfx1201"), ((9, 9, 9), None), ((9, 4, None), None)],
)  # fmt: skip
def test_the_version_of_the_graphics_core(
    tmp_path: Path, version: tuple[int | None, ...], name: str | None
) -> None:
    core = tmp_path / "sys/gpu/ip_discovery/die/0/GC/0"
    core.mkdir(parents=True)
    for file, number in zip(("major", "minor", "revision"), version, strict=True):
        if number is not None:
            (core / file).write_text(f"{number}\n")
    assert from_discovery(Machine(root=str(tmp_path)), "/sys/gpu") == name


@pytest.mark.parametrize(
    ("gfx", "pci_id", "vram_vendor", "cpu_cores", "expected"),
    [
        ("gfx942", "1002:74a1", "unknown", 0, False),
        ("gfx942", "1002:74a0", None, 0, True),
        ("gfx942", None, None, 0, False),
        ("gfx942", None, None, 24, True),
        ("gfx90c", None, None, None, True),
        (None, "1002:1586", None, None, True),
        (None, "1002:9874", None, None, True),
        (None, "1002:744c", None, None, False),
        (None, "1002:66af", None, None, False),
        (None, "1002:7550", None, 1, True),
        (None, None, "samsung", None, False),
        (None, None, "unknown", None, None),
        (None, "1002:ffff", None, 0, None),
        ("gfx1100", None, None, None, False),
        ("gfx1151", None, "samsung", None, True),
    ],
)
def test_which_share_the_processors_memory(
    gfx: str | None,
    pci_id: str | None,
    vram_vendor: str | None,
    cpu_cores: int | None,
    expected: bool | None,
) -> None:
    assert is_integrated(gfx, pci_id, vram_vendor, cpu_cores) is expected
