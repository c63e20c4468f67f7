"""Starts a command as a shell would: found on the path, statuses 126 and 127, its own signals."""

from __future__ import annotations

import errno
import os
import sys

from probe_core.fastpath import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

# What systemd says to the process that it started, and that only the process of this number takes
# for itself: sockets (sd_listen_fds(3)) and the watchdog (sd_watchdog_enabled(3)).
_ADDRESSED = ("LISTEN_PID", "WATCHDOG_PID")
_BY_PIDFD = "LISTEN_PIDFDID"
"""The same by the number of a pidfd (since systemd 259): it is optional, and left out."""

NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Exit statuses of a shell (POSIX, 2.8.2 Exit Status for Commands)."""

_SHELL = "/bin/sh"
# CPython ignores these from its start on; `subprocess` restores the same (`restore_signals`).
# Windows has neither, and imports this module all the same.
_IGNORED_BY_PYTHON = tuple(
    getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)
)


class CannotRun(Exception):
    """A command that cannot be run; `status` is what a shell would exit with."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def resolve(command: str, environ: Mapping[str, str]) -> str:
    """Return the file that a shell would run; raises `CannotRun`.

    Looked up before any device is taken, so that a mistyped command neither waits nor holds.
    """
    if is_path := "/" in command:
        files = [command] if os.path.lexists(command) else []
    else:
        folders = environ.get("PATH", os.defpath).split(os.pathsep)
        paths = [os.path.join(folder or ".", command) for folder in folders]
        files = [path for path in paths if os.path.isfile(path)]
    for path in files:
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    if not files:
        reason = "no such file" if is_path else "command not found"
        raise CannotRun(f"{command}: {reason}", NOT_FOUND)
    reason = "is a directory" if os.path.isdir(files[0]) else "permission denied"
    raise CannotRun(f"{command}: {reason}", NOT_EXECUTABLE)


def replace(path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Run the command in the place of this process; raises `CannotRun`.

    Signals that Python ignores get their defaults, since ignored ones are inherited; a locale
    variable that Python itself added (PEP 538) is taken out again.
    """
    before = {number: signal.signal(number, signal.SIG_DFL) for number in _IGNORED_BY_PYTHON}
    quiet()
    own = _without_coercion(environ)
    try:
        os.execve(path, list(arguments), own)
    except OSError as error:
        problem = error
        if error.errno == errno.ENOEXEC:  # a script without `#!`: as execvp(3) and shells run it
            try:
                os.execve(_SHELL, [_SHELL, path, *arguments[1:]], own)
            except OSError as second:
                problem = second
        # A process that goes on would end with the next socket that its peer has closed.
        for number, handler in before.items():
            signal.signal(number, handler)
        # Of a file that is there, it is the interpreter of its first line that is not.
        status = NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE
        raise CannotRun(f"{arguments[0]}: {problem.strerror}", status) from None


def quiet() -> None:
    """Write out what is buffered, once: after a fork it would be written twice."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def spawn(
    path: str,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    mask: set[int],
    ignores_children: bool,
) -> int:
    """Start the command in a child, under the signal mask that its caller had; return its number.

    Where it cannot be run, one sentence says so and the child ends with a shell's status. The
    child is not a copy of this process: copying the page tables of a Python takes a millisecond.
    """
    addressed = _addressed(environ)
    if not ignores_children and not addressed:  # which a spawned process cannot be made to, or know
        own = _without_coercion(environ)
        try:
            return os.posix_spawn(
                path, list(arguments), own, setsigmask=mask, setsigdef=_IGNORED_BY_PYTHON
            )
        except OSError:  # a copy of this process says why, or has a shell run it
            pass
    pid = os.fork()
    if pid == 0:
        status = NOT_EXECUTABLE
        try:
            if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # not Python's: it may come now
            if ignores_children:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            own = {**environ, **dict.fromkeys(addressed, str(os.getpid()))}
            if "LISTEN_PID" in addressed:
                own.pop(_BY_PIDFD, None)
            replace(path, arguments, own)
        except CannotRun as error:
            complain(error)
            status = error.status
        finally:
            os._exit(status)
    return pid


def _addressed(environ: Mapping[str, str]) -> list[str]:
    """Return the variables with which systemd addresses the process that was called.

    The command takes that process's place, and has another number: it is a child of its child.
    """
    called = (str(os.getpid()), str(os.getppid()))
    return [name for name in _ADDRESSED if environ.get(name) in called]


def complain(error: CannotRun) -> None:
    """Write why a command cannot be run to standard error, if there is one."""
    try:
        os.write(2, f"probe exec: {error}\n".encode("ascii", "backslashreplace"))
    except OSError:  # closed by the caller
        return


def end_as(status: int) -> NoReturn:
    """End as a process with this wait status did, so that a caller sees what it would have seen."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core dump is enough
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -code)
    finally:
        os._exit(128 - code)  # as a shell does, for a signal that did not end this process


def _without_coercion(environ: Mapping[str, str]) -> dict[str, str]:
    own = dict(environ)
    # PEP 538 puts one of these into the environment where the C locale was set, and children
    # inherit it; what the process was started with tells whether that happened.
    if own.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8") and not own.get("LC_ALL"):
        try:
            with open("/proc/self/environ", "rb") as file:
                started_with = file.read().split(b"\0")
        except OSError:
            return own
        if not any(entry.startswith(b"LC_CTYPE=") for entry in started_with):
            del own["LC_CTYPE"]
    return own
