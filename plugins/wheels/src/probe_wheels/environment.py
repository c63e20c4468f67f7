"""Which Python environment is meant, and where its packages lie. No interpreter is ever run."""

from __future__ import annotations

import os

from probe_wheels.files import Budget, Exhausted, read_text
from probe_wheels.problem import Problem
from probe_wheels.sites import sites_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Environment", "find_environment"]

MAX_CFG = 64 << 10
MAX_ROOTS = 64

_BIN = ("bin", "Scripts")
_MAGICS = ("\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "MZ", "#!")
_NAMES = ("python", "python3", "python.exe")


class Environment:
    """One Python environment, as its files describe it.

    `prefix` is its folder, `sites` the folders with its packages in the order of imports.
    `interpreter` is the file that starts it, None where no such file was found. `kind` is
    ``venv``, ``conda``, ``system``, ``root`` (an unpacked container) or ``folder``.
    """

    __slots__ = ("interpreter", "kind", "prefix", "problems", "sites")

    def __init__(self, prefix: str, kind: str, interpreter: str | None = None) -> None:
        self.prefix = prefix
        self.kind = kind
        self.interpreter = interpreter
        self.sites: list[str] = []
        self.problems: list[Problem] = []


def find_environment(
    argument: str | None, environ: Mapping[str, str], budget: Budget | None = None
) -> Environment:
    """Return the environment that `argument` names: an interpreter, its command, or a folder.

    Without an argument it is the one whose `python` the command line would start. What is wrong
    is in its `problems`; it raises nothing.
    """
    budget = budget or Budget()
    try:
        return _find(argument, environ, budget)
    except (OSError, ValueError, Exhausted) as error:
        reason = getattr(error, "strerror", None) or str(error)
        environment = Environment(argument or "", "folder")
        environment.problems.append(
            Problem(
                "environment-unreadable",
                f"the Python environment {argument or 'of this shell'} cannot be read",
                reason,
                "name a folder that you can read: probe doctor --env FOLDER",
                evidence=reason,
            )
        )
        return environment


def _find(argument: str | None, environ: Mapping[str, str], budget: Budget) -> Environment:
    path = _start(argument, environ)
    if path is None:
        return _missing(argument)
    path = os.path.abspath(path)
    if budget.is_folder(path):
        environment = _of_folder(path, budget)
        live = argument is None
    else:
        environment = _of_interpreter(path, environ, budget)
        live = True  # the user's own packages count for whatever interpreter he starts
    _complete(environment, environ, budget, live=live)
    return environment


def _missing(argument: str | None) -> Environment:
    environment = Environment(argument or "", "folder")
    if argument is None:
        summary, reason = (
            "no Python environment is active",
            "PATH has no python, python3 or environment",
        )
    else:
        summary, reason = (
            f"the Python environment {argument} does not exist",
            "no such file or folder",
        )
    fix = "name an interpreter or a folder: probe doctor --env .venv"
    environment.problems.append(
        Problem("environment-missing", summary, reason, fix, evidence=argument)
    )
    return environment


def _start(argument: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the file or folder to start from."""
    if argument is None:
        processors = _on_path("python", environ) or _on_path("python3", environ)
        return processors or environ.get("VIRTUAL_ENV") or environ.get("CONDA_PREFIX")
    path = os.path.expanduser(argument)
    if os.path.lexists(path):
        return path
    plain = os.sep not in argument and "/" not in argument and argument.startswith("python")
    return _on_path(argument, environ) if plain else None


def _on_path(command: str, environ: Mapping[str, str]) -> str | None:
    """Return the file that a shell would start for a command."""
    names = (command, command + ".exe") if os.name == "nt" else (command,)
    for folder in environ.get("PATH", "").split(os.pathsep):
        for name in names:
            path = os.path.join(folder, name)
            if folder and os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return None


def _of_interpreter(path: str, environ: Mapping[str, str], budget: Budget) -> Environment:
    """Return the environment of an interpreter: where its `pyvenv.cfg` is, else its target's."""
    if not os.path.exists(path):  # a link whose target is gone: the environment's home was removed
        return Environment(_prefix(path), "venv", path)
    version = _pyenv_version(path, environ, budget)
    path = version or path
    # A virtual environment's interpreter is a link; its configuration lies beside the link.
    if not _is_program(path, budget):
        environment = Environment(path, "folder", path)
        environment.problems.append(
            Problem(
                "environment-missing",
                f"{path} is no Python interpreter",
                "it is neither a program nor a script",
                "name an interpreter or a folder: probe doctor --env .venv",
                evidence=path,
            )
        )
        return environment
    candidates = (path, *_links(path))
    budget.paths.update(candidates)
    for candidate in candidates:
        prefix = _prefix(candidate)
        if budget.is_file(os.path.join(prefix, "pyvenv.cfg")):
            return Environment(prefix, "venv", candidate)
    real = os.path.realpath(path)
    prefix = _prefix(real)
    return Environment(prefix, _kind(prefix, budget), real)


def _is_program(path: str, budget: Budget) -> bool:
    """Return whether a file starts as programs do: ELF, Mach-O, PE, or a script's first line."""
    try:
        return read_text(path, 4, budget, "latin-1").startswith(_MAGICS)
    except OSError:
        return False


def _links(path: str) -> list[str]:
    """Return the paths that a chain of links leads through, without the first."""
    chain: list[str] = []
    while os.path.islink(path) and len(chain) < 16:
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        chain.append(path)
    return chain


def _prefix(path: str) -> str:
    folder = os.path.dirname(path)
    return os.path.dirname(folder) if os.path.basename(folder) in _BIN else folder


def _pyenv_version(path: str, environ: Mapping[str, str], budget: Budget) -> str | None:
    """Return the interpreter behind a shim of pyenv: a shell script that looks the version up.

    It reads PYENV_VERSION, then the file `version` in its root (pyenv README, "Understanding
    Python version selection"); a `.python-version` of the current folder is between them.
    """
    folder = os.path.dirname(path)
    root = os.path.dirname(folder)
    if os.path.basename(folder) != "shims" or not os.path.isdir(os.path.join(root, "versions")):
        return None
    text = environ.get("PYENV_VERSION", "")
    for file in (os.path.abspath(".python-version"), os.path.join(root, "version")):
        if not text and budget.is_file(file):
            text = read_text(file, 4096, budget)
    name = (text.split() or [""])[0].split(":")[0]
    candidate = os.path.join(root, "versions", name, "bin", "python")
    return candidate if name and os.path.exists(candidate) else None


def _of_folder(folder: str, budget: Budget) -> Environment:
    """Return the environment in a folder: itself, a project's `.venv`, or an unpacked root."""
    for prefix in (folder, os.path.join(folder, ".venv"), os.path.join(folder, "venv")):
        if budget.is_file(os.path.join(prefix, "pyvenv.cfg")):
            return Environment(prefix, "venv", _interpreter(prefix, budget))
    if budget.is_folder(os.path.join(folder, "conda-meta")):
        return Environment(folder, "conda", _interpreter(folder, budget))
    return Environment(folder, _kind(folder, budget), _interpreter(folder, budget))


def _kind(prefix: str, budget: Budget) -> str:
    if budget.is_folder(os.path.join(prefix, "conda-meta")):
        return "conda"
    if prefix == os.path.abspath(os.sep):
        return "system"
    folders = (os.path.join(prefix, "usr", "lib"), os.path.join(prefix, "opt"))
    release = os.path.join(prefix, "etc", "os-release")
    if any(map(budget.is_folder, folders)) or os.path.lexists(release):
        return "root"
    return "system"


def _interpreter(prefix: str, budget: Budget) -> str | None:
    for folder in (*_BIN, ""):
        for name in _NAMES:
            path = os.path.join(prefix, folder, name)
            budget.paths.add(path)
            if os.path.lexists(path):
                return path
    return None


def _complete(
    environment: Environment, environ: Mapping[str, str], budget: Budget, *, live: bool
) -> None:
    """Fill in where the packages lie, and what is wrong with the environment."""
    config = _config(environment.prefix, budget)
    started = os.path.basename(os.path.realpath(environment.interpreter or ""))
    config.setdefault("started", started.removeprefix("python"))
    environment.sites = sites_of(
        environment.prefix, environment.kind, config, environ, budget, live
    )
    if environment.kind == "venv":
        _check_home(environment, config)
    if not environment.sites and not environment.problems:
        environment.problems.append(
            Problem(
                "environment-broken",
                f"{environment.prefix} has no folder of Python packages",
                "neither lib/python3.*/site-packages nor an installed distribution is in it",
                "name the environment's own folder, or make it again",
                evidence=environment.prefix,
            )
        )


def _check_home(environment: Environment, config: Mapping[str, str]) -> None:
    """Add a problem where the interpreter that a virtual environment was made with is gone."""
    home = config.get("home", "")
    interpreter = environment.interpreter
    dangling = interpreter is not None and not os.path.exists(interpreter)
    if dangling or (interpreter is None and home and not os.path.isdir(home)):
        target = os.path.realpath(interpreter) if interpreter else home
        evidence = f"{environment.prefix}/pyvenv.cfg: home = {home}"
        if dangling:
            evidence = f"{interpreter}: a link to {target}"
        environment.problems.append(
            Problem(
                "environment-broken",
                f"the virtual environment {environment.prefix} has lost its Python",
                f"it was made with {target}, which is not there",
                f"make it again: python3 -m venv --clear {environment.prefix}",
                evidence=evidence,
            )
        )


def _config(prefix: str, budget: Budget) -> dict[str, str]:
    """Return the lines `name = value` of a pyvenv.cfg."""
    path = os.path.join(prefix, "pyvenv.cfg")
    try:
        text = read_text(path, MAX_CFG, budget)
    except OSError as error:
        budget.fault(path, error)
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip().lower(): value.strip() for name, equals, value in pairs if equals}
