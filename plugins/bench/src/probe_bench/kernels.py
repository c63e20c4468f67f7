"""The register kernel: which instructions a CPU has for a type, and how they are compiled."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Loop = Callable[[int, float, float], float]
    """A compiled kernel: rounds, factor, term; see kernels.c."""


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


# The C compiler that is there: gcc or clang, by whichever name.

_COMPILERS = ("cc", "gcc", "clang")
_SOURCE = os.path.join(os.path.dirname(__file__), "kernels.c")
_TIMEOUT_S = 20
"""A kernel takes half a second; a compiler on a dead network file system never answers."""


class CompilerError(Exception):
    """A compiler that is missing or fails; the message is the reason."""


class Compiler(NamedTuple):
    """A C compiler: its program, and its name with version."""

    program: str
    name: str

    def build(self, folder: str, name: str, flags: Sequence[str]) -> Loop:
        """Compile kernels.c and return its loop; raises `CompilerError`."""
        path = os.path.join(folder, f"{name}.so")
        # Contraction makes one fused instruction of a product and a sum.
        fixed = ("-O3", "-shared", "-fPIC", "-ffp-contract=fast")
        done = _run([self.program, *fixed, *flags, "-o", path, _SOURCE])
        if done.returncode:
            raise CompilerError(f"{self.name} does not compile it: {_error(done.stderr)}")
        try:
            loop = ctypes.CDLL(path).run
        except OSError as error:  # a file system that is mounted noexec
            raise CompilerError(f"the kernel cannot be loaded: {error}") from None
        loop.restype = ctypes.c_double
        loop.argtypes = [ctypes.c_uint64, ctypes.c_double, ctypes.c_double]
        result: Loop = loop
        return result


def find_compiler(environ: Mapping[str, str]) -> Compiler:
    """Return the compiler that CC names, else the first on PATH; raises `CompilerError`."""
    for name in (environ.get("CC", ""), *_COMPILERS):
        program = shutil.which(name, path=environ.get("PATH")) if name else None
        if program:
            return Compiler(program, named(_run([program, "--version"]).stdout, program))
    raise CompilerError("no C compiler is installed; install gcc or clang")


def named(version: str, program: str) -> str:
    """Return ``gcc 12.2.0`` or ``clang 14.0.6`` of what ``--version`` prints."""
    first = version.partition("\n")[0]
    kind = "clang" if "clang" in first.lower() else "gcc" if "Free Software" in version else ""
    numbers = [part for part in first.split() if part[:1].isdecimal() and "." in part]
    # Debian puts its own version in brackets before gcc's.
    return f"{kind or os.path.basename(program)} {numbers[-1].split('-')[0]}" if numbers else kind


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        reason = f"{command[0]} cannot be run: {error.strerror or error}"
    except subprocess.TimeoutExpired:
        reason = f"{command[0]} does not answer within {_TIMEOUT_S} s"
    raise CompilerError(reason)


def _error(text: str) -> str:
    """Return the first error that a compiler wrote."""
    lines = text.splitlines()
    errors = [line.rpartition("error: ")[2] for line in lines if "error: " in line]
    return (errors or lines or ["no reason"])[0][:200]
