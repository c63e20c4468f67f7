"""The child's side of other distributions' checks: import one set, run it, and send each answer.

It is started as a prober's process is, so that deadline, crash handling and the private pipe are
those of `isolation`. What it is asked travels in place of the bus.
"""

from __future__ import annotations

from time import perf_counter, time_ns

from probe_core.api import Machine, hookimpl
from probe_core.doctor.check import ENVIRONMENT, unknown
from probe_core.doctor.check import Request as CheckRequest
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.api import Request
    from probe_core.doctor.check import Check

TARGET = "probe_core.doctor.child:sets.s{}"
"""The hook of the set of that number in the request."""


class _Set:
    """One set of checks, as the hook of a prober."""

    def __init__(self, number: int) -> None:
        self._number = number

    @hookimpl
    def probe_devices(self, request: Request) -> Iterator[dict[str, Any]]:
        """Yield what each check is, and unless only a list is asked for, its answer."""
        asked = request.bus[0]
        checks = checks_of(asked["targets"][self._number])
        machine = request.machine
        own = Machine(machine.root, machine.environ, machine.os, machine.arch, asked["access"])
        from probe_core.doctor.remembered import identities, lasting  # unused by the parent

        started, remembers = time_ns(), asked["remembers"][self._number]
        report: Any = lasting(asked["report"]) if remembers else asked["report"]
        question = CheckRequest(
            own,
            report,
            environment=asked["environment"],
            device=asked["device"],
            assumed=asked["assumed"],
        )
        for check in checks:
            yield _about(check) | ({} if asked["list"] else _answer(check, question))
        if remembers and question.paths and (files := identities(question.paths, started)):
            yield {"files": files}


class _Sets:
    """Attributes s0, s1 …, for a target names no argument."""

    def __getattr__(self, name: str) -> _Set:
        if name[:1] == "s" and name[1:].isdecimal():
            return _Set(int(name[1:]))
        raise AttributeError(name)


sets = _Sets()


def checks_of(target: str) -> list[Check]:
    """Return the checks of an entry point's ``module`` or ``module:attribute``, imported."""
    module_name, _, attribute = target.partition(":")
    place: Any = __import__(module_name, fromlist=["CHECKS"])
    for part in filter(None, attribute.split(".")):
        place = getattr(place, part)
    checks = getattr(place, "CHECKS", None)
    if not isinstance(checks, (list, tuple)):
        raise TypeError(f"{target} has no list CHECKS")
    return list(checks)


def _about(check: Check) -> dict[str, Any]:
    needs = [str(word) for word in check.needs]
    return {"code": check.code, "step": check.step, "needs": needs, "summary": check.summary}


def _answer(check: Check, question: CheckRequest) -> dict[str, Any]:
    if ENVIRONMENT in check.needs and question.environment is None:
        return {}
    started = perf_counter()
    try:
        result: Mapping[str, Any] = check.run(question)
    except Exception as error:
        result = unknown(f"the check raised: {error_text(error, 200)}")
    milliseconds = (perf_counter() - started) * 1000
    return {"result": dict(result), "ms": milliseconds}
