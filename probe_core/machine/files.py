"""Read files that somebody else chose: never block, never read without a bound."""

from __future__ import annotations

import os
import stat

from probe_core.machine import read_handle

__all__ = ["nonblocking", "read_regular", "text_of"]


def nonblocking(path: str, flags: int) -> int:
    """Open a file for `open(opener=…)`, which closes it again when it turns out to be a folder.

    A FIFO named in a setting would otherwise hang the host until somebody writes into it.
    """
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_regular(path: str, limit: int) -> bytes:
    """Return the bytes of a regular file; raises `OSError`, or `ValueError` saying what it is.

    Looked at before it is opened: to open a device can mean something (a watchdog, a tape).
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("not a regular file")
    handle = nonblocking(path, os.O_RDONLY)
    try:
        # Not through `open`, which makes four more system calls a file, of fifty files a probe.
        raw = read_handle(handle, limit + 1)
    finally:
        os.close(handle)
    if len(raw) > limit:
        raise ValueError(f"longer than {limit} bytes")
    return raw


def text_of(raw: bytes) -> str:
    """Return UTF-8 text without a byte order mark; raises `ValueError`.

    The codec "utf-8-sig" would be imported, which fails in odd hosts and takes its time in all.
    """
    return raw.removeprefix(b"\xef\xbb\xbf").decode()
