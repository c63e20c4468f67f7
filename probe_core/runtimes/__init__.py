"""Asks the runtimes themselves which devices they show, and compares that with the rules.

An active probe: it opens devices, may wake them and may hang, so it runs only when asked for, in
a child with a deadline like every prober.
"""

from __future__ import annotations

from probe_core.isolation.launch import cannot_start, run_probers
from probe_core.machine import Machine
from probe_core.model.findings import finding
from probe_core.registry.prober import Prober
from probe_core.visibility.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_core.model.document import FindingDoc

    Device = Mapping[str, Any]

__all__ = ["RUNTIMES", "ask", "disagreements"]

RUNTIMES = ("cuda", "hip")
"""The runtimes that can be asked."""

_ANSWERED = ("ok", "not_applicable")

DEADLINE_S = 30.0
"""cuInit takes seconds on nodes with many GPUs and no persistence daemon (aks-gpu#105)."""


def ask(
    views: Mapping[str, Sequence[View]],
    devices: Sequence[Device],
    environ: Mapping[str, str],
    *,
    deadline_s: float = DEADLINE_S,
) -> dict[str, dict[str, Any]]:
    """Return what each runtime concerned said of itself.

    runtime → ``devices`` (ids in its order; null when it could not be asked), ``agrees``
    (whether the rules gave one of the possible answers; null when not asked), ``status`` (the
    outcome's) and ``said`` (a sentence).
    """
    names = [name for name in RUNTIMES if name in views]
    problem = cannot_start()
    if problem or not names:
        return {name: _unasked("skipped", str(problem)) for name in names}
    probers = [_prober(name, deadline_s) for name in names]
    runs = run_probers(probers, Machine(environ=environ), (), active=True)
    answers = {}
    for name, run in zip(names, runs, strict=True):
        if run.status in _ANSWERED:  # no device is an answer too: "not_applicable"
            answers[name] = _compared(views[name][0], devices, run.sightings)
        else:
            answers[name] = _unasked(str(run.status), str(run.reason))
    return answers


def _prober(name: str, deadline_s: float) -> Prober:
    prober = Prober(f"ask-{name}", f"probe_core.runtimes.{name}", "probe-core")
    prober.deadline_s = deadline_s
    prober.active = True
    return prober


def _unasked(status: str, reason: str) -> dict[str, Any]:
    said = f"could not be asked ({status}): {reason}"
    return {"devices": None, "agrees": None, "status": status, "said": said}


def _compared(
    view: View, devices: Sequence[Device], sightings: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    pool = [device for device in devices if device.get("id") in view.pool]
    found = [_match(sighting, pool) for sighting in sightings]
    expected = [mask.ids for mask in view.masks]
    listed = view.complete and not view.masks[0].maybe
    agrees = found in expected if listed else _possible(view, found)
    shown = ", ".join(found) or "none"
    said = f"it shows {shown}"
    if not agrees:
        rules = " or ".join(", ".join(ids) or "none" for ids in expected)
        said = f"it shows {shown}; by the rules it would be {rules}"
    return {"devices": found, "agrees": agrees, "status": "ok", "said": said}


def _possible(view: View, found: Sequence[str]) -> bool:
    """Return whether an answer fits rules that do not know the order."""
    return set(view.visible) <= set(found) <= set(view.possible)


def _match(sighting: Mapping[str, Any], pool: Sequence[Device]) -> str:
    """Return the id of the device that the runtime means: by UUID, else by PCI address."""
    ids = [str(name) for name in sighting.get("ids") or ()]
    for kind in ("uuid:", "pci:"):
        for device in pool:
            if kind == "pci:" and device.get("parent"):
                continue  # a partition's address is its GPU's
            own = {device.get("id"), *(device.get("ids") or ())}
            if any(name.startswith(kind) and name in own for name in ids):
                return str(device.get("id"))
    return ids[0] if ids else "?"


def disagreements(answers: Mapping[str, Mapping[str, Any]]) -> list[FindingDoc]:
    """Return a finding for each runtime that shows something else than the rules say."""
    return [
        finding(
            "driver-disagrees",
            f"{name} shows other devices than its rules say",
            str(answer["said"]),
            "trust the runtime, and report this with the variables that are set",
            step="runtime",
            evidence=str(answer["said"]),
        )
        for name, answer in answers.items()
        if answer["agrees"] is False
    ]
