"""Read files that somebody else chose, never blocking or unbounded, and the kernel's formats."""

from __future__ import annotations

import os
from errno import EINVAL
from stat import S_ISREG
from time import thread_time

from probe_core.machine import decimal, is_kernels, open_regular, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.machine import Machine


MAX_CPUS = 65_536
"""CPU numbers that are believed: eight times what Linux can be built for (NR_CPUS 8192)."""


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


NODES = "/sys/devices/system/node"


def has_one_node(machine: Machine) -> bool:
    """Return whether the kernel lists one NUMA node alone, as on most machines."""
    return machine.read(f"{NODES}/online", 4096) == "0"


def cpu_mask(text: str | None) -> list[int]:
    """Return the numbers of a kernel CPU mask ("00000000,00001111"), lowest first."""
    digits = (text or "").replace(",", "")
    try:
        bits = int(digits, 16) if digits and len(digits) <= MAX_CPUS // 4 else 0
    except ValueError:
        return []
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


# What a probe spends in the host on data that others wrote, counted over all of it.
#
# Each file is bounded already; thousands of them are not. What exceeds the budget is left out and
# named, and one distribution has a share, so that it uses up nobody else's.

SHARE = {"files": 128, "bytes": 1 << 20, "names": 8192, "seconds": 0.1}
"""What the data of one distribution may use. Judgements: 64 probers with a manifest each, of 16 KiB
where ours have 3; twice the names that one pattern may look at."""

TOTAL = {"files": 4096, "bytes": 8 << 20, "names": 32_768, "seconds": 0.5}
"""What the data of all distributions may use together. Seconds are of this thread's processor time:
a slow disk is nobody's fault, and must leave no prober out."""

_UNITS = {"files": "files", "bytes": "bytes", "names": "names of files", "seconds": "s of work"}


class Budget:
    """Counts what was used; `exceeded` maps each owner that got no more to the reason."""

    __slots__ = ("_clock", "_own", "_total", "exceeded")

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        self._clock = clock
        self._total: dict[str, float] = dict.fromkeys(TOTAL, 0)
        self._own: dict[str, dict[str, float]] = {}
        self.exceeded: dict[str, str] = {}

    def clock(self) -> float:
        """Return the time that `charge` takes as `since`."""
        return self._clock()

    def charge(
        self,
        owner: str,
        *,
        files: int = 0,
        size: int = 0,
        names: int = 0,
        since: float | None = None,
    ) -> None:
        """Count what `owner` used: `size` in bytes, work `since` a time of `clock`."""
        seconds = 0.0 if since is None else self._clock() - since
        own = self._own.get(owner)
        if own is None:
            own = self._own[owner] = dict.fromkeys(SHARE, 0)
        for unit, amount in (
            ("files", files),
            ("bytes", size),
            ("names", names),
            ("seconds", seconds),
        ):
            own[unit] += amount
            self._total[unit] += amount

    def refusal(self, owner: str) -> str | None:
        """Return why `owner` gets no more; None while it does."""
        own = self._own.get(owner)
        for used, limits, subject in ((own, SHARE, "its data"), (self._total, TOTAL, "all data")):
            unit = next((u for u in limits if used and used[u] > limits[u]), None)
            if unit is not None:
                amount = f"{limits[unit]:,} {_UNITS[unit]}"
                self.exceeded[owner] = reason = f"{subject} may take {amount} of a probe"
                return reason
        return None
