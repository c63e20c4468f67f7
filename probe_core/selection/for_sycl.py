"""Renews ONEAPI_DEVICE_SELECTOR for a confined process: its numbers count what the masks leave."""

from __future__ import annotations

from probe_core.visibility import see
from probe_core.visibility.sycl import VARIABLE, Selector, parse_selector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["selector_changes"]

_BACKENDS = {"level_zero": "level-zero", "cuda": "cuda", "hip": "hip"}
_NONE = "99"
"""A number that no device has."""


def selector_changes(
    every: Sequence[Device], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the selector that shows, under the masks of `after`, no more than it showed `before`.

    One without numbers says the same as before and stays; so does one that SYCL cannot parse.
    """
    selectors, fault = parse_selector(before.get(VARIABLE, ""))
    if fault is not None or all(one.number is None for one in selectors):
        return {}
    then = see(every, before)
    now = see(every, {name: value for name, value in after.items() if name != VARIABLE})
    terms = []
    for backend, consumer in _BACKENDS.items():
        named = [one for one in selectors if one.backend in ("*", backend)]
        if consumer in now and any(not one.discards for one in named):
            ranked = now[consumer][0].visible
            taken = _taken(named, backend, then[consumer][0].visible)
            listed = [f"{ranked.index(name)}{sub}" for name, sub in taken if name in ranked]
            terms.append(f"{backend}:{','.join(listed) or _NONE}")
    others = {one.backend for one in selectors if not one.discards} - {"*", *_BACKENDS}
    return {VARIABLE: ";".join([*terms, *(f"{backend}:gpu" for backend in sorted(others))])}


def _taken(
    selectors: Sequence[Selector], backend: str, ranked: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the backend's devices that the filters took, each with its sub-device (``.1``)."""
    found = []
    for number, name in enumerate(ranked):
        fits = [one for one in selectors if one.fits(backend, number)]
        if not any(one.discards for one in fits):
            subs = dict.fromkeys("" if one.sub is None else f".{one.sub}" for one in fits)
            found += [(name, sub) for sub in ([""] if "" in subs else subs)]
    return found
