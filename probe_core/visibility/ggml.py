"""What ggml's Vulkan backend shows: GGML_VK_VISIBLE_DEVICES over the Vulkan loader's order.

Source: ggml, src/ggml-vulkan/ggml-vulkan.cpp (`ggml_vk_instance_init`): without the variable it
takes discrete and integrated GPUs; the variable's numbers count every physical device. A software
renderer (Mesa's lavapipe, "llvmpipe") is one: its type, CPU, is the last that the loader sorts by
(Vulkan-Loader, loader_linux.c, `determine_priority_type_value`), so it stands behind the GPUs.
"""

from __future__ import annotations

from probe_core.visibility.numbers import strtol, too_long, unsigned
from probe_core.visibility.view import Mask, View, quoted
from probe_core.visibility.vulkan_drivers import Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["VARIABLE", "ggml_visible", "see"]

VARIABLE = "GGML_VK_VISIBLE_DEVICES"


def see(environ: Mapping[str, str], vulkan: View) -> View:
    """Return what ggml would show; `vulkan` is the loader's view."""
    value = environ.get(VARIABLE)
    software = value is not None and Filters(environ).may_leave_software()
    masks = [ggml_visible(value, mask.ids, software=software) for mask in vulkan.masks]
    variable, shown_value = (
        (VARIABLE, value) if value is not None else (vulkan.variable, vulkan.value)
    )
    view = View("ggml-vulkan", vulkan.pool, masks, variable=variable, value=shown_value)
    view.reasons = dict(vulkan.reasons)
    view.withhold_as(vulkan)
    if vulkan.masks[0].maybe and masks[0].code != "variable-empty":
        # What Vulkan itself shows is not known, so neither is what the numbers mean.
        reason = next(iter(vulkan.masks[0].maybe.values()))
        for mask in masks:
            mask.ids, mask.maybe = [], dict.fromkeys(vulkan.possible, reason)
    return view


def ggml_visible(value: str | None, ids: Sequence[str], *, software: bool = False) -> Mask:
    """Return what ``GGML_VK_VISIBLE_DEVICES=value`` leaves of the loader's GPUs (ids in order).

    Unset shows all GPUs, empty none. Commas and blanks separate numbers; reading ends at what is
    none, or does not fit in 64 bits. A number without a device (-1 too) makes the backend throw,
    and show nothing. A number given twice gives the device twice. With `software` the number behind
    the last GPU may be a software renderer's.
    """
    if value is None:
        return Mask(ids)
    assignment = f"{VARIABLE}={quoted(value)}"
    picks: list[str] = []
    doubt: str | None = None
    for entry in value.replace(",", " ").split():
        number, tail = strtol(entry, 10)
        if number is None or too_long(entry):
            return _doubted(Mask.stopped(picks, "ggml", assignment, entry), doubt)
        place = unsigned(number)
        if place >= len(ids) + software:
            return Mask.broken(f"{assignment}: no device {number}, so ggml starts without GPUs")
        if place == len(ids):
            doubt = f"{assignment}: ggml throws on {number} unless a software renderer is installed"
        picks += ids[place : place + 1]
        if tail:
            return _doubted(Mask.stopped(picks, "ggml", assignment, tail), doubt)
    if not picks and doubt is None:
        return Mask.empty(VARIABLE)
    return _doubted(Mask(picks, f"{assignment} does not name it"), doubt)


def _doubted(mask: Mask, doubt: str | None) -> Mask:
    """Return the mask of a list with a number that may be a software renderer's, or nobody's."""
    if doubt is None:
        return mask
    unsure = Mask([], mask.reason, code="variable-breaks", detail=doubt)
    unsure.maybe = dict.fromkeys(mask.ids, doubt)
    return unsure
