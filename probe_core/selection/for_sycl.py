"""Renews ONEAPI_DEVICE_SELECTOR for a confined process: its numbers count what the masks leave."""

from __future__ import annotations

from probe_core.visibility import see
from probe_core.visibility.oneapi import DEVICE_SELECTOR, Selector, parse_selector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["selector_changes"]

_BACKENDS = {"level_zero": "level-zero", "cuda": "cuda", "hip": "hip"}
_BY_KIND = ("opencl", "native_cpu", "offload")
_NO_DEVICE = "99"
"""A number that no device has. An empty list of devices does not parse (device_filter.cpp)."""


def selector_changes(
    installed: Sequence[DeviceDoc], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the selector that shows, under the masks of `after`, no more than it showed `before`.

    One without numbers says the same as before and stays; so does one that SYCL cannot parse.
    """
    selectors, fault = parse_selector(before.get(DEVICE_SELECTOR, ""))
    if fault is not None or all(selector.number is None for selector in selectors):
        return {}
    shown_before = see(installed, before)
    masks = {name: value for name, value in after.items() if name != DEVICE_SELECTOR}
    shown_after = see(installed, masks)
    terms = []
    for backend, runtime in _BACKENDS.items():
        own = [selector for selector in selectors if selector.backend in ("*", backend)]
        if runtime in shown_after and any(not selector.discards for selector in own):
            ranked = shown_after[runtime][0].visible
            accepted = _accepted(own, backend, shown_before[runtime][0].visible)
            listed = [f"{ranked.index(name)}{sub}" for name, sub in accepted if name in ranked]
            terms.append(f"{backend}:{','.join(listed) or _NO_DEVICE}")
    terms += _through_opencl(selectors)
    return {DEVICE_SELECTOR: ";".join(terms or [f"level_zero:{_NO_DEVICE}"])}


def _through_opencl(selectors: Sequence[Selector]) -> list[str]:
    """Return the terms of the backends that no list of ours numbers, as kinds of devices alone.

    Intel's OpenCL driver obeys ZE_AFFINITY_MASK as Level Zero does (compute-runtime, shared
    `DeviceFactory::prepareDeviceEnvironments`), so that a kind shows what the masks leave. A number
    counts the devices of all platforms, which the masks shift: it would mean another device, and
    is left out. The devices of a filter that discards by number are not known either.
    """
    terms: list[str] = []
    discarding: list[str] = []
    for backend in _BY_KIND:
        own = [selector for selector in selectors if _concerns(selector, backend)]
        kinds = [s.kind for s in own if not s.discards and s.kind is not None]
        if kinds and not any(s.discards and s.number is not None for s in own):
            terms.append(f"{backend}:{','.join(dict.fromkeys(kinds))}")
            discards = [s.kind for s in own if s.discards and s.kind is not None]
            discarding += [f"!{backend}:{kind}" for kind in dict.fromkeys(discards)]
    return terms + discarding


def _concerns(selector: Selector, backend: str) -> bool:
    # Only a filter that names them reaches the rarer backends: "*" is for what is installed.
    return selector.backend == backend or (selector.backend == "*" and backend == "opencl")


def _accepted(
    selectors: Sequence[Selector], backend: str, ranked: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the backend's devices that the filters took, each with its sub-device (``.1``)."""
    accepted = []
    for number, name in enumerate(ranked):
        fits = [selector for selector in selectors if selector.fits(backend, number)]
        if not any(selector.discards for selector in fits):
            subs = dict.fromkeys("" if fit.sub is None else f".{fit.sub}" for fit in fits)
            accepted += [(name, sub) for sub in ([""] if "" in subs else subs)]
    return accepted
