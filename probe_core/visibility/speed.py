"""Which orders CUDA's FASTEST_FIRST may give: only the driver knows how fast it thinks each is."""

from __future__ import annotations

from probe_core.visibility.pool import address, in_order, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["MAX_MODELS", "cuda_orders"]

MAX_MODELS = 4
"""More models than this on one node are not enumerated: 5! orders would cost more than they say."""


def cuda_orders(gpus: Sequence[Device], order: str | None) -> list[list[Device]] | None:
    """Return every order in which CUDA may number `gpus`; None when there are too many.

    `order` is the value of ``CUDA_DEVICE_ORDER``. ``PCI_BUS_ID`` gives the order of the PCI
    addresses. Anything else is the default, FASTEST_FIRST, "using a simple heuristic" (CUDA
    programming guide, environment variables): known only for one model, whose devices keep the
    order of their addresses; for several, each order of the models is possible.
    """
    everything = _by_address(gpus)
    if order == "PCI_BUS_ID" or len(gpus) < 2:
        return [everything]
    groups = _models(everything)
    if len(groups) > MAX_MODELS:
        return None
    return [[gpu for group in ranked for gpu in group] for ranked in _permutations(groups)]


def _by_address(gpus: Sequence[Device]) -> list[Device]:
    if all(address(gpu) is not None for gpu in gpus):
        return in_order(gpus)
    return in_order(gpus, "nvml")  # NVML numbers in the order of the PCI addresses too


def _models(gpus: Sequence[Device]) -> list[list[Device]]:
    groups: dict[tuple[str, ...], list[Device]] = {}
    for place, gpu in enumerate(gpus):
        groups.setdefault(model(gpu) or (str(place),), []).append(gpu)
    return list(groups.values())


def _permutations(groups: list[list[Device]]) -> list[list[list[Device]]]:
    if len(groups) < 2:
        return [groups]
    found = []
    for at, group in enumerate(groups):
        others = groups[:at] + groups[at + 1 :]
        found += [[group, *tail] for tail in _permutations(others)]
    return found
