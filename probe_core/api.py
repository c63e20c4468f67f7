"""All that the author of a prober imports: standard library only, and cheap.

A prober is a module with one function::

    from probe_core.api import hookimpl, not_applicable

    @hookimpl
    def probe_devices(request):
        cards = find_cards(request.machine)
        if not cards:
            return not_applicable("no Acme card on the bus")
        return [{"ids": [f"pci:{c.address}"], "kind": "npu", "name": c.name} for c in cards]

It answers with devices (a list, or a generator: what was yielded before a crash is kept), with
`not_applicable(reason)` when nothing of its own is here, or raises `Unavailable(reason)` when its
hardware is here but cannot be asked. ``None`` is an error: a forgotten ``return`` looks the same.

Live figures are a second hook: an object that stays, and is asked once a round::

    @hookimpl
    def open_sampler(request):
        return Sampler(find_cards(request.machine))

    class Sampler:
        def __init__(self, cards):
            self.cards = cards

        def sample(self, request):
            for card, may_ask in each_card(request, self.cards):
                if may_ask:
                    yield {"device": card.id, "busy": card.busy()}

        def close(self):  # optional
            release(self.cards)
"""

from __future__ import annotations

from time import monotonic, thread_time

from probe_core.machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    # What authors annotate with; for type checkers alone: `typing` would cost a prober's start.
    from probe_core.model.document import FindingDoc as FindingDoc
    from probe_core.model.document import LinkDoc as LinkDoc
    from probe_core.model.document import PciDoc as PciDoc
    from probe_core.model.document import RawSample as RawSample
    from probe_core.model.document import Sighting as Sighting
    from probe_core.model.document import SightingMemory as SightingMemory
    from probe_core.model.document import StepDoc as StepDoc

    Card = TypeVar("Card")
    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = [
    "API_VERSION",
    "Machine",
    "NotApplicable",
    "Request",
    "SampleRequest",
    "Unavailable",
    "ask_each",
    "each_card",
    "finding",
    "hookimpl",
    "not_applicable",
]

API_VERSION = "1.0"
"""Major.minor of this contract. The major is also in the entry-point group's name."""

SLOW_S = 0.003
"""Seconds to ask one card after which `ask_each` asks the others side by side. A judgement: a
driver that answers at once takes 0.2 to 1 ms for a card, and threads cost about 1 ms."""


def hookimpl(function: Function) -> Function:
    """Mark `function` as the implementation of the hook that it is named after.

    The mark is the one that pluggy's ``HookimplMarker("probe_core")`` sets, without importing
    pluggy, which would double the start of a prober's process.
    """
    function.probe_core_impl = {  # type: ignore[attr-defined]
        "wrapper": False,
        "hookwrapper": False,
        "optionalhook": False,
        "tryfirst": False,
        "trylast": False,
        "specname": None,
    }
    return function


class NotApplicable:
    """A prober's answer "nothing of mine is here"; made by `not_applicable`."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"not_applicable({self.reason!r})"


def not_applicable(reason: str) -> NotApplicable:
    """Say that nothing of this prober is on the machine; `reason` is shown to people."""
    return NotApplicable(reason)


class Unavailable(Exception):
    """The hardware is here, but cannot be asked.

    `reason` says why in a sentence; `code` is a short kebab-case word for scripts
    (``driver-not-loaded``, ``library-missing``, ``no-permission`` …); `fix` says what would help.
    """

    def __init__(self, reason: str, *, code: str = "unavailable", fix: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.fix = fix


def finding(
    code: str,
    *,
    what: str,
    why: str,
    fix: str,
    severity: str = "warning",
    device: str | None = None,
    variable: str | None = None,
    step: str | None = None,
    evidence: str | None = None,
) -> dict[str, Any]:
    """Return something a person should know, to be yielded among the devices.

    `what`, `why` and `fix` are sentences for people. The rest are facts for scripts: `severity`
    is ``info``, ``warning`` or ``error``; `device` one of the device's ids; `variable` the
    environment variable that matters; `step` the step of readiness that it breaks; `evidence`
    what it was read from (a path and its content, an error code, the library's own text).
    """
    facts = {"code": code, "severity": severity, "what": what, "why": why, "fix": fix}
    facts_or_none = {"device": device, "variable": variable, "step": step, "evidence": evidence}
    return {"finding": facts | facts_or_none}


def each_card(
    request: Request, cards: Iterable[Card], identity: Callable[[Card], str] | None = None
) -> Iterator[tuple[Card, bool]]:
    """Yield each card, and whether it may be asked: then it has been announced by `touching`.

    Of one that may not, a prober reports what files say, and a sampler yields nothing. `identity`
    returns a card's id; without it that is the card's ``id``, or the card itself where it is text.
    """
    for card in cards:
        name: Any = identity(card) if identity else getattr(card, "id", card)
        may_ask = not request.skip(name)
        if may_ask:
            request.touching(name)
        yield card, may_ask


def ask_each(
    request: Request,
    cards: Iterable[Card],
    ask: Callable[[Card, bool], Iterable[Any]],
    identity: Callable[[Card], str] | None = None,
) -> Iterator[Any]:
    """Yield what `ask(card, may_ask)` yields of each card, in the order of the cards.

    As `each_card`, but once a card has taken more than 3 ms the rest are asked side by side, each
    in a thread: a driver that takes its time then takes it once. Time in which other programs had
    the processor does not count. So `ask` may be called by several
    threads at once, and changes nothing that they share; what it yields is passed on in this one.
    Where `ask` yields None, nothing is passed on: it is a place at which the time is looked at, as
    at its end. A library that may not be called by several threads is asked with `each_card`.
    """
    cards = list(cards)
    for number, (card, may_ask) in enumerate(each_card(request, cards, identity), start=1):
        others = len(cards) - number if may_ask and not request.serial else 0
        begun = (monotonic(), *_spent()) if others else (0.0, 0.0, None)
        answer = iter(ask(card, may_ask))
        for item in answer:
            if item is not None:
                yield item
            elif others and _was_slow(*begun):
                yield from _side_by_side(request, cards[number - 1 :], ask, identity, answer)
                return
        if others > 1 and _was_slow(*begun):
            yield from _side_by_side(request, cards[number:], ask, identity)
            return


def _spent() -> tuple[float, int | None]:
    """Return this thread's processor time, and how often it has waited; None: not counted here."""
    try:
        from resource import RUSAGE_THREAD, getrusage  # a prober's process has it already
    except ImportError:
        return thread_time(), None
    return thread_time(), getrusage(RUSAGE_THREAD).ru_nvcsw


def _was_slow(begun: float, seconds: float, waits: int | None) -> bool:
    """Return whether a card took long since then: its driver waited, or worked for as long.

    On a busy machine a thread loses the processor for several milliseconds without a wait. Seven
    threads that read files then take longer than one.
    """
    if monotonic() - begun <= SLOW_S:
        return False
    seconds_now, waits_now = _spent()
    return waits_now is None or waits_now != waits or seconds_now - seconds > SLOW_S


def _side_by_side(
    request: Request,
    cards: Iterable[Card],
    ask: Callable[[Card, bool], Iterable[Any]],
    identity: Callable[[Card], str] | None,
    begun: Iterable[Any] | None = None,
) -> Iterator[Any]:
    """Ask the cards in threads; `begun` is what the first one has still to yield."""
    from probe_core import side_by_side  # which a driver that answers at once does not need

    entries = []
    for card in cards:
        name: Any = identity(card) if identity else getattr(card, "id", card)
        entries.append(side_by_side.Card(card, name, not request.skip(name)))
    entries[0].begun = begun
    announce = request._announce
    asked = side_by_side.Round(entries, ask, announce)
    request._announce = asked.hear
    try:
        yield from asked.items(request.deadline_s)
    finally:
        request._announce = announce


class Request:
    """What a prober is asked.

    `machine`: read files and the environment through it alone, so that a recorded machine works.
    `bus`: the sightings of the built-in bus prober (plain mappings), so that nobody scans twice.
    `active`: whether the user allowed opening devices and creating contexts.
    `deadline_s`: seconds that import and call may take together.
    `avoid`: ids of devices on which this prober hung or died before, as `touching` named them and
    as the bus does. Report of these what files say, and never ask them.
    `serial`: whether `ask_each` asks one card after the other, however long that takes.
    """

    __slots__ = ("_announce", "active", "avoid", "bus", "deadline_s", "machine", "serial")

    def __init__(
        self,
        machine: Machine,
        bus: Sequence[Mapping[str, Any]] = (),
        *,
        active: bool = False,
        deadline_s: float = 5.0,
        avoid: Iterable[str] = (),
        serial: bool = False,
        announce: Callable[[str, object], None] | None = None,
    ) -> None:
        self.machine = machine
        self.bus = bus
        self.active = active
        self.deadline_s = deadline_s
        self.avoid = frozenset(avoid)
        self.serial = serial
        self._announce = announce

    def touching(self, device: str) -> None:
        """Announce that the prober is about to ask `device`, one of the device's ids.

        When the prober then hangs or dies, the core starts it once more with this id in `avoid`.
        It holds until the next announcement or `yield` of a device. Costs microseconds.
        """
        if self._announce is not None:
            self._announce("touching", device)

    def skip(self, *ids: str) -> bool:
        """Return whether the device that has any of these ids must not be asked."""
        return not self.avoid.isdisjoint(ids)

    def done(self) -> None:
        """Announce that all devices were yielded, and that what follows is cleanup.

        A library that hangs or dies at its shutdown then costs no device and next to no wait.
        """
        if self._announce is not None:
            self._announce("done", None)


class SampleRequest(Request):
    """What a sampler is asked, again and again in one process.

    `round` counts from 1. `asleep` are ids of devices that sleep, `avoid` of those that hung or
    that nobody wants: `skip` says whether a device is one of either. Ask none of them, and yield
    nothing for them: the core says what state they are in. `bus` is what the bus showed when the
    process was started. `deadline_s` is what this round may take.
    """

    __slots__ = ("asleep", "round")

    def __init__(
        self,
        machine: Machine,
        bus: Sequence[Mapping[str, Any]] = (),
        *,
        active: bool = False,
        deadline_s: float = 2.0,
        avoid: Iterable[str] = (),
        asleep: Iterable[str] = (),
        number: int = 1,
        announce: Callable[[str, object], None] | None = None,
    ) -> None:
        super().__init__(
            machine,
            bus,
            active=active,
            deadline_s=deadline_s,
            avoid=avoid,
            serial=True,  # a round that is slow is asked less often
            announce=announce,
        )
        self.asleep = frozenset(asleep)
        self.round = number

    def skip(self, *ids: str) -> bool:
        """Return whether the device that has any of these ids must not be asked in this round."""
        return not (self.avoid.isdisjoint(ids) and self.asleep.isdisjoint(ids))
