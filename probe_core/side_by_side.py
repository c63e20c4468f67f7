"""Ask cards in threads, side by side, and give their answers in the order of the cards.

Imported only where a driver was slow to answer: see `probe_core.api.ask_each`. Each card has a
thread, which waits in the driver's library; the caller's thread passes on what they found. The host
is told which cards are being asked and, of one that takes long, the line that runs. So a hang names
its card and its call, and a crash those that may have caused it.
"""

from __future__ import annotations

import sys
from time import monotonic

from probe_core.fastpath import new_lock, start_thread, thread_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType
    from typing import Any

    Ask = Callable[[Any, bool], Iterable[Any]]
    Announce = Callable[[str, object], None]

__all__ = ["Card", "Round"]

MOST = 64
"""Threads at once. A judgement: more than a node has GPUs, fewer than any limit of processes."""

TICK_S, LOOKS = 0.1, 100
"""After how many seconds cards that are still being asked are looked at, and how often at most
within the deadline. Judgements: longer than a driver takes that answers, less than the host waits
before it takes a card for silent, and few frames."""

HOLD_SHARE = 0.5
"""Share of the deadline for which answers wait for those of the cards before them."""


class Card:
    """One card: the id under which it is announced, and what asking it has brought.

    `thread` is the one that asks it, None before and after. `line` is what ran there at the last
    look, None before the first. `is_sent` is whether its answer was passed on. `begun` is what a
    card has still to bring that has been asked already.
    """

    __slots__ = (
        "begun",
        "card",
        "error",
        "is_asked",
        "is_done",
        "is_sent",
        "items",
        "line",
        "may_ask",
        "name",
        "thread",
    )

    def __init__(self, card: Any, name: str, may_ask: bool) -> None:
        self.card = card
        self.name = name
        self.may_ask = may_ask
        self.begun: Iterable[Any] | None = None
        self.items: list[Any] = []
        self.error: BaseException | None = None
        self.thread: int | None = None
        self.line: str | None = None
        self.is_asked = self.is_done = self.is_sent = False


class Round:
    """Cards that are asked side by side, once.

    `ask` is called in the threads; for cards that may not be asked, in the caller's. `announce`
    tells the host, in the caller's thread alone.
    """

    def __init__(self, cards: Sequence[Card], ask: Ask, announce: Announce | None) -> None:
        self._cards = cards
        self._left: list[Card] = []  # that no thread has taken yet, the next one last
        self._ask = ask
        self._announce = announce
        self._told: list[list[str | None]] = []
        self._lock = new_lock()
        self._bell = new_lock()  # held until a card is done
        self._bell.acquire()

    def items(self, deadline_s: float) -> Iterator[Any]:
        """Yield what `ask` yields of each card, in the order of the cards.

        After half the deadline, cards that are ready do not wait for those before them any more: a
        card that hangs takes no other along. What `ask` raises is raised in its place.
        """
        if not self._start():
            yield from self._one_by_one()
            return
        now, tick = monotonic(), max(TICK_S, deadline_s / LOOKS)
        look_at, release_at = now + tick, now + HOLD_SHARE * deadline_s
        while not all(card.is_sent for card in self._cards):
            if (now := monotonic()) >= look_at:
                self._look()
                look_at = now + tick
            self._tell()
            ready = self._ready(is_late=now >= release_at)
            for card in ready:
                yield from self._answer(card)
            if not ready:
                self._bell.acquire(True, TICK_S)
        self._tell()

    def hear(self, kind: str, device: object) -> None:
        """Take an announcement that `ask` makes: in a thread it renames the card that is asked."""
        own = thread_id()
        card = next((card for card in self._cards if card.thread == own), None)
        if card is None:
            self._send(kind, device)
        elif kind == "touching" and isinstance(device, str):
            card.name = device

    def _start(self) -> bool:
        """Start the threads, once the host knows what they ask; False where none can be started."""
        self._left = [card for card in reversed(self._cards) if card.may_ask]
        first = [self._left.pop() for _ in self._left[:MOST]]
        for card in first:
            card.is_asked = True
        self._tell()
        for number, card in enumerate(first):
            try:
                start_thread(self._work, card)
            except RuntimeError:  # no room for one more: those that run take what is left
                for other in reversed(first[number:]):
                    other.is_asked = False
                    self._left.append(other)
                return number > 0
        return True

    def _one_by_one(self) -> Iterator[Any]:
        for card in self._cards:
            if card.may_ask:
                self._send("touching", card.name)
            yield from self._items_of(card)

    def _items_of(self, card: Card) -> Iterator[Any]:
        answer = self._ask(card.card, card.may_ask) if card.begun is None else card.begun
        return (item for item in answer if item is not None)

    def _work(self, first: Card) -> None:
        """Ask a card, and then each that nobody has taken yet."""
        card: Card | None = first
        while card is not None:
            card.thread = thread_id()
            try:
                for item in self._items_of(card):
                    card.items.append(item)
            except BaseException as error:  # raised in the caller's thread, when it is its turn
                card.error = error
            card.thread, card.is_done = None, True
            with self._lock:
                if self._bell.locked():
                    self._bell.release()
                card = self._left.pop() if self._left else None
                if card is not None:
                    card.is_asked = True

    def _ready(self, *, is_late: bool) -> list[Card]:
        """Return the cards whose answers are to be passed on now."""
        ready = []
        for card in self._cards:
            if card.is_sent:
                continue
            if card.is_done or not card.may_ask:
                ready.append(card)
            elif not is_late:
                break
        return ready

    def _answer(self, card: Card) -> Iterator[Any]:
        card.is_sent = True
        if not card.may_ask:
            yield from self._items_of(card)
            return
        yield from card.items
        if card.error is not None:
            self._send("touching", card.name)  # this one raised, whatever the others do
            raise card.error

    def _look(self) -> None:
        """Note the line that each thread runs."""
        frames = sys._current_frames()
        for card in self._cards:
            frame = frames.get(card.thread or 0)
            card.line = _line(frame) if frame is not None else None

    def _tell(self) -> None:
        """Tell the host which cards are being asked, and where, if that has changed."""
        asked = [[c.name, c.line] for c in self._cards if c.is_asked and not c.is_done]
        if asked != self._told:
            self._told = asked
            self._send("asking", asked)

    def _send(self, kind: str, device: object) -> None:
        if self._announce is not None:
            self._announce(kind, device)


def _line(frame: FrameType) -> str:
    """Return where a frame is, as `faulthandler` writes it into the dump of a timeout."""
    code = frame.f_code
    return f'File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}'
