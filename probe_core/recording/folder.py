"""Reads machine.json and answers.json: what a folder that stands for a root says of itself."""

from __future__ import annotations

import os
import stat

from probe_core.recording.about import About
from probe_core.recording.answers import check_answers
from probe_core.recording.errors import BadRecording, shown
from probe_core.recording.limits import MAX_ABOUT, MAX_ANSWERS_FILE
from probe_core.recording.recording import ABOUT_PATH, ANSWERS_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Checked = TypeVar("Checked")

__all__ = ["about"]


def about(root: str) -> About:
    """Return what the folder's two files say; raises `BadRecording` and `OSError`."""
    from probe_core.machine import Machine

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
