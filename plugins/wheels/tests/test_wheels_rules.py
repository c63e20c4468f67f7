"""Which code runs on which GPU, and which driver it needs: a row on each side of each bound."""

from __future__ import annotations

from typing import Any

import pytest

from probe_wheels.devices import Gpu
from probe_wheels.documents import LibraryDoc
from probe_wheels.rules import (
    compiles_on,
    cuda_of_driver,
    dotted,
    driver_of_ptx,
    driver_of_toolkit,
    runs_on,
    runs_on_xe,
    toolkit_of_ptx,
    version_of,
)
from probe_wheels.verdicts import judge_library, targets_text


@pytest.mark.parametrize(
    ("target", "device", "toolkit", "expected"),
    [
        ("sm_80", (8, 0), (), True),
        ("sm_80", (8, 6), (), True),
        ("sm_86", (8, 0), (), False),
        ("sm_80", (9, 0), (), False),
        ("sm_90", (8, 9), (), False),
        ("sm_90a", (9, 0), (), True),
        ("sm_100a", (10, 3), (), False),
        ("sm_100f", (10, 3), (), True),
        ("ptx_80@7.0", (8, 0), (), False),
        # Thor has two numbers, and takes no code of its neighbours.
        ("sm_101", (11, 0), (), True),
        ("sm_110", (10, 1), (), True),
        ("sm_110a", (10, 1), (), True),
        ("sm_100", (10, 1), (), False),
        ("sm_101", (10, 3), (), False),
        ("sm_110", (11, 1), (), False),
        # A Jetson takes its series' code from toolkit 13.2 on.
        ("sm_80", (8, 7), (), False),
        ("sm_80", (8, 7), (13, 1), False),
        ("sm_80", (8, 7), (13, 2), True),
        ("sm_86", (8, 7), (13, 2), True),
        ("sm_87", (8, 7), (), True),
        ("sm_87", (8, 9), (13, 2), False),
        ("sm_70", (7, 2), (13, 2), True),
        ("sm_50", (5, 3), (13, 2), False),
        ("sm_52", (5, 3), (), False),
        ("sm_60", (6, 2), (), False),
        ("sm_61", (6, 2), (13, 2), False),
        ("sm_72", (7, 5), (), False),
        ("sm_53", (5, 3), (), True),
    ],
)
def test_machine_code(
    target: str, device: tuple[int, int], toolkit: tuple[int, ...], expected: bool
) -> None:
    assert runs_on(target, device, toolkit) is expected


@pytest.mark.parametrize(
    ("target", "device", "expected"),
    [
        ("ptx_80@7.0", (8, 0), True),
        ("ptx_80@7.0", (12, 1), True),
        ("ptx_86@7.1", (8, 0), False),
        ("ptx_90a@8.0", (9, 0), True),
        ("ptx_90a@8.0", (10, 0), False),
        ("ptx_100f@8.8", (10, 0), True),
        ("ptx_100f@8.8", (10, 3), True),
        ("ptx_103f@8.8", (10, 0), False),
        ("ptx_100f@8.8", (12, 0), False),
        ("sm_80", (8, 0), False),
    ],
)
def test_ptx(target: str, device: tuple[int, int], expected: bool) -> None:
    assert compiles_on(target, device) is expected


@pytest.mark.parametrize(
    ("version", "release", "expected"),
    [
        (["12.55.8"], "12.55", True),
        (["12.55.8"], "12.57", True),
        (["12.56.5"], "12.55", False),
        (["12.70.4", "20.1.0"], "20.4", True),
        (["source.8"], "12.55", False),
        ([], "12.55", False),
    ],
)
def test_code_for_ip_versions(version: list[str], release: str, expected: bool) -> None:
    assert runs_on_xe(version, release) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("580.95.05", (580, 95, 5)),
        ("12", (12,)),
        ("2.9.1+cu128", (2, 9, 1)),
        ("2.9rc1.3", (2, 9)),
        ("999999999.1", (999999999, 1)),
        ("1.1234567890.2", (1,)),
        ("", ()),
        ("x1.2", ()),
    ],
)
def test_numbers_of_a_version(text: str, expected: tuple[int, ...]) -> None:
    assert version_of(text) == expected


def test_which_driver_a_build_needs() -> None:
    assert driver_of_toolkit((), "linux") == ()
    assert driver_of_toolkit((99,), "linux") == ()
    assert driver_of_toolkit((12, 8), "linux") == (525, 60, 13)
    assert driver_of_toolkit((12, 8), "windows") == (528, 33)
    assert driver_of_ptx((8, 5), "linux") == (555, 42, 2)
    assert driver_of_ptx((8, 6), "linux") == (565, 57, 1)
    assert driver_of_ptx((8, 6), "windows") == (565,)
    assert driver_of_ptx((6, 5), "linux") == driver_of_ptx((6, 0), "linux") == (440, 33)
    assert driver_of_ptx((99, 0), "linux") == ()
    assert toolkit_of_ptx((8, 7)) == (12, 8)
    assert toolkit_of_ptx((6, 0)) == (10, 2)
    assert toolkit_of_ptx((99, 0)) == toolkit_of_ptx((9, 2)) == (13, 2)
    assert cuda_of_driver((570, 26), "linux") == (12, 8)
    assert cuda_of_driver((570, 25), "linux") == (12, 7)
    assert cuda_of_driver((570, 10), "windows") == (12, 8)
    assert cuda_of_driver((440, 32), "linux") == ()
    assert dotted((525, 60, 13)) == "525.60.13"
    assert dotted((570, 5)) == "570.05"


def gpu(vendor: str, **facts: object) -> Gpu:
    made = Gpu("pci:0000:01:00.0", vendor, "the card")
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def groups(text: str) -> list[tuple[list[str], int]]:
    """Return what ``sm_80,sm_86*10 sm_90`` says: sets of targets, and how many have each."""
    pairs = (part.partition("*") for part in text.split())
    return [(names.split(","), int(count or 1)) for names, _, count in pairs]


@pytest.mark.parametrize(
    ("code", "needed", "capability", "driver", "expected"),
    [
        # Code from sm_80 on was made with CUDA 11 at least, from sm_100 on with CUDA 12.
        ("sm_75", "", (7, 5), (418, 40), "native"),
        ("sm_75,sm_80", "", (7, 5), (450, 80, 1), "450.80.02"),
        ("sm_80", "", (8, 0), (450, 80, 2), "native"),
        ("sm_90a", "", (9, 0), (450, 80, 2), "native"),
        ("sm_100", "", (10, 0), (525, 60, 12), "525.60.13"),
        ("sm_100f", "", (10, 0), (525, 60, 13), "native"),
        ("ptx_100@7.0,sm_75", "", (7, 5), (450, 36), "450.80.02"),
        ("ptx_75@8.0,sm_75", "", (7, 5), (525, 60), "525.60.13"),
        # What it links says the major version.
        ("sm_75", "libc.so.6 libcudart.so.12", (7, 5), (450, 80, 2), "525.60.13"),
        ("sm_100", "libcudart.so.11.0", (10, 0), (450, 80, 2), "native"),
        ("sm_75", "libcudart.so.x libcublas.so.12", (7, 5), (440, 33), "native"),
        # A tenth of the containers of the most frequent target.
        ("sm_80*10 sm_90", "", (9, 0), (), "native"),
        ("sm_80*11 sm_90", "", (9, 0), (), "lacks-device"),
        ("sm_80*11 ptx_90@8.0", "", (9, 0), (), "lacks-device"),
        ("sm_80*10 ptx_90@8.0", "", (9, 0), (), "jit-only"),
        ("sm_80*20 sm_90 ptx_90@8.0", "", (9, 0), (), "jit-only"),
        ("sm_80*10 ptx_90@8.7", "", (9, 0), (570, 25), "570.26"),
        ("sm_80*10 ptx_90@8.7", "", (9, 0), (570, 26), "jit-only"),
        ("sm_80*10 ptx_90@8.8,ptx_90@8.7", "", (9, 0), (535, 54), "570.26"),
        ("ptx_90@99.0", "", (9, 0), (999, 0), "a driver newer than any known here"),
        ("sm_80", "", (), (570, 26), "unknown"),
    ],
)
def test_cuda(
    code: str, needed: str, capability: tuple[int, int], driver: tuple[int, ...], expected: str
) -> None:
    device = gpu("nvidia", capabilities=(capability,) if capability else (), driver=driver)
    found = judge_library({"cuda": groups(code), "needed": needed.split()}, device, ())
    answer = found.verdict if found.verdict != "needs-newer-driver" else found.needs
    assert answer.removeprefix("driver ").removesuffix(" or newer") == expected


HOPPER, AMBIGUOUS = {"capabilities": ((9, 0),)}, {"capabilities": ((8, 0), (9, 0))}
MI300 = {"processor": "gfx942"}
ARC = {"families": ("xe-hpg",), "releases": ("12.56",)}
ARC_OR_CORE = {"families": ("xe-hpg",), "releases": ("12.56", "12.71")}
CORE = {"families": ("xe-lpg",), "releases": ("12.71",)}


@pytest.mark.parametrize(
    ("library", "vendor", "facts", "expected"),
    [
        ({"cuda": groups("sm_80"), "problem": "cut off"}, "nvidia", HOPPER, "unknown"),
        ({"cuda": groups("sm_90"), "problem": "cut off"}, "nvidia", HOPPER, "native"),
        ({"cuda": groups("sm_90")}, "nvidia", AMBIGUOUS, "lacks-device"),
        ({"hip": groups("gfx1100*10 gfx942")}, "amd", MI300, "native"),
        ({"hip": groups("gfx1100*11 gfx942")}, "amd", MI300, "lacks-device"),
        ({"hip": groups("gfx1100"), "unread": 1}, "amd", MI300, "unknown"),
        ({"hip": groups("gfx1100"), "packs": True}, "amd", MI300, "lacks-device"),
        ({"packs": True}, "amd", MI300, "unknown"),
        ({"hip": groups("gfx1100")}, "amd", {}, "unknown"),
        ({"xe": ["12.55.8"]}, "intel", {}, "unknown"),
        ({"xe": ["12.55.8"]}, "intel", {"families": ("xe-hpg",)}, "unknown"),
        ({"xe": ["12.55.8"]}, "intel", ARC, "native"),
        ({"xe": ["12.55.8"]}, "intel", ARC_OR_CORE, "unknown"),
        ({"xe": ["12.55.8"]}, "intel", CORE, "lacks-device"),
        ({"xe": ["12.55.8"], "intel": "native", "spirv": True}, "intel", CORE, "jit-only"),
        ({}, "intel", CORE, "unknown"),
        ({}, "apple", {}, "native"),
    ],
)
def test_one_library_on_one_device(
    library: LibraryDoc, vendor: str, facts: dict[str, Any], expected: str
) -> None:
    assert judge_library(library, gpu(vendor, **facts), ()).verdict == expected


def test_old_graphics_of_intel_are_left_out_by_torch_alone() -> None:
    old = gpu("intel", families=("xe-lp",), releases=("12.0",))
    assert judge_library({"spirv": True}, old, ()).verdict == "jit-only"
    assert judge_library({"spirv": True}, old, (), torch=True).verdict == "lacks-device"
    older = gpu("intel", families=("gen9",))
    assert judge_library({"spirv": True}, older, ()).verdict == "lacks-device"


def test_the_targets_that_count_in_order() -> None:
    code = "sm_100,sm_90a,ptx_90@8.0,ptx_90@8.7*10 sm_80"
    assert targets_text(groups(code)) == "sm_80, sm_90a, sm_100, PTX of sm_90"
    assert targets_text(groups(f"{code} sm_90a")) == "sm_90a, sm_100, PTX of sm_90"
    assert targets_text([]) == "no code for a GPU"


def test_which_devices_take_the_same_code() -> None:
    made = [gpu("amd", processor="gfx1100"), gpu("amd", processor="gfx1100")]
    assert made[0].kind == made[1].kind
    for name, value in {"xnack": True, "processor": "gfx942", "driver": (1,), "os": "x"}.items():
        assert gpu("amd", **{"processor": "gfx1100", name: value}).kind != made[0].kind, name
