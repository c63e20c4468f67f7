"""What installers choose by themselves, and the variables that tell them better."""

from __future__ import annotations

from probe_wheels.choice import CPU
from probe_wheels.drivers import cuda_of_driver, dotted
from probe_wheels.tables import TORCH
from probe_wheels.targets import version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc
    from probe_wheels.choice import Choice
    from probe_wheels.devices import Gpu

__all__ = [
    "KINDS",
    "alone",
    "conda_variables",
    "pip_requirements",
    "uv_variables",
    "variant_variables",
]

KINDS = ("uv", "pip", "conda", "variants")

_INTEL_DISPLAY = "03"
"""Class of PCI devices that uv takes for a GPU with XPU when their vendor is Intel."""

_ROCM_FOLDERS = ("/opt/rocm/bin", "/usr/bin")


def alone(
    gpus: Sequence[Gpu], report: ReportDoc, machine: Machine, *, musl: bool = False
) -> tuple[str, str]:
    """Return the backend that uv's own `auto` takes on this node, and why.

    In uv's order: NVIDIA's driver, then `rocm_agent_enumerator`, then any display adapter of
    Intel, else the CPU (astral-sh/uv at 26a9dd4b21, crates/uv-torch/src/accelerator.rs).
    """
    os = report["node"]["os"]
    if os == "darwin":
        return CPU, "macOS has one build"
    drivers = [gpu.driver for gpu in gpus if gpu.vendor == "nvidia" and gpu.driver]
    driver = max(drivers, default=_module_driver(machine))
    if driver:
        return _by_driver(driver, os), f"it compares the driver alone ({dotted(driver)})"
    known = TORCH["uv"]["amd"]
    processors = [(gpu.processor or "").partition(":")[0] for gpu in gpus if gpu.vendor == "amd"]
    processors = [name for name in processors if name in known]
    if processors and os == "linux" and _has_enumerator(machine):
        lowest = min(processors, key=known.index)
        return TORCH["rocm"][0]["backend"], f"it takes the lowest processor ({lowest})"
    if any(_is_intel_display(device["pci"]) for device in report["devices"] if device["pci"]):
        if musl:
            return CPU, "it has no XPU build for musl"
        return TORCH["xpu"]["backend"], "it takes any display adapter of Intel for an XPU"
    return CPU, "it finds no GPU"


def _has_enumerator(machine: Machine) -> bool:
    """Return whether uv can start `rocm_agent_enumerator`: by PATH, as far as that is known.

    ROCm's packages put it into /opt/rocm/bin, which is on no PATH by itself.
    """
    folders = [folder for folder in machine.environ.get("PATH", "").split(":") if folder]
    return any(
        machine.exists(f"{folder}/rocm_agent_enumerator") for folder in folders or _ROCM_FOLDERS
    )


def _module_driver(machine: Machine) -> tuple[int, ...]:
    """Return the version of NVIDIA's module where no device says it (Tegra has its own numbers)."""
    version = version_of(machine.read("/sys/module/nvidia/version", 64) or "")
    if len(version) > 1:
        return version
    # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon Dec 30 …"
    parts = (machine.read("/proc/driver/nvidia/version", 1024) or "").split("  ")
    version = version_of(parts[1].strip()) if len(parts) > 1 else ()
    return version if len(version) > 1 else ()


def _by_driver(driver: tuple[int, ...], os: str) -> str:
    rows = TORCH["uv"]["windows" if os == "windows" else "linux"]
    fitting = (backend for backend, least in rows if driver >= version_of(least))
    return next(fitting, CPU)


def _is_intel_display(pci: object) -> bool:
    if not isinstance(pci, dict):
        return False
    vendor = str(pci.get("id", "")).partition(":")[0]
    return vendor == "8086" and str(pci.get("class", "")).startswith(_INTEL_DISPLAY)


def uv_variables(choice: Choice) -> dict[str, str]:
    """Return the variables for uv. A value that uv refuses is left out: all its commands fail."""
    variables = {}
    if choice.backend in TORCH["uv"]["backends"]:
        variables["UV_TORCH_BACKEND"] = choice.backend
    first = choice.served[0] if choice.served else None
    if first is not None and first.vendor == "nvidia" and first.driver:
        variables["UV_CUDA_DRIVER_VERSION"] = dotted(first.driver)
    if first is not None and first.processor in TORCH["uv"]["amd"]:
        variables["UV_AMD_GPU_ARCHITECTURE"] = first.processor
    return variables


def conda_variables(choice: Choice) -> dict[str, str]:
    """Return the overrides of conda's virtual packages: the CUDA that device and driver take.

    `__cuda` is the driver's CUDA by default, and `__cuda_arch` the lowest compute capability
    (CEP 46). For a GPU that CUDA 13 dropped, `__cuda` is held to the last 12.
    """
    served = [gpu for gpu in choice.served if gpu.vendor == "nvidia"]
    if not served:
        return {"CONDA_OVERRIDE_CUDA": ""}
    cuda = _cuda_of(choice, served)
    lowest = min(pair for gpu in served for pair in gpu.capabilities)
    variables = {"CONDA_OVERRIDE_CUDA_ARCH": ".".join(map(str, lowest))}
    if cuda:
        variables = {"CONDA_OVERRIDE_CUDA": ".".join(map(str, cuda)), **variables}
    return variables


def _cuda_of(choice: Choice, served: Sequence[Gpu]) -> tuple[int, ...]:
    """Return the newest CUDA for the devices; its builds must have code for all of them."""
    drivers = [cuda_of_driver(gpu.driver, gpu.os) for gpu in served if gpu.driver]
    cuda = min(drivers, default=version_of(choice.toolkit))
    dropped = any(pair < (7, 5) for gpu in served for pair in gpu.capabilities)
    return min(cuda, (12, 9)) if dropped else cuda


def variant_variables(choice: Choice) -> dict[str, str]:
    """Return the variables that the draft's existing providers read instead of the hardware."""
    if not choice.served:
        return {}
    first = choice.served[0]
    if first.vendor == "nvidia":
        variables = {}
        if cuda := _cuda_of(choice, choice.served):
            name = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
            variables[name] = ".".join(map(str, cuda))
        # The lowest of all: the provider itself takes the highest, and breaks the others.
        pair = min(pair for gpu in choice.served for pair in gpu.capabilities)
        variables["NV_VARIANT_PROVIDER_FORCE_SM_ARCH"] = ".".join(map(str, pair))
        return variables
    if first.vendor == "amd" and first.processor:
        return {"AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH": first.processor.partition(":")[0]}
    return {}


def pip_requirements(choice: Choice) -> list[str]:
    """Return how the builds of other frameworks for these devices are called, for pip."""
    if not choice.served or choice.served[0].vendor != "nvidia":
        return []
    served = choice.served
    new = all(not gpu.driver or gpu.driver >= (580,) for gpu in served)
    new = new and min(pair for gpu in served for pair in gpu.capabilities) >= (7, 5)
    major = "13" if new else "12"
    return [f"jax[cuda{major}]", f"cupy-cuda{major}x"]
