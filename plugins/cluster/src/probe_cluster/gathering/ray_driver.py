"""The only process that imports Ray: has each node report, or starts an agent on each.

It is run as a script, so that the actor is defined in ``__main__`` and cloudpickle sends its code:
what an installed package defines is sent by name, and a node without the package cannot load it.
Argument 1 is the address. Then: ``reports``, the seconds for the nodes, the ids of those that are
asked, with commas, or nothing for all, and the words that start the program of a node after a
Python, and on standard input what those programs are given; or ``agents``, the nodes' ids with
commas, and the words of an agent. It ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STEP_S = 0.2

_DAY_MS = 86_400_000
"""A cluster that grows and shrinks keeps its preempted nodes listed for weeks."""

NODE = "NODE"
"""The word of an agent's arguments that is its node's id."""

_MARGIN_S = 5.0
"""Seconds for a worker to start, and for a program that reached its deadline to say so."""

_LEAVE_S, _AGENTS_LEAVE_S = 5.0, 2.0
"""Seconds to end actors, and to disconnect: both may wait for a hung node."""


def main(arguments: list[str]) -> int:
    """Connect to Ray, and do what the arguments say."""
    address, task, first, *words = arguments
    gift = _gift() if task == "reports" else b""
    if task == "reports":
        threading.Thread(target=_end_with_input, daemon=True).start()
    # Ray prints "(raylet) … marked dead" on standard output, also with log_to_driver=False.
    printer = Printer(os.dup(1))
    os.dup2(2, 1)
    import ray

    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    if task == "reports":
        _report(ray, printer, float(first), words, gift)
    else:
        _carry(ray, printer, first.split(","), words)
    return 0


def _gift() -> bytes:
    """Return what each node's program is given: its length in eight hexadecimal digits, itself."""
    size = int(_exactly(8), 16)
    return _exactly(size)


def _exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            os._exit(3)
        data += piece
    return data


def _report(ray: Any, printer: Printer, seconds: float, words: list[str], gift: bytes) -> None:
    """Print what Ray counts on each node, then what the program of each prints."""
    only, *words = words
    nodes = _nodes(ray, printer, only.split(",") if only else [])
    carrier = Carrier(ray, nodes, words, printer, gift)
    try:
        carrier.run(time.monotonic() + seconds + _MARGIN_S)
    finally:
        _leave(carrier.leave, _LEAVE_S)


def _carry(ray: Any, printer: Printer, nodes: list[str], words: list[str]) -> None:
    """Start the agents and carry their lines."""
    carrier = Carrier(ray, nodes, words, printer)
    threading.Thread(target=carrier.read_input, daemon=True).start()
    try:
        carrier.run()
    finally:
        _leave(carrier.leave, _AGENTS_LEAVE_S)


def _leave(work: Callable[[], None], seconds: float) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)


_SENTENCES = {
    "TaskUnschedulableError": "Ray has no such node any more: it left while its task waited",
    "NodeDiedError": "the node ended while its task ran",
    "WorkerCrashedError": "Ray's worker on the node crashed",
    "OutOfMemoryError": "the node has too little memory: Ray ended the task",
    "RuntimeEnvSetupError": "Ray could not set up the environment of the task there",
    "ActorDiedError": "the node or its worker ended",
    "ActorUnavailableError": "Ray does not reach the node",
    "ActorUnschedulableError": "Ray has no such node any more",
}
"""Errors of Ray 2.60, whose own texts are paragraphs."""


def _sentence(error: Exception) -> str:
    name = type(error).__name__
    lines = str(error).strip().splitlines() or [""]
    return _SENTENCES.get(name) or f"{name}: {lines[0][:200]}"


class Printer:
    """Writes the lines that `lines` reads; the number of the message is the stream's tag."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._count = 0

    def send(self, node: str, message: dict[str, Any]) -> None:
        """Print a message about a node, in pieces."""
        self._count += 1
        text = json.dumps(message)
        pieces = [text[at : at + 360] for at in range(0, len(text), 360)]
        for number, piece in enumerate(pieces):
            self._line(node, f"{number} {piece}")
        self._line(node, f"end 0 {len(pieces)}")

    def _line(self, node: str, text: str) -> None:
        line = f"#probe-cluster {node} {self._count} {text}|"
        self.write(line.ljust(511).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Write whole lines as they are."""
        while data:
            data = data[os.write(self._file, data) :]


def _nodes(ray: Any, printer: Printer, only: list[str]) -> list[str]:
    """Print what Ray counts; return the ids of the nodes that it calls alive.

    Where `only` names nodes those alone are printed and returned.

    Ray keeps nodes that ended long ago. One that was drained or stopped is no missing node, and
    neither is one that came back, or that ended a day ago.
    """
    listed = [node for node in ray.nodes() if not only or node["NodeID"] in only]
    times = _times()
    lost = _not_replaced([node for node in listed if _is_lost(node)], listed, times)
    alive = [node for node in listed if node["Alive"]]
    names = Counter(node["NodeName"] for node in alive + lost)
    for node in alive + lost:
        id_, name = node["NodeID"], node["NodeName"]
        # The name is the address by default, and several raylets of a computer have one.
        name = f"{name}#{id_[:6]}" if names[name] > 1 else name
        state = "alive" if node["Alive"] else "dead"
        counts = node.get("Resources") or {}
        facts = {"kind": "node", "engine": counts, "name": name, "state": state}
        printer.send(id_, facts)
        if not node["Alive"]:
            reason = str(node.get("DeathReasonMessage") or "it gave no reason")
            printer.send(id_, {"kind": "lost", "reason": f"Ray calls it dead: {reason}"})
    return [node["NodeID"] for node in alive]


def _end_with_input() -> None:
    """End this process with its input, so that no task stays behind a controller that was killed.

    Ray ends the tasks of a driver that is gone.
    """
    while os.read(0, 4096):
        pass
    os._exit(3)


def _is_lost(node: dict[str, Any]) -> bool:
    """Return whether a node ended and nobody asked it to.

    `DeathReason` is a number of gcs.proto's NodeDeathInfo (2 is UNEXPECTED_TERMINATION) in 2.60,
    and its name in some releases before.
    """
    reason = str(node.get("DeathReason"))
    return not node["Alive"] and (reason == "2" or "UNEXPECTED" in reason)


def _times() -> dict[str, tuple[int, int]]:
    """Return NodeID → when it started and ended, in ms since the epoch; {} where Ray hides it."""
    try:
        from ray._private.worker import global_worker

        nodes = global_worker.gcs_client.get_all_node_info().values()
        return {node.node_id.hex(): (node.start_time_ms, node.end_time_ms) for node in nodes}
    except Exception:  # no public call has the times: each release may move them
        return {}


def _not_replaced(
    lost: list[dict[str, Any]], listed: list[dict[str, Any]], times: dict[str, tuple[int, int]]
) -> list[dict[str, Any]]:
    """Return the lost nodes for which no other of their name started later."""
    now = time.time() * 1000
    free = [node for node in listed if node["Alive"]]
    missing = []
    for node in sorted(lost, key=lambda node: times.get(node["NodeID"], (0, 0))[1]):
        end = times.get(node["NodeID"], (0, 0))[1]
        later = [
            other
            for other in free
            if other["NodeName"] == node["NodeName"] and times.get(other["NodeID"], (1, 0))[0] > end
        ]
        if later:
            free.remove(later[0])
        elif not end or now - end < _DAY_MS:
            missing.append(node)
    return missing


def named(words: list[str], node: str) -> list[str]:
    """Return the words with the node's id in the place of `NODE`; one of them is a program."""
    return [node if word == NODE else word for word in words]


class Holder:
    """An agent's process on a node. Sent by value: it imports what it needs itself.

    Agents measure over plain sockets, since a call of an actor takes 1 ms where a round trip on a
    loopback takes 5 µs.
    """

    def __init__(self, words: list[str], gift: bytes) -> None:
        import os
        import queue
        import subprocess
        import sys
        import threading

        environ = dict(os.environ)
        try:
            # Releases before 2.60 hide all GPUs from an actor that asks for none:
            # CUDA_VISIBLE_DEVICES is empty. The view of the raylet, which started this worker, is
            # the node's.
            with open(f"/proc/{os.getppid()}/environ", encoding="utf-8", errors="replace") as file:
                pairs = [entry.partition("=") for entry in file.read().split("\0")]
            views = ("_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL")
            for name in [name for name in environ if name.endswith(views)]:
                del environ[name]
            environ.update({name: value for name, _, value in pairs if name.endswith(views)})
            # Ray's Python has its commands beside it, not always on PATH.
            own = os.path.dirname(sys.executable)
            environ["PATH"] = f"{own}{os.pathsep}{environ.get('PATH', os.defpath)}"
        except OSError:
            pass
        # Its input is a pipe of this worker: when Ray ends the worker, the agent ends, too.
        self._process = subprocess.Popen(
            [sys.executable, *words],
            cwd="/",
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._lines: Any = queue.Queue()

        def read() -> None:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                self._lines.put(line)
            self._lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        if gift:  # more than a pipe holds, and not each agent reads it
            threading.Thread(target=self._give, args=(gift,), daemon=True).start()

    def _give(self, gift: bytes) -> None:
        try:
            self.write(gift)
        except OSError:  # it ended without it
            pass

    def write(self, data: bytes) -> None:
        """Write to the agent."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def lines(self) -> list[bytes | None]:
        """Wait for lines of the agent, a second at most; the last is None when it has ended."""
        import queue

        try:
            first = self._lines.get(timeout=1.0)
        except queue.Empty:
            return []
        lines = [first]
        while not self._lines.empty():
            lines.append(self._lines.get())
        return lines


class Carrier:
    """The actors, and the lines between them and this process's input and output."""

    def __init__(
        self, ray: Any, nodes: list[str], words: list[str], printer: Printer, gift: bytes = b""
    ) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray = ray
        self._printer = printer
        actor = ray.remote(num_cpus=0, num_gpus=0, max_concurrency=2)(Holder)
        # Once into Ray's store, which each node reads it from.
        given = ray.put(gift) if gift else gift
        self._actors = {
            node: actor.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
            ).remote(named(words, node), given)
            for node in nodes
        }
        self.ended = threading.Event()

    def read_input(self) -> None:
        """Give each line to the actor of the node that it names; end with the input."""
        for line in sys.stdin.buffer:
            try:
                actor = self._actors.get(json.loads(line).get("node"))
            except (ValueError, AttributeError):
                continue
            if actor is not None:
                actor.write.remote(line)
        self.ended.set()

    def run(self, until: float | None = None) -> None:
        """Print what the agents print, until the input ends, no agent runs or the time is over."""
        waiting = {actor.lines.remote(): node for node, actor in self._actors.items()}
        while waiting and not self.ended.is_set() and (until is None or time.monotonic() < until):
            ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=_STEP_S)
            for ref in ready:
                node = waiting.pop(ref)
                try:
                    lines = self._ray.get(ref, timeout=5)
                except Exception as error:
                    self._lose(node, _sentence(error))
                    continue
                for line in lines:
                    if line is None:
                        self._lose(node, "its agent ended")
                    else:
                        self._printer.write(line)
                if None not in lines:
                    waiting[self._actors[node].lines.remote()] = node

    def _lose(self, node: str, reason: str) -> None:
        """Print what the agent cannot print itself."""
        self._printer.send(node, {"kind": "lost", "reason": reason[:200]})

    def leave(self) -> None:
        """End the actors."""
        for actor in self._actors.values():
            self._ray.kill(actor, no_restart=True)
        self._ray.shutdown()


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # Ray's threads may wait for a hung node
