"""Which devices are leased, by whom and since when, from the locks and records of a folder."""

from __future__ import annotations

import os
from time import monotonic

from probe_core.leasing.folder import present_folder
from probe_core.leasing.holders import Holders, Proof, remains
from probe_core.leasing.ranges import QUEUES, SLOT, UNITS, is_over, obstacle, slot
from probe_core.leasing.records import COMMAND, Record, command_text, read_records
from probe_core.proc import arguments, pid_namespace, started, user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.ranges import Key
    from probe_core.model.document import LeaseDoc

_PCI = "/sys/bus/pci/devices"
_MOST_SLOTS = 64
"""Slots in a row that are told one by one: who locks more has locked all that there is."""
_MOST_LOOKS, _MOST_LOOKS_S = 1024, 0.5
"""Looks for locks of which each shows a slot at least, and seconds of them: who locks bytes of more
hides the rest."""
_ARGUMENTS = 1 << 16
"""Characters of arguments that are compared: more than what is read of them takes when escaped."""
UNKNOWN = "?"
"""What stands for a device whose bytes are locked, while nobody says which it is."""


class Holding:
    """A lease on one device: what is told of it, and what the kernel proves of its processes.

    `wholes` are what the devices of the same lease are parts of.
    """

    def __init__(self, name: str, record: Record, proof: Proof) -> None:
        self.doc = _entry(name, record, proof)
        self.proof = proof
        self.wholes = record.wholes

    @property
    def identity(self) -> tuple[str, int | None, int | None, float | None]:
        """What tells it from others; whose record it is, too: another user can copy the rest."""
        doc = self.doc
        return doc["device"], doc["uid"], doc["pid"], doc["since"]


def leases_now(environ: Mapping[str, str]) -> list[LeaseDoc]:
    """Return the leases of the folder that `environ` names, or of the usual one; see `holdings`.

    Nothing is made for a look: without a folder there is no lease. Raises `LeaseError`.
    """
    folder = present_folder(environ)
    if folder is None:
        return []
    with folder:
        return [holding.doc for holding in holdings(folder)]


def obstacles(folder: Folder, keys: Sequence[Key]) -> list[LeaseDoc]:
    """Return the entries of the leases that hold any of these, a part of it, or what it is of."""
    own = {key.own for key in keys}
    names = frozenset().union(*(key.names for key in keys))
    return [
        holding.doc
        for holding in holdings(folder, names)
        if holding.doc["device"] in names or not own.isdisjoint(holding.wholes)
    ]


def holdings(folder: Folder, names: Collection[str] = ()) -> list[Holding]:
    """Return one entry for each lease and device, with what is proven, all from one look.

    Of each: device, pid, uid, since, share, command, state, kept_by, reserve, proven. ``state`` is
    ``running``; ``inherited`` where the owner ended and what it started keeps the lease
    (``kept_by`` then names the processes, as far as this user may see them); ``unknown`` where the
    kernel shows neither from here (another PID namespace, another user's processes). ``reserve`` is
    the part of the device's memory that is leased, in bytes; None where it is all of it, or shared
    as it comes. ``uid`` is the kernel's: whose file the record is. ``proven`` says that pid and
    command are the kernel's, too; else they are what that user says. What is locked and has no
    record is told by its PCI address, or its name among `names`; else as ``?``.
    """
    records = read_records(folder)
    left = remains(records)
    counted = [record for record in records if record.living or left.get(record.name)]
    living = [record for record in records if record.living]
    recorded = {slot(name) for record in living for name in (*record.devices, *record.wholes)}
    look = folder.present_locks()
    unrecorded = []
    if look >= 0:
        try:
            unrecorded = [(at, name) for at, name in _locked(look, names) if at not in recorded]
        finally:
            os.close(look)
    if not counted and not unrecorded:
        return []
    holders = Holders(folder)
    found = [(name, record, holders.prove(record)) for record in counted for name in record.devices]
    for at, name in unrecorded:
        proof = holders.prove_unnamed(at)
        found.append((name, _unrecorded(proof), proof))
    return [Holding(*parts) for parts in found]


def _unrecorded(proof: Proof) -> Record:
    """Return what the kernel shows of a lease without a record, as one."""
    record = Record()
    record.pid = min(proof.below, default=None)
    if record.pid is not None:
        record.uid, record.started = user(record.pid), started(record.pid)
        record.pidns = pid_namespace()
    return record


def _locked(look: int, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield all slots of which bytes are locked, with their names as far as they are known."""
    # Those asked for first: of who has locked more than is looked through the rest is not seen.
    known = {slot(name): name for name in names}
    places = {place for place in known if obstacle(look, place, UNITS)}
    places.update(_held_slots(look))
    if not places:
        return
    try:
        known |= {slot(f"pci:{name}"): f"pci:{name}" for name in os.listdir(_PCI)}
    except OSError:  # not Linux
        pass
    for place in sorted(places):
        yield place, known.get(place, UNKNOWN)


def _held_slots(look: int) -> Iterator[int]:
    """Yield each slot of which bytes are locked once, however many locks lie in it."""
    remaining, until = [(0, QUEUES)], monotonic() + _MOST_LOOKS_S
    for number in range(_MOST_LOOKS):
        if not remaining or is_over(number, until):
            return
        begin, end = remaining.pop()
        found = obstacle(look, begin, end - begin)
        if found is None:
            continue
        first = max(begin, found[0]) // SLOT
        last = (min(end, found[1]) - 1) // SLOT
        for place in range(first, min(last, first + _MOST_SLOTS) + 1):
            if obstacle(look, place * SLOT, UNITS):  # more than a claim
                yield place * SLOT
        rest = (begin, first * SLOT), ((last + 1) * SLOT, end)
        remaining += [(start, stop) for start, stop in rest if start < stop]


def _entry(name: str, record: Record, proof: Proof) -> LeaseDoc:
    """Return what is known of a lease: its state and command as the kernel has them, if it does."""
    is_proven = bool(record.alive()) and record.pid in proof.below
    # What a record says of a process that holds nothing is no evidence.
    is_hidden = not proof.below and user(record.pid or 0) == record.uid
    if is_proven or (record.alive() and is_hidden):
        state = "running"
    else:
        state = "inherited" if record.alive() is not None and proof.below else "unknown"
    return {
        "device": name,
        "state": state,
        "pid": record.pid,
        "uid": record.uid,
        "since": record.since,
        "share": record.share,
        "command": _command(record) if is_proven else record.command,
        "kept_by": [] if state == "running" else sorted(proof.members),
        "reserve": record.reserve,
        "proven": is_proven,
    }


def _command(record: Record) -> str:
    """Return the owner's command where the kernel confirms it, else what the kernel has."""
    words = arguments(record.pid) if record.pid is not None else []
    text = command_text([os.fsdecode(word) for word in words], limit=_ARGUMENTS)
    written = record.command
    is_cut = written.endswith("...") and written[:-3] in text
    return written if written and (is_cut or text.endswith(written)) else text[:COMMAND] or written
