"""Queries the runtimes themselves for the devices they show, and compares that with the rules.

An active probe: it opens devices, may wake them and may hang, so it runs only when the user allows
it, in a child with a deadline like every prober.
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

    from probe_core.isolation.launch import Waiting
    from probe_core.model.document import AnswerDoc, DeviceDoc, FindingDoc, Sighting

__all__ = ["RUNTIMES", "ask", "disagreements"]

RUNTIMES = ("cuda", "hip")
"""The runtimes that can be queried."""

_ANSWERED = ("ok", "not_applicable")  # a runtime without devices has answered, too

DEADLINE_S = 30.0
"""cuInit takes seconds on nodes with many GPUs and no persistence daemon (aks-gpu#105)."""


def ask(
    views: Mapping[str, Sequence[View]],
    devices: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    *,
    deadline_s: float = DEADLINE_S,
    waiting: Waiting | None = None,
) -> dict[str, AnswerDoc]:
    """Return the answer of each runtime that is among the names of `views`, by its name.

    `waiting` is told of runtimes that are slow, see `run_probers`.
    """
    names = [name for name in RUNTIMES if name in views]
    problem = cannot_start()
    if problem or not names:
        return {name: _no_answer("skipped", str(problem)) for name in names}
    probers = [_prober(name, deadline_s) for name in names]
    runs = run_probers(probers, Machine(environ=environ), (), active=True, waiting=waiting)
    answers = {}
    for name, run in zip(names, runs, strict=True):
        if run.status in _ANSWERED:
            answers[name] = _compare(views[name][0], devices, run.sightings)
        else:
            answers[name] = _no_answer(str(run.status), str(run.reason))
            if "code" in run.details:
                answers[name]["code"] = run.details["code"]
    return answers


def _prober(name: str, deadline_s: float) -> Prober:
    prober = Prober(f"ask-{name}", f"probe_core.runtimes.{name}", "probe-core")
    prober.deadline_s = deadline_s
    prober.active = True
    return prober


def _no_answer(status: str, reason: str) -> AnswerDoc:
    sentence = f"cannot be queried ({status}): {reason}"
    return {"devices": None, "expected": [], "agrees": None, "status": status, "reason": sentence}


def _compare(view: View, devices: Sequence[DeviceDoc], sightings: Sequence[Sighting]) -> AnswerDoc:
    pool = [device for device in devices if device["id"] in view.pool]
    shown = [_match(sighting, pool) for sighting in sightings]
    expected = [list(mask.ids) for mask in view.masks]
    # The rules give whole lists only where they know every device and what hides each.
    decided = view.complete and not view.masks[0].maybe
    agrees = shown in expected if decided else _possible(view, shown)
    sentence = f"it shows {_listed(shown)}"
    if not agrees:
        sentence += f"; by the rules it would be {' or '.join(map(_listed, expected))}"
    return {
        "devices": shown,
        "expected": expected,
        "agrees": agrees,
        "status": "ok",
        "reason": sentence,
    }


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids) or "none"


def _possible(view: View, shown: Sequence[str]) -> bool:
    """Return whether an answer fits rules that do not know the order."""
    return set(view.visible) <= set(shown) <= set(view.possible)


def _match(sighting: Sighting, pool: Sequence[DeviceDoc]) -> str:
    """Return the id of the device that the runtime means: by UUID, else by PCI address."""
    ids = sighting["ids"]
    for kind in ("uuid:", "pci:"):
        for device in pool:
            if kind == "pci:" and device.get("parent"):
                continue  # a partition has its GPU's address
            own_ids = {device["id"], *device["ids"]}
            if any(name.startswith(kind) and name in own_ids for name in ids):
                return device["id"]
    return ids[0] if ids else "?"


def disagreements(answers: Mapping[str, AnswerDoc]) -> list[FindingDoc]:
    """Return a finding for each runtime that shows something else than the rules say."""
    return [
        finding(
            "driver-disagrees",
            f"{name} reports other devices than its rules predict",
            answer["reason"],
            "trust the runtime, and report this with the variables that are set",
            step="runtime",
            evidence=f"{name}: {_listed(answer['devices'] or ())}",
        )
        for name, answer in answers.items()
        if answer["agrees"] is False
    ]
