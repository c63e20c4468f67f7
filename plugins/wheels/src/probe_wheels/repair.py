"""The line that installs a build with code for a device, or the driver for the build."""

from __future__ import annotations

from probe_wheels.choice import best_build, choose, pin_of, why_no_build
from probe_wheels.distributions import normal
from probe_wheels.frameworks import framework_of
from probe_wheels.names import VENDOR_NAMES
from probe_wheels.tables import DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_wheels.devices import Gpu
    from probe_wheels.documents import FrameworkDoc, VerdictDoc

__all__ = ["repair_of"]


def repair_of(
    verdict: VerdictDoc,
    gpu: Gpu,
    extra: Mapping[str, FrameworkDoc] | None = None,
    *,
    served: bool = False,
) -> str:
    """Return one line that repairs a verdict, or says that nothing published would.

    `served` is whether another device of the node runs the wheel.
    """
    name = verdict["wheel"].partition(" ")[0]
    entry = framework_of(name, extra)
    key, framework = entry or ("", None)
    kind = verdict["verdict"]
    if kind == "jit-only" or (served and (kind == "other-vendor" or not gpu.discrete)):
        return "nothing to do"
    if kind == "lacks-device" and framework and _is_too_old(framework, gpu):
        return framework["instead"]
    install = _install(name, framework, gpu)
    if kind == "lacks-device" and not (framework and framework.get("published")):
        install = None  # the same build again would lack the device again
    if kind == "needs-newer-driver":
        driver = f"install {verdict['needs'].removesuffix(' or newer')} of NVIDIA or a newer one"
        return f"{driver}; or: {install}" if install else driver
    if install:
        return install
    if kind == "other-vendor" and framework and gpu.vendor not in framework["builds"]:
        vendor = VENDOR_NAMES.get(gpu.vendor, gpu.vendor)
        return f"use another GPU for {name}: its makers publish no build for {vendor}"
    # The variable counts for all GPUs: it would take the code away from the one that runs it.
    if kind == "lacks-device" and not served and (offer := _override(verdict, gpu)):
        return offer
    return _by_hand(name, key, gpu, kind)


def _is_too_old(framework: FrameworkDoc, gpu: Gpu) -> bool:
    """Return whether nothing that the makers publish, source or build, supports the GPU."""
    pairs = gpu.capabilities if "instead" in framework else ()
    return any(10 * major + minor < framework.get("least", 0) for major, minor in pairs)


def _override(verdict: VerdictDoc, gpu: Gpu) -> str | None:
    """Return the variable that makes an AMD GPU take a sibling's code, if the wheel has that."""
    if gpu.os != "linux":
        return None  # the variable does nothing on Windows (ROCm/TheRock #1719)
    entry = DRIVERS["override"].get(gpu.processor or "")
    if not isinstance(entry, list) or entry[0] not in verdict["has"]:
        return None
    sibling, value = entry
    note = f"it then takes the code for {sibling}, which often works and AMD does not support"
    return f"try: export HSA_OVERRIDE_GFX_VERSION={value}  ({note})"


def _by_hand(name: str, key: str, gpu: Gpu, kind: str) -> str:
    reason = why_no_build(gpu) if key.startswith("torch") else None
    if reason:
        return f"use {name} on the CPU: {reason}"
    if not key and kind == "other-vendor":
        return f"use another GPU for {name}, or see whether its documentation names another build"
    target = gpu.target or gpu.name
    return f"install a build of {name} for {target}, or build it from source for {target}"


def _install(name: str, framework: FrameworkDoc | None, gpu: Gpu) -> str | None:
    template = framework.get("fix", {}).get(gpu.vendor) if framework else None
    if template is None:
        return None
    if "{torch}" in template and why_no_build(gpu) is not None:
        return None
    if "{major}" in template and not gpu.capabilities:
        return None
    return (
        template.replace("{torch}", _torch(gpu) if "{torch}" in template else "")
        .replace("{major}", _major(gpu))
        .replace("{name}", normal(name))
    )


def _torch(gpu: Gpu) -> str:
    """Return PyTorch as `uv pip install` takes it: ``'torch<2.11' --torch-backend=cu128``."""
    choice = best_build(gpu, [gpu]) if gpu.vendor == "nvidia" else choose([_alone(gpu)])
    pin = pin_of(choice.series)
    quoted = f"'{pin}'" if "<" in pin else pin
    return f"{quoted} --torch-backend={choice.backend}"


def _alone(gpu: Gpu) -> Gpu:
    """Return a device as if it could be used: the repair of a wheel is not that of a driver."""
    from copy import copy

    alone = copy(gpu)
    alone.state, alone.visible = "ready", True
    return alone


def _major(gpu: Gpu) -> str:
    """Return the newest CUDA major version that device and driver both take."""
    new = min(gpu.capabilities, default=(0, 0)) >= (7, 5)
    return "13" if new and (not gpu.driver or gpu.driver >= (580,)) else "12"
