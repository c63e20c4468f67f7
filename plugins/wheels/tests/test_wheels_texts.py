"""What distributions and conda's packages say of their own build, in texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import wheel_files as build

from probe_wheels.distributions import (
    _objects,
    _target_of,
    build_text,
    conda_build,
    libraries_of,
    requires_of,
)
from probe_wheels.files import Budget
from probe_wheels.records import SKIPPED, Listing, code_target, cubin_target, processors_in
from probe_wheels.variants import every_feature


@pytest.mark.parametrize(
    ("text", "build"),
    [
        ("cuda126_mkl_py311h9a1b2c3_300", "cu126"), ("cuda12.6_0", "cu126"), ("cuda_0", None),
        ("cudax_0", None), ("py311_cpu_0", "cpu"), ("cpu_mkl_py311", "cpu"),
        ("rocm64_h1", "rocm64"),
        ("h9a1b2c3_300", None), ("gpu_cuda118", "cu118"), ("", None),
    ],
)  # fmt: skip
def test_the_build_of_a_package_of_conda(text: str, build: str | None) -> None:
    assert conda_build(text) == build


def test_what_a_version_file_assigns() -> None:
    text = """from typing import Optional
__version__ = "2.9.1+cu128"
cuda: Optional[str] = '12.8'
hip: Optional[str] = None
xpu = None  # not built
rocm = 6.4
debug = False
git_version = 'a'
cuda
if cuda == '1':
"""
    assert build_text(text) == {
        "version": "2.9.1+cu128", "cuda": "12.8", "hip": "", "xpu": "", "rocm": "6.4"
    }  # fmt: skip
    pairs = "OrderedDict([('gcc', '9'), ('cuda_version', '12.5.1'), ('is_cuda_build', True)])"
    assert build_text(f"build_info = collections.{pairs}") == {
        "cuda_version": "12.5.1", "is_cuda_build": "True"
    }  # fmt: skip
    assert build_text(f"x({pairs})".replace("12.5.1", "1" * 70))["cuda_version"] == "1" * 64
    assert build_text(f"cuda = '{'1' * 70}'\nrocm = {'2' * 70}") == {
        "cuda": "1" * 64, "rocm": "2" * 64
    }  # fmt: skip
    assert build_text("\n" * 4096 + "cuda = 1") == {}
    assert build_text("\n" * 4095 + "cuda = 1") == {"cuda": "1"}


def test_requirements_that_no_extra_guards() -> None:
    metadata = """Metadata-Version: 2.1
Requires-Dist: numpy >=1.2 ; python_version > "3.8"
Requires-Dist:torch
Requires-Dist: pytest ; extra == "test"
Provides-Extra: test

Requires-Dist: not-one
"""
    assert requires_of(metadata) == ["numpy >=1.2", "torch"]
    assert requires_of(f"Requires-Dist: {'a' * 200}") == ["a" * 128]
    many = "".join(f"Requires-Dist: a{number}\n" for number in range(257))
    assert requires_of(many) == [f"a{number}" for number in range(256)]


def test_files_of_machine_code_are_two_libraries() -> None:
    assert _objects({"sm_90": 2, "gfx942": 3, "sm_80": 1, "": 4}) == {
        "*.cubin": {"format": "cubins", "cuda": [(["sm_80"], 1), (["sm_90"], 2)]},
        "*.co": {"format": "code objects", "hip": [(["gfx942"], 3)]},
    }
    assert _objects({}) == _objects({"other": 1}) == {}


@pytest.mark.parametrize(
    ("document", "target"),
    [
        ({"machines": ["cuda"], "cuda": [(["sm_90"], 1)]}, "sm_90"),
        ({"machines": ["amdgpu"], "hip": [(["gfx942"], 1)]}, "gfx942"),
        ({"machines": ["cuda"]}, ""),
        ({"machines": ["x86_64"], "cuda": [(["sm_90"], 1)]}, ""),
        ({"machines": ["cuda", "amdgpu"], "cuda": [(["sm_90"], 1)]}, ""),
        ({}, ""),
    ],
)
def test_the_target_of_a_file_of_machine_code(document: Any, target: str) -> None:
    assert _target_of(document) == target


@pytest.mark.parametrize(
    ("text", "processors"),
    [
        ("Kernels.so-000-gfx90a-xnack-.hsaco", ["gfx90a"]),
        ("gfx942_gfx1100.co", ["gfx942", "gfx1100"]),
        ("gfx11001", ["gfx1100"]), ("gfx90", []), ("gfx90A", []), ("gfx", []), ("", []),
    ],
)  # fmt: skip
def test_processors_in_a_name(text: str, processors: list[str]) -> None:
    assert processors_in(text) == processors


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("fmha/fmhaSm100aKernel.cubin", "sm_100a"), ("sm_90/k_sm80.cubin", "sm_80"),
        ("k_sm_100f.cubin", "sm_100f"), ("k_sm90x.cubin", "sm_90"), ("k_sm9.cubin", ""),
        ("k_sm1000.cubin", ""), ("sm90a/k.cubin", "sm_90a"), ("k.cubin", ""),
    ],
)  # fmt: skip
def test_the_target_of_a_cubin(path: str, target: str) -> None:
    assert cubin_target(path) == code_target(path) == target


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("aiter/k_gfx942.co", "gfx942"), ("aiter/k.hsaco", ""), ("aiter/k_gfx942.so", ""),
        ("torch/lib/hipblaslt/library/k_gfx942.co", "skipped"),
        ("torch/lib/rocBLAS/library/k_gfx942.co", "skipped"),
    ],
)  # fmt: skip
def test_the_target_of_a_code_object(path: str, target: str) -> None:
    assert code_target(path) == (SKIPPED if target == "skipped" else target)


def test_every_feature_that_a_package_may_name() -> None:
    features = every_feature("nvidia")
    bounds = features["cuda_version_upper_bound"]
    # As wheelnext's own provider: five major versions of 21 minor ones, each also by itself.
    assert (bounds[:2], bounds[20:23]) == (["15.20", "15.19"], ["15.0", "15", "14.20"])
    assert (bounds[-2:], len(bounds)) == (["11.0", "11"], 5 * 22)
    assert (features["sm_arch"][:2], features["sm_arch"][-2:]) == (
        ["121_real", "121_virtual"], ["50_real", "50_virtual"]
    )  # fmt: skip
    lower = features["cuda_version_lower_bound"]
    assert lower[-3:] == ["13", "12", "11"]
    assert {"12.8", "13.0"} < set(lower)
    assert {"gfx90a", "gfx942", "gfx1100"} < set(every_feature("amd")["gfx_arch"])


def test_libraries_that_are_machine_code_are_counted(tmp_path: Path) -> None:
    raw = bytearray(build.elf([(".text", b"")], machine=190, flags=0x5A055A))
    raw[8] = 7
    listing = Listing()
    listing.libraries = ["a.so", "b.so", "gone.so"]
    listing.cubins = {"sm_80": 3}
    for name in ("a.so", "b.so"):
        (tmp_path / name).write_bytes(bytes(raw))
    assert libraries_of(str(tmp_path), listing, Budget(), None) == {
        "*.cubin": {"format": "cubins", "cuda": [(["sm_80"], 3), (["sm_90"], 2)]}
    }
    assert (listing.missing, listing.cubins) == (["gone.so"], {"sm_80": 3})
