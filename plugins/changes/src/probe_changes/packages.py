"""Packages of drivers and kernels that dpkg has not finished: unpacked, half-configured."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine

__all__ = ["unfinished"]

STATUS = "/var/lib/dpkg/status"
_LIMIT = 16 << 20
"""Bytes of the list: a desktop with 3,000 packages has 4 MiB."""

_CONCERNED = ("nvidia", "linux-image", "linux-modules", "linux-headers", "dkms", "amdgpu", "rocm")
_STATES = ("unpacked", "half-configured", "half-installed")


def unfinished(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield the name and the state of each (dpkg(1), package states)."""
    try:
        text = machine.read_bytes(STATUS, _LIMIT).decode("utf-8", "replace")
    except (OSError, ValueError):
        return
    if not any(f" {state}\n" in text or " reinstreq " in text for state in _STATES):
        return
    for paragraph in text.split("\n\n"):
        fields = dict(_fields(paragraph))
        name, status = fields.get("Package", ""), fields.get("Status", "").split()
        if len(status) == 3 and any(part in name for part in _CONCERNED):
            if status[2] in _STATES:
                yield name, status[2]
            elif status[1] == "reinstreq":
                yield name, "to be reinstalled"


def _fields(paragraph: str) -> Iterator[tuple[str, str]]:
    for line in paragraph.splitlines():
        name, colon, value = line.partition(": ")
        if colon and not line.startswith(" "):
            yield name, value
