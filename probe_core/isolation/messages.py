"""Types of what parent and child send each other.

For type checkers alone: no module imports this while it runs, so that `typing` costs no child its
start.
"""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["RequestMessage", "RoundMessage"]


class RoundMessage(TypedDict):
    """One round that a resident process is asked for; `close` asks it to end instead."""

    number: int
    seconds: float
    avoid: list[str]
    asleep: list[str]
    close: bool


class RequestMessage(TypedDict):
    """What the parent asks of a child, as marshal data behind eight digits that give its size."""

    token: str
    paths: list[str]
    target: str
    needs_site: bool
    origin: str | None
    deadline_s: float
    ends: float
    active: bool
    root: str
    environ: dict[str, str]
    os: str
    arch: str
    bus: list[Any]
    avoid: list[str]
    serial: bool
    round: RoundMessage | None
