"""The one way to lay out a data file, so that a diff shows facts and nothing else."""

import os
import re
from collections.abc import Iterator

from probe_chipdb.entry.fields import CHIP
from probe_chipdb.entry.files import MAX_BYTES
from probe_chipdb.entry.folder import toml_files
from probe_chipdb.entry.problem import Problem
from probe_chipdb.tools.repository import data_root, schema_line

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
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(laid_out)
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
