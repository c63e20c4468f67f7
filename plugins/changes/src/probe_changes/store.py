"""The files of a journal in the user's state folder: read, appended under a lock, kept small."""

from __future__ import annotations

import os
from contextlib import contextmanager
from time import gmtime, strftime, time

from probe_changes.chain import bounded, head_of, line_of, link, read_chain, state_of
from probe_changes.facts import broken_devices, facts_of
from probe_core.commands import (
    CommandError,
    is_container_without_id,
    journal_file,
    keys_of,
    replace_file,
    state_base,
)
from probe_core.machine import read_regular, text_of
from probe_core.machine.writing import make_own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from probe_changes.chain import EntryDoc, Journal
    from probe_core.commands import Request

_LIMIT = 4 << 20
_SECRET_BYTES = 16
DAY_S = 86_400
"""Seconds after which an entry is written though nothing changed: a sign of life."""

MAX_TOLD = 200
"""Characters of what an entry says of damage."""

JUMP_S = 120
"""Seconds by which the wall clock may run apart from the uptime: NTP steps of seconds are usual."""


class Store:
    """One journal: `path`, the head beside it, the head that was signed, and the signature."""

    def __init__(self, path: str, base: str = "") -> None:
        self.path = path
        self.head_path = f"{path}.head"
        self.signed_path, self.signature_path = f"{path}.signed", f"{path}.signed.sig"
        self._secret_path = f"{path}.secret"
        self._base = base or os.path.dirname(path)

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> Store:
        """Return this user's; raises `CommandError` where the environment names no place."""
        path = journal_file(environ)
        if path is None:
            raise CommandError("HOME is not set; name a folder in XDG_STATE_HOME", 1)
        return cls(path, state_base(environ)[0])

    def exists(self) -> bool:
        """Return whether there is a journal."""
        return os.path.exists(self.path)

    def read(self) -> Journal:
        """Return the journal, compared with its head; raises `OSError` where it cannot be read."""
        text = text_of(read_regular(self.path, _LIMIT))
        return read_chain(text, self._head())

    def _head(self) -> str:
        """Return the head's text; one that is gone is a head that nothing agrees with."""
        try:
            return text_of(read_regular(self.head_path, 4096)) or "(empty)"
        except (OSError, ValueError):
            return "(none)"

    def append(self, request: Request, now: Callable[[], float] = time) -> EntryDoc | None:
        """Write what changed since the last entry; return the entry, None where none was needed.

        Raises `OSError` where the folder cannot be written.
        """
        make_own_folder(os.path.dirname(self.path), self._base)
        with self._locked():
            lines, journal = self._lines()
            entry = entry_for(journal, request, self._secret(), now())
            if entry is None:
                return None
            refuse_other(journal, entry, request)
            if journal.problems:
                entry["damaged"] = journal.problems[-1].text[:MAX_TOLD]
            lines = bounded([*lines, line_of(entry)], entry.get("damaged", ""))
            replace_file(self.path, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)
            replace_file(self.head_path, head_of(lines).encode(), mode=0o600)
            return entry

    def _lines(self) -> tuple[list[str], Journal]:
        try:
            text = text_of(read_regular(self.path, _LIMIT))
        except FileNotFoundError:
            return [], read_chain("")
        journal = read_chain(text, self._head())
        # Half a last line is what a loss of power leaves: nothing was promised of it.
        return text.split("\n")[:-1], journal

    @property
    def secret(self) -> bytes | None:
        """The secret by which values are disguised, so that equal stays equal; None without one."""
        try:
            secret = bytes.fromhex(text_of(read_regular(self._secret_path, 64)))
        except (OSError, ValueError):
            return None
        return secret if len(secret) == _SECRET_BYTES else None

    def _secret(self) -> bytes:
        if (own := self.secret) is not None:
            return own
        secret = os.urandom(_SECRET_BYTES)
        replace_file(self._secret_path, secret.hex().encode(), mode=0o600)
        return secret

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep a second writer out: a timer and a person may write at one time."""
        import fcntl

        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(f"{self.path}.lock", flags, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def refuse_other(journal: Journal, entry: EntryDoc, request: Request) -> None:
    """Raise `CommandError` where the journal is another computer's, as in a home on NFS."""
    if not journal.entries:
        return
    if not set(entry["node"].split()).isdisjoint(journal.entries[-1]["node"].split()):
        return
    if is_container_without_id(request.report["node"]):
        raise CommandError(
            "the journal is of another computer, or of an earlier boot: a container shows no id of"
            " the node, and the kernel's boot and all GPUs are others; mount the host's"
            " /etc/machine-id into the container, and name a folder in XDG_STATE_HOME",
            1,
        )
    hint = "keep one for each computer: name a folder in XDG_STATE_HOME"
    raise CommandError(f"the journal is another computer's; {hint}", 1)


def entry_for(journal: Journal, request: Request, secret: bytes, now: float) -> EntryDoc | None:
    """Return the entry for what is otherwise than the journal has it; None where nothing is."""
    facts, broken = facts_of(request, secret), broken_devices(request)
    old_facts, old_broken = state_of(journal.entries)
    last = journal.entries[-1] if journal.entries else None
    changed = _difference(old_facts, facts)
    fallen = _difference(old_broken, broken)
    boot, up = _boot(request, secret)
    jump = _jump(last, boot, up, now) if last else 0
    is_alive = last is not None and now - _seconds(last["time"]) >= DAY_S
    if last is not None and not (changed or fallen or jump or is_alive):
        return None
    kind = "start" if last is None else "change" if changed or fallen or jump else "alive"
    entry: EntryDoc = {
        "n": journal.count + 1,
        "kind": kind,
        "time": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(now)),
        "boot": boot,
        "up": up,
        "prev": link(journal),
        "node": " ".join(_mark(key, secret) for key in _keys(request)),
    }
    if changed:
        entry["facts"] = changed
    if fallen:
        entry["broken"] = fallen
    if jump:
        entry["clock"] = jump
    return entry


def _keys(request: Request) -> list[str]:
    report = request.report
    return keys_of(request.machine, report["node"], report["devices"])


def _difference(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    names = dict.fromkeys((*old, *new))
    return {name: new.get(name) for name in names if old.get(name) != new.get(name)}


def _mark(text: str, secret: bytes) -> str:
    """Return what tells two texts apart, and not what they are."""
    from hashlib import blake2b

    return blake2b(text.encode(), key=secret, digest_size=4).hexdigest() if text else ""


def _boot(request: Request, secret: bytes) -> tuple[str, int]:
    """Return a mark of this boot, and the seconds since it."""
    machine = request.machine
    mark = _mark(machine.read("/proc/sys/kernel/random/boot_id", 64) or "", secret)
    text = (machine.read("/proc/uptime", 128) or "0").split()[0].partition(".")[0]
    return mark, int(text) if text.isdecimal() and len(text) < 12 else 0


def _jump(last: EntryDoc, boot: str, up: int, now: float) -> int:
    """Return by how many seconds the wall clock jumped since the last entry.

    Within one boot the uptime, which counts suspended time too, is the measure; across boots only
    a clock that went back is one.
    """
    passed = now - _seconds(last["time"])
    if boot and boot == last["boot"]:
        off = passed - (up - last["up"])
        return round(off) if abs(off) > JUMP_S else 0
    return round(passed) if passed < -JUMP_S else 0


def _seconds(text: str) -> float:
    """Return the Unix time of an entry's label; 0 for one that is none."""
    from calendar import timegm
    from time import strptime

    try:
        return float(timegm(strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return 0.0
