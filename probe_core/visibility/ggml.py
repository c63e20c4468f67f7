"""What ggml's Vulkan backend shows: GGML_VK_VISIBLE_DEVICES over the Vulkan loader's order.

Source: ggml, src/ggml-vulkan/ggml-vulkan.cpp (`ggml_vk_instance_init`).
"""

from __future__ import annotations

from probe_core.visibility.numbers import strtol, too_long, unsigned
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["VARIABLE", "ggml_visible", "see"]

VARIABLE = "GGML_VK_VISIBLE_DEVICES"


def see(environ: Mapping[str, str], vulkan: View) -> View:
    """Return what ggml would show; `vulkan` is the loader's view."""
    value = environ.get(VARIABLE)
    mask = ggml_visible(value, vulkan.masks[0].ids)
    variable, shown_value = (
        (VARIABLE, value) if value is not None else (vulkan.variable, vulkan.value)
    )
    view = View("ggml-vulkan", vulkan.pool, [mask], variable=variable, value=shown_value)
    view.reasons = dict(vulkan.reasons)
    if vulkan.masks[0].maybe and mask.code != "variable-empty":
        # What Vulkan itself shows is not known, so neither is what the numbers mean.
        reason = next(iter(vulkan.masks[0].maybe.values()))
        mask.ids, mask.maybe = [], dict.fromkeys(vulkan.possible, reason)
    return view


def ggml_visible(value: str | None, ids: Sequence[str]) -> Mask:
    """Return what ``GGML_VK_VISIBLE_DEVICES=value`` leaves of the loader's GPUs (ids in order).

    Unset shows all GPUs, empty none. Commas and blanks separate numbers; reading ends at what is
    none, or does not fit in 64 bits. A number without a device (-1 too) makes the backend throw,
    and show nothing. A number given twice gives the device twice.
    """
    if value is None:
        return Mask(ids)
    assignment = f"{VARIABLE}={quoted(value)}"
    picks: list[str] = []
    for entry in value.replace(",", " ").split():
        number, tail = strtol(entry, 10)
        if number is None or too_long(entry):
            return Mask.stopped(picks, "ggml", assignment, entry)
        if unsigned(number) >= len(ids):
            return Mask.broken(f"{assignment}: no device {number}, so ggml starts without GPUs")
        picks.append(ids[number])
        if tail:
            return Mask.stopped(picks, "ggml", assignment, tail)
    return Mask(picks, f"{assignment} does not name it") if picks else Mask.empty(VARIABLE)
