"""Runs a prober's sampler for some rounds in the process of the tests, where faults are seen.

`probe_core.testing.checks_sampling.sample_case` does it in a process, as the core does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from probe_core.api import NotApplicable, SampleRequest, Unavailable
from probe_core.testing import Case
from probe_core.testing.stage import Staged


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
    """Return the rounds of a sampler that `hooks.open_sampler` opens, as often as it must."""
    rounds: list[Round] = []
    sampler: Any = None
    machine = Staged(case.machine) if case.live else case.machine
    for number in range(1, count + 1):
        if number > 1 and pause is not None:
            pause(number)
        found = Round([], [], [])
        request = SampleRequest(
            machine,
            case.bus,
            avoid=avoid,
            asleep=asleep[min(number, len(asleep)) - 1],
            number=number,
            announce=lambda kind, device, touched=found.touched: touched.append(device),
        )
        try:
            sampler = sampler or hooks.open_sampler(request)
            rounds.append(_taken(sampler, request, found))
        except Unavailable as error:
            rounds.append(found._replace(status="unavailable", reason=error.reason))
    if hasattr(sampler, "close"):
        sampler.close()
    return rounds


def _taken(sampler: Any, request: SampleRequest, found: Round) -> Round:
    answer = sampler if isinstance(sampler, NotApplicable) else sampler.sample(request)
    if isinstance(answer, NotApplicable):
        return found._replace(status="not_applicable", reason=answer.reason)
    for item in answer:
        if "finding" in item:
            found.findings.append(item["finding"])
        else:
            found.samples.append(item)
    return found
