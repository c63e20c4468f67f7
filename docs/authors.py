"""The generated parts of the reference that authors of probers read."""

from __future__ import annotations

import ast

import source
from sections import first_line, function, section, table

__all__ = ["author", "checks", "hooks", "kit", "machine", "sysfs", "tree"]


def hooks() -> str:
    """Every hook with its exact signature."""
    return "\n\n".join(function(one) for one in source.functions("probe_core/hookspecs.py"))


def author() -> str:
    """Everything a prober's author imports from `probe_core.api`."""
    path = "probe_core/api.py"
    parts = [function(one) for one in source.functions(path)]
    return "\n\n".join([*parts, section(path, "Unavailable"), section(path, "Request")])


def machine() -> str:
    """The `Machine` and its methods."""
    path = "probe_core/machine/__init__.py"
    methods = [function(one, "Machine.") for one in source.functions(path, "Machine")]
    return "\n\n".join([section(path, "Machine"), *methods])


def kit() -> str:
    """The contract kit: the class to subclass, its case, and every check."""
    path = "probe_core/testing/contract.py"
    contract = source.classes(path)["ProberContract"]
    parts = [f"### `ProberContract`\n\n{source.docstring(contract)}"]
    parts += [function(one, "ProberContract.") for one in source.functions(path, "ProberContract")]
    parts.append(section("probe_core/testing/case.py", "Case"))
    return "\n\n".join(parts)


def tree() -> str:
    """The builder of invented machines, for tests."""
    path = "probe_core/testing/tree.py"
    methods = [function(one, "Tree.") for one in source.functions(path, "Tree")]
    return "\n\n".join([section(path, "Tree"), *methods])


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
        parts.append(section(path, kind))
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
        lines += [f"\n**{base.__name__}**: {first_line(base)}\n"] if names else []
        lines += [f"- {name.removeprefix('test_').replace('_', ' ')}" for name in names]
    return "\n".join(lines).strip()
