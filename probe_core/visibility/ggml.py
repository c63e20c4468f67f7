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
    """Return what ggml would see; `vulkan` is the loader's view."""
    value = environ.get(VARIABLE)
    mask = ggml_visible(value, vulkan.masks[0].ids)
    variable = VARIABLE if value is not None else vulkan.variable
    shown = value if value is not None else vulkan.value
    view = View("ggml-vulkan", vulkan.pool, [mask], variable=variable, value=shown)
    view.reasons = dict(vulkan.reasons)
    if vulkan.masks[0].maybe:
        _doubt(view, mask, vulkan)
    return view


def _doubt(view: View, mask: Mask, vulkan: View) -> None:
    """What Vulkan itself shows is not known, so neither is what the numbers mean."""
    why = next(iter(vulkan.masks[0].maybe.values()))
    unsure = dict.fromkeys(vulkan.possible, why)
    if view.variable == VARIABLE and not mask.ids and mask.code == "variable-empty":
        return
    mask.ids, mask.maybe = [], unsure


def ggml_visible(value: str | None, ids: Sequence[str]) -> Mask:
    """Return what ``GGML_VK_VISIBLE_DEVICES=value`` leaves of the loader's GPUs (ids in order).

    Unset shows all GPUs, empty none. Commas and blanks separate numbers; reading ends at what is
    none, or does not fit in 64 bits. A number without a device (-1 too) makes the backend throw,
    and show nothing. A number given twice gives the device twice.
    """
    if value is None:
        return Mask(ids)
    found: list[str] = []
    for entry in value.replace(",", " ").split():
        number, rest = strtol(entry, 10)
        if number is None or too_long(entry):
            return _stopped(value, found, entry)
        if unsigned(number) >= len(ids):
            detail = f"{VARIABLE}={quoted(value)}: no device {number}, so ggml starts without GPUs"
            return Mask([], detail, code="variable-breaks", detail=detail)
        found.append(ids[number])
        if rest:
            return _stopped(value, found, rest)
    if not found:
        return Mask([], f"{VARIABLE} is empty, which hides every device", code="variable-empty")
    return Mask(found, f"{VARIABLE}={quoted(value)} does not name it")


def _stopped(value: str, found: Sequence[str], entry: str) -> Mask:
    detail = f"{VARIABLE}={quoted(value)}: ggml stops reading at {quoted(entry)}"
    why = f"{detail}, and it is not named before that"
    return Mask(found, why, code="variable-stops-at", detail=detail)
