"""Reads a device's uevent file: what the kernel tells udev about it, one NAME=value a line.

Containers hide /sys/firmware, and with it the device tree; the uevent still names the node.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine import Machine

__all__ = ["LIMIT", "listed", "parse", "read"]

LIMIT = 8192
"""Bytes read: the kernel's own buffer has 2,048 (UEVENT_BUFFER_SIZE in linux/kobject.h)."""

MAX_LISTED = 64
"""Values of a numbered name: the kernel passes 64 variables at most (UEVENT_NUM_ENVP)."""


def read(machine: Machine, folder: str) -> dict[str, str]:
    """Return the variables of the device at `folder`; none when there is no uevent file."""
    return parse(machine.read(f"{folder}/uevent", LIMIT) or "")


def parse(text: str) -> dict[str, str]:
    """Return the variables in a uevent file's text; the first of a name counts."""
    variables: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and name.strip():
            variables.setdefault(name.strip(), value.strip(" \t\r\0"))
    return variables


def listed(variables: Mapping[str, str], stem: str) -> list[str]:
    """Return the values of ``stem_0``, ``stem_1`` … up to the first that is missing.

    ``OF_COMPATIBLE`` has such values; ``OF_COMPATIBLE_N`` beside them is their count.
    """
    values: list[str] = []
    for number in range(MAX_LISTED):
        value = variables.get(f"{stem}_{number}")
        if not value:
            break
        values.append(value)
    return values
