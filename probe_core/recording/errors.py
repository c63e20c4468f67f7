"""The error of recordings, and how its messages show text of unknown origin."""

from __future__ import annotations

from probe_core.wording import clean_text

__all__ = ["BadRecording", "shown"]


class BadRecording(ValueError):
    """A file that is no recorded machine, or one that could do harm; the message says why."""


def shown(text: object) -> str:
    """Return text of unknown origin in quotes, fit for one line of a message."""
    return f"'{clean_text(str(text), 120)}'"
