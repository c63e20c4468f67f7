"""The forms that are tables: Ansible's local facts, shell variables, resource attributes."""

from __future__ import annotations

from probe_core.commands import write_json_lines
from probe_export.capacity import accelerators, capacity, cause, memory_of, missing
from probe_export.stable import stable_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, NetworkDoc, ReportDoc

__all__ = ["ansible", "attributes", "env", "otel"]

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")


def facts(report: ReportDoc) -> dict[str, object]:
    """Return the node's facts that do not change while it runs; unknown ones are left out."""
    names = stable_names(report["devices"])
    devices, node = capacity(report), report["node"]
    primary = report["primary"]
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
        "missing": len(missing(report)),
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
        "driver": (device["driver"] or {}).get("version"),
        "compute_capability": device.get("compute_capability"),
        "parent": names.get(device["parent"] or ""),
        "state": readiness["state"] if readiness else None,
        "cause": cause(device),
    }
    return {name: value for name, value in table.items() if value is not None}


def ansible(report: ReportDoc) -> str:
    """Return one JSON document; Ansible shows it as `ansible_local.probe`."""
    return write_json_lines(facts(report))


def attributes(report: ReportDoc) -> dict[str, str | int | list[str]]:
    """Return resource attributes: text, whole numbers and lists of text, as OpenTelemetry has them.

    `host.*` are its own names. What it names `hw.*` are attributes of metrics, so those are ours.
    """
    devices, node = capacity(report), report["node"]
    absent = missing(report)
    table: dict[str, str | int | list[str] | None] = {
        "host.arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(node["arch"], node["arch"]),
        "host.id": node["id"],
        "host.name": node["host"],
        "os.type": node["os"],
        "probe.accelerator.count": len(devices),
        "probe.accelerator.names": [device["name"] for device in devices if device["name"]],
        "probe.accelerator.vendors": sorted({d["vendor"] for d in devices if d["vendor"]}),
        "probe.accelerator.missing": len(absent) or None,
        "probe.accelerator.causes": sorted({cause(device) or "unknown" for device in absent}),
    }
    return {name: value for name, value in table.items() if value not in (None, [])}


def otel(report: ReportDoc) -> str:
    """Return the variable's line: pairs joined by commas, values percent-encoded."""
    pairs = []
    for name, value in attributes(report).items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        pairs.append(f"{name}={_percent(text)}")
    return f"OTEL_RESOURCE_ATTRIBUTES={','.join(pairs)}\n"


def _percent(text: str) -> str:
    """Return the text percent-encoded but for what RFC 3986 reserves for nothing.

    urllib.parse does the same, and takes 3 ms to import.
    """
    raw = text.encode("utf-8", "replace")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in raw)


def env(report: ReportDoc) -> str:
    """Return shell variables; each value is quoted, and holds no line end and no quote.

    No name begins with PROBE_: those are settings of probe-core.
    """
    devices = capacity(report)
    memory = [memory_of(device) for device in devices]
    total = sum(amount for amount in memory if amount is not None)
    driver = next((d["driver"] for d in devices if (d["driver"] or {}).get("version")), None)
    absent = missing(report)
    table = {
        "NODE_ACCELERATORS": str(len(devices)),
        "NODE_ACCELERATOR_NAMES": ",".join(d["name"] or "" for d in devices),
        "NODE_ACCELERATOR_MEMORY_BYTES": str(total) if devices and None not in memory else None,
        "NODE_DRIVER_VERSION": (driver or {}).get("version"),
        "NODE_MISSING": str(len(absent)),
        "NODE_MISSING_CAUSES": ",".join(sorted({cause(d) or "unknown" for d in absent})),
        "NODE_MEMORY_BYTES": _text(report["node"]["memory"]["total"]),
        "NODE_ARCH": report["node"]["arch"],
        "NODE_ID": report["node"]["id"],
        "NODE_HOST": report["node"]["host"],
    }
    return "".join(f"{name}='{_quoted(value)}'\n" for name, value in table.items() if value)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _quoted(text: str) -> str:
    # In single quotes a shell reads all but the quote itself; systemd and Compose do likewise.
    # `docker run --env-file` takes the quotes as part of the value (docker/cli#3630).
    return "".join(char for char in text if char.isprintable() and char != "'")
