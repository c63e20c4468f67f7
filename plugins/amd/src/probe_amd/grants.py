"""Judges from KFD's list which GPUs this process was given, and names the nodes to open.

KFD lists all nodes to everybody and refuses to read those whose render node the device cgroup
denies (kfd_devcgroup_check_permission of amdkfd/kfd_priv.h, EPERM). A closed node does not say
which card it is, so cards without a readable node are matched by number and model.
"""

from __future__ import annotations

from probe_amd.kfd import NODES
from probe_core.sysfs import nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_amd.kfd import Node, Topology
    from probe_core.sysfs.pci import Function
    from probe_core.sysfs.sighting import Draft

KFD = "/dev/kfd"
_CLASS = "/sys/class/kfd"


class Grants:
    """What KFD's list says of each card that amdgpu drives; `own` maps addresses to nodes."""

    __slots__ = ("_closed", "_topology", "_unclear")

    def __init__(
        self,
        topology: Topology,
        cards: list[Function],
        own: Mapping[str, list[Node]],
        live: bool,
    ) -> None:
        driven = [card for card in cards if card.driver == "amdgpu"]
        missing = [card for card in driven if not own[card.address]]
        models = {card.product for card in driven if own[card.address]}
        alike = [card for card in missing if card.product in models]
        count = len(topology.closed)
        if not live and (topology.gaps or not count):
            # A recording has no file that could not be read: there the models must do.
            count = max(count, len(alike))
        closed = next((group for group in (missing, alike) if len(group) <= count), [])
        self._topology = topology
        self._closed = frozenset(card.address for card in closed)
        unmatched = count > len(closed) and closed is not missing
        self._unclear = bool(topology.garbled) or unmatched

    def put_nodes(self, draft: Draft, card: Function, own: list[Node], split: bool) -> None:
        """Put the device nodes of `card` into `draft`.

        Render nodes are left out where the grant is what is missing: of a partitioned card, whose
        parts have them, and of a card beside others that were given. Where no GPU at all was given,
        the missing nodes are what a person must add.
        """
        closed = card.address in self._closed
        elsewhere = (split and own) or (closed and self._topology.nodes)
        render = [] if elsewhere else nodes.paths(draft.fields["node_index"])
        # Of the nodes of a card that KFD leaves out, /dev/kfd is none.
        left_out = self._topology.present and not (own or closed or self._unclear)
        draft.put("nodes", ([] if left_out else [KFD]) + render)

    def add_fact(self, draft: Draft, card: Function, own: list[Node]) -> None:
        """Add what KFD's list says of `card` to `draft`."""
        if own:
            draft.fact("granted", "ok", f"{own[0].folder}/properties can be read")
        elif not self._topology.present:
            # The kernel lacks CONFIG_HSA_AMD, or a sandbox hides it: the core knows sandboxes.
            draft.fact("node", "broken", f"{_CLASS} is absent", "kfd-missing")
        elif card.address in self._closed:
            draft.fact("granted", "broken", self._why_closed(), "kfd-node-closed")
        elif self._unclear:
            reason = f"{self._why_closed()}, and nothing tells whether it is this GPU"
            draft.fact("granted", "unknown", reason)
        else:
            reason = f"no node below {NODES} has the PCI address {card.address}"
            draft.fact("runtime", "broken", reason, "kfd-no-gpu")

    def _why_closed(self) -> str:
        closed, garbled = self._topology.closed, self._topology.garbled
        if closed:
            more = f" ({len(closed)} nodes in all)" if len(closed) > 1 else ""
            return next(iter(closed.values())) + more
        if garbled:
            return f"{NODES}/{garbled[0]}/properties holds no property"
        return f"{NODES} lists GPUs of this model, and not this one"
