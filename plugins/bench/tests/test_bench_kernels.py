"""Which instructions are taken, how compilers are named, and that kernels compute their sums."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from probe_bench.kernels import CLOCK, CLOCK_ADDS, CompilerError, find_compiler, kernel_for, named
from probe_bench.library_runs import blas_name

AVX512 = ["avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"]


@pytest.mark.parametrize(
    ("dtype", "arch", "flags", "name", "operations", "accumulate"),
    [
        ("fp32", "x86_64", AVX512, "AVX-512", 16 * 16 * 2, "fp32"),
        ("fp64", "AMD64", AVX512, "AVX-512", 16 * 8 * 2, "fp64"),
        ("fp16", "x86_64", AVX512, "AVX-512 FP16", 16 * 32 * 2, "fp16"),
        ("bf16", "x86_64", AVX512, "AVX-512 BF16", 16 * 16 * 2 * 2, "fp32"),
        ("int8", "x86_64", AVX512, "AVX-512 VNNI", 16 * 16 * 4 * 2, "int32"),
        ("int8", "x86_64", ["avx512f", "avx512_vnni"], "AVX-512 VNNI", 16 * 16 * 4 * 2, "int32"),
        ("int8", "x86_64", ["avx_vnni"], "AVX-VNNI", 12 * 8 * 4 * 2, "int32"),
        ("fp32", "x86_64", ["avx2", "fma", "avx"], "AVX2 and FMA", 12 * 8 * 2, "fp32"),
        ("fp32", "x86_64", ["avx2", "avx"], "AVX", 12 * 8 * 2, "fp32"),  # a guest without FMA
        ("fp32", "x86_64", ["avx"], "AVX", 12 * 8 * 2, "fp32"),
        ("fp64", "x86_64", [], "SSE2", 12 * 2 * 2, "fp64"),
        ("fp32", "arm64", [], "NEON", 16 * 4 * 2, "fp32"),
        ("fp16", "aarch64", ["asimdhp"], "NEON fp16", 16 * 8 * 2, "fp16"),
        ("int8", "aarch64", ["asimddp"], "NEON dot", 16 * 4 * 4 * 2, "int32"),
        ("bf16", "aarch64", ["bf16"], "NEON bf16", 16 * 4 * 2 * 2, "fp32"),
    ],
)
def test_widest_instructions_are_taken(
    dtype: str, arch: str, flags: list[str], name: str, operations: int, accumulate: str
) -> None:
    kernel = kernel_for(dtype, arch, flags)
    assert kernel is not None
    assert (kernel.name, kernel.operations, kernel.accumulate) == (name, operations, accumulate)


@pytest.mark.parametrize(
    ("dtype", "arch"),
    [("int8", "x86_64"), ("bf16", "x86_64"), ("fp16", "x86_64"), ("int8", "aarch64"),
     ("bf16", "aarch64"), ("fp16", "aarch64"), ("fp32", "riscv64"), ("fp8", "x86_64")],
)  # fmt: skip
def test_no_instructions_no_kernel(dtype: str, arch: str) -> None:
    assert kernel_for(dtype, arch, ["avx2", "fma"]) is None


@pytest.mark.parametrize("dtype", ["int8", "bf16", "fp16"])
@pytest.mark.parametrize("flags", [["avx512f"], ["avx512_vnni", "avx512_bf16", "avx512_fp16"]])
def test_half_of_the_instructions_is_none(dtype: str, flags: list[str]) -> None:
    assert kernel_for(dtype, "x86_64", flags) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation",
         "gcc 12.2.0"),
        ("cc (Ubuntu 13.2.0-23ubuntu4) 13.2.0\nFree Software Foundation, Inc.", "gcc 13.2.0"),
        ("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu", "clang 14.0.6"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)\n", "clang 18.1.3"),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)\n", "clang 15.0.0"),
        ("tcc version 0.9.27 (x86_64 Linux)\n", "tcc 0.9.27"),
    ],
)  # fmt: skip
def test_name_of_a_compiler(text: str, name: str) -> None:
    assert named(text, "/usr/bin/tcc") == name


@pytest.mark.parametrize(
    ("arch", "flags", "dtype", "expected"),
    [
        ("x86_64", AVX512, "fp32", ("float", 64, 16, "-mavx512f", "-mfma")),
        ("x86_64", AVX512, "fp16", ("_Float16", 64, 16, "-mavx512fp16")),
        ("x86_64", ["avx2", "fma"], "fp64", ("double", 32, 12, "-mavx2", "-mfma")),
        ("x86_64", ["avx"], "fp32", ("float", 32, 12, "-mavx")),
        ("x86_64", [], "fp32", ("float", 16, 12)),
        ("aarch64", [], "fp64", ("double", 16, 16)),
        ("aarch64", ["asimdhp"], "fp16", ("_Float16", 16, 16, "-march=armv8.2-a+fp16")),
    ],
)
def test_what_a_kernel_is_compiled_with(
    arch: str, flags: list[str], dtype: str, expected: tuple[str, int, int]
) -> None:
    kind, width, chains, *options = expected
    kernel = kernel_for(dtype, arch, flags)
    assert kernel is not None
    own = (f"-DTYPE={kind}", f"-DBYTES={width}", f"-DCHAINS={chains}", *options)
    assert kernel.flags == own


@pytest.mark.parametrize(
    ("arch", "flags", "dtype", "expected"),
    [
        ("x86_64", AVX512, "int8", "INT8 16 -mavx512f -mavx512vnni"),
        ("x86_64", ["avx_vnni"], "int8", "INT8 12 -mavx2 -mavxvnni"),
        ("x86_64", AVX512, "bf16", "BF16 16 -mavx512f -mavx512bf16"),
        ("aarch64", ["asimddp"], "int8", "INT8 16 -march=armv8.2-a+dotprod"),
        ("aarch64", ["bf16"], "bf16", "BF16 16 -march=armv8.2-a+bf16"),
    ],
)
def test_what_a_kernel_of_dot_products_is_compiled_with(
    arch: str, flags: list[str], dtype: str, expected: str
) -> None:
    kind, chains, *options = expected.split()
    kernel = kernel_for(dtype, arch, flags)
    assert kernel is not None
    assert kernel.flags == (f"-DDOT_{kind}", f"-DCHAINS={chains}", *options)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo note >&2; echo x.c:1: error: no type >&2; echo error: b >&2", "no type"),
        ("echo first >&2; echo second >&2", "first"),
        ("printf 'error: %0300d' 0 >&2", "0" * 200),
        ("", "no reason"),
    ],
)
def test_a_compilers_first_error_is_quoted(script: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "cc"
    path.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo gcc 12.2.0 && exit\n{script}\nexit 1\n")
    path.chmod(0o755)
    compiler = find_compiler({"CC": str(path), "PATH": "/bin"})
    with pytest.raises(CompilerError) as error:
        compiler.build(str(tmp_path), "fp32", CLOCK)
    assert str(error.value) == f"{compiler.name} does not compile it: {reason}"


def test_no_compiler_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CompilerError, match="no C compiler is installed; install gcc or clang"):
        find_compiler({"PATH": str(tmp_path)})


def test_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\necho 'k.c:1:2: error: no such insn' >&2\nexit 1\n")
    fake.chmod(0o755)
    compiler = find_compiler({"PATH": str(tmp_path)})
    with pytest.raises(CompilerError, match="cc does not compile it: no such insn"):
        compiler._replace(name="cc").build(str(tmp_path), "fp32", ())


compiled = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.mark.heavy
@compiled
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "fp16", "bf16", "int8"])
def test_kernel_computes_all_of_its_sums(dtype: str, tmp_path: Path) -> None:
    kernel = kernel_for(dtype, platform.machine(), flags_of_this_cpu())
    if kernel is None:
        assert dtype not in ("fp32", "fp64")
        return
    loop = find_compiler({"PATH": "/usr/bin:/bin"}).build(str(tmp_path), dtype, kernel.flags)
    assert loop(1000, kernel.value, kernel.value) == kernel.total
    if kernel.value:
        # The sums follow the recurrence of a factor and a term: 1 * 0.5 + 0.25, 0.75 * 0.5 + 0.25.
        assert loop(2, 0.5, 0.25) == 0.625 * kernel.total


@compiled
def test_clock_counts_its_adds(tmp_path: Path) -> None:
    loop = find_compiler({"PATH": "/usr/bin:/bin"}).build(str(tmp_path), "clock", CLOCK)
    assert loop(1000, 0.0, 0.0) == 1000 * CLOCK_ADDS


def flags_of_this_cpu() -> list[str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = [line for line in lines if line.startswith(("flags", "Features"))]
    return flags[0].partition(":")[2].split() if flags else []


@pytest.mark.parametrize(
    ("blas", "name"),
    [
        ({"name": "scipy-openblas", "version": "0.3.31"}, "OpenBLAS 0.3.31"),
        ({"name": "accelerate", "version": "unknown"}, "accelerate unknown"),
        ({}, "BLAS of unknown kind"),
    ],
)
def test_name_of_numpys_library(blas: dict[str, str], name: str) -> None:
    assert blas_name({"Build Dependencies": {"blas": blas}}) == name
