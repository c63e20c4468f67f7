"""Opens a recorded machine for a while, whatever it is kept in."""

from __future__ import annotations

import os
from contextlib import contextmanager

from probe_core.machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.recording.about import About
    from probe_core.recording.recording import Recording

__all__ = ["open_machine"]


@contextmanager
def open_machine(path: str) -> Iterator[Machine]:
    """Yield the machine that a folder or a file holds; for a ``with`` statement.

    A folder stands for the machine's root, or holds it as its only folder; its ``machine.json``, if
    there is one, gives `os`, `arch`, `environ`, `origin`, `access` and `answers`. A file is a
    recording in JSON or a tar archive of a root, plain or packed with gzip or xz. It is unpacked
    into a temporary folder, which is gone afterwards. Raises `BadRecording` (a `ValueError`) when
    it is no recorded machine, `OSError` when it cannot be read.
    """
    if os.path.isdir(path):
        yield _of_folder(_root(os.path.abspath(path)))
        return
    from tempfile import TemporaryDirectory

    from probe_core.recording.read import read
    from probe_core.recording.unpack import unpack

    recording = read(path)
    _check_root(path, recording)
    # Errors of the cleanup are ignored: they would hide the error that ends the command.
    with TemporaryDirectory(prefix="probe-machine-", ignore_cleanup_errors=True) as folder:
        root = unpack(recording, folder)
        yield _machine(root, recording)


def _root(folder: str) -> str:
    """Return the folder that holds proc or sys: this one, or the only one in it."""
    from probe_core.recording.errors import BadRecording, shown
    from probe_core.recording.root import MARKS, no_root

    names = sorted(os.listdir(folder))
    if any(mark in names for mark in MARKS):
        return folder
    inner = f"{folder}/{names[0]}" if len(names) == 1 else ""
    # A link may lead out of the folder, into a machine that nobody named.
    is_folder = bool(inner) and not os.path.islink(inner) and os.path.isdir(inner)
    if is_folder and any(os.path.lexists(f"{inner}/{mark}") for mark in MARKS):
        return inner
    raise BadRecording(f"{shown(folder)} is no recorded machine: {no_root(names)}")


def _check_root(path: str, recording: Recording) -> None:
    """Raise `BadRecording` for an archive of something else than a machine."""
    from probe_core.recording.errors import BadRecording, shown
    from probe_core.recording.root import is_root, no_root

    paths = (*recording.files, *recording.links)
    if not (recording.described or is_root(*paths)):
        tops = sorted({path.split("/", 2)[1] for path in paths})
        raise BadRecording(f"{shown(path)} is no recorded machine: {no_root(tops)}")


def _of_folder(root: str) -> Machine:
    from probe_core.recording.folder import about

    return _machine(root, about(root))


def _machine(root: str, facts: About | Recording) -> Machine:
    return Machine(
        root, facts.environ, facts.os, facts.arch, access=facts.access, answers=facts.answers
    )
