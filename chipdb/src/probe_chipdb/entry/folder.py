"""Reads a whole data folder: sources/*.toml, arch/*.toml, chips/<vendor>/<family>.toml.

publishers/*.toml says which distributions may add to which vendors' namespaces.
"""

import os
from collections.abc import Iterator

from probe_chipdb.entry.files import read
from probe_chipdb.entry.validate import Data

_KINDS = {"sources": "source", "arch": "arch"}


def read_folder(root: str) -> Data:
    """Every entry under `root`, in the order of the file names."""
    data = Data()
    for path in toml_files(root):
        label = root if path == root else os.path.relpath(path, root)
        tables, problems = read(path, label)
        data.problems += problems
        folder = label.partition(os.sep)[0]
        kind = _KINDS.get(folder)
        if folder == "publishers":
            data.add_publishers(label, tables)
        elif kind:
            data.add_named(kind, label, tables)
        else:
            data.add_chips(label, tables)
    return data


def toml_files(root: str) -> Iterator[str]:
    """Every TOML file under a folder, sorted; or the one file itself.

    Without pyproject.toml: a package's own folder holds it beside the chips.
    """
    if os.path.isfile(root):
        yield root
    for folder, folders, names in os.walk(root):
        folders.sort()
        chosen = (name for name in sorted(names) if name.endswith(".toml"))
        yield from (os.path.join(folder, name) for name in chosen if name != "pyproject.toml")
