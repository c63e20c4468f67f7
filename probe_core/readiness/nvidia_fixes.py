"""What fixes about NVIDIA's driver name on this machine: its branch, its library, nodes' mode."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.model.fix import Blank, by_hand, run
from probe_core.readiness.distributions import LEGACY
from probe_core.readiness.library import CUDA, NVML, STUBS, library_version, major_of, version_of
from probe_core.readiness.nvidia import branch_for, fabric, opposed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

    Maker = Callable[[DeviceDoc, StepDoc, Scene], str]
    PartMaker = Callable[[DeviceDoc, StepDoc, Scene], tuple[str, ...]]

__all__ = ["MAKERS", "PARTS", "legacy_branch"]

# Causes that a branch for the GPU repairs, whatever is loaded for another one.
_OF_GPU = (
    "no-driver",
    "driver-not-installed",
    "nouveau-bound",
    "nova-bound",
    "legacy-branch",
    "driver-too-old-for-gpu",
    "open-module-unsupported",
)


def _branch(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the branch of NVIDIA's driver: that which the GPU needs, else the loaded one."""
    if step["code"] == "module-missing-for-kernel" and (flavour := _signed(device, step, scene)):
        return flavour
    loaded = None if step["code"] in _OF_GPU else major_of(version_of(scene.nvidia_version))
    branch = str(loaded or branch_for(device, scene))
    return branch or Blank("its release notes name")


def legacy_branch(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the branch that a GPU needs which no newer one supports; "" of another GPU."""
    branch = _branch(device, step, scene) if step["code"] in _OF_GPU else ""
    return branch if branch in LEGACY else ""


def _version(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    return version_of(scene.nvidia_version) or Blank("")


def _stale_module(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the loaded version where DKMS built it for this kernel, and not the libraries' one."""
    loaded = version_of(scene.nvidia_version)
    paths = scene.libraries.find(NVML)
    own = library_version(scene.machine.realpath(paths[0])) if paths else None
    if loaded is None or own is None or scene.modules.built_by_dkms("nvidia", own):
        return ""
    return loaded if scene.modules.built_by_dkms("nvidia", loaded) else ""


def _fabric_manager(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the name of its package for dnf (NVIDIA, gpu-driver-container, rhel10/precompiled)."""
    is_older = (major_of(version_of(scene.nvidia_version)) or 0) < 580
    return "nvidia-fabric-manager" if is_older else "nvidia-fabricmanager"


def _cuda_library(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    return next(iter(scene.libraries.find("libcuda.so.1")), "libcuda.so.1")


def _cuda_branch(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    real = scene.machine.realpath(_cuda_library(device, step, scene))
    return str(major_of(library_version(real)) or "of its version")


def _cuda_folder(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what brings the library into the image: a folder, or the package itself."""
    folder = _cuda_library(device, step, scene).rpartition("/")[0]
    return f"{folder} in LD_LIBRARY_PATH" if "/compat" in folder else "cuda-compat"


def _cuda_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> tuple[str, ...]:
    folder = _cuda_library(device, step, scene).rpartition("/")[0]
    variable = scene.environ.get("LD_LIBRARY_PATH", "").split(":")
    if folder in variable:
        return (*_without(folder, variable), ": the driver has a newer libcuda.so.1")
    if scene.container is not None:
        return ("take libcuda.so.1 out of the image: the host's is mounted",)
    return ("install libcuda.so.1 of the driver's version",)


def _stub(step: StepDoc, scene: Scene) -> tuple[str, str]:
    """Return the toolkit's stub that the loader takes first, and the library behind it; "" if none.

    Stubs are for linking on machines without a driver (CUDA's guide, "stubs"): a program that loads
    one gets CUDA_ERROR_STUB_LIBRARY, whatever is installed behind it.
    """
    name = "libcuda.so.1" if step["step"] == "runtime" else "libnvidia-ml.so.1"
    paths = scene.libraries.find(name)
    is_stub = scene.libraries.stub
    if not paths or not is_stub(paths[0]):
        return "", ""
    return paths[0], next((path for path in paths if not is_stub(path)), "")


def _empty_library(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the driver's library that the loader takes first and that is empty; "" if none."""
    name = CUDA if step["step"] == "runtime" else NVML
    path = next(iter(scene.libraries.find(name)), "")
    return path if path and scene.libraries.head(path) == b"" else ""


def _stub_out(device: DeviceDoc, step: StepDoc, scene: Scene) -> tuple[str, ...]:
    """Return how to keep the loader from a stub that comes first."""
    path, behind = _stub(step, scene)
    folder = path.rpartition("/")[0]
    instead = f": behind it {behind} is the driver's" if behind else ""
    variable = scene.environ.get("LD_LIBRARY_PATH", "").split(":")
    if folder in (entry.rstrip("/") for entry in variable):
        return (*_without(folder, variable), instead)
    if STUBS not in path:
        link = by_hand(f"remove the link {path}", removes=(f"file {path}",))
        return (link, " to the toolkit's stub, then ", run("sudo ldconfig"), instead)
    place = "/etc/ld.so.conf.d"
    line = by_hand(f"take {folder} out of {place}", removes=(f"line {folder} of {place}",))
    return (line, ", then ", run("sudo ldconfig"), instead)


def _without(folder: str, variable: Sequence[str]) -> tuple[str, ...]:
    """Return how to take a folder out of the variable, whose entries are given."""
    others = ":".join(entry for entry in variable if entry.rstrip("/") not in ("", folder))
    line = f"export LD_LIBRARY_PATH={others}" if others else "unset LD_LIBRARY_PATH"
    return (f"take {folder} out of LD_LIBRARY_PATH (", run(line), ")")


def _stub_alone(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the stub's path where nothing of the driver is behind it; else ""."""
    path, behind = _stub(step, scene)
    return "" if behind else path


def _libcuda_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> tuple[str, ...]:
    if scene.container is not None:
        last = "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    else:
        last = "install libcuda.so.1 of the driver's version"
    is_stub = bool(_stub(step, scene)[0])
    first = (*_stub_out(device, step, scene), ", and ") if is_stub else ()
    return (*first, by_hand(last))


def _nvidia_group(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the group to which NVIDIA's module gives its nodes (NVreg_DeviceFileGID); "" if none.

    Mode 0660 is 432, as /proc/driver/nvidia/params writes it.
    """
    if device["vendor"] != "nvidia":
        return ""
    group = decimal(scene.nvidia_params.get("DeviceFileGID", ""))
    mode = decimal(scene.nvidia_params.get("DeviceFileMode", "432"))
    if not group or not mode or mode >> 3 & 6 != 6:
        return ""
    names = (n for n, (number, _) in scene.process.listed_groups().items() if number == group)
    return next(names, str(group))


def _nvidia_mode(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the mode that closes NVIDIA's nodes to all but root, as "0600"; "" of another."""
    mode = decimal(scene.nvidia_params.get("DeviceFileMode", ""))
    is_open = mode is None or mode & 6 == 6 or _nvidia_group(device, step, scene)
    return "" if is_open or device["vendor"] != "nvidia" else f"{mode:04o}"


def _signed(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return which of Ubuntu's signed modules another kernel has: "580-server-open"; "" if none.

    The folder of linux-modules-nvidia-580-server-open-RELEASE is kernel/nvidia-580srv-open.
    """
    folder = scene.modules.for_other_kernel("nvidia")
    file = scene.modules.on_disk("nvidia", folder) if folder else None
    flavour = (file or "").partition("/kernel/nvidia-")[2].partition("/")[0]
    return flavour.replace("srv", "-server")


MAKERS: dict[str, Maker] = {
    "opposed": lambda device, step, scene: opposed(device, step["code"] or "", scene) or "",
    "branch": _branch,
    "cuda_branch": _cuda_branch,
    "cuda_folder": _cuda_folder,
    "cuda_library": _cuda_library,
    "empty_library": _empty_library,
    "fabric": lambda device, step, scene: fabric(device, scene),
    "fabric_manager": _fabric_manager,
    "nvidia_group": _nvidia_group,
    "nvidia_mode": _nvidia_mode,
    "signed": _signed,
    "stale_module": _stale_module,
    "stub": lambda device, step, scene: _stub(step, scene)[0],
    "stub_alone": _stub_alone,
    "version": _version,
}
"""Name in a sentence's braces to what makes its text."""

PARTS: dict[str, PartMaker] = {
    "cuda_fix": _cuda_fix,
    "libcuda_fix": _libcuda_fix,
    "stub_out": _stub_out,
}
"""Name of a part to what makes it."""
