"""The process that starts an agent on each node of a Ray cluster, and carries lines to and fro.

An actor on each node holds the agent's process: the agents measure over plain sockets, since a call
of an actor takes 1 ms where a round trip on a loopback takes 5 µs. It is run as a script, so that
the actor is sent by value; see `ray_child`. Argument 1 is the address, 2 the nodes' ids with
commas, the others are the words that start an agent after a Python. It ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

_STEP_S = 0.2

_LEAVE_S = 2.0


class Holder:
    """An agent's process on a node. Sent by value: it imports what it needs itself."""

    def __init__(self, words: list[str]) -> None:
        import queue
        import subprocess
        import sys
        import threading

        # Its input is a pipe of this worker: when Ray ends the worker, the agent ends, too.
        self._process = subprocess.Popen(
            [sys.executable, *words],
            cwd="/",
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

    def write(self, line: bytes) -> None:
        """Write a line to the agent."""
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def lines(self) -> list[bytes] | None:
        """Wait for lines of the agent, a second at most; None when it has ended."""
        import queue

        try:
            first = self._lines.get(timeout=1.0)
        except queue.Empty:
            return []
        lines = [first]
        while not self._lines.empty():
            lines.append(self._lines.get())
        return None if None in lines else lines


class Carrier:
    """The actors, and the lines between them and this process's input and output."""

    def __init__(self, ray: Any, nodes: list[str], words: list[str], output: int) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray = ray
        self._output = output
        actor = ray.remote(num_cpus=0, num_gpus=0, max_concurrency=2)(Holder)
        self._actors = {
            node: actor.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
            ).remote([*words, node])
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

    def run(self) -> None:
        """Print what the agents print, until the input ends or no agent runs."""
        waiting = {actor.lines.remote(): node for node, actor in self._actors.items()}
        while waiting and not self.ended.is_set():
            ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=_STEP_S)
            for ref in ready:
                node = waiting.pop(ref)
                try:
                    lines = self._ray.get(ref, timeout=5)
                except Exception as error:
                    self._print_lost(node, _sentence(error))
                    continue
                if lines is None:
                    self._print_lost(node, "its agent ended")
                    continue
                for line in lines:
                    _write(self._output, line)
                waiting[self._actors[node].lines.remote()] = node

    def _print_lost(self, node: str, reason: str) -> None:
        """Print a message that the agent cannot print itself, in one line of 512 bytes."""
        text = json.dumps({"kind": "lost", "reason": reason[:200]})[:360]
        tag = f"lost-{time.monotonic_ns()}"
        for piece in (f"0 {text}", "end 0 1"):
            _write(
                self._output, f"#probe-cluster {node} {tag} {piece}|".ljust(511).encode() + b"\n"
            )

    def leave(self) -> None:
        """End the actors."""
        for actor in self._actors.values():
            self._ray.kill(actor, no_restart=True)
        self._ray.shutdown()


_SENTENCES = {
    "ActorDiedError": "the node or its worker ended",
    "ActorUnavailableError": "Ray does not reach the node",
    "ActorUnschedulableError": "Ray has no such node any more",
}
"""Errors of Ray 2.60, whose own texts are paragraphs."""


def _sentence(error: Exception) -> str:
    name = type(error).__name__
    lines = str(error).strip().splitlines() or [""]
    return _SENTENCES.get(name) or f"{name}: {lines[0][:150]}"


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def main(arguments: list[str]) -> int:
    """Start the agents and carry their lines."""
    address, nodes, *words = arguments
    # Ray prints on standard output when a node dies.
    output = os.dup(1)
    os.dup2(2, 1)
    import ray

    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    carrier = Carrier(ray, nodes.split(","), words, output)
    threading.Thread(target=carrier.read_input, daemon=True).start()
    try:
        carrier.run()
    finally:
        # Both may wait for a node that hangs.
        thread = threading.Thread(target=carrier.leave, daemon=True)
        thread.start()
        thread.join(_LEAVE_S)
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # Ray's threads may wait for a hung node
