"""Asks ioreg and system_profiler, all at once and within a time limit.

Only a live machine's executables are run. Of a recorded machine, which is foreign data, the outputs
are read that were recorded below /recorded; nothing in it is ever executed.
"""

from __future__ import annotations

import os
import select
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.api import Machine

RECORDED = "/recorded"
LIMIT = 16 << 20
"""Bytes taken of one output at most; a Mac Pro full of cards stays below one mebibyte."""

_IOREG = ("/usr/sbin/ioreg", "-a", "-r", "-d", "1", "-w", "0")
COMMANDS: dict[str, tuple[str, ...]] = {
    # -a: a property list; -r -d 1: the entries of a class (-c, and its subclasses) or name alone.
    "ioreg-IOAccelerator.plist": (*_IOREG, "-c", "IOAccelerator"),
    "ioreg-IOPCIDevice.plist": (*_IOREG, "-c", "IOPCIDevice"),
    "ioreg-H11ANEIn.plist": (*_IOREG, "-c", "H11ANEIn"),
    "ioreg-pmgr.plist": (*_IOREG, "-n", "pmgr"),
    "system_profiler.json": (
        "/usr/sbin/system_profiler",
        "-json",
        "SPHardwareDataType",
        "SPDisplaysDataType",
    ),
}
"""The name of each recorded output, and the command that writes it."""


class _Run:
    """A command that runs, and what it has written until now."""

    __slots__ = ("child", "name", "output")

    def __init__(self, name: str, child: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.child = child
        self.output = bytearray()

    def fileno(self) -> int:
        """Return the descriptor that `select` waits for."""
        return self.child.stdout.fileno() if self.child.stdout else -1


class Answers:
    """What the commands wrote (`output`), or why there is nothing (`failed`), by name."""

    __slots__ = ("failed", "output")

    def __init__(self) -> None:
        self.output: dict[str, bytes] = {}
        self.failed: dict[str, str] = {}


def ask(machine: Machine, names: Iterable[str], seconds: float) -> Answers:
    """Return the outputs of the named `COMMANDS`, those that came within `seconds` in all."""
    answers = Answers()
    if not machine.live:
        for name in names:
            _read(machine, name, answers)
        return answers
    # One end for all: system_profiler alone takes seconds, and the prober's deadline covers both.
    end = time.monotonic() + seconds
    running = [run for name in names if (run := _start(machine, name, answers))]
    _collect(running, end, answers)
    return answers


def _read(machine: Machine, name: str, answers: Answers) -> None:
    try:
        answers.output[name] = machine.read_bytes(f"{RECORDED}/{name}", LIMIT)
    except OSError:
        answers.failed[name] = f"{name} was not recorded"


def _start(machine: Machine, name: str, answers: Answers) -> _Run | None:
    path, *arguments = COMMANDS[name]
    try:
        child = subprocess.Popen(
            [machine.path(path), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        answers.failed[name] = f"{path}: {error.strerror or error}"
        return None
    return _Run(name, child)


def _collect(running: list[_Run], end: float, answers: Answers) -> None:
    """Take what the commands write, side by side, until `end`; then end those that go on."""
    while running and (remaining := end - time.monotonic()) > 0:
        for run in select.select(running, [], [], remaining)[0]:
            piece = os.read(run.fileno(), 65536)
            run.output += piece
            if not piece or len(run.output) > LIMIT:
                running.remove(run)
                _finish(run, answers)
    for run in running:
        answers.failed[run.name] = f"{COMMANDS[run.name][0]} did not answer in time"
        _kill(run.child)


def _finish(run: _Run, answers: Answers) -> None:
    path = COMMANDS[run.name][0]
    try:
        if len(run.output) > LIMIT:
            answers.failed[run.name] = f"{path} wrote more than {LIMIT} bytes"
        elif status := run.child.wait(0.2):
            answers.failed[run.name] = f"{path} ended with status {status}"
        else:
            answers.output[run.name] = bytes(run.output)
    except subprocess.TimeoutExpired:
        answers.failed[run.name] = f"{path} closed its output and did not end"
    _kill(run.child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End a command that still runs, and hardly wait: in the kernel it may not even notice."""
    if child.stdout:
        child.stdout.close()
    if child.poll() is None:
        child.kill()
    # A tenth of a second in all: whoever is stuck in the kernel is left to the prober's own end.
    for _ in range(20):
        if child.poll() is not None:
            return
        time.sleep(0.005)
