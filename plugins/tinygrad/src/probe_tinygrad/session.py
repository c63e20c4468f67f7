"""Asks tinygrad in a process of its own, again without a backend that crashed or hung it.

A thread reads the pipe, because that works on every system and never waits on a stuck process.
"""

from __future__ import annotations

import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

__all__ = ["Answers", "ask"]

_CODE = "import sys;sys.path[:]={paths!r};from probe_tinygrad.child import main;main()"


class Answers:
    """What tinygrad said: about itself, and per backend; `problem` when it would not start."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self.backends: dict[str, dict[str, Any]] = {}
        self.problem: str | None = None


def ask(
    environ: Mapping[str, str], also: Sequence[str], refused: Mapping[str, str], seconds: float
) -> Answers:
    """Ask about all backends in at most `seconds`.

    `also` are backends to ask besides those that tinygrad tries by itself; `refused` maps those
    not to ask to the reason. A backend that crashes or hangs the process gets that as its error,
    and the next process goes on with the others.
    """
    answers, end = Answers(), monotonic() + seconds
    for name, reason in refused.items():
        answers.backends[name] = {"opens": None, "error": reason}
    while not _one_process(answers, environ, also, end):
        pass
    return answers


def _one_process(
    answers: Answers, environ: Mapping[str, str], also: Sequence[str], end: float
) -> bool:
    """Run one process; True when nothing is left to ask."""
    job = {"also": list(also), "skip": list(answers.backends)}
    child = _Child(environ, job)
    trying = None
    try:
        while True:
            # Half of what is left: one hanging backend must leave time for the next ones.
            line = child.next_line(max(0.0, (end - monotonic()) / 2))
            event = line.get("event")
            if event == "hello":
                answers.about = line
            elif event == "try":
                trying = line["backend"]
            elif event == "tried":
                answers.backends[line["backend"]] = line
                trying = None
            elif event == "end":
                return True
            else:
                return _broken(answers, trying, str(line.get("error")), end)
    finally:
        child.kill()


def _broken(answers: Answers, trying: str | None, error: str, end: float) -> bool:
    """Note whose fault it was; True when asking again is pointless."""
    if trying is None:
        answers.problem = error
        return True
    answers.backends[trying] = {"opens": False, "broke": True, "error": error}
    if end - monotonic() < 1.0:
        answers.problem = "the deadline left no time to query its other backends"
        return True
    return False


class _Child:
    """The process, as lines of JSON; a timeout and an end are lines too."""

    def __init__(self, environ: Mapping[str, str], job: Mapping[str, Any]) -> None:
        import json
        import subprocess
        from _queue import SimpleQueue

        self._loads: Callable[[str], Any] = json.loads
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._process = subprocess.Popen(
            [*_command(), json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=dict(environ),
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        import threading

        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        pipe = self._process.stdout
        if pipe is not None:
            with pipe:
                for line in pipe:
                    self._lines.put(line)
        self._lines.put(None)

    def next_line(self, seconds: float) -> dict[str, Any]:
        """Return the next line within `seconds`; else what went wrong, as ``error``."""
        from _queue import Empty

        try:
            text = self._lines.get(timeout=seconds)
        except Empty:
            return {"error": f"it did not answer within {seconds:.1f} s"}
        if text is None:
            return {"error": f"its process {self._ending()}"}
        line: dict[str, Any] = self._loads(text)
        return line

    def _ending(self) -> str:
        import subprocess

        try:
            status = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "closed its pipe and stayed"
        return f"died of signal {-status}" if status < 0 else f"ended with status {status}"

    def kill(self) -> None:
        """End the process, and wait for it a bounded time: one stuck in a driver cannot end."""
        import subprocess

        self._process.kill()
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            pass  # whoever ends this prober's session ends it too, or reports it
        self._reader.join(0.5)


def _command() -> list[str]:
    flags = ["-I", "-S"] + (["-B"] if sys.dont_write_bytecode else [])
    return [sys.executable, *flags, "-c", _CODE.format(paths=list(sys.path))]
