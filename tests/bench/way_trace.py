"""Run `probe`, and write which functions of the packages its processes run.

    python way_trace.py FOLDER [ARGUMENT …]     the command, with these arguments
    python way_trace.py FOLDER -c CODE          one of its children, as the command starts it

Each process has a file in FOLDER, with a line for each function when it first runs, and one more
when it first runs after the frame that brings a device: a process may be killed at any time. A
function is one with its comprehensions and lambdas; bodies of modules and classes are none.
"""

from __future__ import annotations

import _thread
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

FRAME = "probe_core.isolation.run", "Run._take_device"
"""What a child's frame with a device meets first in the process that prints the table."""


class Trace:
    """What one process has run: of each function the phases in which it did."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._start = _thread.start_new_thread
        self._phase = "start"
        self._known: set[tuple[str, str, str]] = set()

    def begin(self) -> None:
        """Trace this thread from now on, and each that is started later."""
        _thread.start_new_thread = self._start_traced  # type: ignore[assignment]
        sys.setprofile(self._note)

    def _start_traced(self, function: Callable[..., object], *arguments: object) -> int:
        def run(*positional: object, **named: object) -> None:
            sys.setprofile(self._note)
            function(*positional, **named)

        return self._start(run, *arguments)  # type: ignore[arg-type]

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code, module = frame.f_code, frame.f_globals.get("__name__") or ""
        is_function = event == "call" and code.co_flags & inspect.CO_NEWLOCALS
        if not is_function or not module.startswith("probe_"):
            return
        name = code.co_qualname
        if (module, name) == FRAME:
            self._phase = "way"
        while name.endswith(">"):  # "f.<locals>.<lambda>"; "" of those in the body of a module
            name = name.rpartition(".<locals>.")[0]
        entry = self._phase, code.co_filename, name
        if name and entry not in self._known:
            self._known.add(entry)
            with open(self._folder / f"{os.getpid()}.txt", "a") as file:
                file.write("\t".join(entry) + "\n")


def main(folder: str, *arguments: str) -> None:
    """Run the command, or the code of one of its children, traced."""
    trace = Trace(Path(folder))
    del sys.path[0]  # the folder of this file: its modules are none of the command's
    if "-c" in arguments:
        code = compile(arguments[arguments.index("-c") + 1], "<string>", "exec")
        sys.argv = ["-c"]
        trace.begin()
        exec(code, {"__name__": "__main__"})
        return
    sys.executable = str(_interpreter(Path(folder)))
    sys.argv = ["probe", *arguments]
    trace.begin()
    from probe_core.cli import entry

    entry()


def _interpreter(folder: Path) -> Path:
    """Make what the command takes for its interpreter: it runs what it is given under this file."""
    script = folder / "python"
    # The flags that a child has; those after the file are arguments.
    line = f"exec '{sys.executable}' -I -S '{os.path.abspath(__file__)}' '{folder}' \"$@\""
    script.write_text(f"#!/bin/sh\n{line}\n")
    script.chmod(0o755)
    return script


if __name__ == "__main__":
    main(*sys.argv[1:])
