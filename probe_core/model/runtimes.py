"""The runtimes for which a report says what a process would see: one table, in display order.

How a runtime reads its variables is in `probe_core.visibility`, one module for each.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.model.document import VisibilityDoc


class Runtime:
    """One runtime.

    `name` is its key in a device's ``visibility``. `aliases` are other words for it on a command
    line. `vendor` names the devices whose own runtime it is. `variables` are the environment
    variables that its own rules read; those of a runtime below it count as well (HIP shows what
    ROCr left).
    """

    def __init__(
        self, name: str, aliases: str = "", vendor: str | None = None, variables: str = ""
    ) -> None:
        self.name = name
        self.aliases = tuple(aliases.split())
        self.vendor = vendor
        self.variables = tuple(variables.split())


# What runtimes build on comes before them: SYCL numbers what Level Zero, CUDA and HIP left, ggml
# what the Vulkan loader left. Their variables stand in the row of the one that reads them.
_TABLE = (
    Runtime("cuda", "nvidia", "nvidia", "CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER"),
    Runtime("rocr", "", None, "ROCR_VISIBLE_DEVICES"),
    Runtime("hip", "rocm amd", "amd", "HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES"),
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
    Runtime(
        "tinygrad",
        "",
        None,
        "DEV HCQ_VISIBLE_DEVICES VISIBLE_DEVICES CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES",
    ),
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


def in_runtime_order(entries: Iterable[VisibilityDoc | None]) -> list[int]:
    """Return the places of the entries that are surely visible, by the runtime's numbers.

    `entries` are those of one runtime, one for each device; None where it does not concern it.
    """
    ranked: list[tuple[bool, int, int]] = []
    for place, entry in enumerate(entries):
        if entry and entry.get("visible"):
            index = entry.get("index")
            ranked.append((index is None, index or 0, place))
    return [place for _, _, place in sorted(ranked)]
