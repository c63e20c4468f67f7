"""Which orders CUDA's FASTEST_FIRST may give: only the driver knows how fast it thinks each is."""

from __future__ import annotations

from probe_core.visibility.pool import address, in_order, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["MAX_MODELS", "VARIABLE", "cuda_orders"]

VARIABLE = "CUDA_DEVICE_ORDER"

MAX_MODELS = 4
"""Models of GPUs on one node whose orders are listed: 4! = 24 lists. Five models would give 120,
each evaluated for every device; no such node is known."""


def cuda_orders(gpus: Sequence[DeviceDoc], order: str | None) -> list[list[DeviceDoc]] | None:
    """Return every order in which CUDA may number `gpus`; None when there are too many.

    `order` is the value of ``CUDA_DEVICE_ORDER``. ``PCI_BUS_ID`` gives the order of the PCI
    addresses. Anything else is the default, FASTEST_FIRST, "using a simple heuristic" (CUDA
    programming guide, environment variables): known only for one model, whose devices keep the
    order of their addresses; for several, each order of the models is possible.
    """
    ranked = _by_address(gpus)
    if order == "PCI_BUS_ID" or len(gpus) < 2:
        return [ranked]
    groups = _models(ranked)
    if len(groups) > MAX_MODELS:
        return None
    return [[gpu for group in groups for gpu in group] for groups in _permutations(groups)]


def _by_address(gpus: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    if all(address(gpu) is not None for gpu in gpus):
        return in_order(gpus)
    # NVML numbers in the order of the PCI addresses too; WSL shows no PCI tree to read them from.
    return in_order(gpus, "nvml")


def _models(gpus: Sequence[DeviceDoc]) -> list[list[DeviceDoc]]:
    groups: dict[tuple[str, ...], list[DeviceDoc]] = {}
    for place, gpu in enumerate(gpus):
        groups.setdefault(model(gpu) or (str(place),), []).append(gpu)
    return list(groups.values())


def _permutations(groups: list[list[DeviceDoc]]) -> list[list[list[DeviceDoc]]]:
    if len(groups) < 2:
        return [groups]
    permutations = []
    for place, group in enumerate(groups):
        remaining = groups[:place] + groups[place + 1 :]
        permutations += [[group, *tail] for tail in _permutations(remaining)]
    return permutations
