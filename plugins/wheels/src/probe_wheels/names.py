"""Names of the files that may hold code for a GPU, and of the machines that they are built for."""

from __future__ import annotations

__all__ = [
    "MACHINES", "SKIPPED", "SUFFIXES", "VENDOR_NAMES", "code_target", "cubin_target", "is_library",
    "processors_in",
]  # fmt: skip

SKIPPED = "-"
"""Stands for a file of machine code that decides nothing."""

_KERNEL_FOLDERS = (
    "rocblas", "hipblaslt", "miopen", "aotriton", "hipsparselt", "hiptensor", "rocfft",
)  # fmt: skip

VENDOR_NAMES = {
    "nvidia": "NVIDIA",
    "amd": "AMD",
    "intel": "Intel",
    "apple": "Apple",
    "qualcomm": "Qualcomm",
}

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

SUFFIXES = (".so", ".pyd", ".dll", ".dylib", ".metallib", ".kpack", ".cubin", ".co", ".hsaco")
"""Endings of the files that are looked into, beside ``.so.4`` with a version."""


def is_library(path: str) -> bool:
    """Return whether the name of a file says that it may hold code for a GPU."""
    name = path.rpartition("/")[2]
    if name.endswith(SUFFIXES):
        return True
    _, dot, version = name.rpartition(".so.")
    return bool(dot) and version.replace(".", "").isdigit()


def code_target(path: str) -> str:
    """Return what the name of a file of machine code says that it is for, or "".

    Those below a library's own folder (rocBLAS, hipBLASLt, MIOpen, AOTriton) do not decide.
    """
    if path.endswith(".cubin"):
        return cubin_target(path)
    if not path.endswith((".co", ".hsaco")):
        return ""
    if any(f"/{name}" in path.lower() for name in _KERNEL_FOLDERS):
        return SKIPPED
    return next((name for name in processors_in(path) if name), "")


def processors_in(text: str) -> list[str]:
    """Return the processors in a text: ``gfx90a`` of Kernels.so-000-gfx90a-xnack-.hsaco."""
    processors = []
    for part in text.split("gfx")[1:]:
        digits = ""
        for char in part:
            if char not in "0123456789abcdef" or len(digits) == 4:
                break
            digits += char
        if len(digits) >= 3:
            processors.append("gfx" + digits)
    return processors


def cubin_target(path: str) -> str:
    """Return ``sm_100a`` of ``fmha/fmhaSm100aKernel.cubin``: the last target in a path, or ""."""
    target = ""
    for part in path.lower().replace("sm_", "sm").split("sm")[1:]:
        end = next((at for at, char in enumerate(part) if not char.isdecimal()), len(part))
        if end in (2, 3):
            target = f"sm_{part[:end]}{part[end : end + 1] if part[end : end + 1] in 'af' else ''}"
    return target
