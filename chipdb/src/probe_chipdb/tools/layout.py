"""The one way to lay out a data file, so that a diff shows facts and nothing else."""

import os
import re
from collections.abc import Iterator

from probe_chipdb.entry.fields import CHIP
from probe_chipdb.entry.files import MAX_BYTES, toml_files
from probe_chipdb.entry.pack import texts
from probe_chipdb.entry.spec import Problem
from probe_chipdb.spelling import is_generic, normalise
from probe_chipdb.tools.writing import replace_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database
    from probe_chipdb.entry.validate import Data


# Checks what the tests of this repository hold its data to, so that green here is green there.

_KINDS = ("chips", "arch", "formats", "names", "sources", "publishers")


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


def repository_problems(root: str, data: "Data", db: "Database") -> "Iterator[Problem]":
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


_KEY = re.compile(r"([\w-]+)\s*=\s*")
_ORDER = {key: at for at, key in enumerate(CHIP)}


def problems(root: str) -> Iterator[Problem]:
    """Where a file differs from its canonical layout; `check --fix` writes it."""
    for path in toml_files(root):
        text = _read(path)
        if text is None or canonical(text) == text:
            continue
        label = os.path.relpath(path, root) if os.path.isdir(root) else path
        line = _first_difference(text, canonical(text))
        fault, fix = "is not laid out canonically", "run check --fix"
        yield Problem(label, f"line {line}", "", fault, fix, "warning")


def _read(path: str) -> str | None:
    """The text, or None for a file that the reader has refused already."""
    try:
        if os.path.getsize(path) > MAX_BYTES:
            return None
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def fix(root: str) -> list[str]:
    """Write every file canonically; the paths that changed."""
    changed = []
    for path in toml_files(root):
        text = _read(path)
        if text is None:
            continue
        laid_out = canonical(with_schema(text, path))
        if laid_out == text:
            continue
        replace_text(path, laid_out)
        changed.append(path)
    return changed


def with_schema(text: str, path: str) -> str:
    """The text with the first line that names its schema, in a data folder that has schemas."""
    root = data_root(path)
    line = schema_line(root, path) if root else ""
    if not line or text.startswith(line + "\n"):
        return text
    if text.startswith("#:schema "):
        text = text.partition("\n")[2]
    return f"{line}\n{text}"


def canonical(text: str) -> str:
    """LF, no trailing blanks, one empty line before a table, chip keys in order.

    A file with a text over several lines is left as it is: blanks may matter there.
    """
    if '"""' in text or "'''" in text:
        return text
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    out: list[str] = []
    for block in _blocks(lines):
        if out:
            out.append("")
        out += _ordered(block) if block and block[_head(block)] == "[[chip]]" else block
    return "\n".join(out) + "\n"


def _blocks(lines: list[str]) -> list[list[str]]:
    """Tables with the comments above them; empty lines between dropped."""
    blocks: list[list[str]] = [[]]
    waiting: list[str] = []
    gap = False
    for line in lines:
        if not line:
            gap = True
            blocks[-1] += waiting
            waiting = []
            continue
        if line.startswith("["):
            blocks.append([*waiting, line])
            waiting = []
        elif line.startswith("#") and (gap or waiting):
            waiting.append(line)
        else:
            blocks[-1] += [*waiting, line]
            waiting = []
        gap = False
    blocks[-1] += waiting
    return [block for block in blocks if block]


def _head(block: list[str]) -> int:
    return next((at for at, line in enumerate(block) if line.startswith("[")), 0)


def _ordered(block: list[str]) -> list[str]:
    """A chip's keys in the order of the format; lines that continue a value stay with it."""
    head = _head(block) + 1
    entries: list[tuple[int, list[str]]] = []
    comments: list[str] = []
    depth = 0
    for line in block[head:]:
        key = _KEY.match(line)
        if depth == 0 and line.startswith("#"):
            comments.append(line)
            continue
        if depth == 0 and key:
            entries.append(
                (_ORDER.get(key[1], len(_ORDER)), [*comments, _KEY.sub(r"\1 = ", line, count=1)])
            )
            comments = []
        elif entries:
            entries[-1][1].append(line)
        else:
            return block
        depth += _opened(line)
    ordered = [line for _, lines in sorted(entries, key=lambda entry: entry[0]) for line in lines]
    return [*block[:head], *ordered, *comments]


def _opened(line: str) -> int:
    """Brackets opened and not closed, outside texts and comments."""
    bare = re.sub(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*', "", line)
    return sum(bare.count(c) for c in "[{") - sum(bare.count(c) for c in "]}")


def _first_difference(text: str, expected: str) -> int:
    """The number of the first line that differs."""
    pairs = zip(text.split("\n"), expected.split("\n"), strict=False)
    return next((at for at, (a, b) in enumerate(pairs, 1) if a != b), 1)
