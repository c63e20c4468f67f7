"""Lists the XGMI links between GPUs that KFD knows, by the peer's PCI address."""

from __future__ import annotations

from probe_amd import kfd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_amd.kfd import Node
    from probe_core.api import Machine


def xgmi(machine: Machine, node: Node, owners: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return one link per peer GPU of `node`; `owners` maps KFD node numbers to device ids.

    Bandwidths are KFD's, one direction: min_bandwidth is one link, max_bandwidth all of them
    together (amdkfd/kfd_crat.c). KFD writes 0 where it does not know.
    """
    own = owners.get(node.number)
    best: dict[str, dict[str, Any]] = {}
    for link in kfd.io_links(machine, node):
        peer = owners.get(link.get("node_to", -1))
        if link.get("type") == kfd.XGMI and peer and peer != own:
            found = {"kind": "xgmi", "peer": peer} | _rates(link)
            # A partitioned peer shows once per partition; its widest entry is the wire.
            if found.get("bandwidth", 0) >= best.get(peer, {}).get("bandwidth", 0):
                best[peer] = found
    return [best[peer] for peer in sorted(best)]


def _rates(link: Mapping[str, int]) -> dict[str, int]:
    one, both = link.get("min_bandwidth", 0), link.get("max_bandwidth", 0)
    rates = {"bandwidth": both * 1_000_000} if both else {}
    if one and both and both % one == 0:
        rates["count"] = both // one
    return rates
