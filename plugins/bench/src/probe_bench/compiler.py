"""The C compiler that is there: gcc or clang, by whichever name; and what it makes of a kernel."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Loop = Callable[[int, float, float], float]
    """A compiled kernel: rounds, factor, term; see kernels.c."""

__all__ = ["Compiler", "CompilerError", "find_compiler", "named"]

_NAMES = ("cc", "gcc", "clang")
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
    for name in (environ.get("CC", ""), *_NAMES):
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
