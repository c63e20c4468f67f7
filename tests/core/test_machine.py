"""Reading through a machine: bounded, never blocked, never out of a recorded root."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trees import Tree

from probe_core import Machine
from probe_core.machine import READ_LIMIT, read_head


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


def test_text_is_stripped_of_newlines_and_nuls(tree: Tree) -> None:
    tree.file("/a", "  value\n\0")
    assert tree.machine().read("/a") == "value"


def test_text_that_is_not_utf8_is_kept(tree: Tree) -> None:
    tree.file("/a", b"caf\xe9\n")
    assert tree.machine().read("/a") == "caf\ufffd"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12\n", 12),
        ("0x10de\n", 0x10DE),
        ("-1", -1),
        ("007", 7),
        ("", None),
        ("many", None),
        ("1.5", None),
        ("9" * 63, int("9" * 63)),
        ("\0\0", None),
    ],
)
def test_numbers(text: str, number: int | None, tree: Tree) -> None:
    tree.file("/a", text)
    assert tree.machine().read_int("/a") == number


def test_what_is_missing_is_none_or_empty(tree: Tree) -> None:
    machine = tree.machine()
    assert machine.read("/none") is None
    assert machine.read_int("/none") is None
    assert machine.listdir("/none") == []
    assert not machine.exists("/none")
    with pytest.raises(FileNotFoundError):
        machine.read_bytes("/none")


def test_path_with_a_nul_is_nothing(tree: Tree) -> None:
    machine = tree.machine()
    assert machine.read("/a\0b") is None
    assert machine.read_int("/a\0b") is None


def test_folder_is_no_file(tree: Tree) -> None:
    tree.file("/folder/file", "x")
    assert tree.machine().read("/folder") is None
    assert tree.machine().listdir("/folder/file") == []


def test_long_file_is_read_to_the_limit(tree: Tree) -> None:
    tree.file("/big", b"x" * (READ_LIMIT + 5))
    assert len(tree.machine().read("/big") or "") == READ_LIMIT
    assert tree.machine().read("/big", 3) == "xxx"


def test_fifo_does_not_block(tree: Tree) -> None:
    tree.file("/x", "")
    os.mkfifo(tree.root / "fifo")
    assert tree.machine().read("/fifo") in ("", None)


@pytest.mark.skipif(not os.path.exists("/proc/self"), reason="Linux alone has it")
def test_a_path_that_leaves_the_kernels_folders_is_looked_at() -> None:
    assert Machine().read_bytes("/proc/self/status", 5) == b"Name:"
    with pytest.raises(OSError, match="regular"):
        Machine().read_bytes("/proc/../dev/null")


def test_absolute_link_of_a_recorded_machine_does_not_reach_the_host(tree: Tree) -> None:
    secret = tree.root.parent / "secret"
    tree.file("/inside", "in")
    secret.write_text("out")
    (tree.root / "link").symlink_to(secret)
    (tree.root / "folder").symlink_to(tree.root.parent)
    machine = tree.machine()
    assert machine.read("/link") is None
    assert not machine.exists("/link")
    assert machine.realpath("/link") == ""
    assert machine.listdir("/folder") == []
    assert machine.read("/folder/secret") is None
    assert machine.read("/../secret") is None
    with pytest.raises(OSError, match="leads out of the recorded machine"):
        machine.path("/link")


def test_root_with_a_sibling_of_the_same_beginning(tree: Tree) -> None:
    tree.file("/x", "")
    sibling = tree.root.parent / "root-other"
    sibling.mkdir()
    (sibling / "file").write_text("out")
    assert tree.machine().read("/../root-other/file") is None


def test_links_inside_are_followed_and_named_as_on_that_machine(tree: Tree) -> None:
    tree.file("/sys/devices/pci/gpu/vendor", "0x10de")
    tree.link("/sys/class/drm/card0/device", "/sys/devices/pci/gpu")
    machine = tree.machine()
    assert machine.read_int("/sys/class/drm/card0/device/vendor") == 0x10DE
    assert machine.realpath("/sys/class/drm/card0/device") == "/sys/devices/pci/gpu"


LINKS = {
    "up": "../HERE/folder",
    "folder/back": "../folder/./file",
    "folder/twice": "..//up/back",
    "folder/own": "own",
    "there": "back-again",
    "back-again": "there/x",
    "missing": "gone/../folder",
    "through": "folder/file/../back",
    "here": ".",
    "end": "chain44",
    **{f"chain{number + 1}": f"chain{number}" for number in range(44)},
    "chain0": "folder",
}


@pytest.mark.parametrize("path", [*LINKS, "up/back", "here/up/twice", "end/file", "folder/no/x"])
def test_a_path_is_resolved_as_python_does_it(path: str, tree: Tree) -> None:
    tree.file("/folder/file", "")
    for name, target in LINKS.items():
        (tree.root / name).symlink_to(target.replace("HERE", tree.root.name))
    (tree.root / "absolute").symlink_to(tree.root / "up")
    for own in (path, f"absolute/../{path}", f"absolute/{path}"):
        real = os.path.realpath(os.path.normpath(tree.root / own))
        assert tree.machine().realpath(f"/{own}") == (real.removeprefix(str(tree.root)) or "/")
    assert tree.machine().path(f"/{path}") == f"{tree.root}/{path}"


def test_recorded_machine_has_no_environment_of_ours(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert tree.machine().environ == {}
    assert Machine().environ["CUDA_VISIBLE_DEVICES"] == "7"


def test_environment_is_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setenv("SET_LATER", "1")
    assert "SET_LATER" not in machine.environ


def test_defaults_and_names(tmp_path: Path) -> None:
    recorded = Machine(str(tmp_path) + "/", arch="riscv64")
    assert (recorded.root, recorded.live, recorded.os) == (str(tmp_path), False, "linux")
    assert repr(recorded) == f"Machine({str(tmp_path)!r}, os='linux', arch='riscv64')"
    live = Machine()
    assert (live.root, live.live, live.arch) == ("/", True, os.uname().machine)


OTHERS = [
    {"root": "/other"},
    {"environ": {"A": "2"}},
    {"environ": {}},
    {"os": "darwin"},
    {"arch": "aarch64"},
]


def same(**change: Any) -> Machine:
    fields: dict[str, Any] = {"root": "/r", "environ": {"A": "1"}, "os": "linux", "arch": "x86_64"}
    return Machine(**fields | change)


@pytest.mark.parametrize("change", OTHERS, ids=str)
def test_machines_are_compared_by_value(change: dict[str, Any]) -> None:
    assert same() == same(root="/r/")
    assert hash(same()) == hash(same(root="/r/"))
    assert same() != same(**change)
    assert len({same(), same(), same(**change)}) == 2
    assert same() != "/r"


@pytest.mark.parametrize("machine", [Machine(), same()], ids=["live", "recorded"])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_machine_can_be_pickled_and_copied(machine: Machine, protocol: int) -> None:
    for other in (pickle.loads(pickle.dumps(machine, protocol)), copy.deepcopy(machine)):
        assert other == machine
        assert (other.live, repr(other)) == (machine.live, repr(machine))
        assert other.environ is not machine.environ
    assert copy.copy(machine) == machine


def test_the_head_of_a_longer_file_has_one_byte_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert [read_head(str(tmp_path / "file"), limit) for limit in (4, 9, 10)] == [
        *(b"01234", b"0123456789", b"0123456789"),
    ]


@pytest.mark.parametrize(
    ("platform", "name", "system", "arch"),
    [
        ("linux", "x86_64", "linux", "x86_64"),
        ("linux", "AMD64", "linux", "x86_64"),
        ("darwin", "arm64", "darwin", "aarch64"),
        ("win32", "ARM64", "windows", "aarch64"),
        ("freebsd14", "riscv64", "freebsd14", "riscv64"),
    ],
)
def test_only_the_live_machine_is_of_this_system(
    platform: str, name: str, system: str, arch: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=name))
    live, other = Machine(), Machine(str(tmp_path))
    assert (live.os, live.arch) == (system, arch)
    assert (other.os, other.arch) == ("linux", "x86_64")
    assert Machine(os="darwin", arch="arm").os == "darwin"
    monkeypatch.delattr(os, "uname")
    monkeypatch.setenv("PROCESSOR_ARCHITECTURE", "AMD64")
    monkeypatch.delenv("PROCESSOR_ARCHITEW6432", raising=False)
    if platform != "darwin":
        assert Machine().arch == "x86_64"
        monkeypatch.setenv("PROCESSOR_ARCHITEW6432", "ARM64")  # of a 32-bit process
        assert Machine().arch == "aarch64"
