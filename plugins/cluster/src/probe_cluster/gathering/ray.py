"""Nodes of a Ray cluster: one task on each, from a child process that alone imports Ray.

`ray.init` did not return in 590 s where nobody listened, and Ray prints on standard output when a
node dies (Ray 2.60). So the socket is tried first, and the child is ended at the deadline.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace

from probe_cluster.gathering.answers import answer_of, damaged, message_of
from probe_cluster.gathering.launching import attend_all
from probe_cluster.gathering.lines import Streams
from probe_cluster.gathering.model import START_S, Answer, Target
from probe_cluster.gathering.process import run
from probe_cluster.gathering.ray_driver import NODE
from probe_cluster.gathering.sending import Parcel, arguments, program
from probe_cluster.shared import ClusterError, sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_cluster.gathering.lines import Stream
    from probe_cluster.gathering.model import EngineDoc, Limits, Sink, Wire
    from probe_cluster.gathering.process import Ended
    from probe_cluster.network.start import Start
    from probe_core.model.document import Json


_CONNECT_S = 5.0


class Ray:
    """The nodes of the Ray cluster at `address`: HOST:PORT, or ``auto`` for this computer's."""

    name = "ray"
    resumes = True
    process_each = False

    def __init__(self, address: str = "auto", *, python: str | None = None) -> None:
        self._address = address
        self._place = "on this computer" if address == "auto" else f"at {address}"
        self._python = python or sys.executable

    async def targets(self) -> list[Target]:
        """Return no node: Ray lists them once it is connected. Raises `ClusterError`."""
        from importlib.util import find_spec

        if self._python == sys.executable and find_spec("ray") is None:
            raise ClusterError("Ray is not installed here: pip install 'probe-cluster[ray]'")
        if self._address != "auto":
            await _connect(self._address)
        return []

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Run the child until it ends."""
        seconds = limits.node + START_S
        parcel = Parcel(limits)
        try:
            gift = await parcel.data()
        except ValueError:
            gift, limits = b"", replace(limits, send=False)
        words = ["-I", "-S", "-c", program().decode(), *arguments(limits, node=NODE)]
        only = ",".join(target.id for target in targets)
        command = self._driver("reports", f"{limits.node:g}", only, *words)
        ended = await self._child(command, gift, seconds, sink)
        if ended.timed_out:
            sink.problem(f"Ray did not end within {seconds:g} s")
        elif ended.status != 0:
            sentence = ended.last_line() or "it printed nothing"
            raise ClusterError(f"no Ray cluster answers {self._place}: {sentence}")
        for target in sink.open_targets():
            reason = f"its program gave no answer within {limits.node:g} s"
            sink.answer(Answer(target.id, "timeout", reason, "see `ray status`"))

    async def agents(self, targets: Sequence[Target], start: Start, wire: Wire) -> None:
        """Run the child that starts an actor on each node, which holds the agent's process."""
        nodes = ",".join(target.id for target in targets)
        command = self._driver("agents", nodes, *start.words(), NODE)
        # Ray gives its workers the folder of the driver, and they would import what lies there.
        await attend_all(command, targets, wire, folder=os.sep)

    def _driver(self, task: str, *arguments: str) -> list[str]:
        path = os.path.join(os.path.dirname(__file__), "ray_driver.py")
        # -P: the script's folder has a ray.py of ours, which would be imported for Ray.
        return [self._python, "-P", path, self._address, task, *arguments]

    async def _child(
        self, command: Sequence[str], gift: bytes, seconds: float, sink: Sink
    ) -> Ended:
        """Run the child. Raises `ClusterError` when nothing comes of it while Ray starts."""
        connected = asyncio.Event()

        def take(stream: Stream) -> None:
            connected.set()
            _take(stream, sink)

        # Ray gives its workers the folder of the driver, and they would import what lies there.
        # Its input is open as long as this process lives.
        work = asyncio.ensure_future(
            run(
                command,
                Streams(take).feed,
                seconds,
                folder=os.sep,
                opened=lambda write: write(b"%08x" % len(gift) + gift),
            )
        )
        first = asyncio.ensure_future(connected.wait())
        try:
            await asyncio.wait({work, first}, timeout=START_S, return_when="FIRST_COMPLETED")
            if not (work.done() or first.done()):
                raise ClusterError(f"no Ray answers {self._place} within {START_S:g} s")
            return await work
        finally:
            first.cancel()
            work.cancel()
            await asyncio.wait({work})


async def _connect(address: str) -> None:
    """Raise `ClusterError` where nobody listens at the address."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ClusterError(f"--ray {address}: write HOST:PORT, such as 10.0.0.1:6379")
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        raise ClusterError(f"nobody answers at {address} within {_CONNECT_S:g} s") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise ClusterError(f"no Ray cluster at {address}: {reason}; check `ray status`") from None
    writer.close()


def _take(stream: Stream, sink: Sink) -> None:
    """Take what the child prints of a node: what Ray counts, or what its program prints."""
    id_ = stream.node
    try:
        message = message_of(stream)
    except ValueError as error:
        sink.answer(damaged(id_, error))
        return
    kind = message.get("kind")
    if kind == "node":
        sink.target(_target(id_, message))
    elif kind == "lost":  # of several answers the first counts: it may have given one
        reason = sentence(message.get("reason")) or "it gave no reason"
        sink.answer(Answer(id_, "missing", reason, "see `ray status` and `ray list nodes`"))
    elif kind not in ("start", "need"):
        sink.answer(answer_of(id_, message))


def _target(id_: str, table: Mapping[str, Json]) -> Target:
    counts = table["engine"]
    resources = counts if isinstance(counts, dict) else {}
    memory = _number(resources.get("memory"))
    engine: EngineDoc = {
        "source": "ray.nodes()",
        "gpus": _number(resources.get("GPU")) or 0.0,
        "cpus": _number(resources.get("CPU")),
        "memory": None if memory is None else int(memory),
        "state": sentence(table.get("state")),
    }
    return Target(id_, name=sentence(table.get("name")) or "", engine=engine)


def _number(value: Json) -> float | None:
    return float(value) if type(value) in (int, float) else None  # type: ignore[arg-type]
