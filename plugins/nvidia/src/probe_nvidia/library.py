"""Loads and initialises NVIDIA's management library, or says exactly why that fails."""

from __future__ import annotations

import sys

from probe_core.api import Unavailable
from probe_nvidia.codes import LIBRARY_NOT_FOUND, code_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from probe_nvidia.scene import Scene

__all__ = ["start"]

SONAME = "libnvidia-ml.so.1"

# Where drivers put the library outside the loader's own path: WSL, NixOS, GKE and other node
# installers. nvidia-ml-py asks the loader by soname, which an already loaded library satisfies.
FOLDERS = (
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
)


def start(scene: Scene, own: Callable[[], Any] | None = None) -> Any:
    """Return what calls NVML, initialised; raises `Unavailable`.

    `own` makes our client, where another than a probe's is needed.
    """
    try:
        nvml = _client(scene, own)
    except Exception as error:
        from probe_nvidia import reasons

        raise reasons.no_client(error) from None
    code = _initialise(nvml)
    if code == LIBRARY_NOT_FOUND and _load_from_folders(scene):
        code = _initialise(nvml)
    if code is not None:
        from probe_nvidia import reasons

        detail = _loader_says(scene) if code == LIBRARY_NOT_FOUND else None
        raise reasons.why_not(code, scene, detail)
    return nvml


def _client(scene: Scene, own: Callable[[], Any] | None) -> Any:
    """Return nvidia-ml-py where it is loaded already, or knows the system better; else ours.

    On Windows it finds nvml.dll in the folders of several drivers.
    """
    if "pynvml" in sys.modules or scene.machine.os != "linux":
        import pynvml

        return pynvml
    if own is not None:
        return own()
    from probe_nvidia.nvml import Client

    return Client()


def _initialise(nvml: Any) -> int | None:
    """Return None on success, else NVML's code; raises `Unavailable` for any other failure."""
    try:
        nvml.nvmlInit()
    except Exception as error:
        code = code_of(error)
        if code is None:
            raise Unavailable(f"nvidia-ml-py fails in nvmlInit: {error!r}") from None
        return code
    return None


def _load_from_folders(scene: Scene) -> bool:
    import ctypes

    for folder in FOLDERS:
        path = f"{folder}/{SONAME}"
        if scene.machine.exists(path):
            try:
                ctypes.CDLL(scene.machine.path(path))
            except OSError:
                continue
            return True
    return False


def _loader_says(scene: Scene) -> str | None:
    """Return the loader's own words ("file too short"), which nvidia-ml-py drops."""
    if scene.machine.os != "linux":
        return None
    import ctypes

    try:
        ctypes.CDLL(SONAME)
    except OSError as error:
        return str(error)
    return None
