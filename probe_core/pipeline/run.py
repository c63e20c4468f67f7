"""One probe from beginning to end: run the probers, then conclude; each step timed.

Children start before anything is imported that only their answers need: a library answers after
tens of milliseconds, in which the processor has time for it (see `conclude`).
"""

from __future__ import annotations

from time import monotonic

from probe_core.pipeline.run_probers import Cancelled, ProberRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_core.config import Config, IgnoredSetting
    from probe_core.isolation.launch import Waiting
    from probe_core.machine import Machine
    from probe_core.model.document import ReportDoc
    from probe_core.pipeline.conclude import Conclusion
    from probe_core.registry.discover import Registered
    from probe_core.registry.host import Host

__all__ = ["Cancelled", "run_pipeline"]


class Stopwatch:
    """Milliseconds per step."""

    __slots__ = ("_last", "_start", "laps")

    def __init__(self) -> None:
        self._start = self._last = monotonic()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Note the time since the last lap under `name`."""
        now = monotonic()
        self.laps[name] = round((now - self._last) * 1000, 3)
        self._last = now

    def total(self) -> dict[str, float]:
        """Return all laps and their sum."""
        return {**self.laps, "total": round((monotonic() - self._start) * 1000, 3)}


def run_pipeline(
    machine: Machine,
    config: Config,
    ignored: Sequence[IgnoredSetting] = (),
    *,
    registered: Mapping[str, Registered] | None = None,
    host: Host | None = None,
    wake_fd: int = -1,
    waiting: Waiting | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> ReportDoc:
    """Probe `machine` and return the report's document.

    `ignored` are the settings that could not be used; `waiting` is told of probers that are slow,
    see `isolation.launch.run_probers`. `meanwhile` is called once while plugins run, if any does.
    Raises `Cancelled` when `wake_fd` became readable, and nothing else that a prober could cause.
    """
    watch = Stopwatch()
    run = ProberRun(machine, config, host)
    run.waiting = waiting
    conclusion: Conclusion | None = None

    def rehearse() -> None:
        nonlocal conclusion
        conclusion = _conclusion(run, wake_fd)
        conclusion.rehearse()
        if meanwhile is not None:
            meanwhile()

    run.scan_buses(watch.lap)
    run.run_plugins(registered or {}, wake_fd, watch.lap, rehearse)
    # Without a child nothing was rehearsed.
    conclusion = conclusion or _conclusion(run, wake_fd)
    return conclusion.document(ignored, watch)


def _conclusion(run: ProberRun, wake_fd: int) -> Conclusion:
    from probe_core.pipeline.conclude import Conclusion

    return Conclusion(run, wake_fd)
