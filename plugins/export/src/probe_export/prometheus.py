"""Prometheus' text format 0.0.4, for node_exporter's textfile collector and for `--listen`.

One wrong line costs a whole file there (`node_textfile_scrape_error`), so unknown is absent: no
NaN, no 0, no empty label. Names stand in `probe_device_info` alone; all other series carry the
stable label `device`, which holds no serial number and no UUID.
"""

from __future__ import annotations

from probe_core.model.ids import driver_name, driver_version, is_prober_name
from probe_core.model.verdict import grantable, state_of
from probe_export.capacity import accelerators, capacity, cause, expected, missing, stable_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from probe_core.model.document import DeviceDoc, ReportDoc

    Labels = Mapping[str, str | None]
    Sample = tuple[Labels, float | int | bool | None]
    Figure = Callable[[DeviceDoc], float | int | bool | None]
    Family = tuple[str, str, list[Sample]]

__all__ = ["export", "text"]

_TERA = 10**12


def export(report: ReportDoc) -> str:
    """Return the text. Each family is written once, with its samples in the order of the bus."""
    return text(_families(report))


def text(families: Iterable[Family]) -> str:
    """Return families (name, help, samples) as text; what is None, or has no sample, is absent."""
    return "".join(_family(name, about, samples) for name, about, samples in families if samples)


def _family(name: str, help_text: str, samples: list[Sample]) -> str:
    lines = [f"{name}{_labels(labels)} {_number(v)}\n" for labels, v in samples if v is not None]
    head = f"# HELP {name} {help_text}\n# TYPE {name} gauge\n"
    return head + "".join(lines) if lines else ""


def _labels(labels: Labels) -> str:
    pairs = [f'{name}="{_escaped(text)}"' for name, text in labels.items() if text]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str) -> str:
    # A lone surrogate cannot be written as UTF-8, and the format has no other encoding.
    plain = text.encode("utf-8", "replace").decode()
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", " ")


def _number(value: float | int | bool) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))


def _families(report: ReportDoc) -> list[Family]:
    memory = report["node"]["memory"]
    return [
        ("probe_info", "Versions of what made this report.", [(_versions(report), 1)]),
        ("probe_node_info", "The node itself.", [(_node(report), 1)]),
        ("probe_node_memory_bytes", "Memory of the node.", [({}, memory["total"])]),
        ("probe_node_memory_available_bytes", "Memory available.", [({}, memory["available"])]),
        ("probe_node_memory_limit_bytes", "Limit of the control group.", [({}, memory["limit"])]),
        *_of_network(report),
        *_of_devices(report),
        *_of_the_probe(report),
    ]


def _versions(report: ReportDoc) -> Labels:
    return {"version": report["probe_core"], "chipdb": report["chipdb"]}


def _node(report: ReportDoc) -> Labels:
    node = report["node"]
    return {
        "os": node["os"],
        "kernel": node["kernel"],
        "arch": node["arch"],
        "model": node["model"],
        "id": node["id"],
        "host": node["host"],
        "container": node["container"],
        "vm": node["vm"],
    }


def _of_network(report: ReportDoc) -> Iterator[Family]:
    links = [(link, {"link": link["name"]}) for link in report["node"].get("network") or ()]
    about: list[Sample] = [
        (
            {
                **labels,
                "kind": link["kind"],
                "driver": link.get("driver"),
                "pci": (link.get("device") or "").removeprefix("pci:"),
                "layer": link.get("layer"),
                "interface": link.get("interface"),
            },
            1,
        )
        for link, labels in links
    ]
    yield "probe_network_info", "A link of the node to others; join on the label link.", about
    up: list[Sample] = [(n, link["state"] == "up" if link["state"] else None) for link, n in links]
    yield "probe_network_up", "1 when the link is up.", up
    rates: list[Sample] = [(labels, link["bandwidth"]) for link, labels in links]
    yield "probe_network_bandwidth_bytes_per_second", "Speed of the link, one direction.", rates


_FIGURES: tuple[tuple[str, str, Figure], ...] = (
    (
        "ready",
        "1 when a job that is given the device can use it.",
        lambda device: grantable(device).usable,
    ),
    ("memory_bytes", "Memory of the device.", lambda device: device["memory"]["total"]),
    ("memory_usable_bytes", "Memory to be used.", lambda device: device["memory"]["usable"]),
    ("memory_free_bytes", "Memory that is free.", lambda device: device["memory"]["free"]),
    (
        "memory_bandwidth_bytes_per_second",
        "Theoretical bandwidth of its memory.",
        lambda device: device["bandwidth"],
    ),
    (
        "power_limit_watts",
        "Power limit that is set.",
        lambda device: (device.get("power") or {}).get("limit_watts"),
    ),
    ("link_bytes_per_second", "Bandwidth of the PCIe link now.", lambda device: _pcie(device)),
)
"""Name behind ``probe_device_``, help, and the figure of a device; None where unknown."""


def _of_devices(report: ReportDoc) -> Iterator[Family]:
    devices, names = accelerators(report), stable_names(report["devices"])
    about: list[Sample] = [(_about(device, names), 1) for device in devices]
    yield "probe_device_info", "Which device it is; join on the label device.", about
    for name, help_text, figure in _FIGURES:
        samples: list[Sample] = [({"device": names[d["id"]]}, figure(d)) for d in devices]
        yield f"probe_device_{name}", help_text, samples
    # Not the same as not ready: a card for a guest, or in MIG mode, is missed by nobody.
    absent = {device["id"] for device in missing(report)}
    lost: list[Sample] = [({"device": names[d["id"]]}, d["id"] in absent) for d in devices]
    yield "probe_device_missing", "1 when no job can be given it, though nobody chose so.", lost
    peaks: list[Sample] = [
        ({"device": names[device["id"]], "dtype": dtype}, peak and peak * _TERA)
        for device in devices
        for dtype, peak in _peaks(device)
    ]
    yield "probe_device_peak_operations_per_second", "Theoretical peak, dense.", peaks
    yield "probe_devices", "Accelerators by kind and state.", _states(devices)
    usable: Sample = ({}, len(capacity(report)))
    yield "probe_devices_usable", "Accelerators that a job can be given.", [usable]
    count, gone = expected(report) or (None, None)
    yield "probe_devices_expected", "Accelerators that should be here.", [({}, count)]
    yield "probe_devices_absent", "Those of them that nothing shows.", [({}, gone)]


def _about(device: DeviceDoc, names: Mapping[str, str]) -> Labels:
    readiness = device["readiness"]
    return {
        "device": names[device["id"]],
        "kind": device["kind"],
        "vendor": device["vendor"],
        "name": device["name"],
        "chip": device["chip"]["id"],
        "arch": device["arch"],
        "driver": driver_name(device),
        "driver_version": driver_version(device),
        "parent": names.get(device["parent"] or ""),
        "state": readiness["state"] if readiness else None,
        "cause": cause(device),
    }


def _states(devices: list[DeviceDoc]) -> list[Sample]:
    counts: dict[tuple[str, str], int] = {}
    for device in devices:
        key = (device["kind"], state_of(device))
        counts[key] = counts.get(key, 0) + 1
    return [({"kind": kind, "state": state}, n) for (kind, state), n in sorted(counts.items())]


def _peaks(device: DeviceDoc) -> Iterator[tuple[str, float | None]]:
    yield "fp32", device["fp32"]
    yield "fp16", device["fp16"]
    yield "int8", device["int8"]


def _pcie(device: DeviceDoc) -> float | None:
    links = device["links"]
    return next((link.get("bandwidth") for link in links if link["kind"] == "pcie"), None)


def _of_the_probe(report: ReportDoc) -> Iterator[Family]:
    named = [outcome for outcome in report["outcomes"] if is_prober_name(outcome["prober"])]
    ran = [outcome for outcome in named if outcome["status"] != "skipped"]
    # That a node has nothing of a prober's is a sound answer.
    ok: list[Sample] = [
        ({"prober": o["prober"]}, o["status"] in ("ok", "not_applicable")) for o in ran
    ]
    yield "probe_prober_ok", "1 when the prober ended as it should.", ok
    took: list[Sample] = [({"prober": o["prober"]}, o["elapsed_ms"] / 1000) for o in ran]
    yield "probe_prober_duration_seconds", "Time that the prober took.", took
    yield "probe_findings", "Findings by severity.", _severities(report)
    time: Sample = ({}, _unix(report["node"]["time"]))
    yield "probe_report_time_seconds", "When the report was made, in Unix time.", [time]


def _severities(report: ReportDoc) -> list[Sample]:
    all_of = [finding["severity"] for finding in report["findings"]]
    return [
        ({"severity": severity}, all_of.count(severity))
        for severity in ("error", "warning", "info")
    ]


def _unix(time: str | None) -> float | None:
    if time is None:
        return None
    from datetime import datetime

    return datetime.fromisoformat(time).timestamp()
