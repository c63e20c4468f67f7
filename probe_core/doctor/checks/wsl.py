"""Linux in Windows: its CUDA library is the Windows driver's, and a Linux driver hides it."""

from __future__ import annotations

from probe_core.doctor.causes import fixed, of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed
from probe_core.machine.engines import option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request, ResultDoc

_WINDOWS = "/usr/lib/wsl/"
"""What Windows gives to WSL: its libraries, and the drivers that they are of."""

FOLDER, _LIBRARY, _NODE = "/usr/lib/wsl/lib", "libcuda.so.1", "/dev/dxg"

DRIVERS = "/usr/lib/wsl/drivers"
"""The drivers of Windows, one folder each: NVIDIA's are nv_dispi.inf_amd64_… and the like."""


@check("wsl-no-library", step="library", needs=(FOLDER, DRIVERS, _NODE, _LIBRARY))
def library(request: Request) -> ResultDoc:
    """Whether WSL passes a GPU in and has no CUDA library of the Windows driver."""
    machine = request.machine
    if not request.scene.wsl or not machine.exists(_NODE):
        return not_applicable("this is not WSL with a GPU")
    if machine.exists(f"{FOLDER}/{_LIBRARY}"):
        return passed()
    if request.scene.container is not None:
        return _contained(request)
    # Windows gives WSL the libraries of its GPUs' vendors: nvidia-smi comes with NVIDIA's alone.
    names = machine.listdir(FOLDER)
    has_driver = any(name.startswith("nv") for name in machine.listdir(DRIVERS))
    if names and not has_driver and not any("nvidia" in n or "cuda" in n for n in names):
        return not_applicable("no NVIDIA driver is in Windows, as its other libraries show")
    evidence = f"{_NODE} is there, {FOLDER}/{_LIBRARY} is not"
    return failed(of_cause(request, "wsl-no-library", evidence))


def _contained(request: Request) -> ResultDoc:
    """Judge a container, which is given the library in the folder of Windows's driver.

    nvidia-container-toolkit mounts it as libcuda.so.1.1, and has the loader look there (its CDI
    specification for WSL: nvidia-container-toolkit#1739).
    """
    machine = request.machine
    drivers = [name for name in machine.listdir(DRIVERS) if name.startswith("nv")]
    given = any(machine.exists(f"{DRIVERS}/{name}/{_LIBRARY}.1") for name in drivers)
    if given or request.scene.libraries.find(_LIBRARY):
        return passed()
    if not drivers and "NVIDIA_VISIBLE_DEVICES" not in machine.environ:
        return not_applicable("nothing shows that this container was to have an NVIDIA GPU")
    evidence = f"{_NODE} is there, and no {_LIBRARY}"
    finding = of_cause(request, "wsl-no-library", evidence)
    engine = request.scene.container or ""
    fixed(finding, f"start the container anew with {option('nvidia', engine)}", request)
    return failed(finding)


@check("wsl-linux-driver", step="library", needs=(FOLDER, _LIBRARY))
def linux_driver(request: Request) -> ResultDoc:
    """Whether a Linux driver inside WSL comes before the library of Windows."""
    if not request.scene.wsl:
        return not_applicable("this is not WSL")
    paths = request.scene.libraries.find(_LIBRARY)
    real = request.machine.realpath(paths[0]) if paths else ""
    if not paths or paths[0].startswith(_WINDOWS) or real.startswith(_WINDOWS):
        return passed()
    if not real.rpartition(".so.")[2].count("."):
        return passed()  # a link to Windows's own, or a name without a driver's version
    evidence = f"the loader takes {paths[0]}, which leads to {real}"
    finding = of_cause(request, "wsl-linux-driver", evidence)
    finding["severity"] = "error"
    return failed(finding)


CHECKS = [library, linux_driver]
