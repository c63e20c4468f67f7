"""Nobody looks where a dead server would hang the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe_core.machine import Machine, Mounts
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
