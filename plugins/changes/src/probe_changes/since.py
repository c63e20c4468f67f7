"""What changed since the devices worked, or within a time: a journal, and the computer as it is."""

from __future__ import annotations

from probe_changes.causes import changes_between, changes_until, fall_of, ranked
from probe_changes.store import Store, entry_for, refuse_other

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from probe_changes.causes import Change
    from probe_changes.chain import EntryDoc, Journal
    from probe_core.commands import Request

    class ChangeDoc(TypedDict):
        """One change: the fact ("driver/nvidia"), its values, and when it was noted."""

        fact: str
        before: str | None
        now: str | None
        time: str
        entry: int

    class SinceDoc(TypedDict):
        """The answer: when all worked, which device fell and how, the changes, the cause first.

        `began` is the time of the first entry: of what was before nothing is known.
        """

        began: str | None
        worked: str | None
        fell: str | None
        device: str | None
        broken: str | None
        changes: list[ChangeDoc]
        problems: list[str]


_TITLES = {
    "driver/nvidia": "driver of NVIDIA",
    "kernel/release": "kernel",
    "group/process": "groups of the process",
    "container/kind": "container",
}


def entries_until_now(store: Store, request: Request, now: float) -> tuple[list[EntryDoc], Journal]:
    """Return the entries, and behind them what would be noted now; nothing is written.

    Raises `OSError` where the journal cannot be read, `CommandError` where another computer's.
    """
    journal = store.read()
    secret = store.secret
    entry = entry_for(journal, request, secret, now) if secret is not None else None
    if entry is None:
        return journal.entries, journal
    refuse_other(journal, entry, request)
    return [*journal.entries, entry], journal


def history(
    entries: Sequence[EntryDoc],
    journal: Journal,
    *,
    since: str | None = None,
    device: str | None = None,
) -> SinceDoc:
    """Return what changed: since a time, else since the devices worked, the likeliest cause first.

    Where nothing fell, all changes that the journal has are listed by class.
    """
    fall = fall_of(entries, device) if since is None else None
    if fall is not None:
        changes = ranked(changes_until(entries, fall.n), fall)
    else:
        changes = ranked(changes_between(entries, since or ""), None)
    problems = [problem.text for problem in journal.problems]
    problems += [
        f"the clock jumped by {entry['clock']} s before entry {entry['n']}:"
        " times before and after it do not compare"
        for entry in entries
        if entry.get("clock")
    ]
    return {
        "began": entries[0]["time"] if entries else None,
        "worked": fall.ready if fall else None,
        "fell": fall.time if fall else None,
        "device": fall.device if fall else None,
        "broken": fall.broken if fall else None,
        "changes": [_document(change) for change in changes],
        "problems": problems,
    }


def _document(change: Change) -> ChangeDoc:
    return {
        "fact": change.fact,
        "before": change.before,
        "now": change.now,
        "time": change.time,
        "entry": change.n,
    }


def title(fact: str) -> str:
    """Return a fact for people: "kernel", "library libcuda.so.1"."""
    kind, _, name = fact.partition("/")
    return _TITLES.get(fact) or f"{kind} {name}"


def sentence(change: ChangeDoc) -> str:
    """Return "kernel: 6.8.0-60-generic → 6.8.0-62-generic"."""
    return f"{title(change['fact'])}: {change['before'] or 'none'} → {change['now'] or 'none'}"
