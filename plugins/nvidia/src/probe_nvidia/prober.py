"""The hooks: decide who may be asked about the NVIDIA hardware of a machine, and ask.

The driver's library (NVML) is loaded only where something says that NVIDIA hardware is here and
none of it sleeps: as root even its initialisation creates /dev/nvidiactl, and it wakes a laptop's
GPU for many seconds (btop#1831). Otherwise the kernel's files answer.
"""

from __future__ import annotations

from probe_core.api import hookimpl, not_applicable
from probe_nvidia.scene import Scene

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from probe_core.api import NotApplicable, Request, SampleRequest
    from probe_nvidia import live, tegra
    from probe_nvidia.causes import Failure

    Answer = Iterable[dict[str, Any]] | NotApplicable

_NOTHING = "no NVIDIA device on the bus, no NVIDIA driver"

_ABSENT = ("library-missing", "driver-not-installed")
# Of a Jetson: modules before JetPack 6 have no NVML at all, or the stub of the CUDA toolkit.
_NO_NVML = (
    "library-missing",
    "library-broken",
    "library-too-old",
    "not-supported",
    "driver-not-loaded",
)


@hookimpl
def probe_devices(request: Request) -> Answer:
    """Report every NVIDIA GPU and MIG instance; raises `Unavailable` with the exact reason.

    Sources: NVML, /proc/driver/nvidia, the device tree of Jetson modules.
    """
    scene = Scene(request)
    if not scene.evidence:
        return not_applicable(_NOTHING)
    if drivers := scene.reserved:
        reason = f"{' and '.join(drivers)} reserves every NVIDIA GPU for virtual machines"
        return not_applicable(reason)
    if not scene.machine.live or (scene.asleep and not request.active):
        from probe_nvidia import files

        return files.asleep(scene) if scene.machine.live else files.recorded(scene)
    return _ask_library(scene)


def _ask_library(scene: Scene) -> Answer:
    # Imported here: the C types of the calls cost as much as the rest, and are often not needed.
    from probe_nvidia import causes, nvml, walk

    try:
        library = nvml.start(scene)
    except causes.Failure as error:
        return _without_library(scene, error)
    return walk.devices(library, scene)


def _without_library(scene: Scene, error: Failure) -> Answer:
    """Return what files say of the GPUs, and why the library does not answer."""
    from probe_nvidia import files

    if scene.only_suspected and error.code in _ABSENT:
        # Windows, or WSL with another vendor's GPU: nothing says that NVIDIA hardware is here.
        return not_applicable(error.reason)
    on_pci = any(name.startswith("pci:") for name in scene.cards)
    if scene.soc and not on_pci and error.code in _NO_NVML:
        return files.module_alone(scene, scene.soc)
    return files.unavailable(scene, error)


@hookimpl
def open_sampler(request: SampleRequest) -> live.Sampler | tegra.Sampler | NotApplicable:
    """Return what samples every GPU and MIG instance."""
    scene = Scene(request)
    if not scene.evidence:
        return not_applicable(_NOTHING)
    if not scene.machine.live:
        return not_applicable("a recorded machine has no library to ask")
    if scene.reserved:
        return not_applicable("every NVIDIA GPU is reserved for virtual machines")
    if scene.soc:
        from probe_nvidia import tegra

        return tegra.Sampler(scene.machine, scene.soc)
    from probe_nvidia import live

    return live.Sampler(scene)
