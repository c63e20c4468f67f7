"""Every key of every version of old exo's table is found, and a mapping's manners are kept."""

from __future__ import annotations

import pytest

from probe_exo.device_capabilities import CHIP_FLOPS, DeviceFlops

KEYS = """
AMD Custom GPU 0405
AMD Radeon 8060S
AMD Radeon Graphics
AMD Radeon RX 6400
AMD Radeon RX 6500 XT
AMD Radeon RX 6600
AMD Radeon RX 6600 XT
AMD Radeon RX 6700
AMD Radeon RX 6700 XT
AMD Radeon RX 6800
AMD Radeon RX 6800 XT
AMD Radeon RX 6900 XT
AMD Radeon RX 7500
AMD Radeon RX 7600
AMD Radeon RX 7700 XT
AMD Radeon RX 7800 XT
AMD Radeon RX 7900 XT
AMD Radeon RX 7900 XTX
Apple A13 Bionic
Apple A14 Bionic
Apple A15 Bionic
Apple A16 Bionic
Apple A17 Pro
Apple M1
Apple M1 Max
Apple M1 Pro
Apple M1 Ultra
Apple M2
Apple M2 Max
Apple M2 Pro
Apple M2 Ultra
Apple M3
Apple M3 Max
Apple M3 Pro
Apple M3 Ultra
Apple M4
Apple M4 Max
Apple M4 Pro
Intel(R) Arc(TM) A770 Graphics
NVIDIA A10
NVIDIA A100 40GB PCIE
NVIDIA A100 80GB PCIE
NVIDIA A100 80GB SXM
NVIDIA A40 48GB PCIE
NVIDIA A800 40GB PCIE
NVIDIA A800 80GB PCIE
NVIDIA A800 80GB SXM
NVIDIA GEFORCE GTX 1050 TI
NVIDIA GEFORCE GTX 1070
NVIDIA GEFORCE GTX 1080
NVIDIA GEFORCE GTX 1080 TI
NVIDIA GEFORCE RTX 2060
NVIDIA GEFORCE RTX 2060 SUPER
NVIDIA GEFORCE RTX 2070
NVIDIA GEFORCE RTX 2070 SUPER
NVIDIA GEFORCE RTX 2080
NVIDIA GEFORCE RTX 2080 SUPER
NVIDIA GEFORCE RTX 2080 TI
NVIDIA GEFORCE RTX 3050
NVIDIA GEFORCE RTX 3060
NVIDIA GEFORCE RTX 3060 TI
NVIDIA GEFORCE RTX 3070
NVIDIA GEFORCE RTX 3070 TI
NVIDIA GEFORCE RTX 3080 (10 GB)
NVIDIA GEFORCE RTX 3080 (12 GB)
NVIDIA GEFORCE RTX 3080 TI
NVIDIA GEFORCE RTX 3090
NVIDIA GEFORCE RTX 3090 TI
NVIDIA GEFORCE RTX 4060 TI
NVIDIA GEFORCE RTX 4060 TI 16GB
NVIDIA GEFORCE RTX 4070
NVIDIA GEFORCE RTX 4070 SUPER
NVIDIA GEFORCE RTX 4070 TI
NVIDIA GEFORCE RTX 4070 TI SUPER
NVIDIA GEFORCE RTX 4080
NVIDIA GEFORCE RTX 4080 SUPER
NVIDIA GEFORCE RTX 4090
NVIDIA GEFORCE RTX 4090 D
NVIDIA GEFORCE RTX 5070
NVIDIA GEFORCE RTX 5070 MOBILE
NVIDIA GEFORCE RTX 5070 TI
NVIDIA GEFORCE RTX 5070 TI MOBILE
NVIDIA GEFORCE RTX 5080
NVIDIA GEFORCE RTX 5080 MOBILE
NVIDIA GEFORCE RTX 5090
NVIDIA GEFORCE RTX 5090 MOBILE
NVIDIA GeForce GTX 1660 TI
NVIDIA QUADRO RTX 3000 MXM
NVIDIA QUADRO RTX 5000
NVIDIA QUADRO RTX 5000 MAX-Q
NVIDIA QUADRO RTX 5000 MOBILE
NVIDIA QUATRO RTX A2000
NVIDIA QUATRO RTX A4000
NVIDIA QUATRO RTX A4500
NVIDIA QUATRO RTX A5000
NVIDIA QUATRO RTX A6000
NVIDIA Quadro RTX 3000
NVIDIA RTX 2000 Ada Generation Laptop GPU
NVIDIA RTX 4000 ADA GENERATION
NVIDIA RTX A2000
NVIDIA RTX A4000
NVIDIA RTX A4500
NVIDIA RTX A5000
NVIDIA RTX A6000
NVIDIA T1000 8GB
NVIDIA TITAN RTX
Nvidia GeForce RTX 3050
Nvidia GeForce RTX 3060
Nvidia GeForce RTX 3060 Ti
Nvidia GeForce RTX 3070
Nvidia GeForce RTX 3070 Ti
Nvidia GeForce RTX 3080 (10 GB)
Nvidia GeForce RTX 3080 (12 GB)
Nvidia GeForce RTX 3080 Ti
Nvidia GeForce RTX 3090
Nvidia GeForce RTX 3090 Ti
Nvidia GeForce RTX 4060 Ti 16GB
Nvidia GeForce RTX 4070
Nvidia GeForce RTX 4070 Super
Nvidia GeForce RTX 4070 Ti
Nvidia GeForce RTX 4070 Ti Super
Nvidia GeForce RTX 4080
Nvidia GeForce RTX 4080 Super
Nvidia GeForce RTX 4090
Quadro M2000
Quadro P400
""".strip().splitlines()
"""The names alone, of all versions from June 2024 to the branches of 2025."""

NO_FIGURE = {"AMD Radeon Graphics", "AMD Radeon RX 7500"}
"""One is the name of every integrated GPU of AMD; the other was never sold."""


@pytest.mark.parametrize("key", KEYS)
def test_an_old_key_is_found(key: str) -> None:
    assert key in CHIP_FLOPS
    assert (CHIP_FLOPS[key].fp32 > 0) is (key not in NO_FIGURE)


@pytest.mark.parametrize(
    ("key", "fp32"),
    [
        ("Apple A16 Bionic", 1.7869),
        ("NVIDIA QUATRO RTX A6000", 38.7072),
        ("NVIDIA QUADRO RTX 5000 MOBILE", 9.4372),
        ("NVIDIA QUADRO RTX 3000 MXM", 5.2992),
    ],
)
def test_a_key_that_no_driver_writes_is_its_chips(key: str, fp32: float) -> None:
    assert CHIP_FLOPS[key].fp32 == pytest.approx(fp32, rel=0.02)


def test_what_is_no_name_is_no_key() -> None:
    nothing = DeviceFlops(fp32=0, fp16=0, int8=0)
    for key in (None, 7, ("Apple M1",), b"Apple M1", ""):
        assert key not in CHIP_FLOPS
        assert CHIP_FLOPS.get(key, nothing) is nothing  # type: ignore[call-overload]
        with pytest.raises(KeyError):
            CHIP_FLOPS[key]  # type: ignore[index]
    with pytest.raises(TypeError, match="unhashable"):
        CHIP_FLOPS.get([])  # type: ignore[call-overload]
    assert CHIP_FLOPS.get(None) is None  # type: ignore[call-overload]
