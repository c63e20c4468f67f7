"""Ansible's local facts: one JSON document, which it shows as `ansible_local.probe`."""

from __future__ import annotations

from probe_core.commands import write_json_lines
from probe_core.model.ids import driver_version
from probe_export.capacity import (
    accelerators,
    capacity,
    cause,
    expected,
    memory_of,
    missing,
    of_unknown_state,
    stable_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, NetworkDoc, ReportDoc


def export(report: ReportDoc) -> str:
    """Return one JSON document; Ansible shows it as `ansible_local.probe`."""
    return write_json_lines(facts(report))


def facts(report: ReportDoc) -> dict[str, object]:
    """Return the node's facts that do not change while it runs; unknown ones are left out."""
    names = stable_names(report["devices"])
    devices, node = capacity(report), report["node"]
    primary, wanted = report["primary"], expected(report)
    table = {
        "os": node["os"],
        "arch": node["arch"],
        "id": node["id"],
        "host": node["host"],
        "memory_bytes": node["memory"]["total"],
        "network": [_link(link) for link in node.get("network") or ()],
        "container": node["container"],
        "vm": node["vm"],
        "accelerators": len(devices),
        "unknown": len(of_unknown_state(report)),
        "missing": len(missing(report)),
        "expected": wanted and wanted[0],
        "absent": wanted and wanted[1],
        "primary": names.get(primary) if primary else None,
        "devices": [_device(device, names) for device in accelerators(report)],
    }
    return {name: value for name, value in table.items() if value is not None}


def _link(link: NetworkDoc) -> dict[str, object]:
    table = {
        "name": link["name"],
        "kind": link["kind"],
        "state": link["state"],
        "bandwidth": link["bandwidth"],
        "driver": link.get("driver"),
        "device": (link.get("device") or "").removeprefix("pci:") or None,
        "numa_node": link.get("numa_node"),
        "layer": link.get("layer"),
        "interface": link.get("interface"),
    }
    return {name: value for name, value in table.items() if value is not None}


def _device(device: DeviceDoc, names: dict[str, str]) -> dict[str, object]:
    readiness = device["readiness"]
    table = {
        "id": names[device["id"]],
        "kind": device["kind"],
        "vendor": device["vendor"],
        "name": device["name"],
        "chip": device["chip"]["id"],
        "arch": device["arch"],
        "memory_bytes": memory_of(device),
        "driver": driver_version(device),
        "compute_capability": device.get("compute_capability"),
        "parent": names.get(device["parent"] or ""),
        "state": readiness["state"] if readiness else None,
        "cause": cause(device),
    }
    return {name: value for name, value in table.items() if value is not None}
