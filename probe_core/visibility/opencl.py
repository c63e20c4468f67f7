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


def see_sycl(
    devices: Sequence[DeviceDoc], environ: Mapping[str, str], backends: Sequence[View]
) -> View:
    """Return what SYCL would show; `backends` are the views of level-zero, cuda and hip."""
    value = environ.get(DEVICE_SELECTOR)
    by_id = {device["id"]: device for device in devices}
    pool = [name for view in backends for name in view.pool]
    combinations = _combinations(backends)
    masks = [Mask([name for own in ids.values() for name in own]) for ids in combinations]
    if value:
        from probe_core.visibility import oneapi  # hardly anybody sets it

        masks = [oneapi.selected(value, ids, by_id) for ids in combinations]
    variable = DEVICE_SELECTOR if value else None
    sycl = View("sycl", pool, masks, variable=variable, value=value)
    sycl.complete = all(view.complete for view in backends)
    unsure = next((view for view in backends if not view.certain), None)
    if unsure is not None:
        sycl.uncertain, sycl.settled_by = unsure.uncertain, unsure.settled_by
    for view in backends:
        sycl.follow(view)
        if not value and len(backends) == 1:
            sycl.variable, sycl.value = view.variable, view.value
    return sycl


def _combinations(backends: Sequence[View]) -> list[dict[str, list[str]]]:
    """Return each combination of the backends' possible results, by the names SYCL gives them."""
    combinations: list[dict[str, list[str]]] = [{}]
    for view in backends:
        name = view.runtime.replace("-", "_")
        combinations = [ids | {name: mask.ids} for ids in combinations for mask in view.masks]
    return combinations
