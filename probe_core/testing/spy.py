"""A prober around the prober under test, run in the child: notes what it does besides reading.

The target is named by the machine's environment, and hidden from the prober again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Generator
from typing import Any

from probe_core.api import Machine, NotApplicable, Request, hookimpl

VARIABLE = "PROBE_CORE_SPY"
MAX_EVENTS = 40

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_HARMLESS = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/shm", "/dev/fd")
_NOTED = (
    "ctypes.dlopen",
    "os.chdir",
    "os.chmod",
    "os.chown",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.kill",
    "os.killpg",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.putenv",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.system",
    "os.truncate",
    "os.unsetenv",
    "shutil.rmtree",
    "signal.pthread_kill",
    "socket.bind",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
    "syslog.openlog",
)


class Notes:
    """What happened so far."""

    def __init__(self) -> None:
        self.listening = False
        self.events: list[tuple[str, str]] = []

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take one of the interpreter's audit events."""
        if not self.listening or len(self.events) >= MAX_EVENTS:
            return
        if event == "open":
            self._opened(*arguments)
        elif event in _NOTED:
            self.events.append((event, repr(arguments)[:200]))

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        text = os.fsdecode(path) if isinstance(path, (str, bytes)) else ""
        cached = "__pycache__" in text or text.endswith(".pyc")
        if isinstance(flags, int) and flags & _WRITES and text and not cached:
            self.events.append(("write", text))
        elif text.startswith("/dev/") and not text.startswith(_HARMLESS):
            self.events.append(("device", text))


def _state() -> dict[str, Any]:
    umask = os.umask(0)
    os.umask(umask)
    return {
        "environment": sorted(f"{k}={v}" for k, v in os.environ.items()),
        "working directory": os.getcwd(),
        "umask": umask,
        "signal handlers": [repr(signal.getsignal(s)) for s in sorted(signal.valid_signals())],
        "threads": threading.active_count(),
        "recursion limit": sys.getrecursionlimit(),
        "streams": [id(sys.stdin), id(sys.stdout), id(sys.stderr)],
    }


@hookimpl
def probe_devices(request: Request) -> Generator[Any, None, NotApplicable | None]:
    """Answer as the prober under test does, and add a finding with the notes."""
    environ = dict(request.machine.environ)
    target = environ.pop(VARIABLE)
    machine = request.machine
    machine = Machine(machine.root, environ, machine.os, machine.arch)
    asked = Request(machine, request.bus, active=request.active, deadline_s=request.deadline_s)
    notes = Notes()
    sys.addaudithook(notes.hear)
    sys.dont_write_bytecode = True
    return (yield from _watched(target, asked, notes))


def _watched(
    target: str, request: Request, notes: Notes
) -> Generator[Any, None, NotApplicable | None]:
    before = _state()
    notes.listening = True
    error: BaseException | None = None
    answer: Any = ()
    try:
        answer = _hook(target)(request)
        if not isinstance(answer, NotApplicable):
            answer = list(answer)
    except Exception as raised:
        error = raised
    notes.listening = False
    sys.stdout.flush()  # the process ends without, and what was printed would not be seen
    sys.stderr.flush()
    after = _state()
    changed = [what for what, value in before.items() if after[what] != value]
    noted = {"events": notes.events, "changed": changed}
    yield {"finding": {"code": "spy", "what": json.dumps(noted)}}
    if error is not None:
        raise error
    if isinstance(answer, NotApplicable):
        return answer
    yield from answer
    return None


def _hook(target: str) -> Any:
    from importlib import import_module

    from probe_core.isolation.hook import find_hook

    module, _, attribute = target.partition(":")
    plugin: Any = import_module(module)
    for part in filter(None, attribute.split(".")):
        plugin = getattr(plugin, part)
    return find_hook(plugin, target)
