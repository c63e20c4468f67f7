"""Write a complete distribution with a prober: `probe plugins new NAME`.

Every file is meant to be read and changed; together they pass their own tests, lint and types at
once.
"""

from __future__ import annotations

import json
import keyword
import os
import tomllib
from pathlib import Path
from string import Template

from probe_core import __version__
from probe_core.registry import find_module
from probe_core.registry.prober import RESERVED, discover
from probe_core.wording import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypedDict


INVENTED_VENDOR = "1ac0"
"""The PCI vendor id of the tutorial's invented cards; nobody has it (pci.ids of 2026)."""

_TEMPLATES = Path(__file__).parent / "templates"

_COMMON = {
    "README.md": "readme",
    "LICENSE": "license",
    "CHANGELOG.md": "changelog",
    "pyproject.toml": "pyproject",
    "src/$package/prober.py": "{kind}_prober",
    "src/$package/__init__.py": "init",
    "src/$package/py.typed": "typed",
    "tests/test_$package.py": "{kind}_test",
    ".github/workflows/tests.yml": "tests_workflow",
    ".github/workflows/publish.yml": "publish_workflow",
    ".github/ISSUE_TEMPLATE/wrong-device.yml": "issue_form",
    ".gitignore": "gitignore",
}
"""Path to template, in the order to read them."""

KINDS: dict[str, dict[str, str]] = {
    "sysfs": _COMMON,
    "ctypes": _COMMON
    | {
        "src/$package/library.py": "ctypes_library",
        "tests/fake_library.c": "ctypes_fake",
    },
}
"""How a new prober learns of its devices, to the files that it is written with."""

_SENTENCES = {
    "sysfs": ("reads the files of their driver in /sys", "No device node is opened."),
    "ctypes": ("asks their vendor's library", "It loads the library where the bus has a device."),
}
"""What a README says of each kind."""


def write(
    name: str,
    folder: str | os.PathLike[str] = ".",
    *,
    kind: str = "sysfs",
    vendor: str = INVENTED_VENDOR,
) -> list[Path]:
    """Write ``probe-NAME`` below `folder`; returns the files, in the order to read them.

    `name` is the prober's: small letters, digits and hyphens, and a letter first. `kind` is one of
    `KINDS`, `vendor` the PCI vendor id of the devices, four hexadecimal digits. Raises `ValueError`
    for what cannot be used, `OSError` when the folder exists or cannot be made.
    """
    if problem := _problem(name) or _vendor_problem(vendor):
        raise ValueError(problem)
    root = Path(folder) / f"probe-{name}"
    names = _names(name, kind, vendor.lower())
    if root.exists():
        raise FileExistsError(f"{root} exists already")
    written = []
    for path, template in KINDS[kind].items():
        text = (_TEMPLATES / f"{template.format(kind=kind)}.txt").read_text("utf-8")
        written.append(_file(root / Template(path).substitute(names), text, names))
    manifest = json.dumps(_manifest(name, kind, names), indent=2)
    place = root / "src" / names["package"] / "prober.json"
    return [*written, _file(place, f"{manifest}\n".replace("$", "$$"), names)]


def _file(target: Path, text: str, names: dict[str, str]) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Bytes: text would get the line ends of Windows there, and shell scripts break on them.
    target.write_bytes(Template(text).substitute(names).encode("utf-8"))
    return target


def _names(name: str, kind: str, vendor: str) -> dict[str, str]:
    """Return what the templates' placeholders stand for."""
    from time import localtime

    reads, effect = _SENTENCES[kind]
    symbol = name.replace("-", "_")
    return {
        "name": name,
        "symbol": symbol,
        "package": f"probe_{symbol}",
        "class_name": name.title().replace("-", ""),
        "title": name.replace("-", " ").title(),
        "library": f"lib{symbol}.so.1",
        "vendor": vendor,
        "reads": reads,
        "effect": effect,
        "core": _oldest_core(__version__),
        "year": str(localtime().tm_year),
    }


def _oldest_core(version: str) -> str:
    """Return the oldest core that a plugin of today may ask for: the first of its minor version."""
    major, minor, patch = version.split(".")
    # What precedes 0.9.0 is not at least 0.9.
    return f"{major}.{minor}" if patch.isdigit() else version


def _problem(name: str) -> str | None:
    """Return why a name cannot be used."""
    letters = name.replace("-", "")
    plain = name.isascii() and letters.isalnum() and name == name.lower() and name[0].isalpha()
    if not 0 < len(name) <= 40 or not plain or name.endswith("-"):
        return "a name is 1 to 40 small letters, digits and hyphens, and starts with a letter"
    if name in RESERVED or keyword.iskeyword(name):
        return f"the name is reserved: the core keeps {joined(sorted(RESERVED), 'and')} for itself"
    return None


def _vendor_problem(vendor: str) -> str | None:
    if len(vendor) == 4 and all(digit in "0123456789abcdef" for digit in vendor.lower()):
        return None
    return f"{vendor!r} is no PCI vendor id: give four hexadecimal digits, such as 10de"


def _manifest(name: str, kind: str, names: dict[str, str]) -> dict[str, object]:
    vendors = [names["vendor"]]
    files = ["product_name", "memory_bytes"] if kind == "sysfs" else []
    library = {"answers": True} if kind == "ctypes" else {}
    fields = {
        "summary": f"{names['title']} devices: {names['reads']}",
        "api": "1.0",
        "priority": 400 if kind == "sysfs" else 500,
        "deadline_s": 3.0,
        "active": False,
        "when": {"os": ["linux"], "pci_vendor": vendors},
        "records": {"pci": {"pci_vendor": vendors, "files": files}} if files else library,
    }
    return {"schema": 1, "probers": {name: fields}}


# Whose a name is already, before an author chooses it; and which plugins are known.

LIST = Path(__file__).parent / "known_plugins.toml"


def known_plugins() -> list[KnownPlugin]:
    """Return the listed plugins, in the file's order."""
    entries: list[KnownPlugin] = tomllib.loads(LIST.read_text("utf-8"))["plugin"]
    return entries


def taken(name: str) -> Iterator[str]:
    """Yield a sentence for each who has the name of a new prober, its distribution or its package.

    A name that is taken can still be right: for a prober that replaces another.
    """
    package = f"probe_{name.replace('-', '_')}"
    installed = {prober.name: prober.owner for prober in discover({})[0]}
    if name in installed:
        yield (
            f"{installed[name]} has a prober {name!r}: of two, the one of higher priority runs"
            " and the other is skipped"
        )
    for plugin in known_plugins():
        listed = name in plugin["probers"] or plugin["distribution"] == f"probe-{name}"
        if listed and name not in installed:
            yield f"{plugin['distribution']} is a known plugin ({plugin['devices']})"
    place = find_module(package)[0]
    if place is not None:
        where = os.path.dirname(place.file or place.folder)
        yield f"the module {package} can be imported already, from {where}"


if TYPE_CHECKING:

    class KnownPlugin(TypedDict):
        """One entry of `known_plugins.toml`, which describes the keys."""

        distribution: str
        probers: list[str]
        group: str
        devices: str
        needs: str
        licence: str
        source: str
        tested: str
        kit: str
