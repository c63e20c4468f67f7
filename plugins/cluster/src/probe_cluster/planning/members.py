"""What one node offers to a model, and a node of a cluster, as planning needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from probe_cluster.planning.efficiency import (
    MEASURED_PASCAL,
    Efficiency,
    EfficiencyTable,
    device_class,
    efficiency_of,
    integer_operations,
    with_measured,
)
from probe_cluster.planning.engines import ENGINES, engine_name, usual_engine
from probe_cluster.planning.links import KINDS, Link, Links, nvlink_between, nvlink_of, own_nvlink
from probe_cluster.planning.offers import counted_devices, offer_of, read_bandwidth
from probe_cluster.shared import ClusterError, rate
from probe_core.commands import document_of


class Measured(NamedTuple):
    """The bandwidth at which `probe bench` read the memories, in bytes per second."""

    bandwidth: float
    by: str
    """With what, and when."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a node offers: bytes, TFLOPS (TOPS), bytes per second; None is unknown."""

    chip: str | None
    """Name of the first device that counts."""
    kind: str
    """``gpu``, ``accelerator``, ``npu`` or ``cpu``: what the first device is."""
    vendor: str | None
    """Its vendor."""
    devices: tuple[str, ...]
    """Ids of the devices that count."""
    memory_total: int | None
    """Bytes that a model could at most lie in."""
    memory_available: int | None
    """Bytes of them that can be taken now."""
    pools: tuple[int, ...]
    """`memory_available` apart, per memory: a layer lies in one of them."""
    ram_total: int | None
    """The system's memory, within the control group's limit."""
    ram_available: int | None
    """What of it can be taken now."""
    vram_total: int | None
    """Dedicated memory of the devices that count; None where there is none."""
    vram_available: int | None
    """What of it can be taken now."""
    unified: bool
    """Whether the model's memory is the system's."""
    fp32: float | None
    """TFLOPS: sum of the devices' dense fp32 shorthands."""
    fp16: float | None
    """TFLOPS: sum of the devices' dense fp16 shorthands."""
    int8: float | None
    """TOPS: sum of the devices' dense int8 shorthands."""
    bandwidth: float | None
    """Of the memory, in bytes per second."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is unknown or incomplete; ``devices`` → what was left out."""
    arch: str | None = None
    """Architecture of the first device."""
    cores: int | None = None
    """Of a CPU, those that may be used."""
    os: str | None = None
    """The node's operating system, as its report names it."""
    measured: Measured | None = None
    """What its memories were read at; None where not all of them were measured, or not well."""


def capacity(report: Any, devices: str | tuple[str, ...] = "all") -> Capacity:
    """Return what the node of a report, or of its document, offers.

    `devices` is ``all`` (the rule of `offers`), ``primary``, ``cpu``, or ids that must be in the
    report. Raises `ClusterError` for an id that is not, and never for what a report lacks.
    """
    document = document_of(report)
    chosen, reasons = counted_devices(document, devices)
    read = read_bandwidth(chosen)
    measured = None if read is None else Measured(*read)
    return Capacity(**offer_of(document, chosen, reasons), measured=measured)


def class_of(offer: Capacity) -> str | None:
    """Return the class of efficiency of its first device; None where its like was not measured."""
    return device_class(offer.kind, offer.vendor, offer.chip, offer.arch, offer.unified)


MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A node and what it offers: bytes, TFLOPS, bytes per second; None is unknown."""

    id: str
    """What the cluster calls it."""
    memory: int | None
    """Bytes that a model could at most lie in."""
    available: int | None = None
    """Bytes of them that can be taken now; `memory` where it is not known."""
    pools: tuple[int, ...] = ()
    """`available` apart, per memory; one pool where it is empty."""
    fp32: float | None = None
    """TFLOPS, dense."""
    fp16: float | None = None
    """TFLOPS, dense."""
    int8: float | None = None
    """TOPS, dense."""
    bandwidth: float | None = None
    """Of the memory, in bytes per second."""
    model: str | None = None
    """The machine's name by its maker."""
    chip: str | None = None
    """The name of its first GPU, or of its CPU."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is unknown or incomplete."""
    class_: str | None = None
    """Class of efficiency of its first device; None where its like was never measured."""
    efficiency: Efficiency | None = None
    """What it reaches; None: its times are lower bounds, from theoretical peaks."""
    width: int = 1
    """Equal devices that may split each layer among them (tensor parallelism)."""
    equal: int = 1
    """Equal devices with memory of their own, whether or not the engine splits layers."""
    inner: Link = KINDS["pcie4"]
    """The link that joins its devices: the slowest that it can be where it is not known."""
    offer: Capacity | None = None
    """What its report offers; None where it was made by hand."""
    nominal: float | None = None
    """The bandwidth by the report or as given, in bytes per second, whatever was measured."""

    @property
    def memory_mib(self) -> int:
        """`memory` in whole MiB, as old exo counts; 0 when unknown."""
        return (self.memory or 0) // MIB

    @property
    def half(self) -> float | None:
        """TFLOPS of arithmetic on 16-bit weights, which may be that of FP32; None is not known.

        Pascal without HBM does FP16 at 1/64 of the speed of FP32, so nobody uses it there (CUDA
        C++ programming guide, arithmetic instructions of compute capability 6.1).
        """
        return max(filter(None, (self.fp16, self.fp32)), default=None)

    def usable(self, use: str) -> tuple[int, ...]:
        """Return the memories that may be filled: what is ``available`` now, or in ``total``.

        Raises `ClusterError` when the node's memory is not known.
        """
        if use == "available" and self.pools:
            return self.pools
        size = self.memory if use == "total" or self.available is None else self.available
        if size is None:
            reason = self.reasons.get("memory_total", "its report does not give")
            raise ClusterError(f"the memory of node {self.id!r} is unknown: {reason}", node=self.id)
        return (size,)


def with_memory(members: Sequence[Member], memories: Mapping[str, int]) -> list[Member]:
    """Return the members with the memory (bytes) that a person gives for some, as one pool.

    Raises `ClusterError` for a node that is not there.
    """
    for id_ in memories:
        if all(member.id != id_ for member in members):
            names = ", ".join(member.id for member in members)
            raise ClusterError(f"a memory names node {id_!r}; there are {names}", node=id_)
    return [
        replace(member, memory=size, available=size, pools=(size,))
        if (size := memories.get(member.id)) is not None
        else member
        for member in members
    ]


def member(
    id_: str,
    report: Any,
    *,
    devices: str | tuple[str, ...] = "all",
    bandwidth: float | None = None,
    engine: str = "auto",
) -> Member:
    """Return the member that a report, or its document, describes.

    `devices` chooses as `capacity` says. `bandwidth` (bytes per second) stands in where the report
    does not tell, and is then named as given. `engine` is one of `ENGINES`. Raises `ClusterError`
    with the node's id. What `probe bench` measured on it counts before what is derived, where it
    is fresh and undisturbed, an engine's own costs are known, and on a GPU where it is no less than
    what engines reach on its like.
    """
    try:
        offer = capacity(report, devices)
    except ClusterError as error:
        raise ClusterError(f"node {id_!r}: {error}", node=id_) from None
    node = document_of(report).get("node")
    model = node.get("model") if isinstance(node, Mapping) else None
    reasons = dict(offer.reasons)
    what_if = document_of(report).get("what_if")
    if isinstance(what_if, str):
        reasons["origin"] = what_if
    if offer.bandwidth is None and bandwidth is not None:
        reasons["bandwidth"] = "as given, not from the report"
    own = Member(
        id=id_,
        memory=offer.memory_total,
        available=offer.memory_available,
        pools=offer.pools,
        fp32=offer.fp32,
        fp16=offer.fp16,
        int8=offer.int8,
        model=model if isinstance(model, str) else None,
        chip=offer.chip,
        reasons=reasons,
        class_=class_of(offer),
        equal=_equal(report, offer),
        inner=_inner(report, offer),
        offer=offer,
        nominal=bandwidth if offer.bandwidth is None else offer.bandwidth,
    )
    return with_engine(own, engine)


def with_engine(own: Member, engine: str, figures: EfficiencyTable | None = None) -> Member:
    """Return the member as an engine runs it; ``auto`` is what is usual for its class of device.

    `figures` are those of efficiency.toml, unless others are tried. One that was made by hand stays
    as it is. Raises `ClusterError` for an unknown engine.
    """
    name = engine_name(engine)
    offer = own.offer
    if offer is None:
        return own
    if name == "auto":
        name = usual_engine(own.class_)
    rate, reasons = own.nominal, dict(own.reasons)
    dies = 2 if offer.vendor == "apple" and "Ultra" in (offer.chip or "") else 1
    efficiency = efficiency_of(
        own.class_,
        name,
        _operations(own, rate),
        dies=dies,
        cores=offer.cores,
        arch=offer.arch,
        figures=figures,
    )
    given = offer.bandwidth is None and rate is not None
    if efficiency is not None and offer.measured is not None and not given:
        speed, by = offer.measured
        # tinygrad reads an H100 at half of what other libraries do: what engines were published to
        # reach on such GPUs is known better. A CPU is read by a plain loop, which none outruns.
        if offer.kind == "cpu" or speed >= (rate or 0.0) * efficiency.share:
            rate, efficiency = speed, with_measured(efficiency, speed, by)
            reasons.pop("bandwidth", None)
        else:
            less = f"{efficiency.basis}; {speed / 1e9:.0f} GB/s read by {by} are less"
            efficiency = efficiency._replace(basis=less)
    width = own.equal if ENGINES[name].cards else 1
    return replace(own, bandwidth=rate, efficiency=efficiency, width=width, reasons=reasons)


def with_nvlink(members: Sequence[Member], links: Links) -> tuple[Sequence[Member], Links]:
    """Return members and links in which the NVLink that a person names is that of the chips.

    As the default of one computer it joins its cards. Raises `ClusterError` for chips that have
    none, or another, and between computers that no NVLink joins.
    """
    chips = {own.id: own.chip or own.id for own in members}
    named = {
        pair: nvlink_between([chips[id_] for id_ in pair], link)
        for pair, link in links.named().items()
        if chips.keys() >= set(pair)
    }
    default = links.named_default
    if default is None:
        pass
    elif len(members) > 1:
        default = nvlink_between(chips.values(), default)
    elif members and default.kind.startswith("nvlink"):
        (own,) = members
        members = [replace(own, inner=nvlink_of(chips[own.id], default.kind))]
    return members, Links({**links.named(), **named}, default, links.software)


def _operations(own: Member, rate: float | None) -> float | None:
    """Return the operations for each byte read, where they bound a class; None elsewhere."""
    offer = own.offer
    if offer is None or not (offer.fp32 and rate):
        return None
    arch = offer.arch or ""
    if own.class_ not in ("hbm", "apple-m1-m2", "gddr-pascal"):
        return None
    found = integer_operations(offer.fp32, arch) * 1e12 / len(offer.devices) / rate
    # Maxwell has no DP4A, which llama.cpp multiplies quantised weights with: more of its arithmetic
    # reads no more.
    older = own.class_ == "gddr-pascal" and not arch.startswith("pascal")
    return min(found, MEASURED_PASCAL) if older else found


def _equal(report: Any, offer: Capacity) -> int:
    """Return how many devices are equal and have memory of their own; 1 where they differ."""
    devices = document_of(report).get("devices") or ()
    names = {device.get("name") for device in devices if device.get("id") in offer.devices}
    return max(1, len(offer.pools)) if len(names) == 1 and not offer.unified else 1


def _inner(report: Any, offer: Capacity) -> Link:
    """Return the link by which all devices that count are joined."""
    devices = document_of(report).get("devices") or ()
    counted = [device for device in devices if device.get("id") in offer.devices]
    for kind in ("nvlink", "xgmi"):
        if counted and _joined(counted, kind):
            each = [_own_link(device, kind) for device in counted]
            return min(each, key=lambda link: link.bandwidth)
    return KINDS["pcie4"]


def _joined(devices: Sequence[Mapping[str, Any]], kind: str) -> bool:
    """Return whether links of a kind lead from each device to all, maybe through others.

    Bridges join cards in pairs: of four with two bridges, two and two talk over PCIe. A link whose
    peer is a switch, or is not known, leads to all.
    """
    peers = [_peers(device, kind) for device in devices]
    if not all(peers):
        return False
    reached, waiting = {0}, [0]
    while waiting:
        own = peers[waiting.pop()]
        for place, device in enumerate(devices):
            if place not in reached and (
                None in own or not own.isdisjoint(device.get("ids") or ())
            ):
                reached.add(place)
                waiting.append(place)
    return len(reached) == len(devices)


def _links(device: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    links = device.get("links") or ()
    return [link for link in links if isinstance(link, Mapping) and link.get("kind") == kind]


def _peers(device: Mapping[str, Any], kind: str) -> set[str | None]:
    """Return the ids to which links of a kind lead; None among them stands for all."""
    return {
        None if link.get("to") == "switch" else link.get("peer") for link in _links(device, kind)
    }


def _own_link(device: Mapping[str, Any], kind: str) -> Link:
    """Return all links of a kind of a device as one: by its chip, and no faster than what is up."""
    found = own_nvlink(device.get("name") or "") if kind == "nvlink" else None
    speeds = [rate(link.get("bandwidth")) for link in _links(device, kind)]
    own, up = found or KINDS[kind], sum(filter(None, speeds))
    if not all(speeds) or (found is not None and up >= own.bandwidth):
        return own
    return replace(own, bandwidth=up)
