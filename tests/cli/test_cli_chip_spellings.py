"""`probe chip --kind …`: each kind with what its tool really prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe_core.cli import main

NAVI = "03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 31"


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["chip", "--json", *arguments]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    return dict(answer)


@pytest.mark.parametrize(
    ("kind", "query", "id_"),
    [
        ("pci", "10DE:2684", "nvidia/geforce-rtx-4090"),
        ("pci", "0x10de 0x2684", "nvidia/geforce-rtx-4090"),
        ("pci", "10de 2684", "nvidia/geforce-rtx-4090"),
        ("pci", "0x268410DE", "nvidia/geforce-rtx-4090"),
        ("pci", "pci:v000010DEd00002684sv00001043sd0000889Abc03sc00i00", "nvidia/geforce-rtx-4090"),
        ("pci", "1002:744c rev cc", "amd/radeon-rx-7900-xt"),
        ("lspci", "01:00.0 0300: 10de:2684 (rev a1)", "nvidia/geforce-rtx-4090"),
        ("lspci", f"{NAVI} [Radeon RX 7900 XT/7900 XTX/7900M] (rev c8)", "amd/radeon-rx-7900-xtx"),
        ("lspci", "01:00.0 3D controller: NVIDIA Corporation Device 2330", "nvidia/h100-sxm5-80gb"),
        (
            "lspci",
            (
                '01:00.0 "VGA compatible controller" "NVIDIA Corporation" '
                '"AD102 [GeForce RTX 4090]" '
                '-ra1 "ASUSTeK Computer Inc." "Device 889a"'
            ),
            "nvidia/geforce-rtx-4090",
        ),
        ("dt", 'compatible = "rockchip,rk3588-mali", "arm,mali-valhall-csf";', None),
        ("dt", "rockchip,rk3588-mali arm,mali-valhall-csf", None),
        ("dt", "rockchip,rk3588-mali,arm,mali-valhall-csf", None),
        ("dt", "rockchip,rk3588-mali\\0arm,mali-valhall-csf\\0", None),
        ("dt", "of:NgpuT(null)Crockchip,rk3588-maliCarm,mali-valhall-csf", None),
        ("vulkan", "AMD Radeon RX 7900 XTX (RADV NAVI31)", "amd/radeon-rx-7900-xtx"),
        ("wmi", "NVIDIA GeForce RTX 4060 Laptop GPU", "nvidia/geforce-rtx-4060-laptop-gpu"),
        ("cpuinfo", "AMD Ryzen 9 7950X 16-Core Processor", "cpu-zen4"),
        ("cpuinfo", "AMD Ryzen 7 7730U with Radeon Graphics", "cpu-zen2"),
        ("cpuinfo", "Intel(R) Xeon(R) Platinum 8480C", "cpu-spr"),
        ("cpuinfo", "Cortex-A76", "cpu-a76"),
        ("cpuinfo", "Apple M3 Max", "cpu-apple-p"),
    ],
)
def test_kinds(kind: str, query: str, id_: str | None, capsys: Any) -> None:
    answer = ask(capsys, "--kind", kind, query)
    assert answer["match"] is not None
    assert answer["match"]["id"] == (id_ or "arm/rk3588-mali-g610mp4")


def test_a_brand_string_needs_no_kind(capsys: Any) -> None:
    answer = ask(capsys, "AMD EPYC 9654 96-Core Processor")
    assert (answer["match"]["id"], answer["by"]) == ("cpu-zen4", "brand")


@pytest.mark.parametrize(
    "query",
    ["Intel(R) Xeon(R) CPU @ 2.20GHz", "QEMU Virtual CPU version 2.5+", "AMD Ryzen 9 7999X"],
)
def test_a_brand_that_no_rule_pins_is_unknown(query: str, capsys: Any) -> None:
    answer = ask(capsys, "--kind", "cpuinfo", query)
    assert answer["match"] is None
    assert answer["reason"]


def test_what_all_candidates_share_is_told(capsys: Any) -> None:
    answer = ask(capsys, "NVIDIA GeForce RTX 4060 Ti")
    assert answer["match"] is None
    assert len(answer["candidates"]) == 2
    assert {"fp32", "bf16", "int8"} <= {peak["dtype"] for peak in answer["shared_peaks"]}
    assert main(["chip", "NVIDIA GeForce RTX 4060 Ti"]) == 0
    assert "whichever it is:" in capsys.readouterr().out


def test_a_count_in_the_name_is_used(capsys: Any) -> None:
    answer = ask(capsys, "Mali-G610 MC4 (Panfrost)")
    assert (answer["match"]["id"], answer["match"]["units"]) == ("arm/mali-g610", 4)
