"""The environment of tinygrad's process: the user's choices, without what makes it unsafe.

Allowed by name, not forbidden by name: tinygrad reads over a hundred variables, and a common one
such as ``DEBUG=true`` keeps it from being imported at all.
"""

from __future__ import annotations

from probe_tinygrad.targets import KERNEL_INTERFACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["child_environ"]

_ALLOWED = frozenset(
    # the loader's and the compiler's
    "PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH CONDA_PREFIX CC SDKROOT "
    "LANG LC_ALL SYSTEMROOT PATHEXT USER LOGNAME USERNAME "
    # which devices and which renderer tinygrad takes
    "VISIBLE_DEVICES HCQ_VISIBLE_DEVICES AMD_CC CPU_CC CUDA_CC NV_CC QCOM_CC CPU_LLVM CPU_LVP "
    "AMD_LLVM CUDA_PTX NV_PTX NV_NAK PTX WEBGPU_BACKEND "
    # where it looks for libraries
    "CUDA_PATH ROCM_PATH OPENCL_PATH WEBGPU_PATH LLVM_PATH CLANG_PATH".split()
)
_ALLOWED_PREFIXES = ("CUDA_", "HIP_", "ROCR_", "HSA_", "NVIDIA_", "OCL_", "POCL_", "GPU_DEVICE_")


def child_environ(environ: Mapping[str, str], folder: str, dev: str | None) -> dict[str, str]:
    """Return the environment for asking tinygrad; everything it stores goes below `folder`.

    `dev` is the value of ``DEV`` for versions whose ``DEV`` holds targets. Older ones choose the
    interface by variables of their own, which the newer refuse; None sets those.
    """
    allowed = {
        name: value
        for name, value in environ.items()
        if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
    }
    private = dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME"), folder)
    # CACHELEVEL=0 leaves the database closed; the path is for what would open it all the same.
    private |= {"CACHELEVEL": "0", "CACHEDB": f"{folder}/cache.db"}
    private |= {"CUDA_CACHE_PATH": folder, "POCL_CACHE_DIR": folder}
    if dev is not None:
        return allowed | private | {"DEV": dev}
    return allowed | private | {f"{name}_IFACE": value for name, value in KERNEL_INTERFACES.items()}
