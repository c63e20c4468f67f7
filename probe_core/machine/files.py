"""Read files that somebody else chose, never blocking or unbounded, and the kernel's formats."""

from __future__ import annotations

import os
from errno import EINVAL
from stat import S_ISREG

from probe_core.machine import decimal, is_kernels, open_regular, read_file

__all__ = [
    "MAX_CPUS",
    "Untrusted",
    "await_exit",
    "cpu_list",
    "cpu_mask",
    "named_lines",
    "open_regular",
    "read_file",
    "read_head",
    "read_regular",
    "read_trusted",
    "text_of",
]

MAX_CPUS = 65_536
"""CPU numbers that are believed: eight times what Linux can be built for (NR_CPUS 8192)."""


_EXIT_S, _EXIT_PAUSE_S = 0.1, 0.0001
"""Seconds to wait for the kernel's part of a thread's end at most, and between two looks at it."""


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


def cpu_list(text: str | None) -> list[int]:
    """Return the numbers of a kernel CPU list ("0-3,8"); bad parts are left out.

    At most `MAX_CPUS` numbers: a recorded list may repeat itself without an end.
    """
    numbers: list[int] = []
    for part in (text or "").split(","):
        low, dash, high = part.strip().partition("-")
        first, last = decimal(low), decimal(high if dash else low)
        if first is None or last is None or not first <= last < MAX_CPUS:
            continue
        numbers += range(first, last + 1)
        if len(numbers) > MAX_CPUS:
            break
    return numbers[:MAX_CPUS]


def cpu_mask(text: str | None) -> list[int]:
    """Return the numbers of a kernel CPU mask ("00000000,00001111"), lowest first."""
    digits = (text or "").replace(",", "")
    try:
        bits = int(digits, 16) if digits and len(digits) <= MAX_CPUS // 4 else 0
    except ValueError:
        return []
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def await_exit(thread_id: int) -> None:
    """Wait until the kernel, too, is done with a thread that read for us and ended; Linux only.

    That is usually 20 µs after the interpreter is, and 60 ms were seen on a busy machine. A host
    may count its threads, or fork.
    """
    from time import monotonic, sleep

    from probe_core.fastpath import native_id

    if thread_id == native_id():  # gevent and eventlet make no thread
        return
    exit_by = monotonic() + _EXIT_S
    while os.path.exists(f"/proc/self/task/{thread_id}") and monotonic() < exit_by:
        sleep(_EXIT_PAUSE_S)
