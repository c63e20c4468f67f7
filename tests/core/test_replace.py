"""A file is replaced whole; what is no file is written to, and never becomes one."""

from __future__ import annotations

import errno
import os
import select
import stat
import threading
from pathlib import Path

import pytest

from probe_core.machine.writing import replace_file

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
