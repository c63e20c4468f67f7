"""Read files that somebody else chose: never block, never read without a bound."""

from __future__ import annotations

import os
from errno import EINVAL
from stat import S_ISREG

from probe_core.machine import is_kernels, open_regular, read_file

__all__ = [
    "Untrusted",
    "named_lines",
    "open_regular",
    "read_file",
    "read_head",
    "read_regular",
    "read_trusted",
    "text_of",
]


class Untrusted(ValueError):
    """A file that root must not use; the message is the reason."""


def read_regular(path: str, limit: int) -> bytes:
    """Return the bytes of a regular file; raises `OSError`, or `ValueError` when it is too long.

    Looked at before it is opened: to open a device can mean something (a watchdog, a tape).
    """
    raw = read_head(path, limit)
    if len(raw) > limit:
        raise ValueError(f"longer than {limit} bytes")
    return raw


def read_head(path: str, limit: int) -> bytes:
    """Return at most `limit` bytes of a regular file, and one more if it is longer.

    What stat(2) calls empty is not opened: among the kernel's own such files some block until there
    is something to read (/proc/kmsg, trace_pipe), and a link may lead to them. Raises `OSError`.
    """
    status = os.stat(path)
    if S_ISREG(status.st_mode) and status.st_size == 0:
        if is_kernels(os.path.realpath(path)):
            raise OSError(EINVAL, "a file of the kernel", path)
        return b""
    # Not through `open`, which makes four more system calls a file, of fifty files a probe.
    with open_regular(path, status) as file:
        return read_file(file, limit + 1)


def read_trusted(path: str, limit: int) -> bytes:
    """Return at most `limit` bytes and one more of a file that a setting names.

    Raises `Untrusted` where somebody other than root could have written what root would read,
    `OSError` where it cannot be read.
    """
    from probe_core.machine.trust import untrusted

    if os.path.exists(path) and (reason := untrusted([path])):
        raise Untrusted(reason)
    return read_head(path, limit)


def text_of(raw: bytes) -> str:
    """Return UTF-8 text without a byte order mark; raises `ValueError`.

    The codec "utf-8-sig" would be imported, which fails in odd hosts and takes its time in all.
    """
    return raw.removeprefix(b"\xef\xbb\xbf").decode()


def named_lines(text: str) -> dict[str, str]:
    """Return the lines "Name: value" of a file of /proc as a table; of equal names the last."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}
