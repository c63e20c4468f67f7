"""What each of tinygrad's backends runs on, under its names of all versions.

Sources: tinygrad/runtime/ops_*.py and ALL_DEVICES of device.py at 0.9.2 to 0.14.0.
"""

from __future__ import annotations

__all__ = ["CPU", "NOT_HARDWARE", "VENDORS", "canonical"]

_RENAMED = {"GPU": "CL", "CLANG": "CPU", "LLVM": "CPU"}
"""Old name to new: GPU became CL in 0.12, CLANG became CPU in 0.10.1, LLVM a renderer in 0.12."""

CPU = "CPU"

NOT_HARDWARE = frozenset({"DISK", "TINYFS", "NPY", "NULL", "PYTHON", "REMOTE", "CLOUD", "RDMA"})
"""Backends that are files, other machines or an interpreter: never queried."""

VENDORS = {
    "AMD": "amd",
    "HIP": "amd",
    "HSA": "amd",
    "NV": "nvidia",
    "CUDA": "nvidia",
    "METAL": "apple",
    "QCOM": "qualcomm",
    "DSP": "qualcomm",
}
"""The vendor of the hardware that a backend can run on. CL and WEBGPU run on anyone's."""


def canonical(backend: str) -> str:
    """Return the newest name of `backend` ("CL" for "GPU"); unknown names stay as they are."""
    return _RENAMED.get(backend, backend)
