"""The only process that imports Ray: connects, runs one task on each node, prints the answers.

It is run as a script, so that the task is defined in ``__main__`` and cloudpickle sends its code:
a function of an installed package is sent by name, and a node without the package cannot load it.
Argument 1 is the address, 2 the seconds for the tasks, the others start `probe` on a node.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

_STEP_S = 0.5

_MARGIN_S = 5.0
"""Seconds for a worker to start, and for a task whose `probe` reached its deadline to say so."""


def node_task(command: list[str], seconds: float) -> dict[str, str]:
    """Return the report of the node it runs on. Imports all that it needs, being sent by value."""
    import os
    import shutil
    import subprocess
    import sys
    from importlib.util import find_spec

    environ = dict(os.environ)
    try:
        # Releases before 2.60 hide all GPUs from a task that asks for none: CUDA_VISIBLE_DEVICES
        # is empty. The view of the raylet, which started this worker, is the node's.
        with open(f"/proc/{os.getppid()}/environ", encoding="utf-8", errors="replace") as file:
            pairs = [entry.partition("=") for entry in file.read().split("\0")]
        views = ("_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL")
        for name in [name for name in environ if name.endswith(views)]:
            del environ[name]
        environ.update({name: value for name, _, value in pairs if name.endswith(views)})
    except OSError:
        pass
    program = [sys.executable, "-m", "probe_core"]
    if command != ["probe"]:
        program = command
    elif find_spec("probe_core") is None:
        path = shutil.which("probe")
        if path is None:
            return {"status": "no-probe", "reason": "Ray's Python on that node has no probe-core"}
        program = [path]
    try:
        ended = subprocess.run(
            [*program, "--json"],
            cwd=os.sep,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "reason": f"`probe --json` runs there since {seconds:g} s"}
    except OSError as error:
        return {"status": "no-probe", "reason": f"{program[0]}: {error.strerror}"}
    if not ended.stdout.strip():
        lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        tail = lines[-1] if lines else "it printed nothing"
        reason = f"`probe --json` ended with {ended.returncode} there: {tail}"
        return {"status": "failed", "reason": reason}
    return {"report": ended.stdout.decode("utf-8", "replace")}


class Printer:
    """Writes the lines of `node_lines`; the number of the message is the stream's tag."""

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
        data = f"#probe-cluster {node} {self._count} {text}|\n".encode()
        while data:
            data = data[os.write(self._file, data) :]


def main(arguments: list[str]) -> int:
    """Print what Ray counts on each node, then each answer as it comes."""
    address, seconds, *command = arguments
    # Ray prints "(raylet) … marked dead" on standard output, also with log_to_driver=False.
    printer = Printer(os.dup(1))
    os.dup2(2, 1)
    import ray

    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    nodes = _nodes(ray.nodes(), printer)
    refs = _started(ray, nodes, command, float(seconds))
    try:
        _await(ray, refs, printer, float(seconds) + _MARGIN_S)
    finally:
        _leave(ray, list(refs))
    return 0


def _nodes(listed: list[dict[str, Any]], printer: Printer) -> list[str]:
    """Print what Ray counts; return the ids of the nodes that it calls alive.

    Ray keeps nodes that ended long ago. One that was drained or stopped is no missing node, and
    neither is one whose name an alive node has again.
    """
    alive = [node for node in listed if node["Alive"]]
    back = {node["NodeName"] for node in alive}
    for node in listed:
        ended = str(node.get("DeathReason", ""))
        if not node["Alive"] and ("UNEXPECTED" not in ended or node["NodeName"] in back):
            continue
        state = "alive" if node["Alive"] else "dead"
        facts = {"engine": node.get("Resources") or {}, "name": node["NodeName"], "state": state}
        printer.send(node["NodeID"], facts)
        if not node["Alive"]:
            reason = str(node.get("DeathReasonMessage") or "Ray calls it dead")
            printer.send(node["NodeID"], {"status": "missing", "reason": reason})
    return [node["NodeID"] for node in alive]


def _started(ray: Any, nodes: list[str], command: list[str], seconds: float) -> dict[Any, str]:
    """Start a task on each node; all at once."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, num_gpus=0, max_retries=0)(node_task)
    return {
        task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(id_, soft=False)).remote(
            command, seconds
        ): id_
        for id_ in nodes
    }


def _await(ray: Any, refs: dict[Any, str], printer: Printer, seconds: float) -> None:
    """Print each answer as it comes, until all came or the time is over."""
    waiting = list(refs)
    until = time.monotonic() + seconds
    while waiting and time.monotonic() < until:
        ready, waiting = ray.wait(waiting, num_returns=1, timeout=_STEP_S)
        for ref in ready:
            try:
                # A hung host's task can be ready and its result out of reach.
                message = ray.get(ref, timeout=5)
            except Exception as error:
                sentence = str(error).strip().splitlines() or [""]
                reason = f"{type(error).__name__}: {sentence[0]}"
                message = {"status": "missing", "reason": reason}
            printer.send(refs[ref], message)


def _leave(ray: Any, refs: list[Any]) -> None:
    """Cancel what still runs and disconnect, in a thread: both may wait for a hung node."""

    def leave() -> None:
        for ref in refs:
            try:
                ray.cancel(ref, force=True)
            except Exception:  # it ended already
                pass
        ray.shutdown()

    thread = threading.Thread(target=leave, daemon=True)
    thread.start()
    thread.join(5.0)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # Ray's threads may wait for a hung node
