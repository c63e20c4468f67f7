"""Asks `probe` itself, in a process of its own: what a tool answers is what the command prints.

The commands are fixed here and only read. A value of a client becomes part of one argument, never
an option of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys

import anyio

from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

DEADLINE_S = 60.0
"""Seconds that a command may take: a probe ends by its own deadlines long before."""

MOST_AT_ONCE = 2
"""Commands at once: a client may call many tools together."""

MAX_VALUE = 200
"""Characters of a value of a client: names of models and chips, ids, expectations."""


class Refused(Exception):
    """A question that has no answer; the message is one sentence."""


class Asker:
    """Runs commands of `probe` on this computer, or on a recorded `machine`."""

    def __init__(self, machine: str | None) -> None:
        self._machine = [] if machine is None else [f"--machine={machine}"]
        self._limiter: anyio.CapacityLimiter | None = None

    async def document(self, words: Sequence[str], *, probes: bool = True) -> Any:
        """Return what a command prints as JSON; raises `Refused` with its own sentence.

        `probes` tells whether the command looks at the machine.
        """
        options = ["--json", *(self._machine if probes else ())]
        # Options stand before what a client says: after `--` all are values. `-P` keeps modules of
        # the folder in which a client started the server out.
        python = [sys.executable, "-P", "-m", "probe_core"]
        command = [*python, *words[:1], *options, *words[1:]]
        self._limiter = self._limiter or anyio.CapacityLimiter(MOST_AT_ONCE)
        async with self._limiter:
            try:
                with anyio.fail_after(DEADLINE_S):
                    done = await anyio.run_process(command, stdin=subprocess.DEVNULL, check=False)
            except TimeoutError:
                raise Refused(f"probe did not answer within {DEADLINE_S:g} s") from None
        try:
            return json.loads(done.stdout)
        except (ValueError, RecursionError):
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = lines[0] if lines else f"probe ended with status {done.returncode}"
            raise Refused(clean_text(reason, 600)) from None


def value_of(name: str, text: str) -> str:
    """Return a client's text as one value; raises `Refused` for what no name is."""
    if len(text) > MAX_VALUE or not text.isprintable():
        raise Refused(f"{name}: expected at most {MAX_VALUE} printable characters")
    return text
