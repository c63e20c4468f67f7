"""node-feature-discovery: the local feature file, which nfd-worker turns into a node's labels.

Format: NFD's source/local. One `key=value` a line, without quotes and trailing comments; keys have
NFD's own prefix. The vendors' prefixes (nvidia.com, amd.com) are their operators' to write.
"""

from __future__ import annotations

from probe_core.model.ids import driver_version
from probe_core.model.verdict import NodeVerdict
from probe_export.capacity import (
    MAX_LABEL,
    by_cause,
    by_model,
    capacity,
    expected,
    label_value,
    memory_of,
    missing,
    of_unknown_state,
    product,
    set_aside,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_core.model.document import DeviceDoc, ReportDoc

PREFIX = "feature.node.kubernetes.io/probe-"
MAX_FILE = 65_000
"""Bytes: nfd-worker ignores a file of more than 65,536 whole, an expiry line included."""

_MIB = 1 << 20
_MEGABIT = 125_000
"""Bytes."""


def export(report: ReportDoc) -> str:
    """Return the file's text. Counts and memory are whole numbers: rules compare them (Gt, Lt)."""
    lines = [f"{PREFIX}{name}={value}\n" for name, value in _labels(report) if value]
    text, size = [], 0
    for line in lines:
        size += len(line)
        if size <= MAX_FILE:
            text.append(line)
    return "".join(text)


def _labels(report: ReportDoc) -> Iterator[tuple[str, str]]:
    devices, absent = capacity(report), missing(report)
    state = NodeVerdict(report).state
    if state != "unknown":
        yield "ready", "false" if state == "bad" else "true"
    for kind in ("gpu", "npu", "accelerator"):
        own = [device for device in devices if device["kind"] == kind]
        if own:
            yield f"{kind}.count", str(len(own))
            yield from _kind(kind, own)
    if unknown := of_unknown_state(report):
        yield "unknown.count", str(len(unknown))
    for name, useless in (("missing", absent), ("set-aside", set_aside(report))):
        if useless:
            yield f"{name}.count", str(len(useless))
            for code, group in by_cause(useless).items():
                yield f"{name}.{label_value(code)}.count", str(len(group))
    wanted = expected(report)
    if wanted is not None:
        yield "expected.count", str(wanted[0])
        yield "absent.count", str(wanted[1])
    memory = report["node"]["memory"]["total"]
    if memory is not None:
        yield "memory", str(memory // _MIB)
    yield from _network(report)


def _network(report: ReportDoc) -> Iterator[tuple[str, str]]:
    """Yield the fastest link that is up in Mbit/s, and the number of RDMA ports that are up."""
    links = [link for link in report["node"].get("network") or () if link["state"] == "up"]
    rdma = [link for link in links if link["kind"] == "rdma"]
    if rdma:
        yield "rdma.count", str(len(rdma))
    for name, own in (("network", links), ("rdma", rdma)):
        rates = [link["bandwidth"] for link in own if link["bandwidth"]]
        if rates:
            yield f"{name}.speed", str(int(max(rates) // _MEGABIT))


def _kind(kind: str, devices: list[DeviceDoc]) -> Iterator[tuple[str, str]]:
    # Room for the prefix's own part of the name, and for ".count".
    room = MAX_LABEL - len(f"probe-{kind}..memory")
    models = by_model(devices, lambda device: product(device, room))
    for name, own in models.items():
        yield f"{kind}.{name}.count", str(len(own))
        if amount := _least(memory_of(device) for device in own):
            yield f"{kind}.{name}.memory", str(amount // _MIB)
    # On a mixed node no single value would be true of every device.
    for label, value in (
        ("product", {product(device) or "" for device in devices}),
        ("vendor", {label_value(device["vendor"] or "") for device in devices}),
        ("arch", {label_value(device["arch"] or "") for device in devices}),
        ("compute", {label_value(device.get("compute_capability") or "") for device in devices}),
        ("driver", {label_value(driver_version(device) or "") for device in devices}),
    ):
        if len(value) == 1:
            yield f"{kind}.{label}", value.pop()
    if len(models) == 1 and (amount := _least(memory_of(device) for device in devices)):
        yield f"{kind}.memory", str(amount // _MIB)


def _least(amounts: Iterable[int | None]) -> int | None:
    """Return the least of all amounts; None where one of them is unknown."""
    listed = list(amounts)
    return None if None in listed else min((n for n in listed if n is not None), default=None)
