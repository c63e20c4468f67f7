"""How an agent gets to a node: its program, and a shell script that looks for a Python."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import shlex
from dataclasses import dataclass
from functools import cache

from probe_cluster.network.agent import DIGEST, KEY, NONCE, addresses, digest

_PROGRAM = "PROBE_CORE_AGENT"
"""Environment variable with the agent's program, where an input does not reach all nodes."""

# The Python of `probe` is in the first line of its script. csh expands "!" also within quotes, and
# allows no end of a line in them: there is none of either.
_SCRIPT = (
    "PATH=$PATH:$HOME/.local/bin:/usr/local/bin:/opt/probe/bin;"
    " for p in {candidates} python3 python; do"
    " $p -I -S -c 'import sys; sys.exit(sys.version_info < (3, 8))' </dev/null >/dev/null 2>&1"
    " && exec $p -I -S -c {code} {arguments}; done;"
    " n=${{SLURMD_NODENAME:-$(uname -n)}};"
    " printf '%-511s\\n' \"#probe-cluster $n $$ absent |\""
)

# Without `probe` head would read the input, which is the agent's program and commands.
_OF_SCRIPT = "\"$(head -n 1 $(command -v {name}) </dev/null 2>/dev/null | sed -n 's/^#.//p')\""


@cache
def _program() -> bytes:
    """Return the text of the agent: one file, which imports nothing of ours."""
    with open(os.path.join(os.path.dirname(__file__), "agent.py"), "rb") as file:
        return file.read()


@dataclass(frozen=True, slots=True)
class Start:
    """How an agent starts: the words of `probe` there (its Python serves), and its longest life."""

    command: tuple[str, ...]
    seconds: float

    @property
    def program(self) -> bytes:
        """Return what the input of `script` begins with; the agent's commands follow."""
        return _program()

    def words(self) -> list[str]:
        """Return the words after a Python, where no shell is between; a node's name may follow."""
        return ["-I", "-S", "-c", _program().decode(), f"{self.seconds:g}"]

    def script(self) -> str:
        """Return the script of one node, for ``sh -c``.

        Not ``python -``, which would wait for the end of the commands before it runs the program.
        """
        code = f"import sys; exec(sys.stdin.buffer.read({len(_program())}))"
        return self._script(shlex.quote(code), f"{self.seconds:g}")

    def relay(self) -> Relay:
        """Return what takes the place of the input, for an engine that gives it to one node."""
        return Relay(self)

    def script_with(self, places: str) -> str:
        """Return the script of a node whose commands come from `places`; see the agent's `main`."""
        return self._script(f'"${_PROGRAM}"', f"{self.seconds:g} '' {shlex.quote(places)}")

    def _script(self, code: str, arguments: str) -> str:
        name = shlex.quote(self.command[0])
        is_python = os.path.basename(self.command[0]).startswith("python")
        candidates = name if is_python else _OF_SCRIPT.format(name=name)
        return _SCRIPT.format(candidates=candidates, code=code, arguments=arguments)


_HANDSHAKE_S = 2.0


class Relay:
    """Commands to agents by TCP: a listening socket while it is entered.

    The agents connect to this computer, which mpirun's own daemons do as well. Each side proves
    that it has the token, as the two ends of a pair do; see `agent`.
    """

    variables = (_PROGRAM, KEY)
    """Names of the variables in `environ` that the launcher must pass on."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._token = secrets.token_bytes(32)
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Relay:
        """Listen. Raises `OSError` where that is not allowed."""
        self._server = await asyncio.start_server(self._examine, None, 0)
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Stop, and close all connections: the agents end."""
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()

    def script(self) -> str:
        """Return the script of one node, for ``sh -c``; it needs no input, but `environ`."""
        return self._start.script_with(self._places())

    def _places(self) -> str:
        assert self._server is not None
        port_of = {sock.family: sock.getsockname()[1] for sock in self._server.sockets}
        local = [address for _, address in addresses()]
        return ",".join(
            f"{address}={port}"
            for address in [*local, "127.0.0.1"]
            for family, port in port_of.items()
            if (":" in address) == (family.name == "AF_INET6")
        )

    @property
    def environ(self) -> dict[str, str]:
        """Return the variables of the launcher: the token is no argument, which all users see."""
        return {**os.environ, KEY: self._token.hex(), _PROGRAM: _program().decode()}

    def write(self, data: bytes) -> None:
        """Write to all agents; an empty write closes the connections."""
        for writer in self._writers:
            if data:
                writer.write(data)
            else:
                writer.close()

    async def _examine(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HANDSHAKE_S):
                mine = os.urandom(NONCE)
                writer.write(mine)
                theirs, proof = await reader.readexactly(NONCE), await reader.readexactly(DIGEST)
        except (OSError, EOFError, TimeoutError):
            writer.close()
            return
        if not hmac.compare_digest(proof, digest(self._token, b"connect", mine, theirs)):
            writer.close()
            return
        writer.write(digest(self._token, b"listen", theirs, mine))
        self._writers.append(writer)
