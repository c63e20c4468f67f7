"""Nobody looks where a dead server would hang the host."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Request
from probe_core.machine import Machine, Mounts, Untrusted, has_served_mounts
from probe_core.pipeline import file_reading
from probe_core.registry import Budget
from probe_core.registry.prober import PathCheck, unmet

TABLE = """\
22 1 0:21 / / rw,relatime shared:1 - {root} overlay rw
23 22 0:5 / /proc rw - proc proc rw
24 22 0:40 / /mnt/nfs rw,hard shared:7 master:2 - nfs4 server:/export rw
25 22 0:41 / {local} rw - ext4 /dev/sda1 rw
26 22 0:42 / /home/a\\040user/remote rw - fuse.sshfs user@server: rw
27 24 0:43 / /mnt/nfs/local rw - tmpfs tmpfs rw
28 22 0:44 / /net rw - autofs systemd-1 rw
"""


def mounts(tmp_path: Path, root: str = "overlay", local: str = "/data") -> Mounts:
    file = tmp_path / "mountinfo"
    file.write_text(TABLE.format(root=root, local=local))
    return Mounts(str(file))


CASES = {
    "/mnt/nfs": True,
    "/mnt/nfs/a/b": True,
    "/mnt/nfs2/a": False,
    "/mnt/../mnt/nfs/a": True,
    "//mnt//nfs/./a": True,
    "/mnt/nfs/local/a": True,  # the way to it leads over the server
    "/home/a user/remote/x": True,
    "/net/server": True,
    "/data/x": False,
    "/opt/rocm": False,
    "/proc/driver/nvidia": False,
    "/dev/../mnt/nfs/x": True,
    "/dev/nvidia0": False,
    "/": False,
}


@pytest.mark.parametrize("path", CASES)
def test_paths(tmp_path: Path, path: str) -> None:
    assert mounts(tmp_path).may_hang(path) is CASES[path]


def test_links_are_followed_without_a_look_beyond(tmp_path: Path) -> None:
    (tmp_path / "absolute").symlink_to("/mnt/nfs/a")
    (tmp_path / "chain").symlink_to("absolute")
    (tmp_path / "relative").symlink_to("../" * 20 + "mnt/nfs/a")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "here").symlink_to("mountinfo")
    table = mounts(tmp_path, local=str(tmp_path))
    expected = {"absolute": True, "chain": True, "relative": True, "loop": False, "here": False}
    assert {name: table.may_hang(f"{tmp_path}/{name}/x") for name in expected} == expected


def test_the_root_itself_may_be_a_servers(tmp_path: Path) -> None:
    """Of a diskless node: where it hangs, nothing runs at all."""
    assert mounts(tmp_path, root="nfs").may_hang("/opt/x") is False


def test_without_a_table_everything_is_looked_at(tmp_path: Path) -> None:
    assert Mounts(str(tmp_path / "missing")).may_hang("/mnt/nfs/x") is False


def test_a_condition_on_such_a_path_holds(tmp_path: Path) -> None:
    look = PathCheck(Machine(environ={}), Budget(), mounts(tmp_path))
    for key in ("any_path", "all_path"):
        assert unmet([{key: ["/mnt/nfs/missing"]}], Machine(environ={}), None, look) is None
        assert unmet([{key: ["/mnt/nfs/*/x*"]}], Machine(environ={}), None, look) is None
        assert unmet([{key: ["/missing"]}], Machine(environ={}), None, look) is not None


def pieces_of(path: str, limit: int = 1 << 20) -> list[Any]:
    request: Any = Request.__new__(Request)
    request.bus = ({"path": path, "limit": limit},)
    return list(file_reading.probe_devices(request))


@pytest.mark.parametrize("size", [0, 1, 4000, 4001, 160_000, 160_001])
def test_what_a_child_read_of_a_file_arrives_in_pieces(size: int, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(bytes(range(251)) * (size // 251) + bytes(size % 251))
    pieces = pieces_of(str(file))
    assert len(pieces) == 1 + (size > 160_000)
    assert all(len(text) <= 4000 for piece in pieces for text in piece["text"])
    assert all(len(piece["text"]) <= 40 for piece in pieces)
    assert file_reading._content([*pieces, "no piece"], "x") == file.read_bytes()


def test_what_a_child_could_not_read_is_raised_as_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        file_reading._content(pieces_of(str(tmp_path / "none")), "/x")
    assert (missing.value.errno, missing.value.filename) == (errno.ENOENT, "/x")
    assert missing.value.strerror == os.strerror(errno.ENOENT)
    file = tmp_path / "settings.toml"
    file.write_text("")
    file.chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Untrusted, match=r"running as root, and .* is writable by everyone"):
        file_reading._content(pieces_of(str(file)), "/x")


@pytest.mark.parametrize(
    ("line", "is_served"),
    [
        ("24 22 0:40 / /mnt rw,hard shared:7 master:2 - nfs4 server:/export rw", True),
        ("24 22 0:40 / /mnt rw - fuse.sshfs user@server: rw", True),
        ("24 22 0:40 / /mnt rw - ext4 /dev/nfs rw", False),
        ("24 22 0:40 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw", False),
        ("24 22 0:40 / /sys/x rw - fuse x rw", False),
        ("24 22 0:40 / /home rw - autofs systemd-1 rw", True),
        ("24 - nfs4", True),  # a line that is cut off
        ("", False),
    ],
)
def test_whether_a_server_answers_for_any_mount(line: str, is_served: bool, tmp_path: Path) -> None:
    file = tmp_path / "mountinfo"
    file.write_text(f"{TABLE.splitlines()[0].format(root='overlay')}\n{line}\n")
    assert has_served_mounts(str(file)) is is_served
    assert not has_served_mounts(str(tmp_path / "none"))
