"""Follow other computers: `probe watch --json --all` runs on each by ssh, and its lines are rounds.

The remote end must not outlive this one. Its standard input is a pipe of ours, and a shell there
waits for the end of that: when this process ends, however it does, so does all that it started
(measured with a real sshd: 18 ms later). A network that is cut closes nothing; ssh's own keepalive
then ends the connection.
"""

from __future__ import annotations

import asyncio
import shlex
from time import monotonic

from probe_core.commands import CommandError
from probe_watch.recorded import MOST_LINE, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_watch.app import WatchApp
    from probe_watch.node import Node
    from probe_watch.rounds import Happening

RETRY_S, LONGEST_RETRY_S = 5.0, 60.0
"""Seconds before a host that was lost is asked again, doubled each time up to the second."""

STARTS_A_SECOND = 40
"""Connections that are begun each second: each costs some 20 ms of a core, here and there."""

_SETTLED_S = 0.3
"""Seconds without a line after which a round is taken as whole: its lines come together."""

_GRACE_S = 5
"""Seconds on a host between SIGTERM and SIGKILL: `probe watch` ends its samplers in two."""

_LATE_S = 5.0
"""Seconds beyond three intervals after which a host that sends nothing is said to be silent."""


def names_of(text: str) -> list[str]:
    """Return the hosts of ``a,b,c``, of a file of names, or of a `probe cluster --json` document.

    Raises `CommandError`.
    """
    try:
        from probe_cluster.gathering.document import SavedCluster
        from probe_cluster.gathering.ssh import parse_hosts
        from probe_cluster.shared import is_cluster_file
    except ImportError:
        raise CommandError("--hosts needs probe-cluster: pip install probe-cluster") from None
    return list(SavedCluster(text).nodes) if is_cluster_file(text) else parse_hosts(text)


def interval_for(count: int) -> float:
    """Return seconds between samples that a screen of so many hosts can still show.

    3 to ten hosts, 4 to 50, 5 to 100, 6 above, as all-smi's defaults are.
    """
    return 3.0 + sum(count > bound for bound in (10, 50, 100))


def script(command: Sequence[str], interval: float) -> str:
    """Return what ssh has a host run: samples until standard input ends."""
    words = shlex.join([*command, "watch", "--json", "--all", "--interval", f"{interval:g}"])
    # A job in the background reads nothing; whichever ends first ends the whole group. What does
    # not heed SIGTERM, as one that is stopped, is killed when the others had time to clean up. The
    # shell's own word on it ("Terminated") is no reason why a host was lost.
    end = f"kill -TERM 0; (sleep {_GRACE_S}; kill -KILL 0) </dev/null >/dev/null &"
    guarded = f"{{ {words}; kill -TERM 0; }} & exec 2>/dev/null; trap : TERM; cat >/dev/null; {end}"
    return f"exec sh -c {shlex.quote(guarded)}"


class Host:
    """One computer that is followed: its rounds go to its node, or why there is none."""

    def __init__(self, app: WatchApp, node: Node, interval: float) -> None:
        self._app = app
        self._node = node
        self._interval = interval
        self._heard = monotonic()
        self._reader = Reader()
        self._rest = b""
        self._settling: asyncio.TimerHandle | None = None

    async def follow(self, command: Sequence[str], delay: float = 0.0) -> None:
        """Follow the host from `delay` seconds on until cancelled; a lost one is asked again."""
        from probe_cluster.gathering.process import run
        from probe_cluster.gathering.ssh import on_host

        await asyncio.sleep(delay)
        pause = RETRY_S
        while True:
            self._reader, self._rest, self._heard = Reader(), b"", monotonic()
            words = on_host(self._node.name, script(command, self._interval))
            began = monotonic()
            watch = asyncio.ensure_future(self._watch())
            try:
                # The pipe of standard input stays open as long as this runs.
                ended = await run(words, self._feed, None, opened=lambda write: None)
            finally:
                watch.cancel()
            reason = ended.unstarted or ended.last_line() or f"ssh ended with {ended.status}"
            if monotonic() - began > LONGEST_RETRY_S:
                pause = RETRY_S
            self._lose(f"{reason}; asked again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(LONGEST_RETRY_S, pause * 2)

    async def _watch(self) -> None:
        """Say so when nothing comes of the host for a while."""
        while True:
            await asyncio.sleep(self._interval)
            silent = monotonic() - self._heard
            if silent > 3 * self._interval + _LATE_S:
                self._lose(f"no sample for {silent:.0f} s")

    def _feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-MOST_LINE:]
        for line in lines:
            self._pass_on(self._reader.feed(line))
        if self._settling is not None:
            self._settling.cancel()
        loop = asyncio.get_running_loop()
        self._settling = loop.call_later(_SETTLED_S, lambda: self._pass_on(self._reader.end()))

    def _pass_on(self, happening: Happening | None) -> None:
        if happening is not None:
            self._heard = monotonic()
            if self._reader.devices.keys() != self._node.devices.keys():
                self._node.describe(list(self._reader.devices.values()))
            self._app.take(self._node, happening)

    def _lose(self, reason: str) -> None:
        self._node.lost = reason
        self._app.show()
