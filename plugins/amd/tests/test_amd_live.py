"""Live figures of AMD cards: which file each is from, and what stands for one that refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sampled_here import sample_here

from probe_amd import metrics, prober
from probe_core.testing import Case, Machine

GIB = 1 << 30
CARD = "pci:0000:03:00.0"


@pytest.fixture
def tree(new_tree: Any, tmp_path: Path) -> Any:
    tree = new_tree(tmp_path)
    tree.folder = tree.card(
        "0000:03:00.0", "0x744c", drm=(0, 128), mem_info_vram_total=24 * GIB,
        mem_info_vram_used=6 * GIB, mem_info_gtt_total=32 * GIB, mem_info_gtt_used=GIB,
        mem_info_vram_vendor="hynix", gpu_busy_percent=37, pcie_bw="1 2 256",
        current_link_speed="16.0 GT/s PCIe", current_link_width=16,
        hwmon__hwmon3__temp1_input=48000, hwmon__hwmon3__temp1_label="edge",
        hwmon__hwmon3__temp2_input=55000, hwmon__hwmon3__temp2_label="junction",
        hwmon__hwmon3__power1_average=212_000_000, hwmon__hwmon3__power1_cap=327_000_000,
        hwmon__hwmon3__freq1_input=2_482_000_000, hwmon__hwmon3__freq1_label="sclk",
        hwmon__hwmon3__freq2_input=1_249_000_000, hwmon__hwmon3__freq2_label="mclk",
    )  # fmt: skip
    tree.kfd_node(1, simd_count=192, simd_per_cu=2, gfx_target_version=110000, location_id=0x300)
    return tree


def look(tree: Any, **options: Any) -> dict[str, Any]:
    last = sample_here(prober, Case(Machine(str(tree.root))), **options)[-1]
    assert last.status == "ok", last.reason
    return last.samples[0]  # type: ignore[no-any-return]


def test_each_figure_comes_from_its_file(tree: Any) -> None:
    sample = look(tree)
    assert sample["busy"] == pytest.approx(0.37)
    assert sample["memory"] == {"used": 6 * GIB, "total": 24 * GIB}
    assert sample["temperature_c"] == pytest.approx(48)
    assert sample["power_w"] == pytest.approx(212)
    assert sample["power_cap_w"] == pytest.approx(327)
    assert sample["clocks_mhz"] == {"sm": pytest.approx(2482), "memory": pytest.approx(1249)}
    assert sample["links"] == [{"kind": "pcie", "generation": 4, "width": 16}]


def test_an_apu_counts_what_it_borrows(tree: Any) -> None:
    tree.file(f"{tree.folder}/mem_info_vram_vendor", "unknown\n")
    tree.kfd_node(
        1, simd_count=4, simd_per_cu=2, gfx_target_version=100306, location_id=0x300,
        cpu_cores_count=16,
    )  # fmt: skip
    assert look(tree)["memory"] == {"used": 7 * GIB, "total": 56 * GIB}


def test_a_card_has_either_power_file(tree: Any) -> None:
    (tree.root / f"{tree.folder}/hwmon/hwmon3/power1_average".lstrip("/")).unlink()
    tree.file(f"{tree.folder}/hwmon/hwmon3/power1_input", 45_000_000)
    assert look(tree)["power_w"] == pytest.approx(45)


def test_a_server_card_has_no_edge_sensor(tree: Any) -> None:
    tree.file(f"{tree.folder}/hwmon/hwmon3/temp1_label", "junction\n")
    (tree.root / f"{tree.folder}/hwmon/hwmon3/temp2_label".lstrip("/")).unlink()
    assert look(tree)["temperature_c"] == pytest.approx(48)


def test_a_file_that_refuses_is_a_reason_and_no_zero(tree: Any) -> None:
    (tree.root / f"{tree.folder}/gpu_busy_percent".lstrip("/")).unlink()
    (tree.root / f"{tree.folder}/gpu_busy_percent".lstrip("/")).mkdir()
    sample = look(tree)
    assert "busy" not in sample
    assert "/gpu_busy_percent: " in sample["unknown"]["busy"]


def table(form: int, content: int, size: int, **parts: tuple[int, int, int]) -> bytes:
    """Return a `gpu_metrics`: each part is (place, bytes, value)."""
    raw = bytearray(size)
    raw[:4] = size.to_bytes(2, "little") + bytes((form, content))
    for place, length, value in parts.values():
        raw[place : place + length] = value.to_bytes(length, "little")
    return bytes(raw)


@pytest.mark.parametrize(
    ("raw", "busy", "reasons"),
    [
        (table(1, 3, 120, busy=(16, 2, 87), why=(112, 8, 1 << 36 | 1 << 4)), 0.87,
         ["power", "thermal"]),
        (table(1, 3, 120, busy=(16, 2, 0)), 0.0, []),
        (table(1, 6, 600, busy=(12, 2, 99)), 0.99, None),
        (table(2, 4, 168, busy=(28, 2, 4321), why=(120, 8, 1 << 22)), 0.4321, ["current"]),
        (table(3, 0, 264, busy=(42, 2, 50)), 0.5, None),
        # All ones is absent, more than all is absurd.
        (table(1, 3, 120, busy=(16, 2, 0xFFFF), why=(112, 8, (1 << 64) - 1)), None, None),
        (table(1, 3, 120, busy=(16, 2, 101)), None, []),
        # Unknown, of another length, cut, empty.
        (table(9, 9, 120, busy=(16, 2, 50)), None, None),
        (table(1, 3, 120, busy=(16, 2, 50))[:64], None, None),
        (table(1, 3, 64, busy=(16, 2, 50)), 0.5, None),
        (b"", None, None),
        (b"\x03\x00\x01", None, None),
    ],
    ids=range(12),
)  # fmt: skip
def test_firmwares_table(raw: bytes, busy: float | None, reasons: list[str] | None) -> None:
    assert (metrics.busy(raw), metrics.throttled(raw)) == (busy, reasons)


def test_a_table_that_is_a_header_alone_has_a_layout() -> None:
    assert metrics.layout(b"\x04\x00\x01\x02") == (1, 2)


# Bytes before `average_gfx_activity`, by kgd_pp_interface.h: the header, then temperatures of 16
# bits, and of v1.4 on the socket's power; and what of it is all.
ACTIVITY = {
    **dict.fromkeys([(1, 1), (1, 2), (1, 3)], (4 + 2 * 6, 100)),
    **dict.fromkeys([(1, 4), (1, 5), (1, 6)], (4 + 2 * 3 + 2, 100)),
    **dict.fromkeys([(2, 1), (2, 2), (2, 3), (2, 4)], (4 + 2 * (2 + 8 + 2), 10_000)),
    (3, 0): (4 + 2 * (2 + 16 + 1), 100),
}


@pytest.mark.parametrize("version", ACTIVITY)
def test_the_activity_of_each_layout(version: tuple[int, int]) -> None:
    place, whole = ACTIVITY[version]
    values = [metrics.busy(table(*version, 264, busy=(place, 2, n))) for n in (1, whole, whole + 1)]
    assert values == [1 / whole, 1.0, None]
    assert metrics.busy(table(*version, place + 2, busy=(place, 2, 7))) == 7 / whole
    assert metrics.busy(table(*version, place + 1)) is None


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (1, 7), (2, 5), (3, 1), (0, 0)])
def test_of_another_layout_nothing_is_read(version: tuple[int, int]) -> None:
    raw = table(*version, 264, first=(0, 4, 0))
    raw = raw[:2] + bytes(version) + raw[4:]
    raw = len(raw).to_bytes(2, "little") + raw[2:]
    assert metrics.layout(raw) == version
    assert (metrics.busy(raw), metrics.energy(raw), metrics.throttled(raw)) == (None, None, None)


@pytest.mark.parametrize(
    ("bit", "kind"),
    [
        *[(0, "power"), (15, "power"), (16, "current"), (31, "current"), (32, "thermal")],
        *[(55, "thermal"), (56, "other"), (63, "other")],
    ],
)
@pytest.mark.parametrize(
    ("version", "place"), [((1, 3), 112), ((2, 2), 120), ((2, 3), 120), ((2, 4), 120)]
)
def test_the_kind_of_each_limit(version: tuple[int, int], place: int, bit: int, kind: str) -> None:
    assert metrics.throttled(table(*version, place + 8, why=(place, 8, 1 << bit))) == [kind]
    assert metrics.throttled(table(*version, place + 7)) is None


@pytest.mark.parametrize(
    ("raw", "joules"),
    [
        (table(1, 4, 512, energy=(24, 8, 65_536 * 1000)), 1000),
        (table(1, 5, 512, energy=(88, 8, 32_768)), 0.5),
        (table(1, 6, 600, energy=(16, 8, 65_536)), 1),
        (table(1, 6, 600, energy=(16, 8, (1 << 64) - 1)), None),
        (table(1, 3, 120, energy=(24, 8, 1000)), None),  # its unit is the chip's own
        (table(1, 6, 20), None),
    ],
    ids=range(6),
)
def test_energy_is_counted_in_a_known_unit(raw: bytes, joules: float | None) -> None:
    assert metrics.energy(raw) == joules


def test_errors_are_counted_over_all_blocks(tree: Any) -> None:
    for block, errors in (("umc", (1, 20)), ("gfx", (2, 300))):
        text = "ue: {}\nce: {}\n".format(*errors)
        tree.file(f"{tree.folder}/ras/{block}_err_count", text)
    tree.file(f"{tree.folder}/ras/features", "ue: 9\n")
    tree.file(f"{tree.folder}/pcie_replay_count", 17)
    tree.file(f"{tree.folder}/aer_dev_correctable", "RxErr 2\nTimeout 3\nTOTAL_ERR_COR 5\n")
    place = tree.root / tree.folder.lstrip("/")
    (place / "gpu_metrics").write_bytes(table(1, 6, 600, energy=(16, 8, 65_536 * 40)))
    assert look(tree)["counters"] == {
        "energy_j": 40,
        "ecc_corrected": 320,
        "ecc_uncorrected": 3,
        "pcie_replays": 17,
        "pcie_correctable": 5,
    }


def test_a_card_without_counters_has_none(tree: Any) -> None:
    sample = look(tree)
    assert sample["counters"] == {}
    assert sample["unknown"]["counters.pcie_replays"].endswith(": No such file or directory")
    assert "energy" in sample["unknown"]["counters.energy_j"]


def test_firmware_answers_where_the_file_refuses(tree: Any) -> None:
    place = tree.root / tree.folder.lstrip("/")
    (place / "gpu_metrics").write_bytes(table(2, 2, 128, busy=(28, 2, 2500)))
    sample = look(tree)
    assert (sample["busy"], sample["throttled"]) == (pytest.approx(0.37), [])
    (place / "gpu_busy_percent").unlink()
    sample = look(tree)
    assert sample["busy"] == pytest.approx(0.25)
    assert "busy" not in sample["unknown"]
    (place / "gpu_metrics").unlink()
    sample = look(tree)
    assert "throttled" not in sample
    assert sample["unknown"]["throttled"].endswith("/gpu_metrics: No such file or directory")


def test_a_card_that_falls_asleep_in_between_is_not_read(tree: Any) -> None:
    def suspend(_: int) -> None:
        tree.file(f"{tree.folder}/power/runtime_status", "suspended\n")

    assert look(tree, pause=suspend)["status"] == "asleep"


def test_cards_are_looked_for_anew_each_sixtieth_round(tree: Any) -> None:
    """A driver that was reset may have its sensors in other files."""
    old, new = f"{tree.folder}/hwmon/hwmon3", f"{tree.folder}/hwmon/hwmon7"

    def renumber(number: int) -> None:
        if number == 2:
            Path(tree.root, old.lstrip("/")).rename(Path(tree.root, new.lstrip("/")))

    case = Case(Machine(str(tree.root)))
    rounds = sample_here(prober, case, count=61, pause=renumber)
    caps = ["power_cap_w" in found.samples[0] for found in rounds]
    assert caps == [True, *[False] * 58, True, True]
