"""The facts of one node's report that a cluster compares, read without trusting its shape.

A report of eight GPUs is 80 kB of JSON, 230 kB as objects, and this 1.5 kB: a gather of 1,000 nodes
keeps each report as text, and this of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from probe_cluster.shared import plain, rate, table, tables, verdict
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json
    from probe_core.model.verdict import Answer


_ACCELERATORS = ("gpu", "npu", "accelerator")

_SYSTEM_MEMORY = ("unified", "shared")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator of a node; None is unknown."""

    id: str
    kind: str
    name: str
    driver: str | None
    """Name and version."""
    memory: int | None
    """Bytes."""
    integrated: bool
    """Whether its memory is the system's, as that of a processor's graphics is."""
    parent: str | None
    """The device that it is a part of."""
    blocked: str | None
    """The step, with its evidence, that keeps it from the process which made the report."""
    hidden: str | None
    """The variable, or the rule of its runtime, that hides it from that process."""
    lanes: int | None
    """PCIe lanes of its own hop, while it is awake."""
    nvlinks: int | None
    """NVLinks that are active."""
    profile: str | None
    """Of a part: how its driver calls its size."""
    set_aside: bool = False
    """Whether what blocks it is meant: a container's slice, a guest of the hypervisor."""
    unknown: bool = False
    """Whether nobody could tell if that process may use it."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a report says of its node's expectation; `unlike` are (fact, expected, found)."""

    source: str
    count: int
    absent: int
    unlike: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Nic:
    """One network interface of a node."""

    kind: str
    """Such as ethernet, wifi, infiniband."""
    bandwidth: float | None
    """Bytes per second in one direction, as negotiated."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a report says of its node; None is unknown."""

    os: str | None
    kernel: str | None
    arch: str | None
    model: str | None
    machine_id: str | None
    """The report's `node.id`: two nodes with one are one computer, or clones."""
    version: str | None
    """Of probe-core."""
    chipdb: str | None
    memory: int | None
    """Bytes of the system's memory."""
    cpu: str | None
    gpus: tuple[Gpu, ...]
    errors: tuple[str, ...]
    """Codes of the findings of severity error."""
    vm: str | None = None
    """The hypervisor of a virtual machine."""
    expected: Expected | None = None
    """What a setting or a saved baseline of the node itself expects."""
    nics: Mapping[str, Nic] = field(default_factory=dict)
    """Name of the interface → what it is."""

    @property
    def whole(self) -> list[Gpu]:
        """Return the accelerators that are no part of another."""
        return [gpu for gpu in self.gpus if gpu.parent is None]

    @property
    def gpus_alone(self) -> list[Gpu]:
        """Return `whole` without NPUs, which no engine schedules: `usable` leaves them out, too."""
        return [gpu for gpu in self.whole if gpu.kind != "npu"]

    @property
    def usable(self) -> list[Gpu]:
        """Return the GPUs that a process can use: parts in place of what they are parts of."""
        parents = {gpu.parent for gpu in self.gpus}
        return [
            gpu
            for gpu in self.gpus
            if gpu.kind != "npu" and not (gpu.blocked or gpu.hidden or gpu.id in parents)
        ]

    @property
    def schedulable(self) -> list[Gpu]:
        """Return the usable GPUs that an engine counts: no processor's graphics beside a card."""
        if all(gpu.integrated for gpu in self.gpus_alone):
            return self.usable
        return [gpu for gpu in self.usable if not gpu.integrated]


def summary_of(document: Mapping[str, Json]) -> Summary:
    """Return the summary of a report's document. Raises `ValueError` for one that is no report."""
    if document.get("schema") != 1:
        raise ValueError(f"its report has schema {clean_text(str(document.get('schema')), 40)}")
    devices = document.get("devices")
    if not isinstance(devices, list) or not devices:
        raise ValueError("its report has no devices")
    found = tables(devices)
    node = table(document.get("node"))
    cpus = [plain(device.get("name")) for device in found if device.get("kind") == "cpu"]
    return Summary(
        os=plain(node.get("os")),
        kernel=plain(node.get("kernel")),
        arch=plain(node.get("arch")),
        model=plain(node.get("model")),
        machine_id=plain(node.get("id")),
        version=plain(document.get("probe_core")),
        chipdb=plain(document.get("chipdb")),
        memory=_count(table(node.get("memory")).get("total")),
        cpu=next((name for name in cpus if name), None),
        gpus=tuple(_gpu(device) for device in found if device.get("kind") in _ACCELERATORS),
        errors=_errors(document.get("findings")),
        vm=plain(node.get("vm")),
        expected=_expected(document.get("expected")),
        nics=_nics(node.get("network")),
    )


def _count(value: Json) -> int | None:
    return value if type(value) is int and 0 < value < 1 << 63 else None


def _errors(findings: Json) -> tuple[str, ...]:
    errors = [entry for entry in tables(findings) if entry.get("severity") == "error"]
    codes = {plain(entry.get("code")) for entry in errors}
    return tuple(sorted(filter(None, codes)))


_MAX_UNLIKE = 64


def _expected(document: Json) -> Expected | None:
    """Return what the node itself expects; None where nobody said so, or it knows no such chip."""
    entry = table(document)
    source, count = plain(entry.get("source")), entry.get("count")
    if source is None or not isinstance(count, int) or entry.get("unknown"):
        return None
    absent = [_count(row.get("count")) or 0 for row in tables(entry.get("absent"))]
    unlike = [
        tuple(plain(row.get(name)) or "unknown" for name in ("fact", "expected", "found"))
        for row in tables(entry.get("unlike"))[:_MAX_UNLIKE]
    ]
    return Expected(source, count, sum(absent), tuple(dict.fromkeys(unlike)))  # type: ignore[arg-type]  # three each


def _nics(links: Json) -> dict[str, Nic]:
    """Return the interfaces of `node.network`, which older reports lack."""
    nics = {}
    for link in tables(links):
        name, kind = plain(link.get("name")), plain(link.get("kind"))
        # An RDMA port and a Thunderbolt connection have no address that a socket could bind.
        if name and kind and kind not in ("rdma", "thunderbolt"):
            nics[name] = Nic(kind, rate(link.get("bandwidth")))
    return nics


def _gpu(device: Mapping[str, Json]) -> Gpu:
    id_ = plain(device.get("id")) or "unknown"
    chip = plain(table(device.get("chip")).get("name"))
    driver = table(device.get("driver"))
    parts = [plain(driver.get("name")), plain(driver.get("version"))]
    answer = verdict(device)
    return Gpu(
        id=id_,
        kind=plain(device.get("kind")) or "gpu",
        name=plain(device.get("name")) or chip or plain(device.get("vendor")) or "unknown",
        driver=" ".join(filter(None, parts)) or None,
        memory=_count(table(device.get("memory")).get("total")),
        integrated=table(device.get("memory")).get("kind") in _SYSTEM_MEMORY,
        parent=plain(device.get("parent")),
        blocked=_blocked(answer),
        hidden=_hidden(answer),
        lanes=_lanes(device),
        nvlinks=_active_links(device),
        profile=plain(device.get("profile")),
        set_aside=answer.usable is False and answer.severity == "info",
        unknown=answer.usable is None,
    )


def _lanes(device: Mapping[str, Json]) -> int | None:
    """Return the lanes of an awake device's own hop: a sleeping one shows what it woke to."""
    if device.get("power_state") not in ("active", None):
        return None
    links = (link for link in tables(device.get("links")) if link.get("kind") == "pcie")
    return next((_count(link.get("local_width")) for link in links), None)


def _active_links(device: Mapping[str, Json]) -> int | None:
    active = table(table(device.get("extra")).get("nvlink")).get("active")
    return active if type(active) is int and active >= 0 else None


def _blocked(answer: Answer) -> str | None:
    if answer.usable is not False or answer.step == "visible":
        return None
    return f"{answer.step}: {answer.reason}" if answer.reason else answer.step


def _hidden(answer: Answer) -> str | None:
    if answer.usable is not False or answer.step != "visible":
        return None
    return answer.reason or "its runtime does not show it"
