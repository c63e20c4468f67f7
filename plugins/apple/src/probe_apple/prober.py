"""Reports the GPUs of a Mac, and the Neural Engine of Apple silicon; opens no Metal device."""

from __future__ import annotations

from probe_apple import intel_mac, silicon
from probe_apple.scene import PCI, PROFILER, Scene
from probe_core.api import Unavailable, hookimpl, not_applicable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_apple.sampler import Sampler
    from probe_core.api import NotApplicable, Request, SampleRequest


@hookimpl
def probe_devices(request: Request) -> NotApplicable | list[dict[str, Any]]:
    """Answer with what the Mac reports within four fifths of the deadline.

    The last fifth is for ending the commands that are late, and for the answer's way back.
    """
    scene = Scene(request.machine, request.deadline_s * 0.8)
    if scene.silicon:
        devices = [silicon.gpu(scene), silicon.neural(scene)]
        return [device for device in devices if device]
    gpus = list(intel_mac.gpus(scene))
    if gpus:
        return gpus
    if reason := scene.reason("", PCI, PROFILER):
        raise Unavailable(
            f"this Mac's GPUs cannot be read: {reason}",
            code="commands-failed",
            fix="run /usr/sbin/system_profiler SPDisplaysDataType to see what it reports",
        )
    return not_applicable("neither ioreg nor system_profiler lists a GPU")


@hookimpl
def open_sampler(request: SampleRequest) -> Sampler:
    """Return what samples the GPUs; ioreg takes 20 ms of processor time a round."""
    from probe_apple.sampler import Sampler

    return Sampler(request.machine, request.deadline_s * 0.4)
