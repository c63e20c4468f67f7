"""Lists the XGMI links between GPUs that KFD knows, by the peer's PCI address."""

from __future__ import annotations

from probe_amd import kfd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_amd.kfd import Node
    from probe_core.api import LinkDoc, Machine


def xgmi(machine: Machine, node: Node, owners: Mapping[int, str]) -> list[LinkDoc]:
    """Return one link per peer GPU of `node`; `owners` maps KFD node numbers to device ids.

    Bandwidths are KFD's, one direction: min_bandwidth is one link, max_bandwidth all of them
    together (amdkfd/kfd_crat.c). KFD writes 0 where it does not know.
    """
    own = owners.get(node.number)
    widest: dict[str, LinkDoc] = {}
    for entry in kfd.io_links(machine, node):
        peer = owners.get(entry.get("node_to", -1))
        if entry.get("type") == kfd.XGMI and peer and peer != own:
            link = _link(peer, entry)
            # A partitioned peer shows once per partition; its widest entry is the wire.
            if peer not in widest or _rate(link) >= _rate(widest[peer]):
                widest[peer] = link
    return [widest[peer] for peer in sorted(widest)]


def _link(peer: str, entry: Mapping[str, int]) -> LinkDoc:
    link: LinkDoc = {"kind": "xgmi", "peer": peer}
    single, total = entry.get("min_bandwidth", 0), entry.get("max_bandwidth", 0)
    if total:
        link["bandwidth"] = total * 1_000_000
    if single and total and total % single == 0:
        link["count"] = total // single
    return link


def _rate(link: LinkDoc) -> float:
    return link.get("bandwidth") or 0
