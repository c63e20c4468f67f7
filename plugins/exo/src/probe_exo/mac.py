"""What a Mac says of itself: texts of system_profiler and networksetup, parsed on any system."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from probe_cluster.planning.offers import table
from probe_exo.figures import UNKNOWN_CHIP, UNKNOWN_MODEL, rows

# Seconds; a judgement: system_profiler has no time limit of its own, and a hang must end.
_TIMEOUT_S = 10

_HARDWARE = ["system_profiler", "SPHardwareDataType"]
_DISPLAYS = ["system_profiler", "SPDisplaysDataType"]
# system_profiler writes binary amounts with decimal units: "128 GB" are 128 GiB.
_MIB = {"KB": 1 / 1024, "MB": 1, "GB": 1024, "TB": 1024 * 1024}


class Hardware(NamedTuple):
    """What a Mac says of itself, and why it does not."""

    model: str
    chip: str
    memory_mib: int
    """0 where nobody tells."""
    reasons: Mapping[str, str]
    """``model``, ``chip`` or ``memory`` → why it is unknown."""


def hardware() -> Hardware:
    """Ask system_profiler, now, and sysctl for what it leaves open.

    Never raises. system_profiler hangs or fails in sandboxes, over ssh before a login, and on
    betas, where a node with 0 MiB would get no layer.
    """
    text, reason = _output(_HARDWARE)
    model, chip, memory = parse_hardware(text)
    reasons: dict[str, str] = {}
    if model == UNKNOWN_MODEL:
        reasons["model"] = reason or "system_profiler prints no Model Name line"
    memory = memory or _memory_mib()
    if not memory:
        reasons["memory"] = reason or "system_profiler prints no Memory line"
    if chip == UNKNOWN_CHIP:
        chip = _sysctl("machdep.cpu.brand_string") or UNKNOWN_CHIP
    if chip == UNKNOWN_CHIP:
        reasons["chip"] = reason or "system_profiler prints no Chip line"
    return Hardware(model, chip, memory, reasons)


def _memory_mib() -> int:
    """Return the memory that the kernel tells, else psutil; 0 where neither does, or on no Mac."""
    if sys.platform != "darwin":  # text of a Mac read elsewhere: the memory here is another's
        return 0
    size = _sysctl("hw.memsize")
    if size.isdecimal() and len(size) <= 20:
        return int(size) >> 20
    try:
        import psutil

        return int(psutil.virtual_memory().total) >> 20
    except Exception:  # psutil raised on betas of macOS 26 and 27 (exo PR 2161)
        return 0


def _sysctl(name: str) -> str:
    """Return one value of sysctl(8); "" where it is not told, and on no Mac."""
    if sys.platform != "darwin":
        return ""
    text, reason = _output(["sysctl", "-n", name])
    return "" if reason else text.strip()


def _output(command: list[str]) -> tuple[str, str | None]:
    try:
        # Called through the module: hosts and tests replace subprocess.check_output.
        raw = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        return "", f"{command[0]} cannot be asked: {type(error).__name__}: {error}"
    return (raw if isinstance(raw, str) else raw.decode("utf-8", "replace")), None


def _answer(command: list[str]) -> str:
    return _output(command)[0]


def parse_hardware(text: str) -> tuple[str, str, int]:
    """Return (model, chip, MiB of memory) of SPHardwareDataType's text; Intel Macs have no chip."""
    lines = _lines(text)
    model = lines.get("Model Name", UNKNOWN_MODEL)
    chip = lines.get("Chip") or lines.get("Processor Name") or UNKNOWN_CHIP
    return model, chip, _mib(lines.get("Memory", ""))


def _lines(text: str) -> dict[str, str]:
    lines: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            lines.setdefault(name.strip(), value.strip())
    return lines


def _mib(text: str) -> int:
    amount, _, unit = text.partition(" ")
    try:
        return max(0, int(float(amount) * _MIB[unit.strip().upper()]))
    except (ValueError, KeyError, OverflowError):
        return 0


def gpu_cores(chip: str) -> int | None:
    """Return the GPU's cores, which one name of Apple leaves open; None when not told."""
    text, reason = _output(_DISPLAYS)
    lines = {} if reason else _lines(text)
    cores = lines.get("Total Number of Cores", "")
    if lines.get("Chipset Model") != chip or not (cores.isdecimal() and len(cores) <= 4):
        return None
    return int(cores)


Port = tuple[str, str | None, str | None, float | None]
"""(this host's uuid, the peer's, interface, Gbit/s)."""

# current_speed_key reads "Up to 40 Gb/s".
_GBITS = re.compile(r"(\d+(?:\.\d+)?)\s*Gb/s")


_THUNDERBOLT = ["system_profiler", "SPThunderboltDataType", "-json"]
_PORTS = ["networksetup", "-listallhardwareports"]


class InterfaceTexts(NamedTuple):
    """What the commands of a Mac print about its interfaces; "" where one fails."""

    ports: str
    """Of ``networksetup -listallhardwareports``."""
    media: str
    """Of ``ifconfig``."""
    thunderbolt: str
    """Of ``system_profiler SPThunderboltDataType -json``."""
    rdma: bool | None
    """Whether ``rdma_ctl status`` says that RDMA is on; None where there is no such command."""


def interface_texts() -> InterfaceTexts:
    """Ask this Mac, now."""
    return InterfaceTexts(
        _answer(_PORTS), _answer(["ifconfig"]), _answer(_THUNDERBOLT), rdma_enabled()
    )


# "media: autoselect (10Gbase-T <full-duplex>)", "(2500Base-T", "(100baseTX".
_MEDIA = re.compile(r"\((\d{1,6})(G?)base", re.IGNORECASE)


def parse_media(text: str) -> dict[str, float]:
    """Return interface → Mbit/s of those that have a link, out of ifconfig's text."""
    speeds: dict[str, float] = {}
    name = ""
    for line in text.splitlines():
        if line[:1].strip():
            name = line.partition(":")[0]
        elif line.strip().startswith("media:") and (found := _MEDIA.search(line)):
            speeds[name] = float(found[1]) * (1e3 if found[2] else 1.0)
    return speeds


def thunderbolt_ports() -> list[Port]:
    """Return the ports of this Mac; nothing when it cannot be asked."""
    return parse_ports(_answer(_THUNDERBOLT), parse_interfaces(_answer(_PORTS)))


def rdma_enabled() -> bool | None:
    """Return what ``rdma_ctl status`` says; None where there is no such command."""
    status = _answer(["rdma_ctl", "status"]).lower()
    return None if not status else "enabled" in status and "disabled" not in status


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
