"""Find what distributions add besides probers: commands, formats. None of it is imported.

An entry point names a module, and a manifest beside that module describes it. The rules are those
of probers: a broken distribution costs only itself, the allowlist counts, and as root nothing is
used that somebody other than root could have written.
"""

from __future__ import annotations

from probe_core.jsontext import parse
from probe_core.machine import read_regular, text_of
from probe_core.machine.trust import allowed
from probe_core.registry import find_module, is_module_name
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from probe_core.machine.trust import Trust
    from probe_core.registry import EntryPoint

FILE_LIMIT = 64 << 10
"""Bytes of a manifest, as of a prober's: sixty-four commands with the longest texts take 16 KiB."""

MAX_NAME = 32
"""Characters of a name: three times the longest built-in one."""

MAX_SHOWN = 60
"""Characters of a wrong value that a sentence shows."""


class Extension:
    """Something that an entry point names: whose it is, and where it lies.

    `target` is ``module`` or ``module:attribute``. `files` decide whether root may use it.
    """

    def __init__(self, entry: EntryPoint) -> None:
        self.name = entry.name
        self.target = entry.target
        self.distribution = clean_text(entry.distribution)
        self.version = clean_text(entry.version)
        self.files = [f"{entry.metadata}/entry_points.txt"]
        self.manifest: str | None = None

    @property
    def module(self) -> str:
        """The module of its target."""
        return self.target.partition(":")[0]

    @property
    def owner(self) -> str:
        """``probe-acme 1.0.0``, as shown to people."""
        return f"{self.distribution} {self.version}".strip()


def name_rejection(entry: EntryPoint, group: str) -> str | None:
    """Return why the group or the name of an entry point cannot be used; None where both can."""
    if entry.group != group:
        return f"it needs {clean_text(entry.group, 80)}, this core has {group}; upgrade probe-core"
    plain = entry.name.isascii() and entry.name.replace("-", "a").isalnum()
    if not plain or not entry.name[0].isalnum() or len(entry.name) > MAX_NAME:
        return f"a name has 1 to {MAX_NAME} ASCII letters, digits or '-'; rename it"
    return None


def locate_extension(extension: Extension, kind: str, trust: Trust) -> str | None:
    """Find the module and its manifest; return why it cannot be used.

    `kind` is the manifest's name: ``command`` for ``command.json``.
    """
    module = extension.module
    place = find_module(module)[0] if is_module_name(module) else None
    if place is None:
        return f"its module {module!r} does not exist; reinstall {extension.distribution}"
    extension.files += place.files(module, trust)
    extension.manifest = place.manifest(module, kind)
    if extension.manifest is not None:
        extension.files.append(extension.manifest)
    return None


def rejections(
    extensions: Sequence[Extension], allow: tuple[str, ...] | None, trust: Trust
) -> list[str | None]:
    """Return for each extension why it must not be used; None where it may.

    `allow` is the allowlist of distributions, None for all.
    """
    return [
        allowed(extension.distribution, extension.version, allow) or trust.reason(extension.files)
        for extension in extensions
    ]


def manifest_table(path: str, key: str) -> dict[str, Any]:
    """Return the table `key` of a manifest; raises `ValueError` with the reason."""
    try:
        document = parse(text_of(read_regular(path, FILE_LIMIT)))
    except OSError as error:
        raise ValueError(error.strerror or "it cannot be read") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(document, dict) or not isinstance(document.get(key), dict):
        raise ValueError(f'expected {{"schema": 1, "{key}": {{NAME: {{…}}}}}}')
    if type(document.get("schema")) is not int or document["schema"] != 1:
        raise ValueError(f"schema {shown(document.get('schema'))} is not supported; expected 1")
    return dict(document[key])


def texts(table: dict[str, Any], name: str, limits: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return the texts of an entry, as far as given; raises `ValueError`.

    `limits` are the keys that an entry may have, and the most characters of each.
    """
    fields, known = table.get(name), dict(limits)
    if not isinstance(fields, dict):
        raise ValueError(f"it has no entry {name!r}")
    for key in fields:
        if key not in known:
            from probe_core.likeness import did_you_mean

            raise ValueError(f"unknown key {shown(key)}: {did_you_mean(key[:MAX_SHOWN], known)}")
    for key, limit in known.items():
        text = fields.get(key, "")
        if not isinstance(text, str) or len(text) > limit:
            problem = f"{key} must be text of at most {limit} characters"
            raise ValueError(f"{problem}, found {shown(text)}")
    return fields


def shown(value: object) -> str:
    """Return how a sentence shows a wrong value."""
    try:
        return ascii(value)[:MAX_SHOWN]
    except RecursionError:
        return "something nested too deep"
