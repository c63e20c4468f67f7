"""A prober's process that stays and answers round after round, as the parent sees it.

The same frames, limits and ends as of a `Run`. What differs: it is over whenever nothing is waited
for, its deadline is that of the round, and what counts against a flood is counted anew each round.
"""

from __future__ import annotations

from probe_core.isolation import MAX_DEVICES
from probe_core.isolation.run import Run
from probe_core.wording import INVALID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.isolation.messages import RoundMessage
    from probe_core.registry.prober import Prober

__all__ = ["Resident"]

LONGEST = 5
"""Times as long as one device may a round take: eight GPUs with a slow driver still answer, and a
sampler that announces devices for ever ends."""


class Resident(Run):
    """One process of a sampler.

    `round` is what it was asked last. `samples` are those of that round as decoded, not yet
    validated; `answer` is how the round ended, a status and a reason, None while it lasts.
    `seconds` is what the round may take, in the first one with the import of the module.
    """

    resident = True

    def __init__(
        self, prober: Prober, token: str, mark: str, started: float, first: RoundMessage
    ) -> None:
        self.round = self._first = first
        self.samples: list[Any] = []
        self.answer: tuple[str, str | None] | None = None
        self.answered_device: str | None = None
        self.seconds = prober.deadline_s
        super().__init__(prober, token, mark, started, avoid=frozenset(first["avoid"]))
        self._until = self.deadline

    @property
    def over(self) -> bool:
        """Whether nothing is waited for: the round was answered, or the process has ended."""
        return self.status is not None or self.answer is not None

    @property
    def due(self) -> float:
        """When to call `pass_time`."""
        return self.deadline

    @property
    def initial(self) -> bool:
        """Whether the round is its first, in which it also imports and initialises."""
        return self.round is self._first

    def begin(self, message: RoundMessage, now: float) -> None:
        """Note that a round begins, which may take its own seconds."""
        self.round, self.samples, self.findings = message, [], []
        self.answer = self.answered_device = None
        self.seconds = message["seconds"]
        self.deadline = now + self.seconds
        self._until = now + self.seconds * LONGEST
        self.patience.answered()
        self.forgive()

    def pass_time(self, now: float) -> None:
        """End the process at the round's deadline."""
        if now >= self.deadline:
            self.expire(now)

    def expire(self, now: float) -> None:
        """End the process because its round took too long."""
        device = f" over {self.patience.device}" if self.patience.device else ""
        step = "importing its module" if self.phase in ("start", "import") else "its round"
        self.finish("timeout", f"{step} took longer than {self.seconds:g} s{device}", now)

    def _take_frame(self, kind: str, frame: dict[str, Any], now: float) -> None:
        if kind == "sample":
            self._take_sample(frame["sample"], now)
        elif kind == "oversize" and frame["of"] == "sample":
            # Refused by name where samples are checked: without a trace a device would vanish.
            self._take_sample({INVALID: f"a sample of {frame['bytes']} bytes"}, now)
        elif kind == "round":
            if frame["number"] == self.round["number"]:
                self.answered_device = self.patience.device
                self.answer = str(frame["status"]), frame.get("reason")
                self.patience.answered()
        else:
            super()._take_frame(kind, frame, now)
            if kind == "touching":
                self._wait_anew(now)

    def _wait_anew(self, now: float) -> None:
        """Give the device that is asked now its own time: many slow ones are not a hang.

        What was for the import and the library's start is over, too.
        """
        self.seconds = self.round["seconds"]
        self.deadline = min(now + self.seconds, self._until)

    def _take_sample(self, sample: Any, now: float) -> None:
        if len(self.samples) >= MAX_DEVICES:
            self.finish("resource", f"more than {MAX_DEVICES} samples", now)
        else:
            self.samples.append(sample)
            self.patience.answered()
            self._wait_anew(now)
