"""Which Python a command runs, and what is installed for it: nothing is imported."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from probe_core.machine import Machine


_FIRST_LINE = 256
"""Bytes of a script's first line: what Linux reads of it (BINPRM_BUF_SIZE, linux/binfmts.h)."""

_RUNNERS = {"uv": "run", "poetry": "run", "pdm": "run", "hatch": "run", "pipenv": "run"}
"""Programs that start the next word in an environment of their own, behind this word."""


def versions(command: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the version of the tinygrad that a command would import; empty where none is seen.

    A command that is no Python (a shell script) is taken to call the first `python3` on the path.
    """
    interpreter = interpreter_of(command, environ)
    return installed(("tinygrad",), site_folders(interpreter, environ)) if interpreter else {}


def interpreter_of(command: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the path of the Python that runs a command; None where there is none."""
    if command and _RUNNERS.get(_stem(command[0])) in command[1:]:
        folder = environ.get("VIRTUAL_ENV") or os.path.join(os.getcwd(), ".venv")
        own = os.path.join(folder, "bin", "python")
        if os.path.isfile(own):
            return own
    path = _located(command[0], environ) if command else None
    if path is not None and not _is_python(path):
        path = _of_script(path, environ)
    return path or _located("python3", environ) or _located("python", environ)


def _stem(path: str) -> str:
    return path.rpartition("/")[2]


def _is_python(path: str) -> bool:
    name = _stem(path)
    return name.startswith(("python", "pypy")) and not name.endswith(("-config", ".sh"))


def _located(name: str, environ: Mapping[str, str]) -> str | None:
    if "/" in name:
        return os.path.abspath(name)
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or ".", name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    return None


def _of_script(path: str, environ: Mapping[str, str]) -> str | None:
    """Return the Python that a script's first line names, if it names one."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        head = os.read(handle, _FIRST_LINE)
    except OSError:
        return None
    finally:
        os.close(handle)
    if not head.startswith(b"#!"):
        return None
    parts = os.fsdecode(head[2:].partition(b"\n")[0]).split()
    if len(parts) > 1 and _stem(parts[0]) == "env":
        parts = [part for part in parts[1:] if not part.startswith("-") and "=" not in part]
        parts[:1] = [_located(parts[0], environ) or ""] if parts else []
    return parts[0] if parts and _is_python(parts[0]) else None


def site_folders(interpreter: str, environ: Mapping[str, str]) -> list[str]:
    """Return the folders in which a Python finds what is installed, the first ones first."""
    if interpreter == sys.executable:
        own = [folder for folder in sys.path if folder.endswith(_KINDS)]
        return [*_listed(environ), *own]
    folders = list(_listed(environ))
    prefix = os.path.dirname(os.path.dirname(interpreter))
    settings = _settings(os.path.join(prefix, "pyvenv.cfg"))
    folders += _site_packages(prefix, "")
    if settings and settings.get("include-system-site-packages", "").lower() != "true":
        return folders
    base = os.path.realpath(interpreter)
    release = _stem(base).removeprefix("python")  # "3.11" of python3.11
    release = release if "." in release else ""
    user_folder = environ.get("HOME", "")
    if user_folder and not environ.get("PYTHONNOUSERSITE"):
        folders += _site_packages(os.path.join(user_folder, ".local"), release)
    folders += _site_packages(os.path.dirname(os.path.dirname(base)), release)
    return list(dict.fromkeys(folders))


def _listed(environ: Mapping[str, str]) -> Iterator[str]:
    for folder in environ.get("PYTHONPATH", "").split(os.pathsep):
        if folder:
            yield folder


def _settings(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(8192).splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _site_packages(prefix: str, release: str) -> list[str]:
    """Return the folders for packages under a prefix, of one release of Python or of all."""
    folders = []
    for base in (os.path.join(prefix, "local", "lib"), os.path.join(prefix, "lib")):
        try:
            names = sorted(os.listdir(base))
        except OSError:
            continue
        fitting = (f"python{release}", "python3") if release else names
        for name in names:
            if name in fitting and name.startswith(("python", "pypy")):
                folders += [os.path.join(base, name, kind) for kind in _KINDS]
    return [folder for folder in folders if os.path.isdir(folder)]


_KINDS = ("site-packages", "dist-packages")
"""Folders for packages: Python's own name, and Debian's."""


def installed(names: Collection[str], folders: Sequence[str]) -> dict[str, str]:
    """Return the versions of distributions, from the names of their folders; the first one counts.

    `names` are normalised: small letters, with dashes.
    """
    result: dict[str, str] = {}
    for folder in folders:
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            if not entry.endswith((".dist-info", ".egg-info")):
                continue
            name, dash, version = entry.rpartition(".")[0].partition("-")
            name = name.lower().replace("_", "-")
            if dash and name in names:
                result.setdefault(name, version.partition("-")[0])
    return result


# Which Python the command line would start: the environment that a bare `--env` means.

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
