"""Tells a machine's root from any other folder: it holds /proc or /sys, or says what it is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["MARKS", "is_root", "no_root"]

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
