"""The runtimes for which a report says what a process would see: one table, in display order."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["NATIVE", "RUNTIMES", "Runtime", "canonical", "native_runtime", "visible"]


class Runtime:
    """One runtime.

    `name` is its key in a device's ``visibility``. `aliases` are other words for it on a command
    line. `vendor` names the devices whose own runtime it is. `variables` are the environment
    variables that its rules read.
    """

    __slots__ = ("aliases", "name", "variables", "vendor")

    def __init__(
        self, name: str, aliases: str = "", vendor: str | None = None, variables: str = ""
    ) -> None:
        self.name = name
        self.aliases = tuple(aliases.split())
        self.vendor = vendor
        self.variables = tuple(variables.split())


_TABLE = (
    Runtime("cuda", "nvidia", "nvidia", "CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER"),
    Runtime("rocr", "", None, "ROCR_VISIBLE_DEVICES"),
    Runtime(
        "hip",
        "rocm amd",
        "amd",
        "HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ROCR_VISIBLE_DEVICES",
    ),
    Runtime(
        "level-zero",
        "ze l0 levelzero",
        "intel",
        "ZE_AFFINITY_MASK ZE_FLAT_DEVICE_HIERARCHY ZE_ENABLE_PCI_ID_DEVICE_ORDER",
    ),
    Runtime("sycl", "oneapi", None, "ONEAPI_DEVICE_SELECTOR"),
    Runtime("opencl", "cl", None, "GPU_DEVICE_ORDINAL"),
    Runtime(
        "vulkan",
        "vk",
        None,
        "VK_DRIVER_FILES VK_ICD_FILENAMES VK_LOADER_DEVICE_ID_FILTER VK_LOADER_DEVICE_SELECT"
        " VK_LOADER_DRIVERS_DISABLE VK_LOADER_DRIVERS_SELECT VK_LOADER_DRIVER_ID_FILTER"
        " VK_LOADER_VENDOR_ID_FILTER MESA_VK_DEVICE_SELECT NODEVICE_SELECT",
    ),
    Runtime("ggml-vulkan", "ggml", None, "GGML_VK_VISIBLE_DEVICES"),
    Runtime(
        "nvidia-container",
        "container",
        None,
        "NVIDIA_VISIBLE_DEVICES NVIDIA_REQUIRE_CUDA CUDA_VERSION",
    ),
    Runtime("tinygrad", "", None, "DEV HCQ_VISIBLE_DEVICES VISIBLE_DEVICES"),
    Runtime("metal", "mlx mps", "apple"),
)

RUNTIMES: dict[str, Runtime] = {runtime.name: runtime for runtime in _TABLE}
"""Name to runtime, in the order in which they are shown. The report's schema lists these names."""

_ALIASES = {alias: runtime.name for runtime in _TABLE for alias in runtime.aliases}

NATIVE: dict[str, str] = {runtime.vendor: runtime.name for runtime in _TABLE if runtime.vendor}
"""Vendor to the runtime that speaks for its devices; any other vendor's is vulkan."""


def canonical(runtime: str) -> str:
    """Return a runtime's name as reports have it: ``level-zero`` for ``level_zero`` or ``ze``."""
    name = runtime.strip().lower().replace("_", "-")
    return _ALIASES.get(name, name)


def native_runtime(device: Device) -> str:
    """Return the runtime by which the device counts as visible: its vendor's own."""
    return NATIVE.get(str(device.get("vendor")), "vulkan")


def visible(document: Mapping[str, Any], runtime: str | None = None) -> list[Device]:
    """Return a report's devices that `runtime` surely sees, in its order.

    Without a runtime each device is judged by its vendor's own; devices that no variable can
    hide (a CPU, an NPU) count as visible. Devices without a known index keep the report's order.
    """
    found = []
    wanted = None if runtime is None else canonical(runtime)
    for place, device in enumerate(document.get("devices") or ()):
        entry = (device.get("visibility") or {}).get(wanted or native_runtime(device))
        if entry is None and runtime is None:
            found.append((place, place, device))
        elif entry and entry.get("visible"):
            index = entry.get("index")
            order = place if runtime is None or index is None else index
            found.append((order, place, device))
    return [device for _, _, device in sorted(found, key=lambda item: item[:2])]
