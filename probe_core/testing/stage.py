"""A prober around the prober under test, run in the child: sets the stage that a case asks for.

What to do is in a variable of the machine's environment, which the prober does not get to see.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable
from typing import Any

from probe_core.api import (
    Machine,
    NotApplicable,
    Request,
    SampleRequest,
    hookimpl,
    not_applicable,
)
from probe_core.isolation.hook import load_hook, load_plugin
from probe_core.isolation.serving import OpenSampler, find_sampler

VARIABLE = "PROBE_CORE_STAGE"


class Staged(Machine):
    """A machine that counts as the live one, though its files lie below a root."""

    def __init__(self, recorded: Machine) -> None:
        super().__init__(recorded.root, recorded.environ, recorded.os, recorded.arch)
        self._recorded = recorded
        self.live = True

    def path(self, path: str) -> str:
        """Return where the machine's `path` lies below the root."""
        return self._recorded.path(path)

    def realpath(self, path: str) -> str:
        """Return the machine's own path, without the root."""
        return self._recorded.realpath(path)


class Watched(Machine):
    """A machine that notes each path that is read, listed or looked for on it."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine.root, machine.environ, machine.os, machine.arch, machine.access)
        self.noted: dict[str, None] = {}

    def path(self, path: str) -> str:
        """Note the path; all other methods but `realpath` ask this one where it lies."""
        self.noted[path] = None
        return super().path(path)

    def realpath(self, path: str) -> str:
        """Note the path whose links are followed."""
        self.noted[path] = None
        return super().realpath(path)


@hookimpl
def probe_devices(request: Request) -> Any:
    """Answer as the prober under test does on the staged machine."""
    orders, watched, request.machine = _stage(request.machine)
    request.avoid |= set(orders["avoid"])
    if orders.get("noting"):
        from probe_core.testing.spy import watch

        hook = orders["target"]
        return watch(lambda: load_hook(hook), request, lambda: _keep(watched, orders["noting"]))
    return load_hook(orders["target"])(request)


@hookimpl
def open_sampler(request: SampleRequest) -> Any:
    """Open the sampler of the prober under test on the staged machine, by whichever hook it has."""
    orders, _, request.machine = _stage(request.machine)
    opens = find_sampler(load_plugin(orders["target"]), orders["target"])
    if opens is None:
        return not_applicable(f"{orders['target']} has no hook for live figures")
    sampler = opens(request)
    return sampler if isinstance(sampler, NotApplicable) else _Flushing(sampler, request)


def _keep(watched: Watched, path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump([*watched.noted], file)


class _Flushing:
    """A sampler that writes out what it prints before the round ends."""

    def __init__(self, sampler: OpenSampler, request: SampleRequest) -> None:
        self._sampler = sampler
        self._request = request

    def sample(self) -> Any:
        answer = self._sampler.sample(self._request)
        return _flushed(answer) if hasattr(answer, "__iter__") else answer

    def close(self) -> None:
        self._sampler.close()


def _flushed(answer: Iterable[Any]) -> Generator[Any, None, Any]:
    """Yield what the sampler does, and write out what it prints before the round ends."""
    try:
        return (yield from answer)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _stage(machine: Machine) -> tuple[dict[str, Any], Watched, Machine]:
    """Return what to do, the machine that notes what is read, and the one for the prober."""
    environ = dict(machine.environ)
    orders: dict[str, Any] = json.loads(environ.pop(VARIABLE))
    plain = Machine(machine.root, environ, machine.os, machine.arch)
    watched = Watched(plain)
    return orders, watched, Staged(watched) if orders["live"] else watched
