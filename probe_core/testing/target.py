"""Find the prober that an author names: a file, an installed prober, or a module.

A file needs no installation. Its folder goes on the path, as for `python FILE`; of a file in a
package it is the folder above the package, so that relative imports work.
"""

from __future__ import annotations

import json
import os
import sys
from keyword import iskeyword

from probe_core.likeness import did_you_mean
from probe_core.machine import read_regular, text_of
from probe_core.machine.trust import Trust
from probe_core.registry import find_module, is_module_name
from probe_core.registry.prober import FILE_LIMIT, HOST, RESERVED, Prober, apply_manifest, discover

_AFFIX = "prober"
"""What authors add to a name: ``acme_prober``, ``probe_acme.prober``."""


class BadTarget(ValueError):
    """Nothing can be run there; the message says why, and what would do."""


def prober_at(target: str) -> Prober:
    """Return the prober at ``FILE.py``, ``NAME``, ``module`` or ``module:attribute``.

    Its manifest is applied. Puts the folder to import from first on `sys.path`; imports nothing.
    Raises `BadTarget`.
    """
    place, attribute = _split(target)
    if place.endswith(".py") or os.path.basename(place) != place:
        return _of_file(place, attribute)
    installed, _ = discover({})
    for prober in installed:
        if prober.name == target:
            return prober
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does
    if is_module_name(place) and find_module(place)[0]:
        return _prober(place, attribute)
    hint = did_you_mean(target, [prober.name for prober in installed])
    raise BadTarget(f"{target!r} is no file, no module and no installed prober: {hint}")


def _split(target: str) -> tuple[str, str]:
    """Split off ``:attribute``; the colon of ``C:\\…`` belongs to the path."""
    place, colon, attribute = target.rpartition(":")
    if colon and attribute.replace(".", "a").isidentifier():
        return place, attribute
    return target, ""


def _of_file(path: str, attribute: str) -> Prober:
    if not os.path.isfile(path):
        problem = "it is a folder; name a file in it" if os.path.isdir(path) else "no such file"
        raise BadTarget(f"{path}: {problem}")
    folder, file = os.path.split(os.path.abspath(path))
    stem, suffix = os.path.splitext(file)
    if suffix != ".py" or not stem.isidentifier() or iskeyword(stem):
        raise BadTarget(f"{path}: a prober is a module: name the file like acme_prober.py")
    parts = [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    if parts[-1] == "__init__":
        parts.pop()
    _refuse_taken(path, parts[0], folder)
    sys.path.insert(0, folder)
    return _prober(".".join(parts), attribute)


def _refuse_taken(path: str, name: str, folder: str) -> None:
    """Raise `BadTarget` where an import of the file's name would give another module."""
    module = sys.modules.get(name)
    origin = getattr(module, "__file__", None) or ""
    elsewhere = module is not None and not os.path.abspath(origin).startswith(folder + os.sep)
    if elsewhere or name in sys.builtin_module_names:
        raise BadTarget(f"{path}: the module {name!r} is Python's or loaded already; rename it")


def _prober(module: str, attribute: str) -> Prober:
    target = f"{module}:{attribute}" if attribute else module
    name = _name(module)
    if name in RESERVED:
        raise BadTarget(f"{target}: the core keeps the name {name!r} for itself; rename the prober")
    prober = Prober(name, target, HOST)
    apply_manifest(prober, None, Trust())
    return prober


def _name(module: str) -> str:
    """Return the name that the manifest has; without one, what the module's name suggests."""
    *packages, last = module.split(".")
    stem = packages[-1].removeprefix("probe_") if packages and last == _AFFIX else last
    guess = stem.removesuffix(f"_{_AFFIX}").removeprefix(f"{_AFFIX}_").replace("_", "-")
    names = _names_in_manifest(module)
    return guess if guess in names or not names else names[0]


def _names_in_manifest(module: str) -> list[str]:
    place = find_module(module)[0]
    path = place.manifest(module, "prober") if place else None
    if path is None:
        return []
    try:
        document = json.loads(text_of(read_regular(path, FILE_LIMIT)))
    except (OSError, ValueError, RecursionError):
        return []  # `apply_manifest` notes what is wrong with it
    probers = document.get("probers") if isinstance(document, dict) else None
    return [str(name) for name in probers] if isinstance(probers, dict) else []
