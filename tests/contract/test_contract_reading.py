"""What a prober reads and does not declare: the kit names the file and the line to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from weights import mostly_heavy

from probe_core.testing import Case, ProberContract, Tree

Plugin = Callable[..., ProberContract]
UNITS = '        device["units"] = units\n'
NAME, LOCKED = "/sys/class/acme/*/name", "/sys/class/acme/locked"
RECORDS: dict[str, Any] = {"files": [NAME, LOCKED, "/sys/class/acme/*/units"]}


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def sentence(contract: ProberContract, tmp_path: Path) -> str:
    """Return what the check says, with the manifest's place as MANIFEST; "" where it passes."""
    try:
        contract.test_what_it_reads_is_declared(folder(tmp_path / "machine"))
    except AssertionError as error:
        text = str(error).partition("\nassert ")[0]
        lines = text.replace(str(contract.manifest()[0]), "MANIFEST").splitlines()
        return "\n".join(line.strip() for line in lines)  # pytest indents all but the first
    return ""


def of_acme(path: str, declaration: str) -> str:
    """Return the sentence about one path."""
    return (
        f"prober 'acme' reads {path}, which no recording has: "
        f"add {declaration} to `records` of 'acme' in MANIFEST"
    )


def test_a_file_that_is_not_declared_is_named_with_what_to_write(
    plugin: Plugin, tmp_path: Path
) -> None:
    contract = plugin(manifest={"records": {"files": [NAME, LOCKED]}})
    first, second = sentence(contract, tmp_path).split("\n")
    path = "/sys/class/acme/acme0/units"
    assert first == of_acme(path, f'"files": ["{path}"]')
    assert second == first.replace("acme0", "acme1")


def test_a_file_that_is_declared_passes(plugin: Plugin, tmp_path: Path) -> None:
    for number, pattern in enumerate(("/sys/class/acme/*/units", "/sys/class/acme/acme#/units")):
        contract = plugin(manifest={"records": {"files": [NAME, LOCKED, pattern]}})
        assert sentence(contract, folder(tmp_path / str(number))) == ""


def test_a_manifest_that_does_not_say_is_one_that_declares_nothing(
    plugin: Plugin, tmp_path: Path
) -> None:
    contract = plugin(manifest={"records": {}})
    assert len(sentence(contract, tmp_path).split("\n")) == 6  # a folder, two of each, the lock


READS = {
    "machine.exists('/dev/acme0')": ("/dev/acme0", '"nodes": ["/dev/acme0"]'),
    "machine.listdir('/sys/bus/acme/devices')": (
        "/sys/bus/acme/devices",
        '"files": ["/sys/bus/acme/devices"]',
    ),
    "machine.read('/sys/fs/cgroup/memory.high')": (
        "/sys/fs/cgroup/memory.high",
        '"cgroup": ["memory.high"]',
    ),
    "machine.readlink('/sys/module/acme/drivers')": (
        "/sys/module/acme/drivers",
        '"files": ["/sys/module/acme/drivers"]',
    ),
    "machine.read('/etc/acme.conf')": ("/etc/acme.conf", '"answers": true'),
    "machine.exists('/usr/lib/acme/libacme.so.1.2')": None,
    "machine.read('/proc/1/comm')": ("/proc/1/comm", '"answers": true'),
    "machine.exists('/usr/bin/acme-smi')": None,  # a tool is run, and not read
    "machine.read('/proc/self/cgroup')": None,  # every recording has it
    "machine.read('/sys/fs/cgroup/memory.max')": None,
    "machine.read('/proc/meminfo')": None,
}


@pytest.mark.parametrize("line", mostly_heavy(READS, 4))
def test_what_is_to_be_written_depends_on_the_path(
    plugin: Plugin, tmp_path: Path, line: str
) -> None:
    expected = READS[line]
    contract = plugin((UNITS, f"{UNITS}    {line}\n"))
    wanted = "" if expected is None else of_acme(*expected)
    assert sentence(contract, tmp_path) == wanted


def test_who_keeps_an_answer_declares_the_files_of_the_kernel_alone(
    plugin: Plugin, tmp_path: Path
) -> None:
    """The recorded answer stands for what libraries, tools and settings gave."""
    read = f"{UNITS}    machine.read('/etc/acme.conf')\n"
    records = {**RECORDS, "answers": True}
    contract = plugin((UNITS, read), manifest={"records": records})
    assert sentence(contract, tmp_path) == ""
    contract = plugin((UNITS, read + "    machine.exists('/dev/acme0')\n"))
    assert '"nodes": ["/dev/acme0"]' in sentence(contract, folder(tmp_path / "again"))


LOOP = "    for name in names:\n"
READ_OF_CARD = """\
    for card in request.bus:
        folder = "/sys/bus/pci/devices/" + card["ids"][0].removeprefix("pci:")
        request.machine.read(f"{folder}/drm/firmware")
"""
CARD = (LOOP, READ_OF_CARD + LOOP)


def test_a_file_of_a_device_is_declared_below_its_bus(plugin: Plugin, tmp_path: Path) -> None:
    def hardware(self: ProberContract, root: Path) -> Case:
        tree = Tree(root)
        tree.pci("0000:01:00.0", "1ac0:0001", pci_class="120000")
        for number in range(2):
            for name in ("name", "units"):
                tree.file(f"/sys/class/acme/acme{number}/{name}", 8)
        return Case(tree.machine())

    contract = plugin(CARD, hardware=hardware)
    path = "/sys/bus/pci/devices/0000:01:00.0/drm/firmware"
    rule = '"pci": [{"pci_vendor": ["1ac0"], "files": ["drm/firmware"]}]'
    assert sentence(contract, tmp_path) == of_acme(path, rule)
    records = {**RECORDS, "pci": [{"pci_vendor": ["1ac0"], "files": ["drm/firmware"]}]}
    contract = plugin(CARD, hardware=hardware, manifest={"records": records})
    assert sentence(contract, folder(tmp_path / "again")) == ""
    records["pci"][0]["pci_vendor"] = ["1ac1"]
    contract = plugin(CARD, hardware=hardware, manifest={"records": records})
    assert sentence(contract, folder(tmp_path / "other")) == of_acme(path, rule)
