"""tinygrad's own process: opens each backend, runs one kernel on it, and writes lines of JSON.

A line before each step, so that the parent knows which backend hung or crashed.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from probe_tinygrad.messages import Answer, Job, Line

    Send = Callable[[Line], None]

__all__ = ["main"]

# Letters of an error's text; twice what a report shows of it.
_MESSAGE_LIMIT = 600


def main() -> None:
    """Do the job given as the first argument, and leave without tinygrad's exit handlers."""
    job: Job = json.loads(sys.argv[1])
    send = _channel()
    from probe_core import guard

    guard.install("a probe")
    try:
        _work(job, send)
    except BaseException as error:
        send({"event": "failed", "error": message(error)})
    sys.stderr.flush()
    os._exit(0)  # its exit handlers talk to devices, and may hang


def _channel() -> Send:
    """Keep the pipe for us, and send what tinygrad and its libraries print to standard error."""
    pipe = os.dup(1)
    os.dup2(2, 1)

    def send(line: Line) -> None:
        os.write(pipe, (json.dumps(line) + "\n").encode())

    return send


def _work(job: Job, send: Send) -> None:
    from probe_tinygrad import inspect_tinygrad

    tinygrad = inspect_tinygrad.load()
    about = inspect_tinygrad.describe(tinygrad)
    send({"event": "hello", "about": about})
    order = about["order"]
    for backend in [*order, *(name for name in job["also"] if name not in order)]:
        if backend not in job["skip"]:
            send({"event": "try", "backend": backend})
            answer = _try(tinygrad, backend)
            send({"event": "tried", "backend": backend, "answer": answer})
    send({"event": "end"})


def _try(tinygrad: ModuleType, backend: str) -> Answer:
    """Open a backend's first device and run one kernel on it; say where its devices are."""
    from probe_tinygrad.locate import places
    from probe_tinygrad.names import canonical

    try:
        device = tinygrad.Device[backend]
    except (Exception, SystemExit) as error:
        return {"opens": False, "error": message(error)}
    answer: Answer = {"opens": True, "executes": False}
    answer["places"] = places(canonical(backend), device)
    try:
        # The kernel that tinygrad's own `python -m tinygrad.device` runs.
        result = (tinygrad.Tensor([1, 2, 3], device=backend) * 2).tolist()
    except (Exception, SystemExit) as error:
        answer["error"] = message(error)
        return answer
    answer["executes"] = result == [2, 4, 6]
    if not answer["executes"]:
        answer["error"] = f"it computed {result} instead of [2, 4, 6]"
    return answer


def message(error: BaseException) -> str:
    """Return one line about an error; of a group, its members."""
    if isinstance(error, BaseExceptionGroup):
        text = "; ".join(dict.fromkeys(message(member) for member in error.exceptions))
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return " ".join(text.split())[:_MESSAGE_LIMIT]
