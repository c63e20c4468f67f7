"""Which instructions a CPU has for a type, and how the register kernel is compiled for them."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["CLOCK", "CLOCK_ADDS", "Kernel", "kernel_for"]

CLOCK_ADDS = 32
"""Dependent adds of one round of the clock's loop."""

CLOCK = ("-DCLOCK",)
"""What makes the clock's loop of kernels.c."""


class Kernel(NamedTuple):
    """How kernels.c is compiled for one type.

    `name` is for people; `lanes` the results of one instruction, each of which takes `products`
    multiplications and as many additions; `chains` instructions do not wait for each other.
    """

    name: str
    flags: tuple[str, ...]
    accumulate: str
    chains: int
    lanes: int
    products: int = 1

    @property
    def operations(self) -> int:
        """Operations of one round."""
        return self.chains * self.lanes * self.products * 2

    @property
    def total(self) -> float:
        """What the kernel returns when it computed all its sums, which are 1 each."""
        return float(self.chains * self.lanes)

    @property
    def value(self) -> float:
        """Factor and term that keep the sums: 1 * 0.5 + 0.5 is 1; products of 0 add nothing."""
        return 0.0 if self.flags[0].startswith("-DDOT") else 0.5


_C_TYPES = {"fp32": ("float", 4), "fp64": ("double", 8), "fp16": ("_Float16", 2)}


def kernel_for(dtype: str, arch: str, flags: Collection[str]) -> Kernel | None:
    """Return the kernel of a type for the best instructions that the CPU reports; None for none.

    `arch` as `platform.machine` has it, `flags` as /proc/cpuinfo has them.
    """
    if arch.lower() in ("x86_64", "amd64"):
        return _x86(dtype, flags)
    if arch.lower() in ("aarch64", "arm64"):
        return _arm(dtype, flags)
    return None


def _x86(dtype: str, flags: Collection[str]) -> Kernel | None:
    wide = "avx512f" in flags
    if dtype == "int8" and {"avx512f", "avx512_vnni"} <= set(flags):
        return _dot("AVX-512 VNNI", "INT8", ("-mavx512f", "-mavx512vnni"), "int32", 16, 16, 4)
    if dtype == "int8":
        own = ("-mavx2", "-mavxvnni")
        return _dot("AVX-VNNI", "INT8", own, "int32", 12, 8, 4) if "avx_vnni" in flags else None
    if dtype == "bf16":
        own = ("-mavx512f", "-mavx512bf16")
        has = wide and "avx512_bf16" in flags
        return _dot("AVX-512 BF16", "BF16", own, "fp32", 16, 16, 2) if has else None
    if dtype == "fp16":
        has = wide and "avx512_fp16" in flags
        return _vector("AVX-512 FP16", dtype, 64, 16, "-mavx512fp16") if has else None
    if wide:
        return _vector("AVX-512", dtype, 64, 16, "-mavx512f", "-mfma")
    if "avx2" in flags and "fma" in flags:
        return _vector("AVX2 and FMA", dtype, 32, 12, "-mavx2", "-mfma")
    if "avx" in flags:
        return _vector("AVX", dtype, 32, 12, "-mavx")
    return _vector("SSE2", dtype, 16, 12)


def _arm(dtype: str, flags: Collection[str]) -> Kernel | None:
    if dtype == "int8":
        own = ("-march=armv8.2-a+dotprod",)
        return _dot("NEON dot", "INT8", own, "int32", 16, 4, 4) if "asimddp" in flags else None
    if dtype == "bf16":
        own = ("-march=armv8.2-a+bf16",)
        return _dot("NEON bf16", "BF16", own, "fp32", 16, 4, 2) if "bf16" in flags else None
    if dtype == "fp16":
        has = "asimdhp" in flags
        return _vector("NEON fp16", dtype, 16, 16, "-march=armv8.2-a+fp16") if has else None
    return _vector("NEON", dtype, 16, 16)


def _vector(name: str, dtype: str, width: int, chains: int, *options: str) -> Kernel | None:
    if dtype not in _C_TYPES:
        return None
    kind, size = _C_TYPES[dtype]
    flags = (f"-DTYPE={kind}", f"-DBYTES={width}", f"-DCHAINS={chains}", *options)
    return Kernel(name, flags, dtype, chains, width // size)


def _dot(
    name: str,
    kind: str,
    options: tuple[str, ...],
    accumulate: str,
    chains: int,
    lanes: int,
    products: int,
) -> Kernel:
    flags = (f"-DDOT_{kind}", f"-DCHAINS={chains}", *options)
    return Kernel(name, flags, accumulate, chains, lanes, products)
