"""The generated parts of the reference: functions that return Markdown made from the code."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

# Made from this checkout, whatever else is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import source
from blocks import class_text, file_of, function, table
from regions_cli import cli, plugins
from regions_doctor import causepages, checkauthor, distributions
from regions_model import causes, drivernodes, report, rooms, sighting, tables
from regions_plugins import known
from regions_recording import kept, limits, masks, recordings

__all__ = ["REGIONS", "filled", "names", "region"]

_REGION = re.compile(
    r"(?P<begin><!-- begin generated: (?P<name>[a-z]+) -->\n)(.*?)(?P<end><!-- end generated -->)",
    re.DOTALL,
)


def settings() -> str:
    """Every setting: argument of `probe()`, option, variable, kind and meaning."""
    from probe_core.config import FILE_VARIABLE, SETTINGS

    rows = [
        (f"`{name}`", f"`--{name}`", f"`{setting.variable}`", setting.kind, setting.meaning)
        for name, setting in SETTINGS.items()
    ]
    rows.append(("`config`", "`--config`", f"`{FILE_VARIABLE}`", "path", "a TOML file of settings"))
    return table(("argument and key", "option", "variable", "kind", "meaning"), rows)


def statuses() -> str:
    """Every status that an outcome can have."""
    from probe_core.model.ids import FAILURES, STATUSES

    rows = [
        (f"`{status}`", meaning, "yes" if status in FAILURES else "no")
        for status, meaning in STATUSES.items()
    ]
    return table(("status", "meaning", "the prober's failure"), rows)


def hooks() -> str:
    """Every hook with its exact signature."""
    return "\n\n".join(function(one) for one in source.functions("probe_core/hookspecs.py"))


def author() -> str:
    """Everything a prober's author imports from `probe_core.api`."""
    path = "probe_core/api.py"
    parts = [function(one) for one in source.functions(path)]
    classes = ("Unavailable", "Request", "SampleRequest")
    return "\n\n".join([*parts, *(class_text(path, name) for name in classes)])


def calls() -> str:
    """The public functions, apart from the author's contract."""
    import probe_core

    parts = []
    for name in probe_core.__all__:
        found = getattr(probe_core, name)
        if callable(found) and not isinstance(found, type) and found.__module__ != "probe_core.api":
            parts += [function(one) for one in source.functions(file_of(found)) if one.name == name]
    return "\n\n".join(parts)


def machine() -> str:
    """The `Machine` and its methods."""
    path = "probe_core/machine/__init__.py"
    methods = [function(one, "Machine.") for one in source.functions(path, "Machine")]
    return "\n\n".join([class_text(path, "Machine"), *methods])


def contract() -> str:
    """What a command may import from `probe_core.commands`, classes first."""
    from probe_core import commands

    parts = []
    for name in sorted(commands.__all__):
        public = getattr(commands, name)
        path = file_of(public)
        if isinstance(public, type):
            methods = [function(m, f"{name}.", 4) for m in source.functions(path, name)]
            parts.append("\n\n".join([class_text(path, name), *methods]))
        else:
            parts += [function(one) for one in source.functions(path) if one.name == name]
    return "\n\n".join(parts)


def kit() -> str:
    """The contract kit: the class to subclass, its case, and every check."""
    path = "probe_core/testing/contract.py"
    contract = source.classes(path)["ProberContract"]
    parts = [f"### `ProberContract`\n\n{source.docstring(contract)}"]
    parts += [function(one, "ProberContract.") for one in source.functions(path, "ProberContract")]
    parts.append(class_text("probe_core/testing/case.py", "Case"))
    return "\n\n".join(parts)


def tree() -> str:
    """The builder of invented machines, for tests."""
    path = "probe_core/testing/tree.py"
    methods = [function(one, "Tree.") for one in source.functions(path, "Tree")]
    return "\n\n".join([class_text(path, "Tree"), *methods])


def sysfs() -> str:
    """Everything in the authors' toolkit, module by module."""
    from probe_core import sysfs as toolkit

    return "\n\n".join(_module(f"probe_core/sysfs/{name}.py") for name in toolkit.__all__)


def _module(path: str) -> str:
    """Return a module with its documented constants, its functions and its classes."""
    name = path.removesuffix(".py").replace("/", ".")
    text = ast.get_docstring(source.parse(path)[0]) or ""
    parts = [f"## `{name}`\n\n{text}"]
    constants = {key: text for key, text in source.constants(path).items() if key[0] != "_"}
    if constants:
        rows = ((f"`{constant}`", meaning) for constant, meaning in constants.items())
        parts.append(table(("constant", "meaning"), rows))
    for kind in source.classes(path):
        parts.append(class_text(path, kind))
        parts += [function(one, f"{kind}.", 4) for one in source.functions(path, kind)]
    prefix = name.rpartition(".")[2]
    parts += [function(one, f"{prefix}.") for one in source.functions(path)]
    return "\n\n".join(parts)


def checks() -> str:
    """Every check of the contract kit, by the file it is in."""
    from probe_core.testing.contract import ProberContract

    lines = []
    for base in ProberContract.__bases__:
        names = [name for name in vars(base) if name.startswith("test_")]
        lines += [f"\n**{base.__name__}**: {_first_line(base)}\n"] if names else []
        lines += [f"- {name.removeprefix('test_').replace('_', ' ')}" for name in names]
    return "\n".join(lines).strip()


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


REGIONS: dict[str, Callable[[], str]] = {
    one.__name__: one
    for one in (
        *(settings, statuses, hooks, author, calls, machine, report, cli, kit, checks),
        *(plugins, contract),
        *(causes, drivernodes, sighting, tables, rooms),
        *(causepages, checkauthor, distributions),
        *(recordings, limits, kept, masks, tree, sysfs, known),
    )
}
"""Name of a region, as pages write it, to the function that makes it."""


@cache
def region(name: str) -> str:
    """Return what the function of that name makes."""
    return REGIONS[name]()


def names(text: str) -> list[str]:
    """Return the names of a page's generated parts."""
    return [match["name"] for match in _REGION.finditer(text)]


def filled(text: str) -> str:
    """Return a page with its generated parts."""

    def made(match: re.Match[str]) -> str:
        return f"{match['begin']}\n{region(match['name'])}\n\n{match['end']}"

    return _REGION.sub(made, text)


def main(arguments: list[str]) -> int:
    """Print the parts that are named."""
    unknown = [name for name in arguments if name not in REGIONS]
    if unknown or not arguments:
        print(f"usage: python docs/regions.py NAME...; the names are {', '.join(REGIONS)}")
        return 2
    print("\n\n".join(map(region, arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
