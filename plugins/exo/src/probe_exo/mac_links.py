"""Thunderbolt ports of a Mac, from system_profiler's JSON and networksetup's list of interfaces."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from probe_exo.plain import rows, table

__all__ = ["Port", "parse_interfaces", "parse_ports", "rdma_enabled", "thunderbolt_ports"]

Port = tuple[str, str | None, str | None, float | None]
"""(this host's uuid, the peer's, interface, Gbit/s)."""

# Seconds, for the same tool as in `mac`.
_TIMEOUT_S = 10

# current_speed_key reads "Up to 40 Gb/s".
_GBITS = re.compile(r"(\d+(?:\.\d+)?)\s*Gb/s")


def thunderbolt_ports() -> list[Port]:
    """Return the ports of this Mac; nothing when it cannot be asked."""
    text = _output(["system_profiler", "SPThunderboltDataType", "-json"])
    return parse_ports(text, parse_interfaces(_output(["networksetup", "-listallhardwareports"])))


def rdma_enabled() -> bool | None:
    """Return what ``rdma_ctl status`` says; None where there is no such command."""
    status = _output(["rdma_ctl", "status"]).lower()
    return None if not status else "enabled" in status and "disabled" not in status


def _output(command: list[str]) -> str:
    try:
        raw = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return raw.decode("utf-8", "replace")


def parse_interfaces(text: str) -> dict[str, str]:
    """Return hardware port ("Thunderbolt 1") → device ("en2") of networksetup's list."""
    interfaces: dict[str, str] = {}
    port = ""
    for line in text.splitlines():
        name, _, value = line.partition(": ")
        if name == "Hardware Port":
            port = value.strip()
        elif name == "Device" and port:
            interfaces[port], port = value.strip(), ""
    return interfaces


def parse_ports(text: str, interfaces: Mapping[str, str]) -> list[Port]:
    """Return the ports in SPThunderboltDataType's JSON; nothing when it is not JSON."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return list(_ports(rows(table(document).get("SPThunderboltDataType")), interfaces))


def _ports(entries: list[Mapping[str, Any]], interfaces: Mapping[str, str]) -> Iterator[Port]:
    for row in entries:
        uuid = row.get("domain_uuid_key")
        if not isinstance(uuid, str):
            continue
        tag = table(row.get("receptacle_1_tag"))
        device = interfaces.get(f"Thunderbolt {tag.get('receptacle_id_key')}")
        speed = _GBITS.search(str(tag.get("current_speed_key", "")))
        yield uuid, _peer(row), f"rdma_{device}" if device else None, _number(speed)


def _peer(row: Mapping[str, Any]) -> str | None:
    for item in rows(row.get("_items")):
        peer = item.get("domain_uuid_key")
        if isinstance(peer, str):
            return peer
    return None


def _number(match: re.Match[str] | None) -> float | None:
    return float(match[1]) if match else None
