"""What a GPU is connected to: PCIe, and NVLink to other GPUs and to switches."""

from __future__ import annotations

from probe_core.sysfs.pci import normal_id
from probe_core.sysfs.pcie import GENERATIONS, Hop
from probe_nvidia.ask import text
from probe_nvidia.c_types import Structure, byref, c_ubyte, c_uint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import LinkDoc
    from probe_nvidia.ask import Asker

__all__ = ["connect"]

_MAX_LINKS = 36  # of one GPU: twice the 18 of Hopper and Blackwell
_PEERS = {0: "gpu", 1: "cpu", 2: "switch"}  # nvmlIntNvLinkDeviceType_t; 1 is IBM's POWER
_GTS = {generation: gts for gts, (generation, _) in GENERATIONS.items()}

_ONE_HOP = "NVML gives the GPU's own PCIe hop, not the bridges between it and the host"

_COMPLETED = 3
_FABRIC = {1: "not-started", 2: "in-progress", _COMPLETED: "completed"}  # nvmlGpuFabricState_t


class _FabricInfo(Structure):
    """nvmlGpuFabricInfo_t, ours because nvidia-ml-py 12 lays it out wrongly."""

    _fields_ = (
        ("cluster", c_ubyte * 16),
        ("status", c_uint),
        ("clique", c_uint),
        ("state", c_ubyte),
    )


def connect(
    asker: Asker,
    sighting: dict[str, Any],
    needs_hop: bool,
    count: int | None,
    speed: int | None,
) -> None:
    """Add ``links`` to the sighting: NVML's own PCIe hop if it is needed, and NVLinks.

    `count` is how many NVLinks the GPU has, None where they must be tried; `speed` is in MB/s.
    """
    links = _own_hop(asker) if needs_hop else []
    count = _count_one_by_one(asker) if count is None else min(count, _MAX_LINKS)
    if count:
        active = _active(asker, count)
        links += _nvlinks(asker, active, speed)
        sighting["extra"]["nvlink"] = {"links": count, "active": len(active)}
        fabric = _fabric(asker)
        if fabric:
            sighting["extra"]["fabric"] = fabric
    if links:
        sighting["links"] = links


def _own_hop(asker: Asker) -> list[LinkDoc]:
    """Return the GPU's own PCIe hop; each figure stands alone, as elsewhere in NVML."""
    link: LinkDoc = {"kind": "pcie", "peer": None}
    width = asker.get(None, "nvmlDeviceGetCurrPcieLinkWidth")
    gts = _GTS.get(asker.get(None, "nvmlDeviceGetCurrPcieLinkGeneration") or 0)
    if width:
        link["local_width"] = width
    if gts:
        link |= {"local_gts": gts, "local_generation": GENERATIONS[gts][0]}
    if width and gts:
        link["local_bandwidth"] = Hop("", width, gts).bandwidth
    if max_width := asker.get(None, "nvmlDeviceGetMaxPcieLinkWidth"):
        link["local_max_width"] = max_width
    if max_gts := _GTS.get(asker.get(None, "nvmlDeviceGetMaxPcieLinkGeneration") or 0):
        link["local_max_gts"] = max_gts
    if len(link) == 2:
        return []
    asker.unknown["links.bandwidth"] = _ONE_HOP
    return [link]


def _count_one_by_one(asker: Asker) -> int:
    """Count links with a driver that has no field values: each until the first refusal."""
    for link in range(_MAX_LINKS):
        if asker.get(None, "nvmlDeviceGetNvLinkState", link) is None:
            return link
    return _MAX_LINKS


def _active(asker: Asker, count: int) -> list[int]:
    states = asker.each("nvmlDeviceGetNvLinkState", range(count))
    return [link for link, state in enumerate(states) if state == 1]


def _fabric(asker: Asker) -> str | None:
    """Return how far the fabric manager is with this GPU; None where none is needed."""
    info = _FabricInfo()
    asker.get(None, "nvmlDeviceGetGpuFabricInfo", byref(info))
    if info.state == _COMPLETED and info.status:
        return "failed"  # the status counts once the state is completed (nvmlGpuFabricInfo_t)
    return _FABRIC.get(info.state)


def _nvlinks(asker: Asker, active: list[int], speed: int | None) -> list[LinkDoc]:
    """Return one entry per peer, with the number of links to it."""
    by_address: dict[str | bytes, list[int]] = {}  # 18 links lead to four switches
    infos = asker.each("nvmlDeviceGetNvLinkRemotePciInfo", active)
    for link, info in zip(active, infos, strict=True):
        by_address.setdefault(getattr(info, "busId", ""), []).append(link)
    peers: dict[str | None, list[int]] = {}
    for address, links in by_address.items():
        peers.setdefault(normal_id(text(address) or ""), []).extend(links)
    return [_nvlink(asker, peer, links, speed) for peer, links in peers.items()]


def _nvlink(asker: Asker, peer: str | None, links: list[int], speed: int | None) -> LinkDoc:
    entry: LinkDoc = {"kind": "nvlink", "peer": peer, "count": len(links)}
    kind = asker.get(None, "nvmlDeviceGetNvLinkRemoteDeviceType", links[0])
    if kind in _PEERS:
        entry["to"] = _PEERS[kind]
    if speed:
        entry["bandwidth"] = len(links) * speed * 1_000_000  # one direction
    return entry
