"""Runs a prober's sampler for some rounds in the process of the tests, where faults are seen.

`probe_core.testing.checks_sampling.sample_case` does it in a process, as the core does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from probe_core.api import NotApplicable, SampleRequest, Unavailable
from probe_core.testing import Case


class Round(NamedTuple):
    """What one round gave, as a `SampledRound` has it."""

    samples: list[Any]
    findings: list[Any]
    touched: list[str]
    status: str = "ok"
    reason: str | None = None


def sample_here(
    hooks: ModuleType,
    case: Case,
    *,
    count: int = 2,
    avoid: Sequence[str] = (),
    asleep: Sequence[Sequence[str]] = ((),),
    pause: Callable[[int], None] | None = None,
) -> list[Round]:
    """Return the rounds of a sampler that `hooks.open_sampler` opens, until one is none."""
    rounds: list[Round] = []
    sampler: Any = None
    case.machine.live = case.machine.live or case.live
    for number in range(1, count + 1):
        if number > 1 and pause is not None:
            pause(number)
        found = Round([], [], [])
        request = SampleRequest(
            case.machine,
            case.bus,
            avoid=avoid,
            asleep=asleep[min(number, len(asleep)) - 1],
            number=number,
            announce=lambda kind, device, touched=found.touched: touched.append(device),
        )
        try:
            sampler = sampler or hooks.open_sampler(request)
            answer = sampler if isinstance(sampler, NotApplicable) else sampler.sample(request)
            if isinstance(answer, NotApplicable):
                return [*rounds, found._replace(status="not_applicable", reason=answer.reason)]
            for item in answer:
                (found.findings if "finding" in item else found.samples).append(
                    item.get("finding", item)
                )
        except Unavailable as error:
            return [*rounds, found._replace(status="unavailable", reason=error.reason)]
        rounds.append(found)
    if hasattr(sampler, "close"):
        sampler.close()
    return rounds
