"""Commands to agents by TCP, for an engine that gives its input to the first process alone.

The agents connect to this computer, which mpirun's own daemons do as well. Each side proves that it
has the token, as the two ends of a pair do; see `pair_agent`.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets

from probe_cluster.pair_addresses import addresses
from probe_cluster.pair_agent import KEY
from probe_cluster.pair_sockets import DIGEST, NONCE, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Relay"]

_HANDSHAKE_S = 2.0


class Relay:
    """A listening socket while it is entered; `write` reaches all agents that connected."""

    def __init__(self) -> None:
        self._token = secrets.token_bytes(32)
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Relay:
        """Listen. Raises `OSError` where that is not allowed."""
        self._server = await asyncio.start_server(self._examine, None, 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Stop, and close all connections: the agents end."""
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()

    @property
    def places(self) -> str:
        """Return where agents connect to, for their arguments."""
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
        return {**os.environ, KEY: self._token.hex()}

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
