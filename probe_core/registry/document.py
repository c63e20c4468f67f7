"""Types of a prober's manifest, `prober.json`, and of what a host registers in its place.

For type checkers alone: no module imports this while it runs. What each key means is said on the
manifest's page of the reference.
"""

from __future__ import annotations

from typing import Required, TypedDict


class When(TypedDict, total=False):
    """Preconditions of which all must hold; `pci_vendor` are four hexadecimal digits."""

    os: list[str]
    machine: list[str]
    any_path: list[str]
    all_path: list[str]
    any_module: list[str]
    any_environ: list[str]
    pci_vendor: list[str]


class DeviceRecords(TypedDict, total=False):
    """Files below each device of a bus. Patterns are relative to the device's folder."""

    files: Required[list[str]]
    masks: dict[str, str]
    asleep: bool
    only_if: dict[str, str]
    pci_vendor: list[str]
    pci_class: list[str]


class Records(TypedDict, total=False):
    """The files that a prober reads, by when they may be read. Other patterns are absolute."""

    files: list[str]
    masks: dict[str, str]
    pci: list[DeviceRecords]
    platform: list[DeviceRecords]
    nodes: list[str]
    cgroup: list[str]
    answers: bool


class ManifestDoc(TypedDict, total=False):
    """What a manifest says of one prober; every key has a default."""

    summary: str
    api: str
    priority: int
    deadline_s: float
    active: bool
    when: When | list[When]
    records: Records


class Registered(ManifestDoc):
    """A prober that the host registers: its target, and what a manifest may say."""

    target: Required[str]
