"""Turns tinygrad's answers into sightings of known devices and findings for people."""

from __future__ import annotations

from probe_core.api import Unavailable, finding
from probe_tinygrad.choice import Choice, choose
from probe_tinygrad.match import (
    CPU,
    CPU_ID,
    NOT_HARDWARE,
    VENDORS,
    Matched,
    accelerators,
    canonical,
    match,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.api import Machine, Request, Sighting
    from probe_tinygrad.messages import About, Answer
    from probe_tinygrad.session import Answers

    Backends = Mapping[str, Answer]

__all__ = ["lines"]

# Letters of a backend's own error in a finding; a compiler's are pages long.
_ERROR_LIMIT = 300


def lines(answers: Answers, about: About, request: Request) -> Iterator[Sighting | dict[str, Any]]:
    """Yield one sighting per device that a backend executes on, then the findings.

    Raises `Unavailable` at the end when no backend executes.
    """
    backends = {n: a for n, a in answers.backends.items() if n not in NOT_HARDWARE}
    choice = choose(about, backends, request.machine.environ)
    matches = list(_matches(backends, request))
    yield from _sightings(matches, choice, about["version"])
    yield from choice.findings()
    yield from _broken(backends)
    if not matches:
        raise _nothing_works(backends, answers)
    yield from _on_choice(choice, backends, matches, request)
    yield from _unmatched(matches)


def _matches(backends: Backends, request: Request) -> Iterator[Matched]:
    for name, answer in backends.items():
        if answer.get("executes"):
            for matched in match(name, answer.get("places", ()), request.bus):
                # NV lists such a card, and opened none but the first.
                if name != "NV" or not (matched.index and _is_cut(matched.id, request.machine)):
                    yield matched


def _is_cut(identity: str | None, machine: Machine) -> bool:
    """Return whether a card of NVIDIA has MIG instances, which its kernel driver alone serves."""
    address = (identity or "").removeprefix("pci:")
    facts = machine.read(f"/proc/driver/nvidia/gpus/{address}/information") or ""
    pairs = (line.partition(":") for line in facts.splitlines())
    minor = next((value.strip() for key, _, value in pairs if key == "Device Minor"), "")
    names = machine.listdir(f"/proc/driver/nvidia/capabilities/gpu{minor}/mig") if minor else ()
    return any(name.startswith("gi") for name in names)


def _sightings(
    matches: Sequence[Matched], choice: Choice, version: str | None
) -> Iterator[Sighting]:
    for identity in dict.fromkeys(matched.id for matched in matches if matched.id is not None):
        own = [matched for matched in matches if matched.id == identity]
        yield _sighting(identity, own, choice, version)


def _sighting(
    identity: str, matches: Sequence[Matched], choice: Choice, version: str | None
) -> Sighting:
    names = list(dict.fromkeys(canonical(matched.backend) for matched in matches))
    default = any(choice.takes(matched.backend, matched.index) for matched in matches)
    return {
        "ids": [identity],
        "kind": matches[0].kind,
        "backends": [f"tinygrad:{name.lower()}" for name in names],
        "node_index": {
            f"tinygrad_{canonical(matched.backend).lower()}": matched.index for matched in matches
        },
        "extra": {
            "tinygrad": {
                "version": version,
                "default": default and not choice.broken,
                # Only the first device of a backend is opened and computed on.
                "executed": [matched.backend for matched in matches if matched.index == 0],
            }
        },
    }


def _broken(backends: Backends) -> Iterator[dict[str, Any]]:
    for name, answer in backends.items():
        if answer.get("broke"):
            yield finding(
                "tinygrad-backend-broke",
                what=f"tinygrad's backend {name} broke its process",
                why=_error(answer),
                fix=f"set DEV to another backend, or repair what {name} needs",
                variable="DEV",
                evidence=_error(answer),
            )


def _nothing_works(backends: Backends, answers: Answers) -> Unavailable:
    reasons = [f"{n}: {_error(a)}" for n, a in backends.items() if canonical(n) == CPU]
    reasons += [f"it gave up: {answers.problem}"] if answers.problem else []
    return Unavailable(
        "no backend of tinygrad executes here" + "".join(f"; {reason}" for reason in reasons),
        code="no-usable-backend",
        fix="install clang, which tinygrad compiles for the CPU with",
    )


def _error(answer: Answer) -> str:
    return answer.get("error", "no error was given")[:_ERROR_LIMIT]


def _on_choice(
    choice: Choice, backends: Backends, matches: Sequence[Matched], request: Request
) -> Iterable[dict[str, Any]]:
    """Yield what tinygrad would run on, and what is wrong with that."""
    name = choice.backend
    if choice.broken or name is None:
        return
    if name not in NOT_HARDWARE and not (name in backends and backends[name].get("executes")):
        yield _choice_fails(name, choice, backends)
        return
    device = next((m.id for m in matches if choice.takes(m.backend, m.index)), None)
    unused = accelerators(request.bus) if device == CPU_ID else []
    if unused and not choice.named_by:
        yield _on_cpu(unused, backends)
    else:
        yield _default(name, device, choice)


def _default(name: str, device: str | None, choice: Choice) -> dict[str, Any]:
    location = f", {device}" if device else ""
    if name in NOT_HARDWARE:
        location = ", which is no hardware"
    return finding(
        "tinygrad-default",
        what=f"tinygrad executes on {name}{location}",
        why=f"{choice.named_by} names it" if choice.named_by else "it is the first that opens",
        fix="set DEV to choose another backend",
        severity="info",
        device=device,
        variable=choice.variable,
    )


def _choice_fails(name: str, choice: Choice, backends: Backends) -> dict[str, Any]:
    usable = [other for other, answer in backends.items() if answer.get("executes")]
    error = _error(backends[name]) if name in backends else "it has no backend of that name"
    cause = f"{choice.named_by} names it" if choice.named_by else "it opens first"
    return finding(
        "tinygrad-default-fails",
        what=f"tinygrad takes {name} ({cause}), which does not execute",
        why=error,
        fix=f"set DEV to one that does: {', '.join(usable)}",
        severity="error",
        variable=choice.variable or "DEV",
        evidence=error,
    )


def _on_cpu(unused: Sequence[Mapping[str, Any]], backends: Backends) -> dict[str, Any]:
    vendors = {device.get("vendor") for device in unused}
    reasons = "; ".join(
        f"{name}: {_error(answer)}"
        for name, answer in backends.items()
        if not answer.get("executes") and VENDORS.get(name) in vendors
    )
    count = len(unused)
    return finding(
        "tinygrad-on-cpu",
        what=f"tinygrad executes on the CPU, though the bus shows {count} accelerator"
        + ("s" if count > 1 else ""),
        why=reasons or "it has no backend for hardware of that vendor",
        fix="install the driver or library, or allow the device node, that the reason names",
        device=str(unused[0]["ids"][0]),
        evidence=reasons or None,
    )


def _unmatched(matches: Sequence[Matched]) -> Iterator[dict[str, Any]]:
    for matched in matches:
        if matched.id is None:
            yield finding(
                "tinygrad-unmatched",
                what=f"tinygrad's {matched.backend}:{matched.index} executes on an unknown device",
                why=matched.reason,
                fix="nothing is wrong; the backend is left out of the devices",
                severity="info",
            )
