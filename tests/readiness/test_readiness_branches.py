"""Which driver branches serve a GPU: both sides of each bound of NVIDIA's list of legacy GPUs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.readiness.nvidia import branch_for, opposed, refusal
from probe_core.readiness.unbound import too_old_for

TOO_NEW, TOO_OLD = "legacy-branch", "driver-too-old-for-gpu"
CLOSED, OPEN = "closed-module-unsupported", "open-module-unsupported"


def gpu(arch: str | None, number: int = 1, chip: str = "") -> Any:
    id_ = f"pci:0000:{number:02x}:00.0"
    chips = {"id": chip or None, "candidates": []}
    return {"id": id_, "kind": "gpu", "vendor": "nvidia", "arch": arch, "chip": chips}


def scene(version: str = "", *devices: Any, is_open: bool = False) -> Any:
    module = "NVIDIA UNIX Open Kernel Module for x86_64" if is_open else "NVIDIA UNIX x86_64"
    text = f"NVRM version: {module}  {version}  Mon Dec 30\n"
    return SimpleNamespace(nvidia_version=text, devices=devices, driver=lambda device: "nvidia")


@pytest.mark.parametrize(
    ("arch", "version", "cause"),
    [
        ("tesla", "340.108", None),
        ("tesla", "341.0", TOO_NEW),
        ("fermi", "390.157", None),
        ("fermi", "391.0", TOO_NEW),
        ("kepler", "470.256.02", None),
        ("kepler", "471.0", TOO_NEW),
        ("maxwell", "580.95.05", None),
        ("maxwell", "581.0", TOO_NEW),
        ("pascal", "366.0", TOO_OLD),
        ("pascal", "367.27", None),
        ("pascal", "580.95.05", None),
        ("pascal", "581.0", TOO_NEW),
        ("volta", "383.0", TOO_OLD),
        ("volta", "384.59", None),
        ("volta", "580.95.05", None),
        ("volta", "590.44.01", TOO_NEW),
        ("turing", "409.0", TOO_OLD),
        ("turing", "410.57", None),
        ("ampere", "449.0", TOO_OLD),
        ("ampere", "450.36.06", None),
        ("hopper", "519.0", TOO_OLD),
        ("hopper", "520.61.05", None),
        ("ada", "519.0", TOO_OLD),
        ("ada", "520.56.06", None),
        ("blackwell", "569.0", TOO_OLD),
        ("blackwell", "570.86.10", CLOSED),
        ("rubin", "600.0", CLOSED),
        ("of tomorrow", "340.0", None),
    ],
)
def test_a_closed_module(arch: str, version: str, cause: str | None) -> None:
    step: Any = refusal(gpu(arch), scene(version))
    assert (step and step["code"]) == cause


@pytest.mark.parametrize(
    ("arch", "chip", "cause"),
    [
        *((arch, "", OPEN) for arch in ("maxwell", "pascal", "volta")),
        *((arch, "", None) for arch in ("turing", "ampere", "hopper", "ada", "blackwell")),
        ("hopper", "nvidia/gh200-96gb", None),
    ],
)
def test_the_open_module(arch: str, chip: str, cause: str | None) -> None:
    step: Any = refusal(gpu(arch, chip=chip), scene("580.95.05", is_open=True))
    assert (step and step["code"]) == cause


def test_grace_hopper_needs_the_open_module() -> None:
    device = gpu("hopper", chip="nvidia/gh200-96gb")
    step: Any = refusal(device, scene("580.95.05"))
    assert step["code"] == CLOSED
    device["chip"] = {"id": None, "candidates": ["nvidia/gh200-96gb", "nvidia/h100-sxm"]}
    assert refusal(device, scene("580.95.05")) is None


def test_a_version_that_nobody_knows_refuses_nothing() -> None:
    assert refusal(gpu("kepler"), scene("of unknown")) is None


@pytest.mark.parametrize(
    ("arches", "expected"),
    [
        (["tesla"], "340"),
        (["kepler"], "470"),
        (["volta"], "580"),
        (["ampere"], "535"),
        (["blackwell"], "570"),
        (["ampere", "blackwell"], "570"),
        (["ampere", "volta"], "580"),
        (["volta", "kepler"], "470"),
        (["of tomorrow"], ""),
        ([None], ""),
    ],
)
def test_which_branch_to_install(arches: list[str | None], expected: str) -> None:
    devices = [gpu(arch, number) for number, arch in enumerate(arches)]
    assert branch_for(devices[0], scene("", *devices)) == expected


@pytest.mark.parametrize(
    ("arches", "code", "is_opposed"),
    [
        (["kepler", "blackwell"], "nouveau-bound", True),
        (["blackwell", "volta"], "driver-too-old-for-gpu", True),  # 580 serves both, but not open
        (["volta", "blackwell"], "open-module-unsupported", True),
        (["turing", "blackwell"], "closed-module-unsupported", False),
        (["kepler", "ampere"], "legacy-branch", False),
        (["fermi", "ampere"], "no-driver", True),
        (["kepler", "blackwell"], "node-missing", False),
        (["kepler"], "nouveau-bound", False),
    ],
)
def test_gpus_that_no_driver_serves_together(
    arches: list[str], code: str, is_opposed: bool
) -> None:
    devices = [{**gpu(arch, number), "name": None} for number, arch in enumerate(arches)]
    here = scene("", *devices)
    here.container = None
    text: Any = opposed(devices[0], code, here)
    assert (text is not None) is is_opposed
    if is_opposed:
        assert f"this GPU ({arches[0]}) and pci:0000:01:00.0 ({arches[1]})" in text
    here.container = "docker"
    assert opposed(devices[0], code, here) is None
    here.container = None
    for other in devices[1:]:  # what a guest has, and what no driver of NVIDIA is for
        for change in ({"kind": "cpu"}, {"vendor": "amd"}, {"id": "usb:1"}):
            here.devices = [devices[0], {**other, **change}]
            assert opposed(devices[0], code, here) is None
    here.devices, here.driver = devices, lambda device: "vfio-pci"
    assert opposed(devices[0], code, here) is None


@pytest.mark.parametrize(
    ("module", "arch", "before", "first"),
    [
        ("i915", "xe-hpg", "6.1.0-13-amd64", "6.2"),
        ("xe", "xe2", "6.11.0-29-generic", "6.12"),
        ("amdgpu", "rdna3", "5.19.17", "6.0"),
        ("amdgpu", "rdna3.5", "6.9.12-arch1-1", "6.10"),
        ("amdgpu", "rdna4", "6.11", "6.12"),
        ("amdxdna", "xdna2", "6.13.9", "6.14"),
        ("amdxdna", None, "6.13.9", "6.14"),
        ("intel_vpu", "npu4", "6.2.0-39-generic", "6.3"),
    ],
)
def test_each_driver_takes_a_device_from_its_first_linux_on(
    module: str, arch: str | None, before: str, first: str
) -> None:
    device: Any = {"arch": arch}

    def told(release: str) -> str | None:
        return too_old_for(device, SimpleNamespace(release=release), module)  # type: ignore[arg-type]

    assert (told(before), told(f"{first}.0-1"), told("7.0")) == (first, None, None)
    # RHEL keeps its number and takes later drivers; what cannot be read is not called old.
    assert [told(f"4.18.0-553.el{version}.x86_64") for version in (8, 9, 10)] == [None] * 3
    assert [told(release) for release in ("", "6", "six.one")] == [None] * 3


def test_what_no_kernel_lacks_is_never_too_old() -> None:
    old: Any = SimpleNamespace(release="3.10.0")
    pairs = [("amdgpu", "rdna2"), ("nvidia", "hopper"), ("i915", None), (None, "rdna4")]
    devices: list[Any] = [{"arch": arch} for _, arch in pairs]
    found = [too_old_for(d, old, m) for d, (m, _) in zip(devices, pairs, strict=True)]
    assert found == [None] * 4
