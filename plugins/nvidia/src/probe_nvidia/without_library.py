"""What there is to say where NVIDIA's library cannot be asked at all."""

from __future__ import annotations

from probe_core.api import NotApplicable, Unavailable, not_applicable
from probe_nvidia import facts, passive
from probe_nvidia.reasons import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from probe_nvidia.scene import Scene

    Answer = Iterable[dict[str, Any]] | NotApplicable

__all__ = ["answer"]

_ABSENT = ("library-missing", "driver-not-installed")
# Of a Jetson: modules before JetPack 6 have no NVML at all, or the stub of the CUDA toolkit.
_NO_NVML = ("library-missing", "library-broken", "library-too-old", "not-supported")


def answer(scene: Scene, error: Unavailable) -> Answer:
    """Return what files say of the GPUs, and why the library does not answer."""
    if scene.only_suspected and error.code in _ABSENT:
        # Windows, or WSL with another vendor's GPU: nothing says that NVIDIA hardware is here.
        return not_applicable(error.reason)
    on_pci = any(name.startswith("pci:") for name in scene.cards)
    if scene.soc and not on_pci and error.code in (*_NO_NVML, "driver-not-loaded"):
        return passive.soc_alone(scene)
    if not isinstance(error, Failure):
        fact = facts.fact("library", "unknown", error.reason)
        error = Failure(error.reason, code=error.code, fix=error.fix or "", fact=fact)
    return passive.unavailable(scene, error)
