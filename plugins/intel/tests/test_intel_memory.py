"""Whose memory an Intel GPU has and how much, from each file that tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core.sysfs.pci import Function
from probe_core.sysfs.sighting import Draft
from probe_core.testing import Tree
from probe_intel.memory import DMEM, describe, is_discrete

CARD, OWN = "0000:03:00.0", "0000:00:02.0"
FOLDER = f"/sys/bus/pci/devices/{CARD}"
GIB = 1 << 30


def described(
    root: Path, files: dict[str, object], ids: str = "8086:e20b", address: str = CARD, **pci: Any
) -> tuple[bool | None, dict[str, Any], dict[str, str]]:
    tree = Tree(root)
    tree.pci(address, ids, driver="xe", **pci)
    for path, content in files.items():
        tree.file(path, f"{content}\n")
    function = Function(tree.machine(), address)
    draft = Draft(ids=[function.id], kind="gpu")
    found = describe(tree.machine(), draft, function)
    return found, draft.fields, draft.unknown


def memory(root: Path, files: dict[str, object], **more: Any) -> dict[str, Any]:
    found, fields, _ = described(root, files, **more)
    assert found
    own: dict[str, Any] = fields["memory"]
    return own


@pytest.mark.parametrize(
    ("ids", "address", "vram", "expected"),
    [
        ("8086:e20b", CARD, None, True),
        ("8086:56a0", CARD, None, True),
        ("8086:4f80", CARD, None, True),
        ("8086:4908", CARD, None, True),
        ("8086:490a", CARD, None, None),
        ("8086:a780", OWN, None, False),
        ("8086:a780", "0000:00:02.1", None, False),
        ("8086:a780", "0000:00:03.0", None, None),
        ("8086:a780", "0000:01:02.0", None, None),
        ("8086:a780", OWN, GIB, True),
        ("8086:a780", OWN, 0, False),
    ],
)
def test_cards_are_known_by_their_ids(
    ids: str, address: str, vram: int | None, expected: bool | None, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    tree.pci(address, ids)
    assert is_discrete(Function(tree.machine(), address), vram) is expected


def test_tiles_add_up_where_all_tell(tmp_path: Path) -> None:
    tile = f"{FOLDER}/tile{{}}/physical_vram_size_bytes"
    two = {tile.format(0): 8 * GIB, tile.format(1): 4 * GIB}
    found = memory(tmp_path / "two", two)
    assert (found["kind"], found["total"], found["parts"]) == (
        "dedicated", 12 * GIB, {"vram": 12 * GIB}
    )  # fmt: skip
    assert "usable" not in found or found["usable"] is None
    for size in ("0", "-1", "many"):
        found = memory(tmp_path / size, {**two, tile.format(1): size})
        assert found.get("total") is None


def test_a_driver_of_intels_own_tells_it_beside_the_card(tmp_path: Path) -> None:
    files: dict[str, object] = {f"{FOLDER}/drm/card0/lmem_total_bytes": 6 * GIB}
    assert memory(tmp_path / "awake", files)["total"] == 6 * GIB
    assert memory(tmp_path / "asleep", files, power="suspended").get("total") is None


def test_the_kernels_control_group_tells_what_can_be_used(tmp_path: Path) -> None:
    lines = [f"drm/{CARD}/vram0 {3 * GIB}", f"drm/{CARD}/vram1 {2 * GIB}", f"drm/{CARD}/gtt 7",
             f"drm/0000:04:00.0/vram0 {9 * GIB}", f"drm/{CARD}/vram2 {'1' * 21}",
             f"drm/{CARD}/vram3 max"]  # fmt: skip
    files: dict[str, object] = {DMEM: "\n".join(lines)}
    found = memory(tmp_path / "a", files)
    assert (found["total"], found["usable"]) == (5 * GIB, 5 * GIB)
    whole = {**files, f"{FOLDER}/tile0/physical_vram_size_bytes": 6 * GIB}
    found = memory(tmp_path / "b", whole)
    assert (found["total"], found["usable"]) == (6 * GIB, 5 * GIB)
    # What has a region of its own is a card, whatever its id.
    found = memory(tmp_path / "c", files, ids="8086:ffff")
    assert found["total"] == 5 * GIB


def test_the_part_that_the_processor_can_map(tmp_path: Path) -> None:
    def bar(name: str, *lines: str) -> object:
        _, fields, _ = described(tmp_path / name, {f"{FOLDER}/resource": "\n".join(lines)})
        return fields.get("extra", {}).get("vram_bar_bytes")

    rest = ("0x0 0x0 0x0", "0x0 0x0 0x0")
    assert bar("a", *rest, "0x10000000 0x1fffffff 0x14220c") == 256 << 20
    assert bar("b", *rest, "0x0 0xfffffff 0x14220c") is None
    assert bar("c", *rest, "0x10 0x10 0x0") is None
    assert bar("d", *rest) is None
    assert bar("e", *rest, "odd") is None


def test_the_systems_memory_of_a_processors_graphics(tmp_path: Path) -> None:
    own: dict[str, Any] = {"ids": "8086:a780", "address": OWN}
    files: dict[str, object] = {"/proc/meminfo": "MemTotal: 1024 kB\nMemAvailable: 512 kB"}
    found, fields, _ = described(tmp_path / "a", files, **own)
    assert (found, fields["memory"]["kind"], fields["memory"]["total"]) == (
        False,
        "unified",
        1 << 20,
    )
    _, fields, unknown = described(tmp_path / "b", {}, **own)
    assert unknown["memory.total"] == "/proc/meminfo gives no MemTotal"
    found, fields, unknown = described(tmp_path / "c", files, ids="8086:a780", address=CARD)
    reason = "neither its id nor its address distinguishes a card from an integrated GPU"
    assert (found, unknown["memory.kind"], unknown["memory.total"]) == (None, reason, reason)
