"""What every strategy needs to know: nodes, model, links, and how many layers each node holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probe_cluster.planning.fitting import fit
from probe_cluster.planning.links import Links, routed
from probe_cluster.planning.members import Member
from probe_cluster.planning.model import Model
from probe_cluster.planning.predict import (
    Part,
    Plan,
    check_reserve,
    layer_cap,
    predicted,
)
from probe_cluster.planning.search import Costs, ring_order
from probe_cluster.shared import ClusterError

Counts = Sequence[tuple[int, int]]
"""(place of the node, its layers), in the order of the ring."""


class Setting:
    """One question to the strategies; raises `ClusterError` when it makes no sense."""

    def __init__(
        self,
        members: Sequence[Member],
        model: Model,
        links: Links,
        use: str,
        reserve: float,
        pinned: Mapping[str, int] | None = None,
    ) -> None:
        if use not in ("available", "total"):
            raise ClusterError(f"memory to use is 'available' or 'total', not {use!r}")
        check_reserve(reserve)
        _distinct(members)
        links.check(member.id for member in members)
        self.members = members
        self.model = model
        self.cables = links
        """As they were named: what splits layers needs a link of its own, and no route."""
        self.links = routed(links, model.hop_bytes)
        self.use = use
        self.reserve = reserve
        self.caps = [layer_cap(member, model, use, reserve) for member in members]
        self.rooms = [sum(int(p * (1 - reserve)) for p in m.usable(use)) for m in members]
        self.pinned = dict(pinned or {})
        self._check_pinned()

    def _check_pinned(self) -> None:
        """Raise `ClusterError` for layers by hand that no plan can have."""
        caps = {member.id: cap for member, cap in zip(self.members, self.caps, strict=True)}
        for name, layers in self.pinned.items():
            if name not in caps:
                names = ", ".join(caps)
                raise ClusterError(f"layers name node {name!r}; there are {names}", node=name)
            if layers > caps[name]:
                raise ClusterError(
                    f"node {name!r} has room for {caps[name]} layers, not for {layers}", node=name
                )
        if sum(self.pinned.values()) > self.model.layers:
            raise ClusterError(
                f"{sum(self.pinned.values())} layers by hand; the model has {self.model.layers}"
            )

    def pinned_problem(self) -> str:
        """Return why no pipeline can have the layers by hand."""
        texts = ", ".join(f"{name}={layers}" for name, layers in self.pinned.items())
        return (
            f"no plan of {self.model.layers} layers has {texts}: the other nodes lack room,"
            " or the speed of such a node is unknown"
        )

    def costs(self, steps: Sequence[float | None], usable: Sequence[int]) -> Costs:
        """Return the declared costs: `steps` per layer, `usable` layers on each node."""
        names = [member.id for member in self.members]
        size, links = self.model.hop_bytes, self.links
        least = [self.pinned.get(name, 0) for name in names]
        # A node that must have no layers is not there.
        out = [self.pinned.get(name) == 0 for name in names]
        return Costs(
            layer=[float("inf") if step is None else step for step in steps],
            least=least,
            most=[0 if out[at] else most for at, most in enumerate(usable)],
            hops=lambda first, second: links.seconds(names[first], names[second], size),
        )

    def usable_layers(
        self, steps: Sequence[float | None], field: str, quantity: str
    ) -> tuple[list[int], list[str]]:
        """Return the layers that each node may get, none where its step is unknown, and why.

        Raises `ClusterError` when the model does not fit on the nodes that are left.
        """
        # A node of unknown speed could be the slowest of all, so it gets nothing.
        usable, notes = [], []
        for member, cap, step in zip(self.members, self.caps, steps, strict=True):
            usable.append(0 if step is None else cap)
            if step is None:
                reason = member.reasons.get(field, "its report does not give")
                notes.append(f"node {member.id!r} is not used, its {quantity} is unknown: {reason}")
        if sum(usable) < self.model.layers:
            answer = fit(self.members, self.model, self.use, reserve=self.reserve)
            if not answer.ok:
                raise ClusterError(answer.sentence)
            if len(notes) < len(self.members):
                notes.append("the model does not fit on the other nodes")
            raise ClusterError("; ".join(notes))
        return usable, notes

    def planned(self, strategy: str, counts: Counts, notes: Sequence[str] = ()) -> Plan:
        """Return the plan of these layers in this order."""
        parts = [
            Part(self.members[at], layers, self.rooms[at], self.caps[at])
            for at, layers in counts
            if layers
        ]
        return predicted(strategy, parts, self.model, self.links, notes)

    def in_best_order(self, strategy: str, counts: Counts, notes: Sequence[str] = ()) -> Plan:
        """Return the plan of these layers with neighbours by fast links next to each other."""
        layers = {self.members[at].id: (at, count) for at, count in counts if count}
        order = ring_order(list(layers), self.links, self.model.hop_bytes)
        return self.planned(strategy, [layers[name] for name in order], notes)


def _distinct(members: Sequence[Member]) -> None:
    if not members:
        raise ClusterError("there is no node; give at least one report")
    seen = set()
    for member in members:
        if member.id in seen:
            problem = f"node {member.id!r} is there twice; give each an id"
            raise ClusterError(problem, node=member.id)
        seen.add(member.id)
