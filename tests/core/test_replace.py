"""A file is replaced whole; what is no file is written to, and never becomes one."""

from __future__ import annotations

import errno
import os
import select
import stat
import threading
from pathlib import Path

import pytest

from probe_core.machine.writing import replace_file, replace_named_file

full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a system without /dev/full")


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "page"
    for content in (b"first", b"second"):
        replace_file(str(path), content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["page"]


def test_a_device_stays_a_device() -> None:
    """Run by root, a rename would put a file in the place of /dev/null."""
    replace_file(os.devnull, b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@full
def test_a_full_device_is_an_error_and_stays() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        replace_file("/dev/full", b"x" * 10)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    assert not [name for name in os.listdir("/dev") if name.startswith(".full.")]


def test_a_pipe_without_a_reader_is_an_error_at_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
        replace_file(str(path), b"x")


def test_a_pipe_gets_more_than_it_holds(tmp_path: Path) -> None:
    """Its reader is slower: what does not fit waits, and is no error."""
    path, content = tmp_path / "pipe", os.urandom(1 << 18)
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = threading.Thread(target=replace_file, args=(str(path), content))
    writer.start()
    select.select([reader], [], [])  # until the other end is open and written to
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == content
    writer.join()
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_folder_is_an_error_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    with pytest.raises(OSError, match=os.strerror(errno.EISDIR)):
        replace_file(str(tmp_path / "page"), b"x")
    assert os.listdir(tmp_path) == ["page"]


def test_a_link_that_a_person_named_stays_and_is_followed(tmp_path: Path) -> None:
    """Relative links, in a folder that is a link itself: two dots lead up from where it leads."""
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "folder").symlink_to("real/inner")
    (tmp_path / "page").symlink_to("folder/second")
    (tmp_path / "real" / "inner" / "second").symlink_to("../target")
    for content in (b"created", b"replaced"):  # nothing is there, then a file
        replace_named_file(str(tmp_path / "page"), content)
        assert (tmp_path / "page").is_symlink()
        assert (tmp_path / "real" / "target").read_bytes() == content
    assert sorted(os.listdir(tmp_path / "real")) == ["inner", "target"]
    assert os.listdir(tmp_path / "real" / "inner") == ["second"]


@pytest.mark.parametrize(
    ("target", "code"),
    [("page", errno.ELOOP), ("none/page", errno.ENOENT), ("folder", errno.EISDIR)],
)
def test_a_link_that_leads_to_no_file_is_an_error_and_stays(
    tmp_path: Path, target: str, code: int
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "page").symlink_to(target)
    with pytest.raises(OSError, match=os.strerror(code)):
        replace_named_file(str(tmp_path / "page"), b"x")
    assert sorted(os.listdir(tmp_path)) == ["folder", "page"]
    assert os.readlink(tmp_path / "page") == target


def test_a_link_to_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "page").symlink_to(os.devnull)
    replace_named_file(str(tmp_path / "page"), b"x")
    assert os.readlink(tmp_path / "page") == os.devnull
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_link_that_another_user_laid_in_a_folder_of_all_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.lstat

    def lstat(path: str | os.PathLike[str], **more: int) -> os.stat_result:
        own = real(path, **more)
        is_link = os.fspath(path) == str(tmp_path / "page")
        return os.stat_result((*own[:4], own.st_uid + 1, *own[5:10])) if is_link else own

    monkeypatch.setattr(os, "lstat", lstat)
    tmp_path.chmod(0o1777)
    (tmp_path / "page").symlink_to("victim")
    (tmp_path / "victim").write_bytes(b"kept")
    with pytest.raises(PermissionError, match="a link of another user"):
        replace_named_file(str(tmp_path / "page"), b"x")
    assert (tmp_path / "victim").read_bytes() == b"kept"
    tmp_path.chmod(0o755)
    replace_named_file(str(tmp_path / "page"), b"x")
    assert (tmp_path / "victim").read_bytes() == b"x"


def test_a_link_in_the_place_of_a_file_of_our_own_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"kept")
    (tmp_path / "state").symlink_to("victim")
    replace_file(str(tmp_path / "state"), b"x")
    assert (tmp_path / "state").read_bytes() == b"x"
    assert not (tmp_path / "state").is_symlink()
    assert (tmp_path / "victim").read_bytes() == b"kept"
