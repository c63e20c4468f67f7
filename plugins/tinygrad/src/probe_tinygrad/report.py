"""Turns tinygrad's answers into sightings of known devices and findings for people."""

from __future__ import annotations

from probe_core.api import Unavailable, finding
from probe_tinygrad.choice import Choice, choose
from probe_tinygrad.match import CPU_ID, Matched, accelerators, match
from probe_tinygrad.names import CPU, NOT_HARDWARE, VENDORS, canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.api import Request
    from probe_tinygrad.session import Answers

    Backends = Mapping[str, Mapping[str, Any]]

__all__ = ["lines"]


def lines(answers: Answers, request: Request) -> Iterator[dict[str, Any]]:
    """Yield one sighting per device that a backend executes on, then the findings.

    Raises `Unavailable` at the end when no backend executes.
    """
    backends = {n: a for n, a in answers.backends.items() if n not in NOT_HARDWARE}
    choice = choose(answers.about, backends, request.machine.environ)
    matched = [
        place
        for name, answer in backends.items()
        if answer.get("executes")
        for place in match(name, answer.get("places", ()), request.bus)
    ]
    yield from _sightings(matched, choice, answers.about["version"])
    yield from choice.findings()
    yield from _broken(backends)
    if not matched:
        raise _nothing_works(backends, answers)
    yield from _on_choice(choice, backends, matched, request)
    yield from _unmatched(matched)


def _sightings(
    matched: Sequence[Matched], choice: Choice, version: str | None
) -> Iterator[dict[str, Any]]:
    for identity in dict.fromkeys(member.id for member in matched if member.id is not None):
        members = [member for member in matched if member.id == identity]
        names = list(dict.fromkeys(canonical(member.backend) for member in members))
        default = any(choice.takes(member.backend, member.index) for member in members)
        yield {
            "ids": [identity],
            "kind": members[0].kind,
            "backends": [f"tinygrad:{name.lower()}" for name in names],
            "node_index": {
                f"tinygrad_{canonical(member.backend).lower()}": member.index for member in members
            },
            "extra": {
                "tinygrad": {
                    "version": version,
                    "default": default and not choice.breaks,
                    # Only the first device of a backend is opened and computed on.
                    "executed": [member.backend for member in members if member.index == 0],
                }
            },
        }


def _broken(backends: Backends) -> Iterator[dict[str, Any]]:
    for name, answer in backends.items():
        if answer.get("broke"):
            yield finding(
                "tinygrad-backend-broke",
                what=f"asking tinygrad's backend {name} broke its process",
                why=str(answer["error"]),
                fix=f"keep tinygrad away from it (DEV names another), or mend what {name} needs",
            )


def _nothing_works(backends: Backends, answers: Answers) -> Unavailable:
    reasons = [f"{n}: {_error(a)}" for n, a in backends.items() if canonical(n) == CPU]
    reasons += [f"it gave up: {answers.problem}"] if answers.problem else []
    return Unavailable(
        "no backend of tinygrad executes here" + "".join(f"; {reason}" for reason in reasons),
        code="no-usable-backend",
        fix="install clang, which tinygrad compiles for the CPU with",
    )


def _error(answer: Mapping[str, Any]) -> str:
    return str(answer.get("error", "no error was given"))[:300]


def _on_choice(
    choice: Choice, backends: Backends, matched: Sequence[Matched], request: Request
) -> Iterable[dict[str, Any]]:
    """Yield what tinygrad would run on, and what is wrong with that."""
    if choice.breaks or choice.backend is None:
        return
    name = choice.backend
    if name in NOT_HARDWARE:
        yield _default(name, None, choice)
        return
    if not backends.get(name, {}).get("executes"):
        yield _choice_fails(choice, backends)
        return
    device = next((place.id for place in matched if choice.takes(place.backend, place.index)), None)
    unused = accelerators(request.bus) if device == CPU_ID else []
    if unused and not choice.variable:
        yield _on_cpu(unused, backends)
    else:
        yield _default(name, device, choice)


def _default(name: str, device: str | None, choice: Choice) -> dict[str, Any]:
    where = f", {device}" if device else ", which is no hardware" if name in NOT_HARDWARE else ""
    return finding(
        "tinygrad-default",
        what=f"tinygrad executes on {name}{where}",
        why=f"{choice.variable} names it" if choice.variable else "it is the first that opens",
        fix="set DEV to choose another backend",
        severity="info",
        device=device,
    )


def _choice_fails(choice: Choice, backends: Backends) -> dict[str, Any]:
    name = str(choice.backend)
    works = [other for other, answer in backends.items() if answer.get("executes")]
    reason = _error(backends[name]) if name in backends else "it has no backend of that name"
    chosen = f"{choice.variable} names it" if choice.variable else "it opens first"
    return finding(
        "tinygrad-default-fails",
        what=f"tinygrad would take {name} ({chosen}), which does not execute",
        why=reason,
        fix=f"set DEV to one that does: {', '.join(works)}",
        severity="error",
    )


def _on_cpu(unused: Sequence[Mapping[str, Any]], backends: Backends) -> dict[str, Any]:
    vendors = {device.get("vendor") for device in unused}
    reasons = [
        f"{name}: {_error(answer)}"
        for name, answer in backends.items()
        if not answer.get("executes") and VENDORS.get(name) in vendors
    ]
    count = len(unused)
    return finding(
        "tinygrad-on-cpu",
        what=f"tinygrad executes on the CPU, though the bus shows {count} accelerator"
        + ("s" if count > 1 else ""),
        why="; ".join(reasons) or "it has no backend for hardware of that vendor",
        fix="install the driver or library, or allow the device node, that the reason names",
        device=str(unused[0]["ids"][0]),
    )


def _unmatched(matched: Sequence[Matched]) -> Iterator[dict[str, Any]]:
    for place in matched:
        if place.id is None:
            backend = f"{place.backend}:{place.index}"
            yield finding(
                "tinygrad-unmatched",
                what=f"tinygrad's {backend} executes, on a device nobody can name",
                why=place.reason,
                fix="nothing is wrong; the backend is left out of the devices",
                severity="info",
            )
