"""Chip tables on their way from the child that read them: texts in pieces that fit a frame."""

from __future__ import annotations

import os

from probe_core.resolve import acceptance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_chipdb.database import Added
    from probe_chipdb.table import Table

__all__ = ["pieces_of", "read_in_pieces", "refused_of", "size_of_all", "tables_of"]

_TEXT = 4000
"""Characters of one piece: a frame cuts longer texts."""

_PIECES = 100
"""Pieces of one frame: 400 kB, less than half of what it may hold, for what JSON must escape."""

_MAX_FILES = 1000
"""Files that are counted. Packages with more count as too much for the host."""

MAX_PROBLEMS = 64
"""Sentences about what was left out."""


def read_in_pieces(files: Iterable[str], packages: bool) -> Iterator[dict[str, object]]:
    """Read chip files of the site and of packages; yield what makes the same tables elsewhere."""
    import probe_chipdb

    accept = acceptance()
    reasons = {path: accept(path) if os.path.exists(path) else None for path in files}
    trusted = [path for path, reason in reasons.items() if reason is None]
    database = probe_chipdb.load(extra=trusted, packages=packages, accept=accept)
    added = [table for table in database.tables() if table.origin != "probe-chipdb"]
    yield from pieces_of(added, database.problems)
    yield {"refused": {path: reason for path, reason in reasons.items() if reason}}


def pieces_of(tables: Iterable[Table], problems: Iterable[str]) -> Iterator[dict[str, object]]:
    """Yield what makes the same tables again."""
    from probe_chipdb.table import FILES

    for table in tables:
        texts = {name: getattr(table, name.removesuffix(".txt")).data.decode() for name in FILES}
        for name in ("rules", "formats"):  # an older chipdb has none of packages
            if text := getattr(table, name, ""):
                texts[f"{name}.txt"] = text
        for name, text in texts.items():
            parts = [text[at : at + _TEXT] for at in range(0, len(text), _TEXT)] or [""]
            for at in range(0, len(parts), _PIECES):
                frame = parts[at : at + _PIECES]
                yield {"origin": table.origin, "file": name, "text": frame}
    yield {"problems": list(problems)[:MAX_PROBLEMS]}


def tables_of(pieces: Iterable[object]) -> Added:
    """Return the sites' tables, the packages', and the sentences about what was left out."""
    from probe_chipdb.table import Table

    texts: dict[str, dict[str, list[str]]] = {}
    problems: list[str] = []
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        problems += _texts(piece.get("problems"))
        origin, file = piece.get("origin"), piece.get("file")
        if isinstance(origin, str) and isinstance(file, str):
            texts.setdefault(origin, {}).setdefault(file, []).extend(_texts(piece.get("text")))
    tables = [
        Table(origin, "", {name: "".join(parts).encode() for name, parts in files.items()})
        for origin, files in texts.items()
    ]
    sites = [table for table in tables if table.origin.startswith("site:")]
    packages = [table for table in tables if not table.origin.startswith("site:")]
    return sites, packages, tuple(problems[:MAX_PROBLEMS])


def refused_of(pieces: Iterable[object]) -> dict[str, str]:
    """Return the site's files that root must not use, and why."""
    return {
        str(path): str(reason)
        for piece in pieces
        if isinstance(piece, dict) and isinstance(piece.get("refused"), dict)
        for path, reason in piece["refused"].items()
    }


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def size_of_all(extra: Iterable[str], packages: bool, limit: int) -> int:
    """Return the bytes of all chip files of the site and of packages, or more than `limit`."""
    try:
        size = sum(os.stat(path).st_size for path in extra if os.path.isfile(path))
        for count, path in enumerate(_files_of_packages() if packages else ()):
            size += os.stat(path).st_size
            if count > _MAX_FILES or size > limit:
                return max(size, limit + 1)
    except (ImportError, OSError, ValueError, AttributeError):  # chipdb itself says what is wrong
        return 0
    return size


def _files_of_packages() -> Iterator[str]:
    from probe_chipdb.packages import find

    for package in find():
        for folder, _, names in os.walk(package.folder) if package.folder else ():
            yield from (os.path.join(folder, name) for name in names if name.endswith(".toml"))
