"""What a GPU is connected to: PCIe, and NVLink to other GPUs and to switches."""

from __future__ import annotations

from ctypes import Structure, byref, c_ubyte, c_uint

from probe_core.sysfs.pci import normal_id
from probe_nvidia.nvml import text
from probe_nvidia.scene import INTEGRATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.api import LinkDoc
    from probe_nvidia.nvml import Asker, FieldValues

SPEED, COUNT = 90, 91  # NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, NVML_FI_DEV_NVLINK_LINK_COUNT
_STATE = 165  # NVML_FI_DEV_NVLINK_GET_STATE, whose scope is a link
_STATE_SINCE = 9  # Hopper: before it NCCL asks nvmlDeviceGetNvLinkState (its graph/xml.cc)
MAX_LINKS = 36  # of one GPU: twice the 18 of Hopper and Blackwell
_PEERS = {0: "gpu", 1: "cpu", 2: "switch"}  # nvmlIntNvLinkDeviceType_t; 1 is IBM's POWER

_ONE_HOP = "NVML gives the GPU's own PCIe hop, not the bridges between it and the host"

_COMPLETED = 3
_FABRIC = {1: "not-started", 2: "in-progress", _COMPLETED: "completed"}  # nvmlGpuFabricState_t


class FabricInfo(Structure):
    """nvmlGpuFabricInfo_t, ours with either client because nvidia-ml-py 12 lays it out wrongly."""

    _fields_ = (
        ("cluster", c_ubyte * 16),
        ("status", c_uint),
        ("clique", c_uint),
        ("state", c_ubyte),
    )


def states(asker: Asker) -> tuple[tuple[int, int], ...]:
    """Return the fields of the states of as many links as equal boards have.

    Empty for the first of them: how many there are is asked in the same call.
    """
    known: tuple[tuple[int, int], ...] = asker.board.get((COUNT,), ())
    return known


def note_states(asker: Asker, sighting: Mapping[str, Any], values: FieldValues) -> None:
    """Note the same for this GPU and those of equal boards; nothing before `_STATE_SINCE`."""
    count = min(values.get(COUNT, 0), MAX_LINKS)
    if count != len(states(asker)) and _has_states(sighting):
        asker.board[COUNT,] = tuple((_STATE, link) for link in range(count))


def _has_states(sighting: Mapping[str, Any]) -> bool:
    major = (sighting.get("compute_capability") or "0").partition(".")[0]
    return int(major) >= _STATE_SINCE


def connect(
    asker: Asker,
    sighting: dict[str, Any],
    bus: Mapping[str, Any],
    values: FieldValues | None,
) -> None:
    """Add ``links``: NVLink, and PCIe where the bus prober did not read it from sysfs.

    `values` are NVML's fields, None where the driver has none. `bus` is what the bus prober saw of
    the GPU. Both read the same register of the GPU (its link
    status), so they can differ in time alone: an idle link runs at 2.5 GT/s, and NVML has woken it.
    But a sighting's link is the slowest hop to the host, and NVML knows the GPU's own hop only. So
    sysfs decides, and NVML's answer (four calls a GPU) is a ``local_…`` hop.
    """
    has_pcie = any(link.get("kind") == "pcie" for link in bus.get("links", ()))
    # What an integrated GPU says of PCIe is made up: GB10 sits on C2C (all-smi#80).
    needs_hop = not has_pcie and sighting.get("compute_capability") not in INTEGRATED
    links = _own_hop(asker) if needs_hop else []
    if values is None:
        count, speed = _count_one_by_one(asker), None
    else:
        count, speed = min(values.get(COUNT, 0), MAX_LINKS), values.get(SPEED)
    if count:
        wanted = states(asker) if values is not None else ()
        active = _active(asker, count, values or {}, wanted)
        sighting["extra"]["nvlink"] = {"links": count, "active": len(active)}
        if fabric := _fabric(asker):
            sighting["extra"]["fabric"] = fabric
            links += _to_switches(len(active), speed)
        else:
            links += _nvlinks(asker, active, speed)
    if links:
        sighting["links"] = links


def _own_hop(asker: Asker) -> list[LinkDoc]:
    """Return the GPU's own PCIe hop; each figure stands alone, as elsewhere in NVML."""
    from probe_core.sysfs.pcie import GENERATIONS, Hop  # the bus prober has the link of most GPUs

    rates = {generation: gts for gts, (generation, _) in GENERATIONS.items()}
    link: LinkDoc = {"kind": "pcie", "peer": None}
    width = asker.get(None, "nvmlDeviceGetCurrPcieLinkWidth")
    gts = rates.get(asker.get(None, "nvmlDeviceGetCurrPcieLinkGeneration") or 0)
    if width:
        link["local_width"] = width
    if gts:
        link |= {"local_gts": gts, "local_generation": GENERATIONS[gts][0]}
    if width and gts:
        link["local_bandwidth"] = Hop("", width, gts).bandwidth
    if max_width := asker.get(None, "nvmlDeviceGetMaxPcieLinkWidth"):
        link["local_max_width"] = max_width
    if max_gts := rates.get(asker.get(None, "nvmlDeviceGetMaxPcieLinkGeneration") or 0):
        link["local_max_gts"] = max_gts
    if len(link) == 2:
        return []
    asker.unknown["links.bandwidth"] = _ONE_HOP
    return [link]


def _count_one_by_one(asker: Asker) -> int:
    """Count links with a driver that has no field values: each until the first refusal."""
    for link in range(MAX_LINKS):
        if asker.get(None, "nvmlDeviceGetNvLinkState", link) is None:
            return link
    return MAX_LINKS


def _active(
    asker: Asker, count: int, values: FieldValues, wanted: tuple[tuple[int, int], ...]
) -> list[int]:
    """Return the links that are up; `wanted` are the states that the driver has as fields.

    `values` has them already where an equal board told how many links there are.
    """
    if wanted and wanted[-1] not in values:
        values = asker.values(*wanted) or {}
    found = []
    for link in range(count):
        state = values.get((_STATE, link))
        if state is None:
            state = asker.get(None, "nvmlDeviceGetNvLinkState", link)
        if state == 1:
            found.append(link)
    return found


def _fabric(asker: Asker) -> str | None:
    """Return how far the fabric manager is with this GPU; None where none is needed."""
    info = FabricInfo()
    asker.get(None, "nvmlDeviceGetGpuFabricInfo", byref(info))
    if info.state == _COMPLETED and info.status:
        return "failed"  # the status counts once the state is completed (nvmlGpuFabricInfo_t)
    return _FABRIC.get(info.state)


def _to_switches(count: int, speed: int | None) -> list[LinkDoc]:
    """Return the links of a GPU with a fabric: all lead to switches, which of them is not asked.

    A fabric is made of switches alone (nvmlDeviceGetGpuFabricInfo: "On Hopper + NVSwitch systems").
    To ask each link for its switch takes 22 calls a GPU, each a request to the driver.
    """
    if not count:
        return []
    entry: LinkDoc = {"kind": "nvlink", "peer": None, "count": count, "to": "switch"}
    if speed:
        entry["bandwidth"] = count * speed * 1_000_000  # one direction
    return [entry]


def _nvlinks(asker: Asker, active: list[int], speed: int | None) -> list[LinkDoc]:
    """Return one entry per peer, with the number of links to it."""
    by_address: dict[str | bytes, list[int]] = {}  # 18 links lead to four switches
    for link in active:
        info = asker.get(None, "nvmlDeviceGetNvLinkRemotePciInfo", link)
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
