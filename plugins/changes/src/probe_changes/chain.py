"""The chain of entries: each line holds the SHA-256 of the line before, so that a change shows.

Edits, removals and another order inside are found by the chain, a changed end by the head that lies
beside it, and a chain and head that were made anew by nothing but a signature.
"""

from __future__ import annotations

from hashlib import sha256
from json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import NotRequired, TypedDict

    class EntryDoc(TypedDict):
        """One line of a journal.

        `n` counts from 1, `time` is the wall clock's (UTC, a label alone), `boot` a mark of the
        boot and `up` the seconds since it. `facts` are those that changed, null for one that is
        gone, and `broken` the devices whose state changed ("step:code", null for one that works
        again). `clock` are seconds by which the wall clock jumped, `node` marks of the computer,
        and `damaged` what was wrong with the journal when the entry was written. An entry of kind
        `anchor` stands for the `n` entries that were dropped, and has all facts then.
        """

        n: int
        kind: str
        time: str
        boot: str
        up: int
        prev: str
        node: str
        facts: NotRequired[dict[str, str | None]]
        broken: NotRequired[dict[str, str | None]]
        clock: NotRequired[int]
        damaged: NotRequired[str]


GENESIS = "0" * 64
"""What the first entry has as the hash before it."""

KINDS = ("start", "change", "alive", "anchor")

MAX_ENTRIES = 2000
MAX_BYTES = 1 << 20
"""Bytes of a journal: about 4,000 changes of 250 bytes. The older half becomes an anchor."""

_MAX_TEXT = 300


class Problem:
    """What is wrong with a journal: the entry at which it shows, and one sentence."""

    def __init__(self, at: int, text: str) -> None:
        self.at = at
        self.text = text


class Journal:
    """The entries, and what is wrong with them; `head` and `first` are the hashes of both ends."""

    def __init__(self) -> None:
        self.entries: list[EntryDoc] = []
        self.head = GENESIS
        self.first = GENESIS
        self.problems: list[Problem] = []

    @property
    def count(self) -> int:
        """The number of the last entry; 0 without one."""
        return self.entries[-1]["n"] if self.entries else 0

    def note(self, at: int, text: str) -> None:
        """Add what is wrong with it."""
        self.problems.append(Problem(at, text))


def line_of(entry: EntryDoc) -> str:
    """Return the one text that an entry has: its hash is that of this line."""
    return dumps(entry, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def digest(line: str) -> str:
    """Return the hash by which the next entry names a line."""
    return sha256(line.encode()).hexdigest()


def read_chain(text: str, head: str = "") -> Journal:
    """Return what holds of a journal's text; `head` is the text of the file beside it.

    Reading goes on behind a break: the entries there hold among themselves. Never raises.
    """
    journal = Journal()
    lines = text.split("\n")
    rest = lines.pop()  # what stands behind the last line's end
    journal.first = digest(lines[0]) if lines else GENESIS
    for number, line in enumerate(lines, 1):
        _take(journal, line, number)
    if rest:
        problem = "its last line was not written to its end, and is left out"
        journal.note(journal.count + 1, problem)
    if head:
        _compare_head(journal, head)
    return journal


def _take(journal: Journal, line: str, number: int) -> None:
    entry = _parsed(line)
    if entry is None:
        journal.note(number, f"line {number} is no entry")
        journal.head = digest(line)
        return
    expected = journal.count + 1
    is_first = not journal.entries and number == 1
    if is_first and entry["kind"] == "anchor":
        pass  # it says itself what it stands for
    elif is_first and (entry["n"], entry["prev"]) != (1, GENESIS):
        journal.note(entry["n"], f"it begins with entry {entry['n']}: what was before is gone")
    elif entry["prev"] != link(journal):
        follows = "does not follow what is before it: something was changed there"
        journal.note(entry["n"], f"entry {entry['n']} {follows}")
    elif entry["n"] != expected:
        journal.note(entry["n"], f"entry {entry['n']} stands where {expected} belongs")
    if "damaged" in entry:
        when = entry["time"][:10]
        problem = f"found on {when}, before entry {entry['n']}: {entry['damaged']}"
        journal.note(entry["n"], problem)
    journal.entries.append(entry)
    journal.head = digest(line)


def link(journal: Journal) -> str:
    """Return the hash that the next entry must name: an anchor's is that of what it replaced."""
    last = journal.entries[-1] if journal.entries else None
    if last is not None and last["kind"] == "anchor" and len(journal.entries) == 1:
        return last["prev"]
    return journal.head


def _parsed(line: str) -> EntryDoc | None:
    """Return an entry in the one form that we write; None for anything else."""
    try:
        entry = loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or line_of(entry) != line:  # type: ignore[arg-type]  # any table
        return None
    is_sound = (
        type(entry.get("n")) is int
        and entry.get("kind") in KINDS
        and type(entry.get("up")) is int
        and all(isinstance(entry.get(name), str) for name in ("time", "boot", "prev", "node"))
        and type(entry.get("clock", 0)) is int
        and isinstance(entry.get("damaged", ""), str)
        and all(_is_table(entry.get(name, {})) for name in ("facts", "broken"))
    )
    return entry if is_sound else None  # type: ignore[return-value]  # checked above


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(
        text is None or (isinstance(text, str) and len(text) <= _MAX_TEXT)
        for text in value.values()
    )


def head_of(lines: Sequence[str]) -> str:
    """Return what stands beside a journal, and is signed: its last number, last and first hash.

    The first line may be an anchor, which no later line names.
    """
    count = loads(lines[-1])["n"] if lines else 0
    last, first = (digest(lines[-1]), digest(lines[0])) if lines else (GENESIS, GENESIS)
    return f"{count} {last} {first}\n"


def _compare_head(journal: Journal, head: str) -> None:
    fields = head.split()
    count, last, first = fields if len(fields) == 3 else ("", "", "")
    if first != journal.first:
        journal.note(1, "its beginning is not the one that was written")
    if (count, last) == (str(journal.count), journal.head):
        return
    before = journal.entries[-1]["prev"] if journal.entries else None
    if (count, last) == (str(journal.count - 1), before):
        return  # the computer stopped between the entry and its head
    if count.isdecimal() and len(count) < 10 and int(count) > journal.count:
        gone = int(count) - journal.count
        problem = f"its end is cut: {gone} of {count} entries are gone"
    else:
        problem = f"entry {journal.count} is not the last that was written, or was changed"
    journal.note(journal.count, problem)


def bounded(lines: list[str], damaged: str = "") -> list[str]:
    """Return the lines, the older half replaced by an anchor where they are too many.

    `damaged` is what is wrong with them, which the anchor keeps.

    The anchor keeps the number and the hash of the last line that it stands for, and all facts.
    """
    if len(lines) <= MAX_ENTRIES and sum(map(len, lines)) <= MAX_BYTES:
        return lines
    cut = len(lines) // 2
    entries = [entry for line in lines[:cut] if (entry := _parsed(line)) is not None]
    if not entries:
        return lines
    facts, broken = state_of(entries)
    last = entries[-1]
    anchor: EntryDoc = {
        "n": last["n"],
        "kind": "anchor",
        "time": last["time"],
        "boot": last["boot"],
        "up": last["up"],
        "prev": digest(lines[cut - 1]),
        "facts": dict(facts),
        "broken": dict(broken),
        "node": last["node"],
    }
    if damaged:
        anchor["damaged"] = damaged
    return [line_of(anchor), *lines[cut:]]


def state_of(entries: Iterable[EntryDoc]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the facts and the broken devices after the entries."""
    facts: dict[str, str] = {}
    broken: dict[str, str] = {}
    for entry in entries:
        facts = dict(_applied(facts, entry.get("facts", {})))
        broken = dict(_applied(broken, entry.get("broken", {})))
    return facts, broken


def _applied(table: dict[str, str], changes: dict[str, str | None]) -> Iterator[tuple[str, str]]:
    for name, value in (table | changes).items():
        if value is not None:
            yield name, value
