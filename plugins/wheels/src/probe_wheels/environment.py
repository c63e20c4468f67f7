"""Which Python environment is meant, and where its packages lie. No interpreter is ever run."""

from __future__ import annotations

import os

from probe_wheels.files import Budget, Exhausted, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Problem:
    """Something about an environment that a person should know: a code, and three sentences."""

    def __init__(
        self,
        code: str,
        summary: str,
        reason: str,
        fix: str,
        *,
        evidence: str | None = None,
        severity: str = "error",
    ) -> None:
        self.code = code
        self.summary = summary
        self.reason = reason
        self.fix = fix
        self.evidence = evidence
        self.severity = severity


# Which environment is meant.

MAX_CFG = 64 << 10

_BIN = ("bin", "Scripts")
_MAGICS = ("\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "MZ", "#!")
_INTERPRETERS = ("python", "python3", "python.exe")


class Environment:
    """One Python environment, as its files describe it.

    `prefix` is its folder, `sites` the folders with its packages in the order of imports.
    `interpreter` is the file that starts it, None where no such file was found. `kind` is
    ``venv``, ``conda``, ``system``, ``root`` (an unpacked container) or ``folder``.
    """

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
        for name in _INTERPRETERS:
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


# The folders of an environment that hold packages, in the order of imports.

MAX_SITES = 64
MAX_PTH = 64
MAX_LINES = 256
PTH_BYTES = 64 << 10

_PACKAGES = ("site-packages", "dist-packages")
_LIBRARIES = ("lib", "lib64", "Lib")

# Where images of containers put their environments, beside /usr and /usr/local: NVIDIA's, ROCm's
# and vLLM's use /opt, Hugging Face's /opt/conda, uv's own /app/.venv.
_PREFIXES = ("usr/local", "usr", "app", "workspace", "root", "venv", ".venv", "env")
_PARENTS = ("opt", "home", "root", "srv", "usr/local", "opt/conda/envs", "root/.pyenv/versions")
_NESTED = ("", ".venv", "venv", ".local", "miniconda3", "conda")


def sites_of(
    prefix: str,
    kind: str,
    config: Mapping[str, str],
    environ: Mapping[str, str],
    budget: Budget,
    live: bool,
) -> list[str]:
    """Return the folders with packages of an environment.

    `config` is its pyvenv.cfg, and "started" the version in its interpreter's name. With `live` the
    folders that variables add to this shell's Python count, too. Lines of .pth files are read as
    texts: one that starts with `import` is not run.
    """
    sites = list(_outside(environ, budget)) if live else []
    sites += _of_prefix(prefix, config.get("version_info") or config.get("version", ""), budget)
    if kind == "root":
        sites += _of_root(prefix, budget)
    if config.get("include-system-site-packages", "").lower() == "true" and config.get("home"):
        sites += _of_prefix(os.path.dirname(config["home"]), "", budget)
    if live and kind != "venv":
        sites += _of_user(environ, config.get("started", ""), budget)
    if not sites and _has_metadata(prefix, budget):
        sites = [prefix]  # what `pip install --target` fills, or an unpacked wheel
    # lib64 is a link to lib in most environments, and an image's folders can be each other's.
    distinct = {os.path.realpath(site): site for site in reversed(sites)}
    sites = list(reversed(distinct.values()))
    sites += [path for path in _of_pth(sites, budget) if os.path.realpath(path) not in distinct]
    return sites[:MAX_SITES]


def _outside(environ: Mapping[str, str], budget: Budget) -> Iterator[str]:
    for path in environ.get("PYTHONPATH", "").split(os.pathsep)[:MAX_SITES]:
        if path and _has_metadata(path, budget):
            yield os.path.abspath(path)


def _of_user(environ: Mapping[str, str], version: str, budget: Budget) -> list[str]:
    if environ.get("PYTHONNOUSERSITE") or not environ.get("HOME"):
        return []
    base = environ.get("PYTHONUSERBASE") or os.path.join(environ["HOME"], ".local")
    return _of_prefix(base, version, budget)


def _of_prefix(prefix: str, version: str, budget: Budget) -> list[str]:
    """Return the folders below one prefix; those of `version` alone where it has several."""
    sites: list[str] = []
    short = ".".join(version.split(".")[:2])
    for library in _LIBRARIES:
        base = os.path.join(prefix, library)
        if library == "Lib" or budget.is_folder(os.path.join(base, "site-packages")):
            sites += _existing(base, budget)  # Windows
        names = [name for name in budget.listed(base) if name.startswith(("python3", "pypy3"))]
        exact = [name for name in names if short and name == f"python{short}"]
        for name in exact or sorted(names, reverse=True):
            sites += _existing(os.path.join(base, name), budget)
    # Debian's own Python of /usr looks into /usr/local, too.
    if os.path.basename(prefix) == "usr":
        sites += _of_prefix(os.path.join(prefix, "local"), version, budget)
    return sites


def _existing(base: str, budget: Budget) -> list[str]:
    paths = (os.path.join(base, name) for name in _PACKAGES)
    return [path for path in paths if budget.is_folder(path)]


def _of_root(root: str, budget: Budget) -> Iterator[str]:
    """Yield the folders of all environments that are in an unpacked container."""
    prefixes = [os.path.join(root, path) for path in _PREFIXES]
    for parent in _PARENTS:
        base = os.path.join(root, parent)
        for name in budget.listed(base)[:MAX_SITES]:
            prefixes += [os.path.join(base, name, nested) for nested in _NESTED]
    for prefix in prefixes:
        # A link of an image is absolute within the image: it would lead out of it here.
        if os.path.realpath(prefix).startswith(os.path.realpath(root) + os.sep):
            yield from _of_prefix(prefix, "", budget)


def _of_pth(sites: Iterable[str], budget: Budget) -> Iterator[str]:
    for site in sites:
        names = [name for name in budget.listed(site) if name.endswith(".pth")]
        for name in names[:MAX_PTH]:
            try:
                text = read_text(os.path.join(site, name), PTH_BYTES, budget)
            except OSError as error:
                budget.fault(os.path.join(site, name), error)
                continue
            for line in text.splitlines()[:MAX_LINES]:
                path = line.strip()
                if path and not path.startswith(("#", "import ", "import\t")) and "\0" not in path:
                    folder = os.path.normpath(os.path.join(site, path))
                    if _has_metadata(folder, budget):
                        yield folder


def _has_metadata(folder: str, budget: Budget) -> bool:
    return any(name.endswith((".dist-info", ".egg-info")) for name in budget.listed(folder))
