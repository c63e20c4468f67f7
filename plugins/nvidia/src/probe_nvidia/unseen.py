"""The GPUs of the kernel driver that NVML did not answer for, each with what files say and why."""

from __future__ import annotations

from probe_core.api import Unavailable
from probe_nvidia import causes, files, wrong
from probe_nvidia.causes import GPUS, HANDLE, NO_PERMISSION, TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.causes import Cause, Fact
    from probe_nvidia.walk import Walk

    Sighting = dict[str, Any]

_SILENT = "it hung or died in an earlier try of this probe, and was left alone in this one"


def devices(walk: Walk) -> Iterator[Sighting]:
    """Yield each GPU that a walk over all others did not see, and findings.

    Raises `Unavailable` where NVML shows none at all.
    """
    unseen = [i for i in walk.expected if i not in walk.seen | walk.failed.keys()]
    remaining = [identity for identity in unseen if identity not in walk.silent]
    nameless = [key for key in walk.failed if isinstance(key, int)]
    # NVML's order is the PCI order: as many nameless failures as unseen GPUs are those GPUs.
    is_plain = len(nameless) == len(remaining)
    named = dict(zip(nameless, remaining, strict=True)) if is_plain else {}
    yield from _failed(walk, named)
    for identity in unseen:
        if identity in walk.silent:
            yield _card(walk, identity, causes.broken("responding", "driver-hangs", _SILENT))
    left_out = [*(remaining if not nameless else ()), *walk.scene.excluded()]
    why = {identity: wrong.gpu_cause(walk.scene, identity) for identity in left_out}
    yield from _left_out(walk, why)
    if why and not walk.count:
        raise _none(walk, next(iter(why.values())))


def _failed(walk: Walk, named: dict[int, str]) -> Iterator[Sighting]:
    """Yield the GPUs that NVML counts and gives no handle for; `named` are ids by index."""
    for key, (code, reason) in walk.failed.items():
        identity = named.get(key) if isinstance(key, int) else key
        cause = TABLE.get((HANDLE, code), TABLE[HANDLE, None])
        if identity is None:
            yield cause.finding(f"GPU number {key} of NVML", None, reason)
            continue
        if code == NO_PERMISSION:
            cause = wrong.gpu_cause(walk.scene, identity, refused=True)
        sighting = _card(walk, identity, cause.fact(reason))
        if isinstance(key, int):
            sighting["node_index"] = {"nvml": key}
        if code == NO_PERMISSION:  # of what was not granted, the core makes a finding
            yield sighting
            continue
        yield sighting | {"power_state": "unknown"}
        yield cause.finding(f"GPU {identity}", identity, reason)


def _left_out(walk: Walk, why: dict[str, Cause]) -> Iterator[Sighting]:
    """Yield the GPUs that NVML does not list, and one finding for each cause."""
    total = len(walk.expected) + len(walk.scene.excluded())
    evidence = f"NVML lists {walk.count} of {total} GPUs, not this one"
    groups: dict[str, tuple[Cause, list[str]]] = {}
    for identity, cause in why.items():
        is_excluded = cause.code == "gpu-excluded"
        fact = wrong.excluded(identity) if is_excluded else cause.fact(evidence)
        yield _card(walk, identity, fact)
        groups.setdefault(str(cause.code), (cause, []))[1].append(identity)
    for cause, ids in groups.values():
        if walk.count:
            yield cause.finding(", ".join(ids), ids[0], evidence)


def _card(walk: Walk, identity: str, fact: Fact) -> Sighting:
    """Return the GPU as files know it; the evidence of `fact` is why nothing else is known."""
    sighting = files.card(walk.scene, identity, fact["evidence"], files.UNREAD)
    return sighting | {"step_facts": [walk.library, fact]}


def _none(walk: Walk, cause: Cause) -> Unavailable:
    """Return why a library that works shows nothing of what the kernel driver serves."""
    names, option = ", ".join(walk.expected), wrong.container_option(walk.scene)
    return Unavailable(
        f"NVML shows no GPU ({cause.why}), but the driver serves {names}",
        code="no-devices",
        fix=GPUS.format(option=option) if cause.code == "not-granted" else cause.fix,
    )
