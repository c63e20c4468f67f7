"""Who may take commands: each side of a relay's connection proves that it has the token."""

from __future__ import annotations

import asyncio
import hmac
import os
from socket import AF_INET

import pytest

from probe_cluster.network.agent import DIGEST, KEY, NONCE, digest
from probe_cluster.network.start import Relay, Start


def port_of(relay: Relay) -> int:
    assert relay._server is not None
    places = [sock.getsockname() for sock in relay._server.sockets if sock.family == AF_INET]
    return int(places[0][1])


async def connect(relay: Relay, token: bytes, proof: int = DIGEST) -> tuple[bool, bytes]:
    """Connect with a token; return whether the relay proved that it has it, and its commands."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(relay))
    theirs, mine = await reader.readexactly(NONCE), os.urandom(NONCE)
    writer.write(mine + digest(token, b"connect", theirs, mine)[:proof])
    if proof < DIGEST:
        writer.write_eof()
    answer = await reader.read(DIGEST)
    relay.write(b"order\n")
    relay.write(b"")
    commands = await reader.read()
    writer.close()
    expected = digest(token, b"listen", mine, theirs)
    return len(answer) == DIGEST and hmac.compare_digest(answer, expected), commands


@pytest.mark.parametrize(
    ("is_right", "proof", "answer"),
    [(True, DIGEST, (True, b"order\n")), (False, DIGEST, (False, b"")), (True, 31, (False, b""))],
    ids=["token", "other token", "cut off"],
)
def test_only_who_has_the_token_gets_commands(
    is_right: bool, proof: int, answer: tuple[bool, bytes]
) -> None:
    async def body() -> tuple[bool, bytes]:
        async with Relay(Start(("probe",), 5.0)) as relay:
            token = bytes.fromhex(relay.environ[KEY])
            assert f"127.0.0.1={port_of(relay)}" in relay.script()
            return await connect(relay, token if is_right else bytes(32), proof)

    assert asyncio.run(asyncio.wait_for(body(), 20)) == answer
