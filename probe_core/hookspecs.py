"""The hooks as pluggy specifications: what a prober implements, and what a host may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import pluggy

from probe_core.api import NotApplicable, Request, SampleRequest

hookspec = pluggy.HookspecMarker("probe_core")

__all__ = [
    "open_sampler",
    "probe_devices",
    "probe_observe",
    "probe_resolve_chip",
    "probe_veto",
    "sample_close",
    "sample_devices",
]


@hookspec
def probe_devices(request: Request) -> Iterable[Mapping[str, Any]] | NotApplicable:  # type: ignore[empty-body]
    """Report the devices that this prober can really see. Implemented by probers.

    Runs in a process of its own under a deadline. Yield each device as soon as it is known: what
    was yielded before a crash is kept. Return `not_applicable(reason)` when nothing of yours is
    here, raise `Unavailable(reason)` when it is here but cannot be asked.
    """


class Sampler(Protocol):
    """What `open_sampler` returns. `close` may be missing where nothing is open."""

    def sample(self, request: SampleRequest) -> Iterable[Mapping[str, Any]] | NotApplicable:
        """Yield what each device does now."""

    def close(self) -> None:
        """Close what was opened."""


@hookspec
def open_sampler(request: SampleRequest) -> Sampler | NotApplicable:  # type: ignore[empty-body]
    """Return an object that says what each device does now. Implemented by probers; optional.

    Called once in a process that stays, in its first round: initialise a library and look up paths
    here, and keep them in the object. Then `sample(request)` is called on it in every round, the
    first too. It yields a mapping for each device: `device` (one of its ids) and what is known.
    Call `request.touching(id)` before you ask a device: when that hangs, the process is killed, and
    the next one is told to avoid the device. `request` is the same object in all rounds, so
    `sample()` may do without the argument.

    Return `not_applicable(reason)` when there is nothing to sample. Raise `Unavailable(reason)`
    when nothing can be asked now: what `open_sampler` raises is that round's answer, and the next
    round calls it again. What `sample` raises is that round's answer, too, and the object stays.

    `close()`, if the object has it, is called before the process ends: nobody samples any more, or
    the devices are idle and a library that stays open would keep them from sleeping. It has a fifth
    of a second.
    """


@hookspec
def sample_devices(request: SampleRequest) -> Iterable[Mapping[str, Any]]:  # type: ignore[empty-body]
    """Yield what each device does now: `open_sampler` for what keeps nothing between two rounds.

    Called once a round in a process that stays; what a module remembers is there again. Yield and
    announce as the `sample` of `open_sampler`'s object does, and raise `Unavailable(reason)` when
    nothing can be asked. Where a prober has both hooks, `open_sampler` alone is called.
    """


@hookspec
def sample_close() -> None:
    """Close what `sample_devices` has opened. Implemented by probers; optional.

    Called when, and given as long as, the `close` of `open_sampler`'s object would be.
    """


@hookspec
def probe_observe(event: str, details: Mapping[str, Any]) -> None:
    """Watch a run. Implemented by hosts; never discovered from entry points.

    `event` is ``selected`` (whether each prober runs, and why not), ``started``, ``finished`` (with
    status, reason and number of devices) or ``report``; `details` names the prober. A process that
    goes around a device has events of its own, with ``attempt`` (from 2) and ``avoid``; the one
    without ``attempt`` tells the outcome. An exception becomes a finding, and the run goes on.
    """


@hookspec(firstresult=True)
def probe_veto(prober: str, distribution: str, target: str) -> str | None:
    """Return a reason not to run a prober, or None. Implemented by hosts; the first reason wins."""


@hookspec(firstresult=True)
def probe_resolve_chip(device: Mapping[str, Any]) -> str | None:
    """Return the id of the chip (as in chipdb) that a device is, or None to let chipdb decide."""
