"""The series of Prometheus: each is declared here, of a report's facts and of live samples.

What is not known has no series: no NaN, no 0, no empty label. Names and numbers that identify a
device stand in `probecore_device_info` alone; all other series carry the stable label `device`.
Memory that the processors share, and that of partitions, has names of its own, so that a sum over
all devices counts no byte twice; what is the node's begins with `probecore_node_`.
"""

from __future__ import annotations

from probe_core.model.ids import driver_name, driver_version, is_prober_name, pci_address
from probe_core.model.verdict import grantable, state_of
from probe_export.capacity import (
    accelerators,
    capacity,
    cause,
    expected,
    missing,
    name_of_id,
    stable_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import DeviceDoc, ReportDoc, SampleDoc

    Labels = Mapping[str, str | None]
    Value = float | int | bool | None
    Row = tuple[Labels, Value]
    Family = tuple[str, str, str, list[Row]]
    """Name, kind ("gauge", "counter", "info"), help, and the value of each series."""

    Figure = Callable[[DeviceDoc | None, SampleDoc | None], Value | list[Row]]
    Thing = tuple[Labels, DeviceDoc | None, SampleDoc | None]

PREFIX = "probecore"
"""`probe_` is blackbox_exporter's (`probe_success`)."""

SUFFIXES = {"counter": "_total", "info": "_info", "gauge": ""}
_TERA = 10**12
_MEGA = 10**6
_NODE, _CPU = "node:self", "cpu:"


def export(report: ReportDoc) -> str:
    """Return the text of a report's facts. No UUID is in it: a file goes where nobody knows."""
    return text([*facts(report), *figures(report)])


def text(families: Iterable[Family]) -> str:
    """Return format 0.0.4; the import of prometheus_client alone takes longer than a probe."""
    return "".join(
        f"# HELP {name}{SUFFIXES[kind]} {about}\n"
        f"# TYPE {name}{SUFFIXES[kind]} {'gauge' if kind == 'info' else kind}\n"
        + "".join(
            f"{name}{SUFFIXES[kind]}{_labels(own)} {_number(value)}\n"
            for own, value in rows
            if value is not None
        )
        for name, kind, about, rows in families
    )


def _labels(own: Labels) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in own.items() if value]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float | int | bool) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))


def _family(name: str, kind: str, about: str, rows: Iterable[Row]) -> Iterator[Family]:
    """Yield the family with its known values, if there is any."""
    known: list[Row] = [(_clean(labels), v) for labels, v in rows if v is not None]
    if known:
        yield f"{PREFIX}_{name}", kind, about, known


def _clean(labels: Labels) -> dict[str, str]:
    # A lone surrogate cannot be written as UTF-8; a carriage return ends a line for some readers.
    return {
        name: value.encode("utf-8", "replace").decode().replace("\r", " ")
        for name, value in labels.items()
        if value
    }


# Facts: what a report has. They change when something is plugged in, breaks or is mended.


def facts(report: ReportDoc, *, with_uuids: bool = False) -> list[Family]:
    """Return the series of a report that need no sample. Devices come in the order of the bus."""
    return [
        *_of_node(report),
        *_of_devices(report, with_uuids),
        *_of_the_probe(report),
    ]


def _of_node(report: ReportDoc) -> Iterator[Family]:
    node = report["node"]
    versions = {"version": report["probe_core"], "chipdb": report["chipdb"]}
    yield from _family("build", "info", "Versions of what made the report.", [(versions, 1)])
    names = ("os", "kernel", "arch", "model", "id", "host", "container", "vm")
    about: Any = {name: node.get(name) for name in names}
    yield from _family("node", "info", "The node itself.", [(about, 1)])
    limit: Row = ({}, node["memory"]["limit"])
    yield from _family("node_memory_limit_bytes", "gauge", "Limit of the control group.", [limit])
    links = node.get("network") or ()
    rows: list[Row] = [
        (
            {
                "link": link["name"],
                "kind": link["kind"],
                "driver": link.get("driver"),
                "pci": (link.get("device") or "").removeprefix("pci:"),
                "layer": link.get("layer"),
                "interface": link.get("interface"),
            },
            1,
        )
        for link in links
    ]
    yield from _family("network", "info", "A link to other nodes; join on the label link.", rows)
    up: list[Row] = [
        ({"link": link["name"]}, link["state"] == "up") for link in links if link["state"]
    ]
    yield from _family("network_up", "gauge", "1 when the link is up.", up)
    rates: list[Row] = [({"link": link["name"]}, link["bandwidth"]) for link in links]
    about_rate = "Speed of the link, one direction."
    yield from _family("network_bandwidth_bytes_per_second", "gauge", about_rate, rates)


_FACTS: tuple[tuple[str, str, Callable[[DeviceDoc], Value]], ...] = (
    ("ready", "1 when a job that is given it can use it.", lambda d: grantable(d).usable),
    ("memory_usable_bytes", "Memory to be used.", lambda d: d["memory"]["usable"]),
    (
        "memory_bandwidth_bytes_per_second",
        "Theoretical bandwidth of its memory.",
        lambda d: d["bandwidth"],
    ),
    ("pcie_bytes_per_second", "Bandwidth of the PCIe link now.", lambda d: _pcie(d)),
    ("ecc_remapped_rows", "Rows of memory that were replaced.", lambda d: _ecc(d, "remapped")),
    (
        "ecc_remap_pending",
        "1 when rows are replaced at the next reset.",
        lambda d: _ecc(d, "remap_pending"),
    ),
    ("ecc_remap_failed", "1 when no spare row was left.", lambda d: _ecc(d, "remap_failed")),
)
"""Name behind the stem, help, and the figure of a device; None where unknown."""


def _pcie(device: DeviceDoc) -> float | None:
    links = device["links"]
    return next((link.get("bandwidth") for link in links if link["kind"] == "pcie"), None)


def _ecc(device: DeviceDoc, field: str) -> Any:
    return (device.get("ecc") or {}).get(field)


def _of_devices(report: ReportDoc, with_uuids: bool) -> Iterator[Family]:
    things = _things(report, {})
    absent = {device["id"] for device in missing(report)}
    for stem, members in things.items():
        devices = [(labels, device) for labels, device, _ in members if device is not None]
        about: list[Row] = [
            ({**labels, **_about(device, report, with_uuids)}, 1) for labels, device in devices
        ]
        yield from _family(stem, "info", "Which it is; join on the label device.", about)
        for name, help_text, figure in _FACTS:
            rows: list[Row] = [(labels, figure(device)) for labels, device in devices]
            yield from _family(f"{stem}_{name}", "gauge", help_text, rows)
        # Not the same as not ready: a card for a guest, or in MIG mode, is missed by nobody.
        lost: list[Row] = [(labels, device["id"] in absent) for labels, device in devices]
        help_text = "1 when no job can be given it, though nobody chose so."
        yield from _family(f"{stem}_missing", "gauge", help_text, lost)
        peaks: list[Row] = [
            ({**labels, "dtype": dtype}, peak and peak * _TERA)
            for labels, device in devices
            for dtype, peak in (
                ("fp32", device["fp32"]),
                ("fp16", device["fp16"]),
                ("int8", device["int8"]),
            )
        ]
        help_text = "Theoretical peak, dense."
        yield from _family(f"{stem}_peak_operations_per_second", "gauge", help_text, peaks)
    yield from _family("devices", "gauge", "Accelerators by kind and state.", _states(report))
    usable: Row = ({}, len(capacity(report)))
    yield from _family("devices_usable", "gauge", "Those that a job can be given.", [usable])
    count, gone = expected(report) or (None, None)
    yield from _family("devices_expected", "gauge", "Those that should be here.", [({}, count)])
    yield from _family("devices_absent", "gauge", "Those that nothing shows.", [({}, gone)])


def _about(device: DeviceDoc, report: ReportDoc, with_uuids: bool) -> Labels:
    readiness = device["readiness"]
    return {
        "kind": device["kind"],
        "vendor": device["vendor"],
        "name": device["name"],
        "chip": device["chip"]["id"],
        "arch": device["arch"],
        "driver": driver_name(device),
        "driver_version": driver_version(device),
        "pci": pci_address(device),
        "index": _index(device, report),
        "uuid": next((i[5:] for i in device["ids"] if i.startswith("uuid:") and with_uuids), None),
        "state": readiness["state"] if readiness else None,
        "cause": cause(device),
    }


def _index(device: DeviceDoc, report: ReportDoc) -> str | None:
    """Return NVML's index, else the place among its vendor's whole cards on the bus."""
    number = (device.get("node_index") or {}).get("nvml")
    if number is not None or device["parent"]:
        return None if number is None else str(number)
    same = [d["id"] for d in accelerators(report) if d["vendor"] == device["vendor"]]
    return str([i for i in same if not _by_id(report)[i]["parent"]].index(device["id"]))


def _by_id(report: ReportDoc) -> dict[str, DeviceDoc]:
    return {device["id"]: device for device in report["devices"]}


def _states(report: ReportDoc) -> list[Row]:
    counts: dict[tuple[str, str], int] = {}
    for device in accelerators(report):
        key = (device["kind"], state_of(device))
        counts[key] = counts.get(key, 0) + 1
    return [({"kind": kind, "state": state}, n) for (kind, state), n in sorted(counts.items())]


def _of_the_probe(report: ReportDoc) -> Iterator[Family]:
    named = [outcome for outcome in report["outcomes"] if is_prober_name(outcome["prober"])]
    ran = [outcome for outcome in named if outcome["status"] != "skipped"]
    # That a node has nothing of a prober's is a sound answer.
    ok: list[Row] = [
        ({"prober": o["prober"]}, o["status"] in ("ok", "not_applicable")) for o in ran
    ]
    yield from _family("prober_ok", "gauge", "1 when the prober ended as it should.", ok)
    took: list[Row] = [({"prober": o["prober"]}, o["elapsed_ms"] / 1000) for o in ran]
    yield from _family("prober_duration_seconds", "gauge", "Time that the prober took.", took)
    all_of = [finding["severity"] for finding in report["findings"]]
    rows: list[Row] = [({"severity": s}, all_of.count(s)) for s in ("error", "warning", "info")]
    yield from _family("findings", "gauge", "Findings by severity.", rows)
    time: Row = ({}, _unix(report["node"]["time"]))
    yield from _family("report_time_seconds", "gauge", "When the report was made.", [time])


def _unix(time: str | None) -> float | None:
    if time is None:
        return None
    from datetime import datetime

    return datetime.fromisoformat(time).timestamp()


# Figures: what a sample has, and what a report can answer where there is none.

_UP = {"ok": True, "unresponsive": False, "unavailable": False}


def _of(table: Any, field: str) -> Any:
    return None if table is None else table[field]


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else value * factor


def _is_shared(device: DeviceDoc | None) -> bool | None:
    """Return whether its memory is the node's; None before a report has come."""
    return None if device is None else device["memory"]["kind"] in ("shared", "unified")


def _size(device: DeviceDoc | None, sample: SampleDoc | None) -> float | None:
    live: float | None = _of(_of(sample, "memory"), "total")
    return live if live is not None or device is None else device["memory"]["total"]


def _used(device: DeviceDoc | None, sample: SampleDoc | None) -> float | None:
    """Return what cannot be allocated: of a report alone with what the driver reserves."""
    if sample is not None or device is None:
        used: float | None = _of(_of(sample, "memory"), "used")
        return used
    total, free = device["memory"]["total"], device["memory"]["free"]
    return None if total is None or free is None else total - free


def _limit(device: DeviceDoc | None, sample: SampleDoc | None) -> float | None:
    if sample is not None or device is None:
        return sample["power_cap_w"] if sample else None
    return (device.get("power") or {}).get("limit_watts")


def _counted(field: str) -> Figure:
    return lambda device, sample: _of(_of(sample, "counters"), field)


def _apart(label: str, **fields: str) -> Figure:
    """Return the figure with a series for each counter, told apart by a label."""
    return lambda device, sample: [
        ({label: name}, _of(_of(sample, "counters"), field)) for name, field in fields.items()
    ]


_DEVICE: tuple[tuple[str, str, str, Figure], ...] = (
    ("up", "gauge", "1 when it answered; absent where it was not asked.",
     lambda d, s: _UP.get(s["status"]) if s else None),
    ("pending", "gauge", "1 when it was not asked yet.",
     lambda d, s: s and s["status"] == "pending"),
    ("asleep", "gauge", "1 when it sleeps and was not asked.",
     lambda d, s: s and s["status"] == "asleep"),
    ("busy_ratio", "gauge", "Share of time in which it worked at all.",
     lambda d, s: _of(s, "busy")),
    ("sm_activity_ratio", "gauge", "Mean share of busy compute units.",
     lambda d, s: _of(_of(s, "activity"), "sm")),
    ("tensor_activity_ratio", "gauge", "Share of the peak of its matrix units.",
     lambda d, s: _of(_of(s, "activity"), "tensor")),
    ("memory_activity_ratio", "gauge", "Share of the memory's cycles that moved data.",
     lambda d, s: _of(_of(s, "activity"), "memory")),
    ("memory_size_bytes", "gauge", "Its own memory.",
     lambda d, s: _size(d, s) if _is_shared(d) is False else None),
    ("memory_used_bytes", "gauge", "Its own memory that cannot be allocated.",
     lambda d, s: _used(d, s) if _is_shared(d) is False else None),
    ("shared_memory_size_bytes", "gauge", "The node's memory that it can use.",
     lambda d, s: _size(d, s) if _is_shared(d) else None),
    ("shared_memory_used_bytes", "gauge", "The part of it that cannot be allocated.",
     lambda d, s: _used(d, s) if _is_shared(d) else None),
    ("temperature_celsius", "gauge", "Temperature of the chip.",
     lambda d, s: _of(s, "temperature_c")),
    ("power_watts", "gauge", "Power drawn.", lambda d, s: _of(s, "power_w")),
    ("power_limit_watts", "gauge", "Power that the driver keeps it below.", _limit),
    ("clock_hertz", "gauge", "Clock of the compute units.",
     lambda d, s: _times(_MEGA, _of(_of(s, "clocks_mhz"), "sm"))),
    ("memory_clock_hertz", "gauge", "Clock of the memory.",
     lambda d, s: _times(_MEGA, _of(_of(s, "clocks_mhz"), "memory"))),
    ("throttled", "gauge", "1 for each reason for which the clock is low now.",
     lambda d, s: [({"reason": reason}, 1) for reason in _of(s, "throttled") or ()]),
    ("processes", "gauge", "Processes that use it.",
     lambda d, s: None if (listed := _of(s, "processes")) is None else len(listed)),
    ("link_received_bytes_per_second", "gauge", "What its links received lately.",
     lambda d, s: _rates(s, "received")),
    ("link_sent_bytes_per_second", "gauge", "What its links sent lately.",
     lambda d, s: _rates(s, "sent")),
    ("energy_joules", "counter", "Energy drawn.", _counted("energy_j")),
    ("throttled_seconds", "counter", "Time with a lowered clock.",
     _apart("reason", power="throttled_power_s", thermal="throttled_thermal_s")),
    ("ecc_errors", "counter", "Errors of its memory.",
     _apart("kind", corrected="ecc_corrected", uncorrected="ecc_uncorrected")),
    ("xid_errors", "counter", "Xid errors that NVIDIA's driver reported.",
     lambda d, s: [({"xid": str(x["code"])}, x["count"]) for x in _of(s, "xids") or ()]),
    ("pcie_replays", "counter", "Packets that were sent over PCIe again.",
     _counted("pcie_replays")),
    ("pcie_correctable_errors", "counter", "Errors that the PCIe link corrected.",
     _counted("pcie_correctable")),
    ("nvlink_errors", "counter", "Errors of its NVLinks.",
     _apart("kind", crc="nvlink_crc", replay="nvlink_replays", recovery="nvlink_recoveries")),
)  # fmt: skip
"""Name behind the stem, kind, help, and the figure of a device and its sample; None where unknown.

The stem is ``probecore_device``, of a partition ``probecore_partition``."""

_PROCESSORS: tuple[tuple[str, str, str, Callable[[SampleDoc], Value]], ...] = (
    ("busy_ratio", "gauge", "Share of time in which its CPUs worked.", lambda s: s["busy"]),
    ("temperature_celsius", "gauge", "Its temperature.", lambda s: s["temperature_c"]),
    ("power_watts", "gauge", "Power drawn.", lambda s: s["power_w"]),
    ("clock_hertz", "gauge", "Mean clock.",
     lambda s: _times(_MEGA, _of(s["clocks_mhz"], "sm"))),
    ("energy_joules", "counter", "Energy drawn.", lambda s: _of(s["counters"], "energy_j")),
)  # fmt: skip
"""The same of a processor package, behind ``probecore_node_cpu``."""


def figures(report: ReportDoc | None, samples: Sequence[SampleDoc] = ()) -> list[Family]:
    """Return the series of samples; without samples those that a report answers, too.

    A device that only its report names, such as a MIG instance, is left out until there is one:
    a metric's label is stored for years, and must hold no serial number.
    """
    by_id = {sample["device"]: sample for sample in samples}
    families = [
        family
        for stem, members in _things(report, by_id).items()
        for name, kind, about, figure in _DEVICE
        for family in _family(f"{stem}_{name}", kind, about, _measured(figure, members))
    ]
    packages = [s for s in samples if s["device"].startswith(_CPU)]
    for name, kind, about, of in _PROCESSORS:
        rows: list[Row] = [({"package": s["device"][len(_CPU) :]}, of(s)) for s in packages]
        families += _family(f"node_cpu_{name}", kind, about, rows)
    return families + list(_of_host(report, by_id.get(_NODE)))


def _measured(figure: Figure, members: list[Thing]) -> Iterator[Row]:
    for labels, device, sample in members:
        value = figure(device, sample)
        if isinstance(value, list):
            yield from (({**labels, **more}, number) for more, number in value)
        else:
            yield labels, value


def _things(report: ReportDoc | None, samples: Mapping[str, SampleDoc]) -> dict[str, list[Thing]]:
    """Return the devices and the partitions, each with its labels, its facts and its sample."""
    things: dict[str, list[Thing]] = {"device": [], "partition": []}
    devices, names = (accelerators(report), stable_names(report["devices"])) if report else ([], {})
    for device in devices:
        name, card = names[device["id"]], names.get(device["parent"] or "")
        labels: Labels = {"device": name}
        if card:
            labels = {"device": card, "partition": name.removeprefix(f"{card}/")}
        stem = "partition" if card else "device"
        things[stem].append((labels, device, samples.get(device["id"])))
    known = {i for device in (report["devices"] if report else ()) for i in device["ids"]}
    for identity, sample in samples.items():
        name = name_of_id(identity) or ""
        if name and identity not in known and identity != _NODE and not name.startswith(_CPU):
            things["device"].append(({"device": name}, None, sample))
    return things


def labels(report: ReportDoc | None, samples: Sequence[SampleDoc]) -> dict[str, Labels]:
    """Return the labels of all that was sampled, by id; a device without a name is left out."""
    by_id = {sample["device"]: sample for sample in samples}
    found: dict[str, Labels] = {_NODE: {}}
    found |= {i: {"package": i[len(_CPU) :]} for i in by_id if i.startswith(_CPU)}
    for members in _things(report, by_id).values():
        found |= {sample["device"]: own for own, _, sample in members if sample is not None}
    return found


def identities(report: ReportDoc) -> dict[str, Labels]:
    """Return the labels of each accelerator by what a device plugin may call it.

    That is its UUID, its PCI address, or the name of its node in /dev ("nvidia0", "card1").
    """
    found: dict[str, Labels] = {}
    for members in _things(report, {}).values():
        for labels, device, _ in members:
            own = device["ids"] if device else []
            nodes = (device.get("nodes") or ()) if device and not device["parent"] else ()
            for identity in own:
                found[identity.removeprefix("uuid:").removeprefix("pci:")] = labels
            found |= {node.rpartition("/")[2]: labels for node in nodes}
    return found


def _rates(sample: SampleDoc | None, direction: str) -> list[Row]:
    links = sample["links"] if sample else ()
    return [
        ({"link": link["name"] or f"{link['kind'] or 'link'}{number}"}, _of(link, direction))
        for number, link in enumerate(links)
    ]


def _of_host(report: ReportDoc | None, sample: SampleDoc | None) -> Iterator[Family]:
    memory = report["node"]["memory"] if report else None
    size, used = _of(memory, "total"), None
    if sample is not None and sample["memory"]:
        size, used = sample["memory"]["total"] or size, sample["memory"]["used"]
    elif memory and None not in (size, memory["available"]):
        used = size - memory["available"]
    yield from _family("node_memory_size_bytes", "gauge", "Memory of the node.", [({}, size)])
    yield from _family("node_memory_used_bytes", "gauge", "What cannot be had.", [({}, used)])
    shares = sample["pressure"] if sample else None
    rows: list[Row] = [({"resource": name}, _of(shares, name)) for name in ("cpu", "memory", "io")]
    about = "Share of the last 10 s in which a task waited for it."
    yield from _family("node_pressure_ratio", "gauge", about, rows)
    for direction in ("received", "sent"):
        about = f"What the link has {direction} lately."
        name = f"network_{direction}_bytes_per_second"
        yield from _family(name, "gauge", about, _rates(sample, direction))
