"""What OpenCL shows: each vendor's platform follows the variable that its compute runtime reads.

AMD: GPU_DEVICE_ORDINAL over ROCR_VISIBLE_DEVICES (ROCm clr, rocdevice.cpp, the same code as HIP).
NVIDIA: CUDA_VISIBLE_DEVICES, which acts in the driver below both. Intel: ZE_AFFINITY_MASK, read by
the part of compute-runtime that OpenCL and Level Zero share. Indexes count within a platform.
"""

from __future__ import annotations

from probe_core.visibility.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

VARIABLE = "GPU_DEVICE_ORDINAL"


def see(
    devices: Sequence[DeviceDoc], environ: Mapping[str, str], views: Mapping[str, View]
) -> list[View]:
    """Return one view for each platform; `views` holds those of cuda, rocr and level-zero."""
    platforms = [_renamed(views[name]) for name in ("cuda", "level-zero") if name in views]
    if "rocr" in views:
        from probe_core.visibility.amd import see_through

        platforms.append(see_through(devices, environ, views["rocr"], "opencl", (VARIABLE,)))
    elif "hip" in views:  # Windows
        from probe_core.visibility import amd

        platforms.append(amd.see_pal(devices, environ, "opencl", (VARIABLE,)))
    return platforms


def _renamed(view: View) -> View:
    same = View("opencl", view.pool, view.masks)
    for name in View.__slots__:
        if name not in ("runtime", "pool", "masks"):
            setattr(same, name, getattr(view, name))
    return same
