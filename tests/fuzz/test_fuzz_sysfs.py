"""The authors' toolkit: whatever the files below /sys and /proc are, nothing raises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign import CHANCES, Chance, files_of, write_files
from hypothesis import given
from trees import Tree

from probe_core.api import Machine
from probe_core.sysfs import (
    accel,
    devicetree,
    drivers,
    drm,
    fdinfo,
    hwmon,
    meminfo,
    pci,
    pcie,
    power,
    uevent,
)

FDINFO = "drm-driver: xe\ndrm-client-id: 1\ndrm-pdev: 0000:03:00.0\ndrm-memory-vram: 12 KiB\n"
_EXAMPLES: dict[Path, dict[str, bytes]] = {}


def build(root: Path) -> dict[str, bytes]:
    """A card behind a switch, with sensors and a client, and a board's GPU."""
    tree = Tree(root)
    tree.memory(16_000_000, 12_000_000)
    folder = tree.pci(
        "0000:03:00.0", "8086:56a0", driver="xe", under=tree.switch(uplink=(4, 8.0)),
        link=(16, 16.0), max_link=(16, 16.0), drm=(0, 128), accel=0, numa_node=0,
        subsystem="8086:1020", hwmon__hwmon0__name="xe", hwmon__hwmon0__temp1_input=45000,
        hwmon__hwmon0__temp1_label="pkg",
    )  # fmt: skip
    tree.file(f"{folder}/uevent", "DRIVER=xe\nPCI_ID=8086:56A0\n")
    tree.file("/sys/module/xe/version", "1\n")
    tree.link("/proc/7/fd/3", "/dev/dri/renderD128")
    tree.file("/proc/7/fdinfo/3", FDINFO)
    tree.node("", "acme,board")
    tree.node("/gpu@1", "arm,mali-t860", status="okay")
    tree.platform("1.gpu", "/gpu@1", driver="panfrost")
    return files_of(root)


@pytest.mark.heavy
@given(CHANCES)
def test_nothing_raises_and_all_is_plain(tmp_path: Path, chance: Chance) -> None:
    root = tmp_path / "root"
    if root not in _EXAMPLES:
        root.mkdir()
        _EXAMPLES[root] = build(root)
    files = chance.files(_EXAMPLES[root], most=12)
    if chance.random() < 0.5:  # a folder where a file should be
        name = chance.choice(sorted(files))
        files[f"{name}/x"] = files.pop(name)
    machine = Machine(str(write_files(root, files)), arch="aarch64")
    found: list[object] = []
    for function in pci.functions(machine, (), vendors=("8086", "1000", "1022")):
        folder = function.folder
        found += [function.pci, function.power_state, function.owner, function.driver]
        found += [pcie.links(machine, folder), pci.numa_node(machine, folder)]
        found += [[one.value for one in hwmon.sensors(machine, folder)]]
        found += [drm.minors(machine, folder), accel.minors(machine, folder)]
        found += [uevent.read(machine, folder), power.status(machine, folder)]
        found += [pci.virtual_functions(machine, folder)]
    for path, folder in devicetree.platform_devices(machine):
        found += [path, devicetree.compatibles(machine, path, folder)]
        found += [devicetree.enabled(machine, path), drivers.bound(machine, folder)]
    found += [drm.by_device(machine), accel.by_device(machine), devicetree.model(machine)]
    found += [drivers.version(machine, "xe"), meminfo.unified(machine)]
    found += [[one.memory, one.engines] for one in fdinfo.clients(machine).clients]
    json.dumps(found, allow_nan=False)


@given(CHANCES)
def test_texts(chance: Chance) -> None:
    text = chance.mutate(FDINFO.encode(), b"OF_COMPATIBLE_0=a\nOF_FULLNAME=/gpu\n")
    lines = text.decode("utf-8", "replace")
    client = fdinfo.Client("renderD128", fdinfo.parse(lines))
    assert all(size >= 0 for size in (*client.memory.values(), *client.engines.values()))
    values = uevent.listed(uevent.parse(lines), "OF_COMPATIBLE")
    assert len(values) <= uevent.MAX_LISTED
