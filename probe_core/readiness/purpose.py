"""What a device is for: where a cause keeps a card from the only thing that it is bought for.

A graphics card without its compute runtime still draws and runs Vulkan, and is limited. An Instinct
or a Data Center GPU Max has no other use than computing (AMD and Intel sell no graphics with them),
so that the same cause blocks it. Flex GPUs serve video and games, too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.model.causes import Cause
    from probe_core.model.document import DeviceDoc, StepDoc

__all__ = ["by_purpose", "computes_alone"]

_CHIPS = ("amd/instinct-", "amd/radeon-instinct-", "intel/data-center-gpu-max-")

# LLVM, "User Guide for AMDGPU Backend": what MI100, MI200, MI300 and MI350 are, none of them with
# graphics; of a chip that chipdb does not know the architecture tells.
_ARCHITECTURES = ("cdna1", "cdna2", "cdna3", "cdna4", "xe-hpc")
_ISAS = ("gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")


def computes_alone(device: DeviceDoc) -> bool:
    """Return whether a device surely is one that has no use but computing."""
    chip = device["chip"]
    chips = [chip["id"]] if chip["id"] else chip["candidates"]
    if chips:
        return all(name.startswith(_CHIPS) for name in chips)
    return device["arch"] in _ARCHITECTURES or device.get("gfx") in _ISAS


def by_purpose(device: DeviceDoc, step: StepDoc, causes: Mapping[str, Cause]) -> StepDoc:
    """Return a broken step, which blocks where its cause keeps a device from its only purpose."""
    cause = causes.get(step["code"] or "")
    if cause is None or not cause.of_purpose or not computes_alone(device):
        return step
    return {**step, "blocks": True}
