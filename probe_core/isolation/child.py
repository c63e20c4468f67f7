"""The child's side: run one prober, and send each device as soon as it is yielded.

Imported by the child alone. Everything used after the plugin was imported is bound before, and
nothing here imports what a bare interpreter lacks: each millisecond is paid by every prober.
"""

from __future__ import annotations

import gc
import os
import sys

from probe_core.api import API_VERSION, Machine, Request
from probe_core.isolation import confine
from probe_core.isolation.hook import (
    Answers,
    HookError,
    Origin,
    failure,
    load_hook,
)
from probe_core.isolation.start import go_first
from probe_core.isolation.wire import encode, frame
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from probe_core.isolation.hook import Hook
    from probe_core.isolation.messages import RequestMessage

    Loaded = TypeVar("Loaded")


_write, _exit, _getpid, _fstat = os.write, os._exit, os.getpid, os.fstat
_stdout = sys.stdout
CANNOT_ANSWER = 70
"""Exit status of a child that could not send its answer: EX_SOFTWARE of sysexits.h."""


class Channel:
    """The private pipe to the parent. Only the process it was made in may use it."""

    __slots__ = ("_fd", "_node", "_pid", "_token")

    def __init__(self, fd: int, token: str) -> None:
        self._fd = fd
        self._node = self._identity()
        self._pid = _getpid()
        self._token = token

    def _identity(self) -> tuple[int, int]:
        status = _fstat(self._fd)
        return status.st_dev, status.st_ino

    def send(self, kind: str, **fields: object) -> None:
        """Write one frame. A forked copy of the process stays silent: it is not the prober.

        A plugin that closes all descriptors and opens its own may have a file where the pipe was.
        """
        if _getpid() != self._pid:
            _exit(0)
        if self._identity() != self._node:
            raise OSError("it closed its result pipe")
        self._write_line(self._fd, frame(kind, fields))

    def announce(self, kind: str, device: object) -> None:
        """Write what the prober is about to do, see `Request`."""
        self.send(kind, device=device)

    def send_failure(self, error: BaseException) -> None:
        """Write the last frame to standard error, because the pipe itself may be gone."""
        self._write_line(2, encode({"kind": "failed", "reason": error_text(error)}))

    def _write_line(self, fd: int, text: str) -> None:
        data = f"{self._token} {text}\n".encode("ascii")
        while data:
            data = data[_write(fd, data) :]


def main(size: int, supervisor: int, inherited: bool) -> None:
    """Run the prober named by the request on standard input, and leave without cleaning up.

    `size` is what is still to come of the request, in bytes. `supervisor` is the pipe that ends
    when the supervisor does, -1 where there is none; `inherited` is whether that inherits, and so
    ends, all that this process starts. `os._exit` because a plugin's exit handlers and threads may
    hang.
    """
    request_fd, result_fd = confine.take_pipes()
    if supervisor >= 0:
        confine.die_with_supervisor(supervisor)
    request = confine.read_request(request_fd, size)
    if supervisor < 0 and request["round"] is None:  # a resident process reads that pipe itself
        confine.die_with_parent(request_fd)
    go_first(_getpid())
    confine.limit(request["deadline_s"], request["ends"])
    sys.path[:] = request["paths"]
    channel = Channel(result_fd, request["token"])
    try:
        _run(request, channel, request_fd, inherited)
    except BaseException as error:
        channel.send_failure(error)
    else:
        _exit(0)
    finally:
        _exit(CANNOT_ANSWER)


def _run(request: RequestMessage, channel: Channel, request_fd: int, inherited: bool) -> None:
    if request["needs_site"]:
        _run_site(request["paths"])
    if request["origin"] is not None:
        sys.meta_path.insert(0, Origin(request["target"], request["origin"]))
    python, own = sys.version.split()[0], _getpid()
    channel.send("hello", api=API_VERSION, python=python, pid=own, inherited=inherited)
    if request["round"] is not None:
        from probe_core.isolation import serving  # before the plugin, as all that is used then

        serving.serve(request, request["round"], channel, request_fd)
        return
    function = load(request["target"], channel, load_hook)
    collect()
    if function is not None:
        channel.send("loaded")
        _call(function, _prober_request(request, channel), channel)


def collect() -> None:
    """Have garbage collected from now on, and not be looked for in what the imports made.

    The first looks would go through all of it: a million instructions (callgrind, CPython 3.11) of
    the twelve that eight MI300X take, two of 28 for eight H100.
    """
    gc.freeze()
    gc.enable()


def _run_site(paths: list[str]) -> None:
    """Have import hooks set up as in the host. Its path is known: as root, some is left out."""
    import site

    site.main()
    sys.path[:] = paths


def machine_of(request: RequestMessage) -> Machine:
    """Return the machine that the parent probes."""
    return Machine(request["root"], request["environ"], request["os"], request["arch"])


def _prober_request(request: RequestMessage, channel: Channel) -> Request:
    return Request(
        machine_of(request),
        request["bus"],
        active=request["active"],
        deadline_s=request["deadline_s"],
        avoid=request["avoid"],
        serial=request["serial"],
        announce=channel.announce,
    )


def end(channel: Channel, status: str, reason: str | None = None, **details: object) -> None:
    """Send the last frame, after all that was printed."""
    _flush()
    channel.send("end", status=status, reason=reason, **details)


def load(target: str, channel: Channel, how: Callable[[str], Loaded]) -> Loaded | None:
    """Import the prober's module; None when an end frame says why not."""
    try:
        return how(target)
    except HookError as error:
        end(channel, "load_error", str(error))
    except BaseException as error:
        end(channel, "load_error", f"importing {target} failed: {error_text(error)}")
        print_traceback(error)
    return None


def _call(function: Hook, request: Request, channel: Channel) -> None:
    """Call the hook, and send what it yields until it ends, raises or yields too much."""
    answers = Answers(channel.send)
    try:
        status, reason, details = answers.take(function, request)
    except BaseException as error:
        status, reason, details = failure(error)
        if status == "call_error":
            channel.send("raised")  # the module traceback may take longer than a cleanup has
            print_traceback(error)
    end(channel, status, reason, **details)


def _flush() -> None:
    """Write what `print` holds back because standard output is a pipe; `os._exit` would drop it."""
    try:
        _stdout.flush()  # not a stream that the plugin has put in its place: it may hang
    except BaseException:
        pass


def print_traceback(error: BaseException) -> None:
    """Print the traceback to standard error, whose tail the report keeps."""
    _flush()  # the traceback comes last, as on a terminal
    try:
        import traceback

        traceback.print_exception(error, limit=-8)
        sys.stderr.flush()
    except BaseException:
        pass
