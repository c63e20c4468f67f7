"""The agents of a measurement as its controller has them: what they print, and whether they run."""

from __future__ import annotations

import asyncio
from typing import cast

from probe_cluster.gathering.model import Wire
from probe_core.commands import write_json
from probe_core.wording import clean_text, error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_cluster.gathering.model import Message, Write


class AgentProblem(Exception):
    """Why a pair is not measured. `final`: the agent is gone, the other way round fails, too."""

    def __init__(self, sentence: str, *, final: bool) -> None:
        super().__init__(sentence)
        self.final = final


class Agent:
    """The agent of one node."""

    def __init__(self, id_: str, name: str) -> None:
        self.id = id_
        self.name = name
        """What sentences call its node."""
        self.hello: Message = {}
        self.ready = asyncio.Event()
        """Set when it runs, and when it never will."""
        self._write: Write | None = None
        self._lost: str | None = None
        self._answers: dict[int, asyncio.Queue[Message]] = {}

    def attach(self, write: Write) -> None:
        """Take how to reach it."""
        self._write = write

    def take(self, message: Message) -> None:
        """Take what it prints."""
        if message.get("kind") == "hello":
            self.hello = message
            self.ready.set()
        elif message.get("kind") == "lost":
            self.lose(str(message.get("reason")))
        elif isinstance(pair := message.get("pair"), int) and pair in self._answers:
            self._answers[pair].put_nowait(message)

    def lose(self, sentence: str) -> None:
        """Take why it is gone; the first reason counts."""
        self._lost = self._lost or clean_text(sentence, 300)
        self.ready.set()
        for answers in self._answers.values():
            answers.put_nowait({"kind": "gone"})

    def check(self) -> None:
        """Raise `AgentProblem` when it does not run."""
        if self._lost is not None:
            raise AgentProblem(f"{self.name}: {self._lost}", final=True)

    def order(self, message: dict[str, object]) -> None:
        """Send it a command."""
        if message["do"] != "stop":
            self._answers.setdefault(cast("int", message["pair"]), asyncio.Queue())
        if self._write is not None and self._lost is None:
            line = write_json({"to": self.hello.get("agent"), "node": self.id, **message})
            self._write(f"{line}\n".encode())

    async def answer(self, pair: int, seconds: float, failing: str) -> Message:
        """Return its next message about a pair. Raises `AgentProblem`."""
        try:
            async with asyncio.timeout(seconds):
                message = await self._answers[pair].get()
        except TimeoutError:
            # A stopped process or a dead host: no other pair waits for it.
            self.lose(f"its agent {failing} within {seconds:g} s")
            self.check()
            raise
        self.check()
        if message.get("kind") == "failed":
            raise AgentProblem(
                f"{self.name}: {clean_text(str(message['reason']), 300)}", final=False
            )
        return message

    def addresses(self, same: Agent) -> list[str]:
        """Return its addresses, as `same` may reach them."""
        pairs = cast("list[list[str]]", self.hello["addresses"])
        local = ["127.0.0.1"] if self.hello["boot"] == same.hello["boot"] else []
        return [str(address) for _, address in pairs] + local

    def close(self) -> None:
        """Close its input: then it ends."""
        if self._write is not None:
            self._write(b"")


class Session:
    """The agents of all nodes that are measured together."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.agents = {id_: Agent(id_, name) for id_, name in names.items()}
        self._number = 0

    def wire(self) -> Wire:
        """Return where the engine puts what happens."""
        return Wire(
            attach=lambda id_, write: self.agents[id_].attach(write),
            message=self._message,
            lost=lambda id_, sentence: self.agents[id_].lose(sentence),
        )

    def _message(self, id_: str, message: Message) -> None:
        # A launcher starts agents on nodes that are not measured, too.
        if id_ in self.agents:
            self.agents[id_].take(message)

    def engine_ended(self, work: asyncio.Future[None]) -> None:
        """Take the end of the engine's own work: no agent runs any more."""
        error = None if work.cancelled() else work.exception()
        sentence = error_text(error) if error is not None else "the engine ended its agent"
        for agent in self.agents.values():
            agent.lose(sentence)

    async def started(self, seconds: float) -> None:
        """Wait until each agent runs or never will; then those that are late do not count."""
        waiting = [asyncio.ensure_future(agent.ready.wait()) for agent in self.agents.values()]
        try:
            await asyncio.wait(waiting, timeout=seconds)
        finally:
            for task in waiting:
                task.cancel()
        for agent in self.agents.values():
            if not agent.ready.is_set():
                agent.lose(f"no agent started there within {seconds:g} s")

    def ready(self, ids: Iterable[str]) -> bool:
        """Return whether it is known of each agent that it runs, or that it never will."""
        return all(self.agents[id_].ready.is_set() for id_ in ids)

    def machine(self, id_: str) -> str:
        """Return what two nodes on one running kernel share: they share its network, too."""
        return str(self.agents[id_].hello.get("boot") or id_)

    def next_number(self) -> int:
        """Return a number for an attempt."""
        self._number += 1
        return self._number

    def end(self) -> None:
        """Close the input of all agents."""
        for agent in self.agents.values():
            agent.close()
