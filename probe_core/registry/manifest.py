"""Read `prober.json`: data beside a prober's module that says when and how to run it.

A mistake in a manifest never stops its prober: the default is used, and the mistake is told.
"""

from __future__ import annotations

import os
import sys
from itertools import islice

from probe_core.machine.files import read_regular, text_of
from probe_core.registry.locate import is_module_name, locate, locate_by_hooks
from probe_core.wording import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from probe_core.registry.locate import Place
    from probe_core.registry.prober import Prober

__all__ = ["WHEN_KEYS", "apply_manifest", "read_manifest", "take_field"]

FILE_LIMIT = 64 << 10
MAX_DEADLINE_S = 120.0
MAX_PROBLEMS = 8
MAX_WANTED = 64
WHEN_KEYS = (
    "os",
    "machine",
    "any_path",
    "all_path",
    "any_module",
    "any_environ",
    "pci_vendor",
)


def apply_manifest(prober: Prober, site: str | None) -> None:
    """Find the manifest of `prober` and take what it says; note every mistake."""
    module = prober.target.partition(":")[0]
    if not is_module_name(module):
        return
    place = locate(module, site) or _hooked(prober, module)
    if place is None:
        return  # the child will tell what happens when it is imported
    # A frozen program holds its modules itself.
    own = sys.executable if getattr(sys, "frozen", False) else place.file
    prober.files.append(own or place.folder)
    path = _manifest_path(place, module)
    if path is None:
        return
    prober.files.append(path)
    try:
        fields = read_manifest(path, prober.name)
    except (OSError, ValueError, RecursionError) as error:
        prober.problems.append(f"{os.path.basename(path)}: {_why(error)}")
        return
    for key, value in fields.items():
        if len(prober.problems) < MAX_PROBLEMS:
            take_field(prober, key, value)


def _hooked(prober: Prober, module: str) -> Place | None:
    """Return where import hooks say that the module is; the child may need them set up too."""
    place, by_site = locate_by_hooks(module)
    prober.needs_site = by_site and not getattr(sys, "frozen", False)
    return place


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)


def _shown(value: object) -> str:
    try:
        return repr(value)[:60]
    except RecursionError:
        return "something nested too deep"


def _manifest_path(place: Place, module: str) -> str | None:
    name = module.rpartition(".")[2]
    candidates = [f"{place.folder}/{name}.prober.json", f"{place.folder}/prober.json"]
    if not place.is_package and "." not in module:
        candidates.pop()  # a single-file module shares its folder with all of site-packages
    return next((path for path in candidates if os.path.lexists(path)), None)


def read_manifest(path: str, name: str) -> dict[str, Any]:
    """Return one prober's table of a manifest; raises `ValueError` or `OSError` with the reason."""
    import json

    document = json.loads(text_of(read_regular(path, FILE_LIMIT)))
    if not isinstance(document, dict) or not isinstance(document.get("probers"), dict):
        raise ValueError('expected {"schema": 1, "probers": {NAME: {…}}}')
    if document.get("schema") != 1:
        raise ValueError(f"schema {_shown(document.get('schema'))} is not supported; expected 1")
    fields = document["probers"].get(name)
    if not isinstance(fields, dict):
        hint = did_you_mean(name, islice(document["probers"], MAX_WANTED))
        raise ValueError(f"says nothing of {name!r}: {hint}")
    return fields


def take_field(prober: Prober, key: str, value: Any) -> None:
    """Take one field of a manifest into `prober`, or note what is wrong with it."""
    if key not in _CHECKS:
        prober.problems.append(f"unknown key {key[:80]!r}: {did_you_mean(key[:80], _CHECKS)}")
        return
    try:
        setattr(prober, key, _CHECKS[key](value))
    except ValueError as error:
        prober.problems.append(f"{key}: {error}, found {_shown(value)}")


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 500:
        raise ValueError("expected text of at most 500 characters")
    return value


def _api(value: Any) -> str:
    major, dot, minor = _text(value).partition(".")
    if not (major.isdecimal() and dot and minor.isdecimal()):
        raise ValueError('expected "major.minor"')
    return f"{int(major)}.{int(minor)}"


def _priority(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= 999:
        raise ValueError("expected a whole number from 1 to 999")
    return value


def _deadline(value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value <= MAX_DEADLINE_S:
        raise ValueError(f"expected seconds above 0 and up to {MAX_DEADLINE_S:g}")
    return float(value)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("expected true or false")
    return value


def _when(value: Any) -> list[dict[str, Any]]:
    alternatives = value if isinstance(value, list) else [value]
    if len(alternatives) > MAX_WANTED:
        raise ValueError(f"more than {MAX_WANTED} alternatives")
    for alternative in alternatives:
        if not isinstance(alternative, dict):
            raise ValueError("expected a table, or a list of alternative tables")
        for key, wanted in alternative.items():
            _check_wanted(key, wanted)
    # An alternative that demands nothing always holds, and so does the whole.
    return alternatives if all(alternatives) else []


def _check_wanted(key: str, wanted: Any) -> None:
    if key not in WHEN_KEYS:
        raise ValueError(f"unknown precondition {key[:80]!r}: {did_you_mean(key[:80], WHEN_KEYS)}")
    if not isinstance(wanted, list) or not all(isinstance(w, str) and w for w in wanted):
        raise ValueError(f"{key} must be a list of texts")
    if len(wanted) > MAX_WANTED or any(len(w) > 256 for w in wanted):
        raise ValueError(f"{key} holds more than {MAX_WANTED} texts, or longer than 256 characters")
    if key in ("any_path", "all_path") and not all(w[0] == "/" for w in wanted):
        raise ValueError(f"{key} must hold absolute paths")
    if key == "any_module" and not all(map(is_module_name, wanted)):
        raise ValueError("any_module must hold names of modules")
    if key == "pci_vendor" and not all(_is_vendor(w) for w in wanted):
        raise ValueError('pci_vendor must hold vendor ids such as "10de"')


def _is_vendor(text: str) -> bool:
    digits = text.lower().removeprefix("0x")
    return len(digits) == 4 and all(digit in "0123456789abcdef" for digit in digits)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "summary": _text,
    "api": _api,
    "priority": _priority,
    "deadline_s": _deadline,
    "active": _flag,
    "when": _when,
}
