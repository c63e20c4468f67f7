"""Read `command.json`: data beside a command's module that says what `probe --help` shows.

A mistake in a manifest never stops its command: the help then shows less, and says what is wrong.
"""

from __future__ import annotations

import os

from probe_core.jsontext import parse
from probe_core.machine.files import read_regular, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.registry.locate import Place

__all__ = ["manifest_path", "read_entry", "read_manifest"]

# As for a prober's manifest: sixty-four commands with the longest texts take a quarter of it.
FILE_LIMIT = 64 << 10
MAX_GROUP = 40
MAX_SUMMARY = 200
"""Characters: a heading, and a summary of two lines at 100 columns. A judgement."""
MAX_SHOWN = 60
"""Characters of a wrong value that a sentence shows."""

_KEYS = ("group", "summary")


def manifest_path(place: Place, module: str) -> str | None:
    """Return the manifest of a module that lies at `place`; None where there is none."""
    name = module.rpartition(".")[2]
    candidates = [f"{place.folder}/{name}.command.json"]
    # A single-file module shares its folder with all of site-packages.
    if place.is_package or "." in module:
        candidates.append(f"{place.folder}/command.json")
    return next((path for path in candidates if os.path.lexists(path)), None)


def read_manifest(path: str) -> dict[str, Any]:
    """Return the table of commands in a manifest; raises `ValueError` with the reason."""
    try:
        document = parse(text_of(read_regular(path, FILE_LIMIT)))
    except OSError as error:
        raise ValueError(error.strerror or "it cannot be read") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(document, dict) or not isinstance(document.get("commands"), dict):
        raise ValueError('expected {"schema": 1, "commands": {NAME: {…}}}')
    if type(document.get("schema")) is not int or document["schema"] != 1:
        raise ValueError(f"schema {_shown(document.get('schema'))} is not supported; expected 1")
    return dict(document["commands"])


def read_entry(commands: dict[str, Any], name: str) -> dict[str, str]:
    """Return the `group` and `summary` of a command, as far as given; raises `ValueError`."""
    fields = commands.get(name)
    if not isinstance(fields, dict):
        raise ValueError(f"it has no entry {name!r}")
    for key in fields:
        if key not in _KEYS:
            from probe_core.wording import did_you_mean

            raise ValueError(f"unknown key {_shown(key)}: {did_you_mean(key[:MAX_SHOWN], _KEYS)}")
    for key, limit in zip(_KEYS, (MAX_GROUP, MAX_SUMMARY), strict=True):
        text = fields.get(key, "")
        if not isinstance(text, str) or len(text) > limit:
            problem = f"{key} must be text of at most {limit} characters"
            raise ValueError(f"{problem}, found {_shown(text)}")
    return fields


def _shown(value: object) -> str:
    try:
        return ascii(value)[:MAX_SHOWN]
    except RecursionError:
        return "something nested too deep"
