"""Names of the files that may hold code for a GPU, and of the machines that they are built for."""

from __future__ import annotations

__all__ = ["MACHINES", "SUFFIXES", "cubin_target", "is_library"]

MACHINES = {
    3: "i686",
    21: "ppc64le",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    190: "cuda",
    224: "amdgpu",
    243: "riscv64",
    258: "loongarch64",
}
"""e_machine of ELF files as `uname -m` names it; two are code of GPUs."""

SUFFIXES = (".so", ".pyd", ".dll", ".dylib", ".metallib", ".kpack", ".cubin")
"""Endings of the files that are looked into, beside ``.so.4`` with a version."""


def is_library(path: str) -> bool:
    """Return whether the name of a file says that it may hold code for a GPU."""
    name = path.rpartition("/")[2]
    if name.endswith(SUFFIXES):
        return True
    _, dot, version = name.rpartition(".so.")
    return bool(dot) and version.replace(".", "").isdigit()


def cubin_target(path: str) -> str:
    """Return ``sm_100a`` of ``fmha/fmhaSm100aKernel.cubin``: the last target in a path, or ""."""
    target = ""
    for part in path.lower().replace("sm_", "sm").split("sm")[1:]:
        end = next((at for at, char in enumerate(part) if not char.isdecimal()), len(part))
        if end in (2, 3):
            target = f"sm_{part[:end]}{part[end : end + 1] if part[end : end + 1] in 'af' else ''}"
    return target
