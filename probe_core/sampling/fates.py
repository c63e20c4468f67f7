"""How a sampler's process begins, is asked, and ends."""

from __future__ import annotations

import marshal
import os
from time import monotonic

from probe_core.isolation import launch
from probe_core.isolation.resident import Resident
from probe_core.model.findings import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_core.isolation.launch import Bus, Driver
    from probe_core.isolation.messages import RoundMessage
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc
    from probe_core.registry.prober import Prober

__all__ = ["ask_to_close", "end", "findings", "message", "send", "start"]

ROUND_S = 2.0
"""Seconds that a device may be silent. A driver answers in milliseconds; what hangs does for ever.
"""

CLOSE_S = 0.2
"""Seconds for `sample_close`: what `isolation` gives a prober's cleanup."""


def message(number: int, avoid: frozenset[str], asleep: frozenset[str]) -> RoundMessage:
    """Return what a process is asked in a round."""
    return {
        "number": number,
        "seconds": ROUND_S,
        "avoid": sorted(avoid),
        "asleep": sorted(asleep),
        "close": False,
    }


def start(
    driver: Driver,
    prober: Prober,
    machine: Machine,
    bus: Bus,
    active: bool,
    first: RoundMessage,
    now: float,
) -> Resident:
    """Start a process that begins with a round."""
    run = Resident(prober, os.urandom(8).hex(), os.urandom(8).hex(), now, first)
    launch.start(driver, run, machine, bus, active, first)
    return run


def send(driver: Driver, run: Resident, asked: RoundMessage) -> None:
    """Send a process what it is asked."""
    data = marshal.dumps(dict(asked))
    driver.send(run, b"%08x" % len(data) + data)


def end(driver: Driver, run: Resident) -> None:
    """End one process with all that it started."""
    driver.end([run], monotonic)


def ask_to_close(driver: Driver, runs: Sequence[Resident], clock: Callable[[], float]) -> None:
    """Have processes that wait close what they opened; returns when they have, or after 0.2 s."""
    waiting = [run for run in runs if run.status is None and run.answer is not None]
    for run in waiting:
        closing: RoundMessage = {**message(0, frozenset(), frozenset()), "close": True}
        closing["seconds"] = CLOSE_S
        run.begin(closing, clock())
        send(driver, run, closing)
    if waiting:
        driver.wake_on(-1)
        driver.watch(clock, lambda: all(run.over for run in waiting), lambda now: None)


def findings(prober: Prober, run: Resident, ended: bool) -> list[FindingDoc]:
    """Return what a person should know of a process that failed."""
    reason, device = run.reason or str(run.status), run.patience.device
    facts = [_failure(prober, run, device, reason, ended)]
    if run.abandoned:
        facts.append(
            finding(
                "prober-unkillable",
                f"{prober.owner}: the process of prober {prober.name!r} cannot be killed",
                "it is stuck in the kernel, usually in a hung driver; it was abandoned",
                "look into the kernel's log, reset the device or reboot the node",
                severity="error",
                prober=prober.name,
                step="responding",
            )
        )
    return facts


def _failure(
    prober: Prober, run: Resident, device: str | None, reason: str, ended: bool
) -> FindingDoc:
    if device is not None:
        hangs = run.status == "timeout"
        return finding(
            "driver-hangs" if hangs else "driver-crashes",
            f"sampling {device} {'hangs' if hangs else 'kills the process'}",
            reason,
            "look into the kernel's log; it is asked again after growing pauses",
            severity="error",
            device=device,
            prober=prober.name,
            step="responding",
        )
    fix = "it is not asked again" if ended else "it is asked again after growing pauses"
    return finding(
        "prober-failed",
        f"{prober.owner}: the sampler of prober {prober.name!r} failed ({run.status})",
        reason,
        fix,
        severity="error",
        prober=prober.name,
        evidence=run.status,
    )
