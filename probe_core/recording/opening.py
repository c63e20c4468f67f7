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

    A folder stands for the machine's root; its ``machine.json``, if there is one, gives `os`,
    `arch`, `environ`, `origin`, `access` and `answers`. A file is a recording in JSON or a tar
    archive of a root, plain or packed with gzip or xz. It is unpacked into a temporary folder,
    which is gone afterwards. Raises `BadRecording` (a `ValueError`) when it is no recorded machine,
    `OSError` when it cannot be read.
    """
    if os.path.isdir(path):
        yield _of_folder(os.path.abspath(path))
        return
    from tempfile import TemporaryDirectory

    from probe_core.recording.read import read
    from probe_core.recording.unpack import unpack

    recording = read(path)
    # Errors of the cleanup are ignored: they would hide the error that ends the command.
    with TemporaryDirectory(prefix="probe-machine-", ignore_cleanup_errors=True) as folder:
        root = unpack(recording, folder)
        yield _machine(root, recording)


def _of_folder(root: str) -> Machine:
    from probe_core.recording.folder import about

    return _machine(root, about(root))


def _machine(root: str, facts: About | Recording) -> Machine:
    return Machine(
        root, facts.environ, facts.os, facts.arch, access=facts.access, answers=facts.answers
    )
