"""Writes a recorded machine below a folder that stands for its root."""

from __future__ import annotations

import json
import os
from errno import ENOTEMPTY

from probe_core.machine.mapped import LINKS, encoded, is_needed, table
from probe_core.recording.recording import ABOUT_PATH, ANSWERS_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.recording.recording import Recording

__all__ = ["unpack"]


def unpack(recording: Recording, folder: str) -> str:
    """Write the recording's files and links below `folder`, and return its absolute path.

    The folder is made, for its owner alone, or is empty and nobody else may write to it. Nothing
    is overwritten, and links come last, so that nothing is written through one. What the recording
    says of itself is put into ``machine.json`` and ``answers.json``. Where the system refuses its
    names and links, they are written as `machine.mapped` reads them. Raises `OSError`.
    """
    root = os.path.abspath(folder)
    _make_root(root)
    is_mapped = is_needed()
    written = encoded if is_mapped else str
    for path in sorted(recording.folders):
        os.mkdir(root + written(path), 0o700)
    for path, content in recording.files.items():
        _write(root + written(path), content)
    _write(root + ABOUT_PATH, json.dumps(recording.about(), indent=1).encode())
    if recording.answers:
        _write(root + ANSWERS_PATH, json.dumps(recording.answers, indent=1).encode())
    if is_mapped:
        _write(f"{root}/{LINKS}", table(recording.links))
        return root
    for path, target in recording.links.items():
        os.symlink(target, root + path)
    return root


def _make_root(root: str) -> None:
    try:
        os.mkdir(root, 0o700)
    except FileExistsError:
        # An empty folder is what TemporaryDirectory hands over; a full one is somebody's.
        if os.listdir(root):
            raise OSError(ENOTEMPTY, os.strerror(ENOTEMPTY), root) from None


def _write(place: str, content: bytes) -> None:
    with open(place, "xb", opener=_private) as file:
        file.write(content)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
