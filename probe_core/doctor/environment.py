"""Which Python the command line would start: the environment that a bare `--env` means."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["command_line_python"]

_NAMES = ("python", "python3") if os.name == "posix" else ("python.exe",)


def command_line_python(machine: Machine) -> str:
    """Return the path of the first `python` on PATH, else of the interpreter that runs this.

    Nothing is started. An active environment has its folder first on PATH (venv, conda).
    """
    folders = machine.environ.get("PATH", "").split(os.pathsep)
    for name in _NAMES:
        for folder in filter(None, folders):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return sys.executable
