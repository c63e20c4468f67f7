"""A recording's names and links where the file system refuses them; and what else a machine is."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.machine import Machine, access, trust
from probe_core.machine.engines import driver_of_operator, mode_of_toolkit
from probe_core.machine.mapped import LINKS, encoded, mapped, table
from probe_core.machine.surroundings import mount_signs
from probe_core.machine.writing import create_file


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/sys/0000:01:00.0", "/sys/0000\uf03a01\uf03a00.0"),
        ("/a/con/nul.txt", "/a/\uf063on/\uf06eul.txt"),
        ("/a/console", "/a/console"),
        ("/a./b /.c", "/a\uf02e/b\uf020/.c"),
        ("/a/./../b", "/a/./../b"),
        ("", ""),
    ],
)
def test_names_are_written_with_characters_that_every_system_takes(path: str, written: str) -> None:
    assert encoded(path) == written


def test_links_stand_in_a_table_and_lead_out_of_no_root(tmp_path: Path) -> None:
    links = {
        "/sys/bus/0000:01:00.0": "../devices/pci0",
        "/sys/devices/pci0/driver": "/sys/drivers/acme",
        "/up": "../../..",
        "/loop": "loop",
        "/sys/bus/last": "0000:01:00.0/driver",
    }
    (tmp_path / LINKS).write_bytes(table(links))
    (tmp_path / "sys/bus/0000\uf03a02\uf03a00.0").mkdir(parents=True)
    (tmp_path / "sys/bus/~").mkdir()
    here = mapped(str(tmp_path))
    paths = ("/sys/bus/0000:01:00.0", "/sys/bus/last", "/up/sys", "/up", "/sys/./bus//x", "/")
    assert [here.real(path) for path in paths] == [
        "/sys/devices/pci0", "/sys/drivers/acme", "/sys", "/", "/sys/bus/x", "/"
    ]  # fmt: skip
    assert here.place("/sys/bus/last/x:") == f"{tmp_path}/sys/drivers/acme/x\uf03a"
    assert here.names("/sys/bus") == ["0000:01:00.0", "0000:02:00.0", "last", "~"]
    assert here.link("/sys/bus/0000:01:00.0/driver") == "/sys/drivers/acme"
    assert (here.link("/up"), here.link("/sys")) == ("../../..", "")
    with pytest.raises(OSError, match="loop"):
        here.real("/loop/x")


def test_a_path_has_as_many_links_as_linux_follows(tmp_path: Path) -> None:
    links = {f"/{number}": f"{number + 1}" for number in range(41)}
    (tmp_path / LINKS).write_bytes(table(links))
    here = mapped(str(tmp_path))
    assert here.real("/1") == "/41"
    with pytest.raises(OSError, match="symbolic links"):
        here.real("/0")


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", ""),
        ('[nvidia-container-runtime]\nmode = "cdi"', "cdi"),
        ('[nvidia-container-runtime]\nmode = "auto"', "auto"),
        ('[nvidia-container-runtime]\nmode = "magic"', ""),
        ("[nvidia-container-runtime]\nmode = 1", ""),
        ("[nvidia-container-runtime]\nmode = []", ""),
        ("nvidia-container-runtime = 1", ""),
        ("[other]", ""),
        ("[broken", ""),
    ],
)
def test_the_mode_that_a_configuration_fixes(text: str, mode: str) -> None:
    assert mode_of_toolkit(text) == mode


@pytest.mark.parametrize(
    ("root", "is_there"),
    [('"/run/nvidia/driver"', True), ('"/run/nvidia/driver/"', True), ('"/"', False), ("1", False)],
)
def test_whose_driver_a_configuration_takes(root: str, is_there: bool) -> None:
    assert driver_of_operator(f"[nvidia-container-cli]\nroot = {root}\n") is is_there


def test_mounts_that_a_container_has() -> None:
    lines = {
        "overlay / overlay rw": ("layers", "overlay / overlay"),
        "overlay /data overlay rw": None,
        "/dev/sda1 / ext4 rw": None,
        "tmpfs /dev tmpfs rw": ("own /dev", "tmpfs /dev tmpfs"),
        "udev /dev devtmpfs rw": None,
        "lxcfs /proc/meminfo fuse.lxcfs rw": ("lxc", "lxcfs /proc/meminfo fuse.lxcfs"),
        "lxcfs /var/lib/lxcfs fuse.lxcfs rw": None,
        "": None,
    }
    assert list(mount_signs("\n".join(lines))) == [sign for sign in lines.values() if sign]


def test_only_a_character_device_has_a_status(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/null").touch()
    found = access.status(Machine("/"), "/dev/null")
    assert found is not None
    assert access.number(found) == (1, 3)
    assert access.status(Machine(str(tmp_path)), "/dev/null") is None
    assert access.status(Machine("/"), "/dev/no-such-device") is None
    assert access.status(Machine("/"), "/dev/\0") is None


@pytest.mark.parametrize(
    ("user", "mode", "refuses"),
    [(1000, 0o600, True), (1000, 0o666, False), (1000, 0o660, True), (0, 0o000, False)],
)
def test_a_mode_explains_a_refusal_of_others_than_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, mode: int, refuses: bool
) -> None:
    path = tmp_path / "node"
    path.touch()
    monkeypatch.setattr(os, "getuid", lambda: user)
    monkeypatch.setattr(os, "getgid", lambda: user)
    monkeypatch.setattr(os, "getgroups", lambda: [user])
    node: Any = SimpleNamespace(st_uid=1, st_gid=1, st_mode=mode)
    assert access._mode_refuses(str(path), node) is refuses
    # Where an access list is there, the mode does not decide.
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"")
    assert access._mode_refuses(str(path), node) is False


@pytest.mark.parametrize(
    ("owner", "group", "mode", "is_allowed"),
    [
        (7, 8, 0o600, True),
        (7, 8, 0o400, False),
        (1, 8, 0o060, True),
        (1, 8, 0o606, False),
        (1, 1, 0o006, True),
        (1, 1, 0o004, False),
        (7, 8, 0o066, False),
    ],
)
def test_a_mode_lets_owner_group_or_others(
    owner: int, group: int, mode: int, is_allowed: bool
) -> None:
    node: Any = SimpleNamespace(st_uid=owner, st_gid=group, st_mode=mode)
    assert access.mode_allows(node, 7, {8, 9}) is is_allowed


def test_a_file_that_is_not_written_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    path = tmp_path / "new"
    monkeypatch.setattr(os, "fsync", synced.append)
    create_file(str(path), b"whole")
    assert (path.read_bytes(), len(synced)) == (b"whole", 1)

    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        create_file(str(tmp_path / "other"), b"half")
    with pytest.raises(FileExistsError):
        create_file(str(path), b"again")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"new": b"whole"}


def test_who_may_make_a_folder_may_replace_what_lies_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o777)
    assert trust.Trust().above("none/such") is not None
    tmp_path.chmod(0o755)
    if os.geteuid() == 0:  # else the folder is not root's
        assert trust.Trust().above("none/such") is None
