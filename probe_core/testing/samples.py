"""Runs a sampler for some rounds, as the core does, and keeps what it did in each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any

from probe_core.isolation import launch
from probe_core.isolation.resident import Resident
from probe_core.isolation.worker import Worker
from probe_core.machine import Machine
from probe_core.registry.prober import Prober
from probe_core.sampling import fates
from probe_core.testing.case import Case
from probe_core.testing.stage import VARIABLE

__all__ = ["SampledRound", "sample_case", "staged_machine"]


class SampledRound:
    """One round: the `samples` as they came, ids that were `touched`, how it ended, `seconds`.

    `status` is ``ok``, or why there are no (more) samples, with its `reason`. Of the
    last round, `closing` is how the process closed: ``ok`` or why not, and what it printed then.
    """

    closing: str | None = None
    closing_stderr: Sequence[str] = ()

    def __init__(self, run: _Watched, seconds: float) -> None:
        self.samples: list[Any] = list(run.samples)
        self.findings: list[Any] = list(run.findings)
        self.touched = list(run.touched)
        answer = run.answer or (run.status or "protocol", run.reason)
        self.status, self.reason = answer
        self.seconds = seconds
        self.pid = run.pid
        self.stderr = run.stderr_tail()


class _Watched(Resident):
    """A resident process that keeps what it announced."""

    touched: list[str]

    def _take_frame(self, kind: str, frame: dict[str, Any], now: float) -> None:
        if kind == "touching":
            self.touched.append(str(frame["device"]))
        super()._take_frame(kind, frame, now)


def sample_case(
    prober: Prober,
    case: Case,
    *,
    count: int = 2,
    avoid: Iterable[str] = (),
    asleep: Iterable[Sequence[str]] = ((),),
    pause: Any = None,
) -> list[SampledRound]:
    """Return `count` rounds of one process of the prober's sampler, which then closes.

    `asleep` has the ids of sleeping devices, round by round; the last goes on. `pause` is called
    with the number of the round before each but the first.
    """
    sleeping = list(asleep)
    rounds: list[SampledRound] = []
    driver = launch.new_driver()
    stage, machine = _staged(prober, case)

    def message(number: int) -> Any:
        names = frozenset(sleeping[min(number, len(sleeping)) - 1])
        return fates.message(number, frozenset(avoid), names)

    def work(worker: Worker) -> None:
        first = message(1)
        run = _Watched(stage, os.urandom(8).hex(), os.urandom(8).hex(), monotonic(), first)
        run.touched = []
        try:
            begin = monotonic()
            launch.start(driver, run, machine, case.bus, prober.active, first)
            for number in range(1, count + 1):
                if number > 1:
                    if pause is not None:
                        pause(number)
                    begin, run.touched = monotonic(), []
                    fates.ask(driver, run, message(number))
                driver.watch(monotonic, lambda: worker.stopping, lambda now: None)
                rounds.append(SampledRound(run, monotonic() - begin))
                if run.status is not None:
                    return
            fates.ask_to_close(driver, [run])
            rounds[-1].closing = run.status or "timeout"
        finally:
            driver.end_all(monotonic)
        rounds[-1].closing_stderr = run.stderr_tail()[len(rounds[-1].stderr) :]

    with case.surroundings():
        Worker(work, driver.start_thread).run()
    return rounds


def staged_machine(case: Case, target: str) -> Machine:
    """Return the machine on which ``probe_core.testing.stage`` samples as `target` does there."""
    orders = {"target": target, "live": case.live, "watched": False, "avoid": []}
    environ = {**case.machine.environ, VARIABLE: json.dumps(orders)}
    return Machine(case.machine.root, environ, case.machine.os, case.machine.arch)


def _staged(prober: Prober, case: Case) -> tuple[Prober, Machine]:
    """Return a prober of the kit in the prober's place, and the machine that tells it for whom."""
    stage = Prober(prober.name, "probe_core.testing.stage", prober.distribution)
    stage.deadline_s, stage.needs_site = prober.deadline_s, prober.needs_site
    return stage, staged_machine(case, prober.target)
