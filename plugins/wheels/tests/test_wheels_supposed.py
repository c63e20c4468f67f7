"""`probe doctor --if torch=…`: the series that has code for the devices, and the driver for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_wheels.supposed import CHECKS


def report(capability: str, driver: str = "580.95.05", arch: str = "x86_64") -> dict[str, Any]:
    device = {
        "id": "pci:0000:01:00.0",
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "GPU",
        "arch": None,
        "parent": None,
        "chip": {"id": None, "candidates": [], "name": None},
        "compute_capability": capability,
        "driver": {"name": "nvidia", "version": driver} if driver else None,
        "memory": {"kind": "dedicated"},
        "readiness": {"state": "ready", "broken": None, "steps": []},
        "visibility": {},
    }
    return {"devices": [device], "node": {"os": "linux", "arch": arch}, "primary": device["id"]}


def answered(document: dict[str, Any], **assumed: str) -> dict[str, Any]:
    return CHECKS[0].run(SimpleNamespace(report=document, assumed=assumed))  # type: ignore[return-value]  # plain data


CASES = {
    "Volta's last with 12.8": (
        "7.0", "580.95.05", "2.10", "info", "has code for sm_70",
        "builds: cu126, cu128", "nothing to do",
    ),
    "Ampere on 2.11": (
        "8.0", "580.95.05", "2.11.1", "info", "has code for sm_80",
        "builds: cu130, cu126, cu128", "nothing to do",
    ),
    "Ampere with a driver of CUDA 12": (
        "8.0", "525.60.13", "2.11", "info", "has code for sm_80",
        "builds: cu126, cu128", "nothing to do",
    ),
    "Kepler has none": (
        "3.5", "470.256.02", "2.12", "error", "has no code for sm_35",
        "no listed build has", "nothing to do",
    ),
    "Blackwell on 470": (
        "12.0", "470.256.02", "2.11", "error",
        "needs the driver 525.60.13; 470.256.02 is assumed or here",
        "its builds: cu130, cu128", "install the driver 525.60.13 or newer",
    ),
    "without a driver's version": (
        "8.9", "", "2.11", "info", "has code for sm_89",
        "builds: cu130, cu126, cu128; the driver's version is unknown", "nothing to do",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_series_is_judged(name: str) -> None:
    capability, driver, torch, severity, what, why, fix = CASES[name]
    (finding,) = answered(report(capability, driver), torch=torch)["findings"]
    series = torch.removesuffix(".1")
    assert [finding[key] for key in ("severity", "what", "why", "fix", "device")] == [
        severity, f"PyTorch {series} {what}", why, fix, "pci:0000:01:00.0"
    ]  # fmt: skip


@pytest.mark.parametrize("torch", ["2.5", "1.13", "2"])
def test_an_older_series_is_not_known(torch: str) -> None:
    answer = answered(report("8.0"), torch=torch)
    assert answer["status"] == "unknown"
    assert answer["reason"] == "which builds PyTorch had before 2.10 is not listed"


def test_a_driver_alone_says_its_cuda() -> None:
    (finding,) = answered(report("8.0", "595.45.04"), driver="595.45.04")["findings"]
    assert finding["what"] == "the driver 595.45.04 has CUDA 13.2"


def test_what_is_not_asked_does_not_apply() -> None:
    assert answered(report("8.0"), boot="next")["status"] == "not_applicable"
    assert answered({**report("8.0"), "devices": []}, torch="2.11")["status"] == "not_applicable"


def of(vendor: str, **facts: Any) -> dict[str, Any]:
    document = report("8.0")
    device = {**document["devices"][0], "id": "pci:0000:02:00.0", "vendor": vendor, "driver": None}
    return {**device, "compute_capability": None, **facts}


OTHERS = {
    "AMD's, with code today": ("amd", {"gfx": "gfx1100"}, "a build has code for gfx1100"),
    "AMD's, without": ("amd", {"gfx": "gfx803"}, "no published build of PyTorch has code for"),
    "AMD's of an unknown processor": ("amd", {}, "its processor (gfx) is unknown"),
    "Intel's of an unknown family": ("intel", {}, "its architecture is unknown"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_series_has_for_others_is_not_known(name: str) -> None:
    vendor, facts, words = OTHERS[name]
    answer = answered({**report("8.0"), "devices": [of(vendor, **facts)]}, torch="2.11")
    (finding,) = answer["findings"]
    assert (answer["status"], finding["severity"]) == ("unknown", "info")
    assert answer["reason"] == "the builds that a series has are listed for NVIDIA's GPUs alone"
    assert finding["what"].startswith("PyTorch 2.11: whether it has code for ")
    assert words in finding["why"]


def test_a_card_of_amd_beside_nvidias_is_not_left_out() -> None:
    document = report("8.0")
    card = of("amd", gfx="gfx1100")
    processor = of("intel", id="pci:0000:00:02.0", memory={"kind": "shared"})
    mixed = {**document, "devices": [*document["devices"], card, processor]}
    told = {f["device"]: f["what"] for f in answered(mixed, torch="2.11")["findings"]}
    assert told == {
        "pci:0000:01:00.0": "PyTorch 2.11 has code for sm_80",
        "pci:0000:02:00.0": "PyTorch 2.11: whether it has code for gfx1100 is not known",
    }


def test_a_failure_of_nvidias_stays_one_beside_others() -> None:
    document = report("3.5")
    mixed = {**document, "devices": [*document["devices"], of("amd", gfx="gfx1100")]}
    assert answered(mixed, torch="2.12")["status"] == "failed"
