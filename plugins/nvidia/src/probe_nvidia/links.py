"""What a GPU is connected to: PCIe, and NVLink to other GPUs and to switches."""

from __future__ import annotations

import ctypes

from probe_nvidia.memory import INTEGRATED
from probe_nvidia.procfs import pci_identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_nvidia.ask import Asker

    Link = dict[str, Any]

__all__ = ["connect"]

_SPEED, _COUNT = 90, 91  # NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, NVML_FI_DEV_NVLINK_LINK_COUNT
_MAX_LINKS = 36
_PEERS = {0: "gpu", 1: "cpu", 2: "switch"}  # nvmlIntNvLinkDeviceType_t; 1 is IBM's POWER
_GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}  # of a PCIe generation

_FABRIC = {1: "not-started", 2: "in-progress", 3: "completed"}  # nvmlGpuFabricState_t

_PCIE = (
    ("generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    ("width", "nvmlDeviceGetCurrPcieLinkWidth"),
    ("max_generation", "nvmlDeviceGetMaxPcieLinkGeneration"),
    ("max_width", "nvmlDeviceGetMaxPcieLinkWidth"),
)


class _FabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_t, ours because nvidia-ml-py 12 lays it out wrongly."""

    _fields_ = (
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    )


def connect(asker: Asker, sighting: dict[str, Any], bus: Mapping[str, Any]) -> None:
    """Add ``links`` to the sighting.

    Where the bus prober read the PCIe link from sysfs it is not asked again (four calls a GPU).
    What an integrated GPU says of PCIe is made up: GB10 sits on C2C (all-smi#80).
    """
    told = any(one.get("kind") == "pcie" for one in bus.get("links", ()))
    integrated = sighting.get("compute_capability") in INTEGRATED
    found = [] if told or integrated else _pcie(asker)
    count, speed = _nvlink_facts(asker)
    if count:
        active = _active(asker, count)
        found += _nvlinks(asker, active, speed)
        sighting["extra"]["nvlink"] = {"links": count, "active": len(active)}
        fabric = _fabric(asker)
        if fabric:
            sighting["extra"]["fabric"] = fabric
    if found:
        sighting["links"] = found


def _pcie(asker: Asker) -> list[Link]:
    answers = {name: asker.get(None, call) for name, call in _PCIE}
    link: Link = {name: value for name, value in answers.items() if value}
    for generation, rate in (("generation", "gts"), ("max_generation", "max_gts")):
        if link.get(generation) in _GTS:
            link[rate] = _GTS[link[generation]]
    return [{"kind": "pcie", "peer": None, **link}] if link else []


def _nvlink_facts(asker: Asker) -> tuple[int, int | None]:
    """Return (number of NVLinks that the GPU has, MB/s of one in one direction).

    One call, so that the many GPUs without NVLink cost no more.
    """
    values = asker.get(None, "nvmlDeviceGetFieldValues", [_SPEED, _COUNT])
    if values is None:
        return _count_one_by_one(asker), None
    speed, count = (value.value.uiVal if value.nvmlReturn == 0 else 0 for value in values)
    return min(count, _MAX_LINKS), speed or None


def _count_one_by_one(asker: Asker) -> int:
    """Count links with a driver that has no field values: each until the first refusal."""
    for link in range(_MAX_LINKS):
        if asker.get(None, "nvmlDeviceGetNvLinkState", link) is None:
            return link
    return _MAX_LINKS


def _active(asker: Asker, count: int) -> list[int]:
    return [n for n in range(count) if asker.get(None, "nvmlDeviceGetNvLinkState", n) == 1]


def _fabric(asker: Asker) -> str | None:
    """Return how far the fabric manager is with this GPU; None where none is needed."""
    info = _FabricInfo()
    asker.get(None, "nvmlDeviceGetGpuFabricInfo", ctypes.byref(info))
    return _FABRIC.get(info.state)


def _nvlinks(asker: Asker, active: list[int], speed: int | None) -> list[Link]:
    """Return one entry per peer, with the number of links to it."""
    peers: dict[str | None, list[int]] = {}
    for link in active:
        info = asker.get(None, "nvmlDeviceGetNvLinkRemotePciInfo", link)
        peers.setdefault(_peer(info), []).append(link)
    return [_nvlink(asker, peer, links, speed) for peer, links in peers.items()]


def _nvlink(asker: Asker, peer: str | None, links: list[int], speed: int | None) -> Link:
    entry: Link = {"kind": "nvlink", "peer": peer, "count": len(links)}
    kind = asker.get(None, "nvmlDeviceGetNvLinkRemoteDeviceType", links[0])
    if kind in _PEERS:
        entry["to"] = _PEERS[kind]
    if speed:
        entry["bandwidth"] = len(links) * speed * 1_000_000  # one direction
    return entry


def _peer(info: Any) -> str | None:
    return None if info is None else pci_identity(str(getattr(info, "busId", "")))
