"""Writes a recorded machine below a folder that stands for its root."""

from __future__ import annotations

import errno
import json
import os

from probe_core.recording.recording import ABOUT_PATH, ANSWERS_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.recording.recording import Recording

__all__ = ["unpack"]


def unpack(recording: Recording, folder: str) -> str:
    """Write the recording's files and links below `folder`, and return its absolute path.

    The folder is made, for its owner alone, or is empty and nobody else may write to it. Nothing
    is overwritten, and links come last, so that nothing is written through one. What the recording
    says of itself is put into ``machine.json`` and ``answers.json``. Raises `OSError`.
    """
    # PCI addresses hold colons (0000:01:00.0), which Windows reads as a stream of a file.
    if os.sep != "/":
        raise OSError(errno.ENOTSUP, "a recording's names hold colons, which this system refuses")
    root = os.path.abspath(folder)
    _make_root(root)
    for path in sorted(recording.folders):
        os.mkdir(root + path, 0o700)
    for path, content in recording.files.items():
        _write(root + path, content)
    _write(root + ABOUT_PATH, json.dumps(recording.about(), indent=1).encode())
    if recording.answers:
        _write(root + ANSWERS_PATH, json.dumps(recording.answers, indent=1).encode())
    for path, target in recording.links.items():
        os.symlink(target, root + path)
    return root


def _make_root(root: str) -> None:
    try:
        os.mkdir(root, 0o700)
    except FileExistsError:
        # An empty folder is what TemporaryDirectory hands over; a full one is somebody's.
        if os.listdir(root):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), root) from None


def _write(place: str, content: bytes) -> None:
    with open(place, "xb", opener=_private) as file:
        file.write(content)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
