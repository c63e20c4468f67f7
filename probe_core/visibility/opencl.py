"""What OpenCL and SYCL show, which stand on the compute runtime of each vendor.

OpenCL: each vendor's platform follows the variable that its runtime reads. Indexes count within a
platform.
AMD: GPU_DEVICE_ORDINAL over ROCR_VISIBLE_DEVICES (ROCm clr, rocdevice.cpp, the same code as HIP).
NVIDIA: CUDA_VISIBLE_DEVICES, which acts in the driver below both. Intel: ZE_AFFINITY_MASK, read by
the part of compute-runtime that OpenCL and Level Zero share.
"""

from __future__ import annotations

from probe_core.visibility.view import Mask, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

VARIABLE = "GPU_DEVICE_ORDINAL"
DEVICE_SELECTOR = "ONEAPI_DEVICE_SELECTOR"
AFFINITY_MASK = "ZE_AFFINITY_MASK"


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


# SYCL (DPC++): ONEAPI_DEVICE_SELECTOR over what each backend's own rules left.


def see_sycl(devices: Sequence[DeviceDoc], environ: Mapping[str, str], backend: View) -> View:
    """Return what SYCL would show of a backend: `backend` is the view of level-zero, cuda or hip.

    SYCL numbers each backend's devices from 0.
    """
    value = environ.get(DEVICE_SELECTOR)
    masks, variable = [Mask(mask.ids) for mask in backend.masks], backend.variable
    if value:
        from probe_core.visibility import oneapi  # hardly anybody sets it

        by_id = {device["id"]: device for device in devices}
        name = backend.runtime.replace("-", "_")
        masks = [oneapi.selected(value, {name: mask.ids}, by_id) for mask in backend.masks]
        variable = DEVICE_SELECTOR
    sycl = View("sycl", backend.pool, masks, variable=variable, value=value or backend.value)
    sycl.complete = backend.complete
    if not backend.certain:
        sycl.uncertain, sycl.settled_by = backend.uncertain, backend.settled_by
    sycl.follow(backend)
    return sycl
