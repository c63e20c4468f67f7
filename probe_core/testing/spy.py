"""Notes, in the prober's process, what a prober does besides reading."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from typing import Any

from probe_core.api import Machine, NotApplicable, Request

MAX_EVENTS = 40
"""Events kept: a person needs the first few, and a loop over files would fill the child's pipe."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# What any program opens: a sink, random numbers, shared memory, its own descriptors.
_HARMLESS = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/shm", "/dev/fd")
# Where this computer's hardware shows: a recorded machine's is below its root alone. Python and
# libraries look at their own process, which says nothing of hardware.
_THIS_COMPUTER = ("/sys/", "/proc/", "/dev/")
_OWN_PROCESS = "/proc/self/"
_LISTINGS = ("os.listdir", "os.scandir")
# CPython's audit events ("Audit events table" of its library reference). Those of files count as
# temporary when all their paths are in the folder for temporary files.
_ON_FILES = (
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.truncate",
    "shutil.rmtree",
)
_NOTED = (
    *_ON_FILES,
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
    "os.posix_spawn",
    "os.putenv",
    "os.symlink",
    "os.system",
    "os.unsetenv",
    "signal.pthread_kill",
    "socket.bind",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
    "syslog.openlog",
)


class Notes:
    """What happened so far, below the machine's root and elsewhere.

    `touched` are the devices that the prober announced; what is no text is named by its type.
    """

    def __init__(self, machine: Machine) -> None:
        self.listening = False
        self.events: list[tuple[str, str]] = []
        self.touched: list[str] = []
        self._root = machine.root.rstrip("/")
        self._recorded = not machine.live
        self._temporary = os.path.realpath(tempfile.gettempdir()) + os.sep

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take one of the interpreter's audit events."""
        if not self.listening or len(self.events) >= MAX_EVENTS:
            return
        if event == "open":
            self._opened(*arguments)
        elif event in _LISTINGS:
            self._read(_text(arguments[0]))
        elif event in _NOTED and not (event == "os.kill" and _is_child(arguments[0])):
            paths = _paths(arguments) if event in _ON_FILES else []
            private = bool(paths) and all(map(self._is_temporary, paths))
            self.events.append(("temporary" if private else event, repr(arguments)[:200]))

    def announced(self, kind: str, device: object) -> None:
        """Take an announcement of the prober; the core's own are not wanted of a watched run."""
        if kind == "touching":
            self.touched.append(device if isinstance(device, str) else type(device).__name__)
        elif kind == "asking" and isinstance(device, list):  # of `ask_each`
            new = (name for name, _ in device if name not in self.touched)
            self.touched += new

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        text = _text(path)
        writes = isinstance(flags, int) and bool(flags & _WRITES)
        cached = "__pycache__" in text or text.endswith(".pyc")
        on_machine = text.removeprefix(self._root)
        if on_machine.startswith("/dev/"):
            if not on_machine.startswith(_HARMLESS):
                self.events.append(("device", on_machine))
        elif writes and text and not cached:
            self.events.append(("temporary" if self._is_temporary(text) else "write", text))
        else:
            self._read(text)

    def _read(self, path: str) -> None:
        """Note that the files of this computer are read instead of the recorded machine's."""
        folder = f"{path}/"
        past = folder.startswith(_THIS_COMPUTER) and not folder.startswith(_OWN_PROCESS)
        if self._recorded and past and not path.startswith(self._root):
            self.events.append(("read past request.machine:", path))

    def _is_temporary(self, path: str) -> bool:
        return os.path.realpath(path).startswith(self._temporary)


def _text(path: Any) -> str:
    return os.fsdecode(path) if isinstance(path, (str, bytes)) else ""


def _paths(arguments: tuple[Any, ...]) -> list[str]:
    """Return the paths of an event on files, which may be relative to an open folder."""
    paths = [_text(argument) for argument in arguments if isinstance(argument, (str, bytes))]
    folder = arguments[-1]
    if isinstance(folder, int) and folder >= 0:
        return [os.path.join(_folder(folder), path) for path in paths]
    return paths


def _folder(handle: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    except OSError:  # not Linux: nowhere in particular
        return "/"


def _is_child(process: Any) -> bool:
    """Return whether `process` is one that this process started, which it may end."""
    try:
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except AttributeError:  # Windows and older macOS cannot tell: not held against the prober
        return True
    except (OSError, TypeError):
        return False
    return True


def _state() -> dict[str, Any]:
    # POSIX has no way to read the umask but to set it.
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


def watch(
    load: Callable[[], Any], request: Request, finish: Callable[[], object]
) -> Generator[Any, None, NotApplicable | None]:
    """Answer as the hook that `load` imports does, and add a finding with the notes.

    `finish` is called once it answered.
    """
    notes = Notes(request.machine)
    sys.addaudithook(notes.hear)
    # The interpreter's own .pyc files would be noted as the prober's writing.
    sys.dont_write_bytecode = True
    before = _state()
    notes.listening = True
    error: BaseException | None = None
    items: list[Any] = []
    answer = None
    try:
        answer = _collect(load()(_announcing_to(request, notes)), items)
    except Exception as raised:
        error = raised
    notes.listening = False
    finish()
    sys.stdout.flush()  # the process ends without, and what was printed would not be seen
    sys.stderr.flush()
    after = _state()
    changed = [part for part, value in before.items() if after[part] != value]
    noted = {"events": notes.events, "changed": changed, "touched": notes.touched}
    yield {"finding": {"code": "spy", "what": json.dumps(noted)}}
    yield from items
    if error is not None:
        raise error
    return answer


def _announcing_to(request: Request, notes: Notes) -> Request:
    return Request(
        request.machine,
        request.bus,
        active=request.active,
        deadline_s=request.deadline_s,
        avoid=request.avoid,
        serial=request.serial,
        announce=notes.announced,
    )


def _collect(answer: Any, items: list[Any]) -> NotApplicable | None:
    """Add all that a hook answers to `items`; returns what it says instead of devices."""
    if isinstance(answer, NotApplicable):
        return answer
    iterator = iter(answer)
    while True:
        try:
            items.append(next(iterator))
        except StopIteration as stop:  # what a generator returns is an answer, too
            verdict: NotApplicable | None = stop.value
            return verdict
