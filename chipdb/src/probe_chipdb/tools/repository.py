"""Checks what the tests of this repository hold its data to, so that green here is green there."""

import os

from probe_chipdb.entry.folder import toml_files
from probe_chipdb.entry.pack import texts
from probe_chipdb.entry.problem import Problem
from probe_chipdb.spelling import is_generic, normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.database import Database
    from probe_chipdb.entry.validate import Data

_KINDS = ("chips", "arch", "sources", "publishers")


def data_root(path: str) -> str:
    """The data folder that a path lies in (one with arch/ and chips/), or the empty text."""
    folder = os.path.abspath(path)
    while os.path.dirname(folder) != folder:
        if all(os.path.isdir(os.path.join(folder, kind)) for kind in ("arch", "chips")):
            return folder
        folder = os.path.dirname(folder)
    return ""


def schema_line(root: str, path: str) -> str:
    """The first line by which editors find the schema of a file of this repository; else empty."""
    kind, _, inner = os.path.relpath(path, root).replace(os.sep, "/").partition("/")
    if kind not in _KINDS or not os.path.isdir(os.path.dirname(_table_folder(root))):
        return ""
    up = "../" * (inner.count("/") + 2)
    return f"#:schema {up}schema/{kind}.schema.json"


def problems(root: str, data: "Data", db: "Database") -> "Iterator[Problem]":
    """Schema lines, entries that their own keys do not find, and a built table that is older."""
    yield from _schema_lines(root)
    yield from _unreachable(data, db)
    yield from _table(root, data)


def _schema_lines(root: str) -> "Iterator[Problem]":
    for path in toml_files(root):
        line = schema_line(root, path)
        if not line:
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            first = file.readline().rstrip("\n")
        if first != line:
            label = os.path.relpath(path, root)
            fault = "the first line does not name the schema"
            yield Problem(label, "line 1", "", fault, f"write {line}, or run check --fix")


def _unreachable(data: "Data", db: "Database") -> "Iterator[Problem]":
    """Names and ids of an entry under which the table answers other chips alone."""
    for id_, chip in data.chips.items():
        for field, name in (
            ("name", chip["name"]),
            *(("aliases", alias) for alias in chip.get("aliases", ())),
        ):
            if is_generic(normalise(name)):
                continue  # references says what is wrong with one that means a single chip
            match = db.match(name=name)
            answers = (match.chip, *match.candidates)
            if all(answer is None or answer.id != id_ for answer in answers):
                fault = f"{name!r} does not find this chip: {match.reason or match.chip}"
                fix = "remove it, or give it to the chip that it means"
                yield Problem(data.where[f"chip:{id_}"], f"chip {id_!r}", field, fault, fix)


def _table(root: str, data: "Data") -> "Iterator[Problem]":
    """In this repository the table that was built, if one was, must be that of the data."""
    folder = built_folder(root)
    if not folder:
        return
    for name, text in texts(data).items():
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8", newline="") as file:
            if name == "index.txt":
                file.readline()  # format and version
            if file.read() != text:
                fault = "the built table is older than the data"
                yield Problem(path, "", "", fault, "run `python -m probe_chipdb build`")
                return


def built_folder(root: str) -> str:
    """Where the table of this repository's data was built; empty for other data, and before."""
    folder = _table_folder(root)
    return folder if os.path.exists(os.path.join(folder, "index.txt")) else ""


def _table_folder(root: str) -> str:
    return os.path.join(os.path.dirname(root), "src", "probe_chipdb", "table")
