"""The hook: decides who may be asked about the NVIDIA hardware of a machine, and asks.

The driver's library (NVML) is loaded only where something says that NVIDIA hardware is here and
none of it sleeps: as root even its initialisation creates /dev/nvidiactl, and it wakes a laptop's
GPU for many seconds (btop#1831). Otherwise the kernel's files answer.
"""

from __future__ import annotations

from probe_core.api import (
    NotApplicable,
    Request,
    SampleRequest,
    Unavailable,
    hookimpl,
    not_applicable,
)
from probe_nvidia.scene import Scene

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from probe_nvidia.sampler import Sampler

    Answer = Iterable[dict[str, Any]] | NotApplicable

__all__ = ["probe_devices", "sample_close", "sample_devices"]

_sampler: Sampler | None = None
"""What this process has opened, when it is one that samples."""


@hookimpl
def probe_devices(request: Request) -> Answer:
    """Report every NVIDIA GPU and MIG instance; raises `Unavailable` with the exact reason.

    Sources: NVML, /proc/driver/nvidia, the device tree of Jetson modules.
    """
    scene = Scene(request)
    if not scene.evidence:
        return not_applicable("no NVIDIA device on the bus, no NVIDIA driver")
    if drivers := scene.reserved:
        reason = f"{' and '.join(drivers)} reserves every NVIDIA GPU for virtual machines"
        return not_applicable(reason)
    if not scene.machine.live or (scene.asleep and not request.active):
        from probe_nvidia import passive

        return passive.asleep(scene) if scene.machine.live else passive.recorded(scene)
    return _ask_library(scene)


def _ask_library(scene: Scene) -> Answer:
    # Imported here: the C types of the calls cost as much as the rest, and are often not needed.
    from probe_nvidia import library, report

    try:
        nvml = library.start(scene)
    except Unavailable as error:
        from probe_nvidia import without_library

        return without_library.answer(scene, error)
    return report.devices(nvml, scene)


@hookimpl
def sample_devices(request: SampleRequest) -> Iterable[Mapping[str, Any]] | NotApplicable:
    """Yield what every GPU and MIG instance does now; raises `Unavailable` with the reason."""
    global _sampler
    if _sampler is None:
        from probe_nvidia.sampler import Sampler

        _sampler = Sampler(request)
    return _sampler.sample(request)


@hookimpl
def sample_close() -> None:
    """Close the library, so that the GPUs may sleep."""
    if _sampler is not None:
        _sampler.close()
