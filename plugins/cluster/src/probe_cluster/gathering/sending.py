"""How the program of a node gets there, and after it the archive, to a node that asks for it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import shlex
from functools import cache

from probe_cluster.gathering.node_agent import HEAD, PART
from probe_core import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.gathering.archive import Archive
    from probe_cluster.gathering.model import Limits


_LATER_S = 5.0
"""Seconds that a node's program lives beyond the node's time here: only where the network is lost
does it end by itself."""

# A Python that runs probe-core is preferred; any that the program itself runs on will do. The
# Python of `probe` is in the first line of its script. One that is there and prints no version does
# not start: it is named where no other does. platform-python is the system's own of RHEL
# 8. csh expands "!" also within quotes, and allows no end of a line in them: there is none of
# either. The program is read byte by byte, since what follows it in the input is not for the shell.
_SCRIPT = (
    "PATH=$PATH:$HOME/.local/bin:/usr/local/bin:/opt/probe/bin; o=; b=;"
    " for p in {own} python3.15 python3.14 python3.13 python3.12 python3.11 python3 python"
    " /usr/libexec/platform-python; do"
    " v=$($p -I -S -c 'import sys; print(sys.version_info[0] * 100 + sys.version_info[1])'"
    " </dev/null 2>/dev/null);"
    " case $v in 31[1-9]|3[2-9]?) o=$p; break;; 30[6-9]|310) o=${{o:-$p}};;"
    " '') command -v $p >/dev/null 2>&1 && b=${{b:-$p}};; esac; done;"
    ' [ -n "$o" ] && exec $o -I -S -c {code} {arguments};'
    " n=${{SLURMD_NODENAME:-$(uname -n)}};"
    " printf '%-511s\\n' \"#probe-cluster $n $$ absent $b|\""
)

_OWN = "\"$(head -n 1 $(command -v {name}) </dev/null 2>/dev/null | sed -n 's/^#.//p')\""


@cache
def program() -> bytes:
    """Return the text of the program: one file, which imports nothing of ours."""
    with open(os.path.join(os.path.dirname(__file__), "node_agent.py"), "rb") as file:
        return file.read()


def arguments(limits: Limits, *, lifeline: bool = True, node: str = "-") -> list[str]:
    """Return the arguments of the program; see there."""
    seconds = f"{limits.node + _LATER_S:g}"
    version = __version__ if limits.send else "-"
    return [seconds, "lifeline" if lifeline else "alone", version, node, *limits.command]


def code() -> str:
    """Return the code, for ``python -c``, that reads the program from its input and runs it."""
    size = len(program())
    return f"import os; exec(b''.join([os.read(0, 1) for _ in range({size})]))"


PROGRAM = "PROBE_CORE_PROGRAM"
"""Variable with the program, where an input does not reach all nodes."""


def node_script(limits: Limits, *, alone: bool = False) -> str:
    """Return the script of one node, for ``sh -c``; its input begins with the program.

    With `alone` there is no input: the program is in a variable.
    """
    words = " ".join(map(shlex.quote, arguments(limits, lifeline=not alone)))
    own = _OWN.format(name=shlex.quote(limits.command[0]))
    program_code = f'"${PROGRAM}"' if alone else shlex.quote(code())
    return _SCRIPT.format(own=own, code=program_code, arguments=words)


_MOST_VARIABLE = 120 << 10


def _headed(data: bytes) -> bytes:
    """Return an archive behind the head that the program of a node reads."""
    head = f"{len(data):08x} {hashlib.sha256(data).hexdigest()}"
    return head.encode().ljust(HEAD) + data


class Parcel:
    """The archive of one gather: made once, beside the first connections."""

    def __init__(self, limits: Limits) -> None:
        self._wanted = limits.send
        self._making: asyncio.Future[Archive] | None = None

    def begin(self) -> None:
        """Start to make it."""
        if self._wanted and self._making is None:
            from probe_cluster.gathering.archive import build

            self._making = asyncio.ensure_future(asyncio.to_thread(build))

    async def data(self) -> bytes:
        """Return what the program of a node reads. Raises `ValueError` where it cannot be made."""
        self.begin()
        if self._making is None:
            raise ValueError("nothing is to be sent")
        archive = await asyncio.shield(self._making)
        return _headed(archive.data)

    async def variables(self) -> dict[str, str]:
        """Return the program and the archive as variables; without it where it cannot be made.

        Linux takes 128 KiB in one (MAX_ARG_STRLEN, execve(2)), and 2 MiB in all by default.
        """
        found = {PROGRAM: program().decode()}
        try:
            data = await self.data()
        except ValueError:
            return found
        text = base64.b85encode(data).decode()
        return found | {
            f"{PART}{at // _MOST_VARIABLE}": text[at : at + _MOST_VARIABLE]
            for at in range(0, len(text), _MOST_VARIABLE)
        }

    async def end(self) -> None:
        """Wait until it is made, where it is being made: a thread cannot be cancelled."""
        if self._making is not None:
            await asyncio.wait({self._making})
            self._making.cancelled() or self._making.exception()  # nobody may have asked for it
