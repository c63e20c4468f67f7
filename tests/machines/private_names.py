"""The core as it is on an interpreter whose private names are absent, or work otherwise.

`PRIVATE_NAMES=absent python -m pytest` has all tests run with such a core, and `changed` with the
other one. It is a copy of the core before the real one on the path, which differs in `fastpath.py`
alone: processes that are started find the same copy, whatever flags they are started with.
"""

from __future__ import annotations

import ast
import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

__all__ = ["HOW", "REPOSITORY", "copy", "is_private", "put_on_path"]

HOW = ("absent", "changed")
"""In which ways private names may surprise."""

REPOSITORY = Path(__file__).resolve().parents[2]

_SUFFIX = "-probe-core-private-names"

_CHANGED = """
def _changed(*_, **__):
    raise TypeError("it takes other arguments than it did")

class _Changed:
    def __getattr__(self, name):
        return _changed
"""


def is_private(module: str | None) -> bool:
    """Return whether a module is private to the interpreter, by its name."""
    return bool(module) and str(module).startswith("_") and module not in {"__future__", "__main__"}


class _Surprise(ast.NodeTransformer):
    """Replaces what is imported from private modules, and private attributes of public ones."""

    def __init__(self, how: str) -> None:
        self.changed = how == "changed"

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        names = [alias.asname or alias.name for alias in node.names if is_private(alias.name)]
        return self._instead(names, "_Changed()") if names else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        if node.level or not is_private(node.module):
            return node
        return self._instead([alias.asname or alias.name for alias in node.names], "_changed")

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not node.attr.startswith("_") or node.attr.startswith("__"):
            return node
        if isinstance(node.value, ast.Name) and node.value.id in sys.stdlib_module_names:
            return ast.Name("_changed") if self.changed else ast.Attribute(node.value, "absent")
        return node

    def _instead(self, names: list[str], value: str) -> list[ast.stmt]:
        if not self.changed:
            return ast.parse("raise ImportError('it is absent')").body
        return [line for name in names for line in ast.parse(f"{name} = {value}").body]


def _surprised(source: str, how: str) -> str:
    module = _Surprise(how).visit(ast.parse(source))
    # Behind the import of annotations from __future__, which must come first.
    module.body[2:2] = ast.parse(_CHANGED).body
    return ast.unparse(ast.fix_missing_locations(module))


def copy(folder: Path, how: str) -> Path:
    """Make a copy of the core in a folder, with surprises of that kind; return the folder."""
    core = folder / "probe_core"
    # Whoever imports the core meanwhile writes bytecode under names that soon are gone.
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "probe_core", core, ignore=ignored)
    fastpath = core / "fastpath.py"
    fastpath.write_text(_surprised(fastpath.read_text("utf-8"), how), "utf-8")
    return folder


def put_on_path(how: str) -> None:
    """Put a copy before the real core, in this process and in those that it starts."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if not path[0].endswith(_SUFFIX):  # a worker of pytest-xdist takes the copy of its parent
        folder = copy(Path(tempfile.mkdtemp(suffix=_SUFFIX)), how)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    sys.path.insert(0, path[0])
