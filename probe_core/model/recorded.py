"""Types of what a recording keeps of the probers that asked more than files.

For type checkers alone: no module imports this while it runs. What each key means is on the page
about recordings, docs/reference/recording.md.
"""

from __future__ import annotations

from typing import Any, Literal, Required, TypedDict

from probe_core.model.document import OutcomeFacts

__all__ = ["Frame", "RecordedAnswer"]


class Frame(TypedDict, total=False):
    """One part of an answer; which keys there are depends on `kind`."""

    kind: Required[Literal["device", "finding", "rejected", "unresponsive", "end"]]
    device: Any  # of a device: a sighting; of an unresponsive one: its id
    finding: Any  # checked when it is replayed, as a live one is
    ids: list[str]
    how: Literal["hangs", "crashes", "raises"]
    status: str
    reason: str | None
    stuck_at: str
    facts: OutcomeFacts
    abandoned: bool


class RecordedAnswer(TypedDict):
    """What one prober answered, and who it was."""

    distribution: str
    version: str
    api: str
    priority: int
    deadline_s: float
    elapsed_ms: float
    vendors: list[str]
    frames: list[Frame]
