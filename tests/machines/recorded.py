"""Unpacks a recorded machine: one readable JSON file becomes the folder that stands for its root.

    python tests/machines/recorded.py FILE.json FOLDER      # then: probe --machine FOLDER

The file holds ``files`` (path to text, or to a list of lines), ``links`` (path to a relative
target, as the kernel writes them), ``origin`` and what is expected of a report. A file is foreign
data, so nothing in it may be large or lead out of the folder.
"""

from __future__ import annotations

import json
import os
import posixpath
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
MAX_FILE, MAX_TEXT, MAX_ENTRIES = 8 << 20, 1 << 20, 20_000
KEYS = {"schema", "os", "arch", "environ", "origin", "files", "links", "expect", "with"}


class BadRecording(ValueError):
    """The file is no recorded machine; the message says what is wrong with it."""


def names() -> list[str]:
    """Return the names of all recorded machines; each says what is expected of it."""
    return sorted(path.stem for path in FOLDER.glob("*--*.json"))


def read(name: str | Path) -> dict[str, Any]:
    """Return a recording by its name in this folder, or by its path; raises `BadRecording`."""
    path = name if isinstance(name, Path) else FOLDER / f"{name}.json"
    if path.stat().st_size > MAX_FILE:
        raise BadRecording(f"{path.name} is longer than {MAX_FILE >> 20} MiB")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    _check(data)
    return data


def _check(data: dict[str, Any]) -> None:
    if data.get("schema") != 1:
        raise BadRecording("it is no recording of schema 1")
    if set(data) - KEYS:
        raise BadRecording(f"unknown keys: {', '.join(sorted(set(data) - KEYS))}")
    if not str(data.get("origin", "")).startswith(("recorded", "invented")):
        raise BadRecording("its origin must begin with 'recorded' or 'invented'")
    if len(data["files"]) + len(data["links"]) > MAX_ENTRIES:
        raise BadRecording(f"more than {MAX_ENTRIES} files and links")
    for path in [*data["files"], *data["links"]]:
        if not path.startswith("/") or posixpath.normpath(path) != path or "\0" in path:
            raise BadRecording(f"{path!r} is not a plain absolute path")
    for path, target in data["links"].items():
        _check_link(path, target)


def _check_link(path: str, target: str) -> None:
    """Refuse what would leave the folder; followed links are checked by `Machine` itself."""
    if target.startswith("/"):
        raise BadRecording(f"{path}: an absolute target would lead out of the folder")
    depth = posixpath.dirname(path).count("/") if posixpath.dirname(path) != "/" else 0
    for part in target.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            raise BadRecording(f"{path}: its target {target!r} leads out of the folder")


def unpack(data: dict[str, Any], folder: str | Path) -> Path:
    """Write the machine's files and links below `folder`; raises `BadRecording`."""
    _check(data)
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    files = data["files"]
    if files:  # where `probe --machine` looks for it
        files = {"/proc/sys/kernel/arch": data.get("arch", "x86_64")} | files
    for path, content in files.items():
        text = content if isinstance(content, str) else "".join(f"{line}\n" for line in content)
        if len(text) > MAX_TEXT:
            raise BadRecording(f"{path} is longer than {MAX_TEXT >> 20} MiB")
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8"))
    for path, target in data["links"].items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        _link_target(root, place, target)
        os.symlink(target, place)
    return root


def _link_target(root: Path, place: Path, target: str) -> None:
    """Make the folder that a link names when no file did: a driver's folder is often empty."""
    there = Path(os.path.normpath(place.parent / target))
    if not there.exists() and there.is_relative_to(root):
        there.mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: recorded.py FILE.json FOLDER")
    print(unpack(read(Path(sys.argv[1])), sys.argv[2]))
