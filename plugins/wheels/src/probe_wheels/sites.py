"""The folders of an environment that hold packages, in the order of imports."""

from __future__ import annotations

import os

from probe_wheels.files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from probe_wheels.files import Budget

__all__ = ["sites_of"]

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
