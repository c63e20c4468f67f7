"""`CHIP_FLOPS`: a read-only view of chipdb that old keys find their way in."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest

from probe_exo.device_capabilities import CHIP_FLOPS, DeviceFlops, Figures, _flops, figures_by_name


@pytest.mark.parametrize(
    ("key", "fp32", "fp16"),
    [
        ("NVIDIA GeForce RTX 4090", 82.57536, 165.15072),
        ("NVIDIA GEFORCE RTX 4090", 82.57536, 165.15072),
        ("NVIDIA GEFORCE RTX 3060 LAPTOP GPU", 12.96, None),
        ("NVIDIA A100-SXM4-80GB", 19.491840, 311.869440),
        ("Tesla V100-SXM2-16GB", 15.667200, 125.337600),
        ("AMD Radeon RX 7900 XTX", 61.44, 122.88),
        ("Apple M1 Max", 10.616832, 10.616832),
    ],
)
def test_names_of_drivers_and_old_keys_are_found(key: str, fp32: float, fp16: float | None) -> None:
    found = CHIP_FLOPS[key]
    assert isinstance(found, DeviceFlops)
    assert found.fp32 == pytest.approx(fp32, rel=0.03)
    if fp16 is not None:
        assert found.fp16 == pytest.approx(fp16, rel=0.03)
    assert key in CHIP_FLOPS


def test_an_unknown_name_is_not_guessed() -> None:
    assert "NVIDIA GeForce RTX 4095" not in CHIP_FLOPS
    assert 7 not in CHIP_FLOPS
    with pytest.raises(KeyError, match="RTX 4095: not in chipdb; near: NVIDIA GeForce RTX 40"):
        CHIP_FLOPS["NVIDIA GeForce RTX 4095"]
    assert figures_by_name("RTX 4095") == Figures(
        reasons=dict.fromkeys(("fp32", "fp16", "int8"), "no chip is named 'RTX 4095'"), known=False
    )
    default = DeviceFlops(fp32=0, fp16=0, int8=0)
    assert CHIP_FLOPS.get("NVIDIA GeForce RTX 4095", default) is default


M1 = "the largest of apple/m1-7c, apple/m1-8c"
PINNED = "the number that old exo's tests pin; how many GPU cores there are is not told; chipdb: "


def test_a_name_of_several_chips_has_the_largest_and_says_what_is_not_known() -> None:
    found = figures_by_name("Apple M1")
    assert found.ambiguous
    int8 = "no dense int8 path of apple/m1-8c is known"
    assert found.reasons == {"fp32": M1, "fp16": M1, "int8": int8}
    assert figures_by_name("NVIDIA GeForce RTX 4090").reasons == {}


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac tells how many cores it has")
def test_the_chip_of_old_exos_tests_has_their_numbers_and_no_other() -> None:
    flops, reasons = _flops("Apple M3 Max")
    assert flops == (14.20, 28.40, 56.80)
    assert reasons == {"fp32": f"{PINNED}14.13", "fp16": f"{PINNED}14.13", "int8": f"{PINNED}0.00"}
    m1 = figures_by_name("Apple M1")
    assert _flops("Apple M1") == (m1.numbers, m1.reasons)


def test_it_is_a_mapping_that_nobody_can_change() -> None:
    assert isinstance(CHIP_FLOPS, Mapping)
    assert len(CHIP_FLOPS) == len(list(CHIP_FLOPS)) > 1000
    with pytest.raises(TypeError):
        CHIP_FLOPS["x"] = DeviceFlops(fp32=1, fp16=1, int8=1)  # type: ignore[index]
    CHIP_FLOPS["Apple M1"].fp32 = 0.0
    assert CHIP_FLOPS["Apple M1"].fp32 > 2


@pytest.mark.heavy
def test_a_fork_adds_chips_to_a_copy() -> None:
    own = {
        "Apple M1": DeviceFlops(fp32=1, fp16=1, int8=1),
        "mine": DeviceFlops(fp32=2, fp16=2, int8=2),
    }
    added = CHIP_FLOPS | own
    assert (added["Apple M1"].fp32, added["mine"].fp32) == (1, 2)
    assert (own | CHIP_FLOPS)["Apple M1"].fp32 > 2
    assert CHIP_FLOPS.copy() == dict(CHIP_FLOPS)


def test_every_key_that_it_lists_can_be_looked_up() -> None:
    names = list(CHIP_FLOPS)
    for name in names[:: len(names) // 100]:
        assert CHIP_FLOPS[name].fp32 >= 0
