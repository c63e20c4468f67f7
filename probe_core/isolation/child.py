"""The child's side: run one prober, and send each device as soon as it is seen.

Imported by the child alone. Everything used after the plugin was imported is bound before, and
nothing here imports what a bare interpreter lacks: each millisecond is paid by every prober.
"""

from __future__ import annotations

import os
import sys

from probe_core.isolation.wire import FRAME_LIMIT, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal  # the same functions, without the enums that signal builds

_write, _exit, _getpid = os.write, os._exit, os.getpid
GRACE_S = 1.0
"""Seconds after the deadline at which the kernel itself ends a child nobody killed."""

MAX_DEVICES = 256
MAX_FINDINGS = 64
FILE_SIZE_LIMIT = 256 << 20


class Channel:
    """The private pipe to the parent. Only the process it was made in may use it."""

    __slots__ = ("_fd", "_pid", "_token")

    def __init__(self, fd: int, token: str) -> None:
        self._fd = fd
        self._pid = _getpid()
        self._token = token

    def send(self, kind: str, **fields: object) -> None:
        """Write one frame. A forked copy of the process stays silent: it is not the prober."""
        if _getpid() != self._pid:
            _exit(0)
        text = encode({"kind": kind, **fields})
        if len(text) > FRAME_LIMIT:
            text = encode({"kind": "oversize", "of": kind, "bytes": len(text)})
        data = f"{self._token} {text}\n".encode("ascii")
        while data:
            data = data[_write(self._fd, data) :]


def main() -> None:
    """Run the prober named by the request on standard input, and leave without cleaning up.

    `os._exit` because a plugin's exit handlers and threads may hang.
    """
    request_fd, result_fd = _take_pipes()
    _own_session()
    request = _read_request(request_fd)
    _die_with_parent(request_fd)
    _limit(request["deadline_s"])
    channel = Channel(result_fd, request["token"])
    try:
        _run(request, channel)
    except BaseException as error:  # the pipe itself is gone: only the exit status can tell
        sys.stderr.write(f"probe-core: {type(error).__name__} while answering\n")
        _exit(70)
    _exit(0)


def _take_pipes() -> tuple[int, int]:
    """Move the request and result pipes off the standard descriptors, which plugins write to."""
    result = _move(1)
    request = _move(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return request, result


def _move(fd: int) -> int:
    """Duplicate `fd` out of the way of code that closes or writes to small descriptors."""
    try:
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
    except (ImportError, OSError):
        return os.dup(fd)


def _own_session() -> None:
    # posix_spawn made the session where it can; a process that leads a group cannot do it again.
    if hasattr(os, "setsid") and os.getsid(0) != _getpid():
        try:
            os.setsid()
        except OSError:
            pass


def _read_request(fd: int) -> dict[str, Any]:
    """Read the request: a length in 8 hex digits, then marshal data from the trusted parent.

    The pipe stays open: its end tells that the parent died.
    """
    import marshal

    size = int(_read_exactly(fd, 8), 16)
    request: dict[str, Any] = marshal.loads(_read_exactly(fd, size))
    return request


def _read_exactly(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            _exit(71)  # the parent died before it asked
        data += piece
    return data


def _die_with_parent(fd: int) -> None:
    """Have this whole group killed when the parent's end of the request pipe closes.

    On Linux the kernel does it (a signal-driven pipe), also while C code holds the GIL. Elsewhere
    a thread waits for the end of the pipe; the alarm set by `_limit` is the second net.
    """
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgid(0))
        fcntl.fcntl(fd, fcntl.F_SETSIG, _signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | fcntl.FASYNC)
        _exit_if_orphaned(fd)
        return
    import _thread

    _thread.start_new_thread(_wait_for_end, (fd,))


def _exit_if_orphaned(fd: int) -> None:
    """The parent may have died before the signal was armed: then the pipe is already at its end."""
    import select

    poller = select.poll()
    poller.register(fd, select.POLLIN)
    if any(event & select.POLLHUP for _, event in poller.poll(0)):
        _exit(71)


def _wait_for_end(fd: int) -> None:
    try:
        while os.read(fd, 1):
            pass
    except OSError:
        pass
    _exit(71)


def _limit(deadline_s: float) -> None:
    """Set what keeps a lost child small: no core files, bounded files, an alarm, a stack dump."""
    import faulthandler

    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE_LIMIT, FILE_SIZE_LIMIT))
    except (ImportError, OSError, ValueError):
        pass
    faulthandler.enable(2)
    # Just before the deadline: the parent finds in the tail of stderr where it hung.
    faulthandler.dump_traceback_later(max(0.02, deadline_s * 0.95 - 0.02), exit=False, file=2)
    if hasattr(_signal, "setitimer"):
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.setitimer(_signal.ITIMER_REAL, deadline_s + GRACE_S)


def _run(request: dict[str, Any], channel: Channel) -> None:
    from probe_core.api import API_VERSION

    if request["needs_site"]:
        import site

        site.main()
    channel.send("hello", api=API_VERSION, python=sys.version.split()[0], pid=_getpid())
    function = _load(request["target"], channel)
    if function is not None:
        channel.send("loaded")
        _call(function, _prober_request(request), channel)


def _prober_request(request: dict[str, Any]) -> object:
    from probe_core.api import Machine, Request

    machine = Machine(request["root"], request["environ"], request["os"], request["arch"])
    return Request(
        machine, request["bus"], active=request["active"], deadline_s=request["deadline_s"]
    )


def _end(channel: Channel, status: str, reason: str | None = None, **more: object) -> None:
    channel.send("end", status=status, reason=reason, **more)


def _load(target: str, channel: Channel) -> Any:
    """Import the prober's module and return its hook; None when an end frame told why not."""
    from probe_core.isolation.hook import HookError, find_hook

    module_name, _, attribute = target.partition(":")
    try:
        module = __import__(module_name, fromlist=["probe_devices"])
        plugin = module
        for part in filter(None, attribute.split(".")):
            plugin = getattr(plugin, part)
        return find_hook(plugin, target)
    except HookError as error:
        _end(channel, "load_error", str(error))
    except BaseException as error:
        from probe_core.wording import error_text

        _end(channel, "load_error", f"importing {target} failed: {error_text(error)}")
        _print_traceback(error)
    return None


def _call(function: Any, request: object, channel: Channel) -> None:
    """Call the hook, and send what it yields until it ends, raises or yields too much."""
    from probe_core.isolation.answers import Answers

    answers = Answers(channel.send)
    try:
        status, reason, more = answers.take(function, request)
    except BaseException as error:
        status, reason, more = _failure(error)
        if status == "call_error":
            _print_traceback(error)
    _end(channel, status, reason, **more)


def _failure(error: BaseException) -> tuple[str, str, dict[str, object]]:
    from probe_core.api import Unavailable
    from probe_core.wording import clean_text, error_text

    if isinstance(error, Unavailable):
        more: dict[str, object] = {"code": _word(error.code), "fix": _word(error.fix)}
        return "unavailable", clean_text(_word(error.reason) or "no reason given", 1024), more
    if isinstance(error, MemoryError):
        return "resource", "it ran out of memory", {}
    if isinstance(error, SystemExit):
        return "call_error", f"it called sys.exit({_word(repr(error.code))})", {}
    return "call_error", error_text(error), {}


def _word(value: object) -> str | None:
    return value if type(value) is str else None if value is None else type(value).__name__


def _print_traceback(error: BaseException) -> None:
    """Print the traceback to standard error, whose tail the report keeps."""
    try:
        import traceback

        traceback.print_exception(error, limit=-8)
        sys.stderr.flush()
    except BaseException:
        pass
