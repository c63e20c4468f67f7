"""Opens a recorded machine for a while, whatever it is kept in."""

from __future__ import annotations

import json
import os
import stat
from contextlib import contextmanager
from errno import ENOTEMPTY

from probe_core.machine import Machine
from probe_core.machine.mapped import LINKS, encoded, is_needed, table
from probe_core.recording.answers import check_answers
from probe_core.recording.document import ABOUT_PATH, ANSWERS_PATH, About
from probe_core.recording.paths import MAX_ABOUT, MAX_ANSWERS_FILE, BadRecording, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import TypeVar

    from probe_core.recording.document import Recording

    Checked = TypeVar("Checked")


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
        root = _root(os.path.abspath(path))
        yield machine_of(root, about(root))
        return
    from tempfile import TemporaryDirectory

    from probe_core.recording.archives import read

    recording = read(path)
    _check_root(path, recording)
    # Errors of the cleanup are ignored: they would hide the error that ends the command.
    with TemporaryDirectory(prefix="probe-machine-", ignore_cleanup_errors=True) as folder:
        yield machine_of(unpack(recording, folder), recording)


def _root(folder: str) -> str:
    """Return the folder that holds proc or sys: this one, or the only one in it."""
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
    paths = (*recording.files, *recording.links)
    if not (recording.described or is_root(*paths)):
        tops = sorted({path.split("/", 2)[1] for path in paths})
        raise BadRecording(f"{shown(path)} is no recorded machine: {no_root(tops)}")


def machine_of(root: str, facts: About | Recording) -> Machine:
    """Return the machine below a folder, of which a recording says the rest."""
    return Machine(
        root, facts.environ, facts.os, facts.arch, access=facts.access, answers=facts.answers
    )


# Reads machine.json and answers.json: what a folder that stands for a root says of itself.


def about(root: str) -> About:
    """Return what the folder's two files say; raises `BadRecording` and `OSError`."""
    machine = Machine(root)
    folder = root.rstrip("/")
    answers = _checked(folder + ANSWERS_PATH, MAX_ANSWERS_FILE, check_answers)

    def check(table: dict[str, object]) -> About:
        facts = About(table, machine.read)
        facts.answers = answers
        return facts

    return _checked(folder + ABOUT_PATH, MAX_ABOUT, check)


def _checked(path: str, limit: int, check: Callable[[dict[str, object]], Checked]) -> Checked:
    try:
        return check(_table(path, limit))
    except BadRecording as error:
        raise BadRecording(f"{shown(path)} cannot be used: {error}") from None


def _table(path: str, limit: int) -> dict[str, object]:
    try:
        with open(path, "rb", opener=_unfollowing) as file:
            # A folder of somebody else's: a device or FIFO in it would block or have no end.
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadRecording("it is no regular file")
            raw = file.read(limit + 1)
    except FileNotFoundError:
        return {}
    if len(raw) > limit:
        raise BadRecording(f"it is longer than {limit >> 10} KiB")
    from probe_core.recording.document import load_table

    return dict(load_table(raw))


def _unfollowing(path: str, flags: int) -> int:
    """Open neither a link, which could lead out of the folder, nor wait for a FIFO."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))


# Tells a machine's root from any other folder: it holds /proc or /sys, or says what it is.

MARKS = ("proc", "sys", "machine.json", "answers.json")
"""Names one of which every recorded root has at its top."""

_SHOWN = 4


def is_root(*paths: str) -> bool:
    """Return whether one of these absolute paths lies where a machine's root has files."""
    return any(
        path.startswith(("/proc/", "/sys/")) or path in ("/machine.json", "/answers.json")
        for path in paths
    )


def no_root(tops: Collection[str]) -> str:
    """Return the sentence about a folder or archive with these names at its top."""
    names = ", ".join([*tops][:_SHOWN]) + (", …" if len(tops) > _SHOWN else "")
    held = f"it holds {names}" if tops else "it is empty"
    return (
        f"{held}, but neither proc nor sys nor machine.json; name the folder that holds them, or"
        " make a recording with `probe record`"
    )


# Writes a recorded machine below a folder that stands for its root.


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
