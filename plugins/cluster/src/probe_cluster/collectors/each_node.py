"""One process a node, all at once up to the fan-out: for engines that reach nodes one by one."""

from __future__ import annotations

import asyncio

from probe_cluster.collectors.agent_messages import lost_sentence, message_of
from probe_cluster.collectors.answers import stream_answer, unanswered
from probe_cluster.node_lines import Streams
from probe_cluster.node_process import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_cluster.gather_model import Limits, Sink, Target, Wire
    from probe_cluster.node_lines import Stream

__all__ = ["attend_each", "run_each"]


async def run_each(
    targets: Sequence[Target],
    command: Callable[[Target], Sequence[str]],
    limits: Limits,
    sink: Sink,
) -> None:
    """Run the command of each target, at most `limits.fanout` at a time."""
    slots = asyncio.Semaphore(max(1, limits.fanout))

    async def ask(target: Target) -> None:
        async with slots:
            await _ask(target, command(target), limits.node, sink)

    async with asyncio.TaskGroup() as group:
        for target in targets:
            group.create_task(ask(target))


async def _ask(target: Target, command: Sequence[str], seconds: float, sink: Sink) -> None:
    started: list[str] = []

    def answered(stream: Stream) -> None:
        # The process reaches one node: whatever that node calls itself, the answer is this one's.
        sink.answer(stream_answer(target.id, stream))

    lines = Streams(answered, lambda node, _: started.append(node))
    ended = await run(command, lines.feed, seconds)
    host = target.name or target.id
    # The first answer counts: this is that of a node that gave none.
    sink.answer(unanswered(target.id, host, ended, started=bool(started), seconds=seconds))


async def attend_each(
    targets: Sequence[Target], command: Callable[[Target], Sequence[str]], wire: Wire
) -> None:
    """Run the agent of each target, all at once, until they end."""

    async def attend(target: Target) -> None:
        lines = Streams(lambda stream: wire.message(target.id, message_of(stream)))
        ended = await run(
            command(target), lines.feed, None, opened=lambda write: wire.attach(target.id, write)
        )
        wire.lost(target.id, lost_sentence(ended))

    async with asyncio.TaskGroup() as group:
        for target in targets:
            group.create_task(attend(target))
