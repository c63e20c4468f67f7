"""Links resolved with a memory lead where `os.path.realpath` leads, with fewer questions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probe_core.api import Machine
from probe_core.machine.links import MAX_PARTS, remembering


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Return a folder in which some devices hang on one bridge, as below /sys."""
    folder = Path(os.path.realpath(tmp_path))
    for address in ("01:00.0", "02:00.0"):
        (folder / "devices/pci0000:00/00:01.0" / address).mkdir(parents=True)
    (folder / "bus/devices").mkdir(parents=True)
    (folder / "drivers/acme").mkdir(parents=True)
    for address in ("01:00.0", "02:00.0"):
        link = folder / "bus/devices" / address
        link.symlink_to(f"../../devices/pci0000:00/00:01.0/{address}")
        (link / "driver").symlink_to("../../../../drivers/acme")
    (folder / "short").symlink_to(folder / "bus")
    (folder / "this").symlink_to("that")
    (folder / "that").symlink_to("this")
    (folder / "self").symlink_to("self/below")
    return str(folder)


@pytest.mark.parametrize(
    "path",
    [
        "/bus/devices/01:00.0",
        "/bus/devices/01:00.0/driver",
        "/short/devices/02:00.0/driver/",
        "/short/devices/02:00.0/../01:00.0",
        "/short/../drivers/./acme",
        "//bus//devices/01:00.0/absent/below",
        "/absent",
        "",
    ],
)
def test_leads_where_realpath_leads(path: str, root: str) -> None:
    machine = remembering(Machine())
    for _ in range(2):
        assert machine.realpath(root + path) == os.path.realpath(root + path)


@pytest.mark.parametrize("path", ["/", "/..", "//", "relative", "/a" * (MAX_PARTS + 1)])
def test_odd_paths_are_as_ever(path: str) -> None:
    assert remembering(Machine()).realpath(path) == Machine().realpath(path)


@pytest.mark.parametrize("path", ["/this", "/self", "/this/below"])
def test_links_that_lead_to_each_other_come_to_an_end(path: str, root: str) -> None:
    assert remembering(Machine()).realpath(root + path).startswith(root)


def test_path_with_a_nul_is_nothing() -> None:
    assert remembering(Machine()).realpath("/sys/a\0b") == ""


def test_each_folder_is_asked_about_once(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    readlink = os.readlink

    def count(path: str) -> str:
        asked.append(path)
        return readlink(path)

    monkeypatch.setattr(os, "readlink", count)
    machine = remembering(Machine())
    for name in ("01:00.0", "01:00.0/driver", "02:00.0", "02:00.0/driver", "02:00.0"):
        machine.realpath(f"{root}/bus/devices/{name}")
    assert len(asked) == len(set(asked))


def test_memory_is_of_one_look(root: str) -> None:
    path = f"{root}/bus/devices/01:00.0/driver"
    before = remembering(Machine()).realpath(path)
    os.unlink(path)
    os.symlink("../../../../drivers/vfio-pci", path)
    assert before.endswith("/drivers/acme")
    assert remembering(Machine()).realpath(path).endswith("/drivers/vfio-pci")


def test_recorded_machine_and_class_of_its_own_keep_their_ways(root: str) -> None:
    class Own(Machine):
        __slots__ = ()

    recorded, own = Machine(root), Own()
    assert remembering(recorded) is recorded
    assert remembering(own) is own


def test_is_equal_to_the_machine() -> None:
    machine = Machine()
    assert remembering(machine) == machine
    assert hash(remembering(machine)) == hash(machine)
