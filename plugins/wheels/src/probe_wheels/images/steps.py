"""What an answer is made of: the words, and the step that says one.

A step without data is "unknown", never "ok".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

RUNS, LESS, NO, UNKNOWN = "runs", "less", "no", "unknown"


class Step:
    """One step: its name, "ok", "less", "no" or "unknown", one sentence, where, and what mends it.

    `place` is the file or variable of the image that decided, "" where the node did. `ends` is
    whether a "no" ends programs, too, that use the CPU where they find no GPU.
    """

    __slots__ = ("ends", "fix", "name", "place", "reason", "word")

    def __init__(
        self,
        name: str,
        word: str,
        reason: str,
        place: str = "",
        fix: str = "",
        *,
        ends: bool = False,
    ) -> None:
        self.name = name
        self.word = word
        self.reason = reason
        self.place = place
        self.fix = fix
        self.ends = ends


def worst(steps: Iterable[Step]) -> str:
    """Return the word for all steps together: a firm "no" first, "runs" where none speaks."""
    words = {step.word for step in steps}
    return next((word for word in (NO, UNKNOWN, LESS) if word in words), RUNS)
