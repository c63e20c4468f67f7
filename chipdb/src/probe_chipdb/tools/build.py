"""`build`: packs the data folder into the table that the wheel carries. Same data, same bytes."""

import os

from probe_chipdb._version import __version__
from probe_chipdb.entry.folder import read_folder
from probe_chipdb.entry.pack import texts
from probe_chipdb.entry.problem import Problem
from probe_chipdb.table import FORMAT


def build(folder: str, into: str) -> list[Problem]:
    """Write the table of a data folder; the problems of entries that were left out.

    Files that would not change are not touched, so that a build of an unchanged tree is no change.
    """
    data = read_folder(folder)
    os.makedirs(into, exist_ok=True)
    for name, text in rendered(texts(data)).items():
        path = os.path.join(into, name)
        if _read(path) != text:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
    return data.problems


def rendered(files: dict[str, str]) -> dict[str, str]:
    """The files with the one line that gives a reader format and version."""
    return {**files, "index.txt": f"#probe-chipdb {FORMAT} {__version__}\n{files['index.txt']}"}


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except OSError:
        return None
