"""Whether probe runs as it was tested: with its bytecode, on a build of Python that has been tried.

Without bytecode everything takes about four times as long. uv compiles nothing unless told, images
are built with `--no-compile`, and what Python would write later it may not: the folder is read-only
or somebody else's. Neither check concerns a device.
"""

from __future__ import annotations

import os
import sys

from probe_core.doctor.check import check, failed, finding, not_applicable, passed
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import CheckFindingDoc, Request, ResultDoc

_OURS = ("probe_core", "probe_chipdb")

TRIED = ((3, 14),)
"""Versions on whose free-threaded build the tests were run, with the lock off."""


@check("no-bytecode")
def bytecode(request: Request) -> ResultDoc:
    """Whether Python has to compile this installation in each process anew."""
    if not request.machine.live:
        return not_applicable("a recording says nothing of how probe is installed here")
    files = _files(dict(sys.modules))
    missing = [source for source, cached in files if not os.path.isfile(cached)]
    if not files:
        return not_applicable("this Python loads its modules from no files of their own")
    # One is a module that was changed a moment ago, or is just being written.
    if len(missing) < len(files) / 2:
        return passed()
    folder = os.path.dirname(os.path.dirname(missing[0]))
    return failed(_finding(request, folder, len(missing), len(files)))


def _files(modules: dict[str, object]) -> list[tuple[str, str]]:
    """Return the source and the place of the bytecode of each module of ours that is loaded."""
    specs = [
        getattr(module, "__spec__", None)
        for name, module in modules.items()
        if name.partition(".")[0] in _OURS
    ]
    return [
        (spec.origin, spec.cached)
        for spec in specs
        if spec is not None and spec.has_location and spec.origin and spec.cached
    ]


def _finding(request: Request, folder: str, missing: int, count: int) -> CheckFindingDoc:
    line = f"{quoted(sys.executable)} -m compileall -q {quoted(folder)}"
    fix = f"`{line}`"
    if request.scene.container is not None:
        fix = f"in the image's build: `RUN {line}`"
    elif not os.access(folder, os.W_OK):
        fix = f"`sudo {line}`"
    return finding(
        "no-bytecode",
        what="the installation has no bytecode: a start takes about four times as long",
        why=f"of {counted(count, 'loaded module')} {missing} have none, and {_reason(folder)}",
        fix=f"{fix}; to have uv compile from now on, set UV_COMPILE_BYTECODE=1",
        severity="info",
        variable="PYTHONDONTWRITEBYTECODE" if _is_variable() else None,
        evidence=clean_text(f"{folder}: no __pycache__ of this Python", 600),
    )


def _reason(folder: str) -> str:
    if _is_variable():
        return "PYTHONDONTWRITEBYTECODE forbids Python to write it"
    if not os.access(folder, os.W_OK):
        return f"this user may not write to {clean_text(folder)}"
    return "Python wrote none when it loaded them"


def _is_variable() -> bool:
    return sys.dont_write_bytecode and "PYTHONDONTWRITEBYTECODE" in os.environ


@check("python-untried")
def untried_python(request: Request) -> ResultDoc:
    """Whether this Python is a free-threaded build on which the tests of probe were never run."""
    if not request.machine.live:
        return not_applicable("a recording says nothing of the Python that reads it")
    flags = getattr(sys, "abiflags", "")  # Windows has none before 3.14
    if not is_untried(flags, sys.version_info[:2]):
        return passed()
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return failed(
        finding(
            "python-untried",
            what=f"probe has not been tried on a free-threaded Python {version}: "
            "what it shows may be wrong",
            why=f"{clean_text(sys.executable)} is built without the global interpreter lock",
            fix=f"install probe with the ordinary build of Python {version}",
            severity="info",
            evidence=f"sys.abiflags: {flags}",
        )
    )


def is_untried(flags: str, version: tuple[int, int]) -> bool:
    """Return whether a build of Python with these ABI flags is free-threaded and untried."""
    return "t" in flags and version not in TRIED  # its letter in PEP 703


# The line that starts this command as root, which a check names where only root may look.

# Where sudo finds commands on any distribution (sudoers(5), secure_path): Debian's has
# /usr/local/bin, Fedora's has not. An environment's folder and ~/.local/bin are in none.
_OF_SUDO = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")


def as_root(*arguments: str) -> str:
    """Return the line to copy, with the whole path of a command that sudo would not find."""
    return " ".join(("sudo", _command(), *arguments))


def _command() -> str:
    folder = os.path.dirname(sys.executable)
    name = os.path.join(folder, "probe")
    if os.path.isfile(name):
        return "probe" if folder in _OF_SUDO else quoted(name)
    return f"{quoted(sys.executable)} -m probe_core"


def quoted(path: str) -> str:
    """Return a path as a shell takes it; shlex costs an import of re."""
    is_plain = all(char.isalnum() or char in "/._-+" for char in path)
    return path if is_plain else "'" + path.replace("'", "'\\''") + "'"


CHECKS = (bytecode, untried_python)
