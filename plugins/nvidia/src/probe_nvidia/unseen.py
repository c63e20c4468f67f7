"""Accounts for the GPUs that NVML gives no handle for, leaves out, or that must not be touched."""

from __future__ import annotations

from probe_core.api import Unavailable
from probe_nvidia import causes, facts, findings, passive
from probe_nvidia.codes import NO_PERMISSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.causes import Cause
    from probe_nvidia.report import Walk

    Sighting = dict[str, Any]

__all__ = ["account"]

SILENT = "it hung or died in an earlier try of this probe, and was left alone in this one"
_GPUS = "start the container with the GPUs: --gpus all, or --device nvidia.com/gpu=all (CDI)"


def account(walk: Walk) -> Iterator[Sighting]:
    """Yield a sighting for each GPU of the kernel driver that NVML did not answer for, and why.

    Raises `Unavailable` where NVML shows none at all.
    """
    remaining = [i for i in walk.expected if i not in walk.seen and i not in walk.failed]
    silent = [identity for identity in remaining if identity in walk.scene.avoid]
    remaining = [identity for identity in remaining if identity not in silent]
    nameless = [key for key in walk.failed if isinstance(key, int)]
    # NVML's order is the PCI order: as many nameless failures as unseen GPUs are those GPUs.
    named = dict(zip(nameless, remaining, strict=True)) if len(nameless) == len(remaining) else {}
    yield from _failed(walk, named)
    for identity in silent:
        yield _card(walk, identity, SILENT, facts.broken("responding", "driver-hangs", SILENT))
    left_out = {i: causes.unlisted(walk.scene, i) for i in remaining} if not nameless else {}
    left_out |= dict.fromkeys(walk.scene.excluded(), causes.excluded())
    yield from _left_out(walk, left_out)
    if not walk.count and left_out:
        raise _none(walk, next(iter(left_out.values())))


def _failed(walk: Walk, named: dict[int, str]) -> Iterator[Sighting]:
    for key, (code, reason) in walk.failed.items():
        identity = named.get(key) if isinstance(key, int) else key
        if identity is None:
            yield findings.failed(key, facts.failed(code, reason), None)
            continue
        cause = causes.refused(walk.scene, identity) if code == NO_PERMISSION else None
        fact = cause.fact(reason) if cause else facts.failed(code, reason)
        sighting = _card(walk, identity, reason, fact)
        if isinstance(key, int):
            sighting["node_index"] = {"nvml": key}
        if not cause:
            sighting["power_state"] = "unknown"
        yield sighting
        if not cause:  # of what was not granted, the core makes a finding
            yield findings.failed(key, fact, identity)


def _left_out(walk: Walk, left_out: dict[str, Cause]) -> Iterator[Sighting]:
    """Yield the GPUs that NVML does not list, and one finding for each cause."""
    total = len(walk.expected) + len(walk.scene.excluded())
    evidence = f"NVML lists {walk.count} of {total} GPUs, not this one"
    groups: dict[str, tuple[Cause, list[str]]] = {}
    for identity, cause in left_out.items():
        is_excluded = cause.code == "gpu-excluded"
        fact = facts.excluded(identity) if is_excluded else cause.fact(evidence)
        yield _card(walk, identity, fact["evidence"], fact)
        groups.setdefault(cause.code, (cause, []))[1].append(identity)
    for cause, ids in groups.values():
        if walk.count:
            yield findings.restricted(cause, ids, evidence)


def _card(walk: Walk, identity: str, reason: str, fact: facts.Fact) -> Sighting:
    sighting = passive.card(walk.scene, identity, passive.UNREAD, reason)
    sighting["step_facts"] = [walk.library, fact]
    return sighting


def _none(walk: Walk, cause: Cause) -> Unavailable:
    """Return why a library that works shows nothing of what the kernel driver serves."""
    return Unavailable(
        f"NVML shows no GPU ({cause.reason}), but the driver serves {', '.join(walk.expected)}",
        code="no-devices",
        fix=_GPUS if cause.code == "not-granted" else cause.fix,
    )
