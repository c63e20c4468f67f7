"""`CHIP_FLOPS`: old exo's table of chips, now a read-only view of chipdb."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from probe_exo.chip_lookup import database, figures_by_name
from probe_exo.legacy import DeviceFlops

__all__ = ["CHIP_FLOPS", "ChipFlops"]


class ChipFlops(Mapping[str, DeviceFlops]):
    """Chip name → peaks, looked up when asked.

    Keys are names as chipdb spells them; what a driver or old exo's table calls a chip
    (``NVIDIA GEFORCE RTX 4090``, ``Apple M1 Max``) finds it too. A name of several chips gives the
    largest. Nothing fuzzy: an unknown name raises `KeyError`, which names what is near.
    """

    __slots__ = ()

    def __getitem__(self, name: str) -> DeviceFlops:
        hash(name)  # what cannot be a key is a TypeError, as of a dict
        if not isinstance(name, str):
            raise KeyError(name)
        figures = figures_by_name(name)
        if not figures.known:
            near = ", ".join(dict.fromkeys(chip.name for chip in database().near(name, 3)))
            raise KeyError(f"{name}: not in chipdb; near: {near or 'nothing'}")
        fp32, fp16, int8 = figures.numbers
        return DeviceFlops(fp32=fp32, fp16=fp16, int8=int8)

    def __iter__(self) -> Iterator[str]:
        # No engine of exo runs on an NPU.
        names = (chip.name for chip in database().chips() if chip.kind != "npu")
        return iter(dict.fromkeys(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        hash(name)
        return isinstance(name, str) and figures_by_name(name).known

    def copy(self) -> dict[str, DeviceFlops]:
        """Return all as a table of one's own, as a dict does: forks add chips to a copy."""
        return dict(self)

    def __or__(self, other: Mapping[str, DeviceFlops]) -> dict[str, DeviceFlops]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, DeviceFlops]) -> dict[str, DeviceFlops]:
        return {**other, **self}

    def __repr__(self) -> str:
        return f"<CHIP_FLOPS over chipdb {database().version}>"


CHIP_FLOPS = ChipFlops()
"""The one instance; nothing is read until it is asked."""
