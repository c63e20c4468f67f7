"""Which change took a device its readiness: pure rules over the entries of a journal.

The break names the classes of change that make it (a forbidden module is no matter of libraries).
Among those the one nearest to the fall counts; a fact that has its old value again is none.
"""

from __future__ import annotations

from probe_changes.facts import CLASSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from probe_changes.chain import EntryDoc

_NVIDIA = ("library/libcuda.so.1", "library/libnvidia-ml.so.1")

# Code of a break, else its step, to what makes it: groups of classes of change and of single facts,
# the likeliest group first. Within a group the change nearest to the break counts.
_OF_CODE = {
    "module-missing-for-kernel": (("kernel",),),
    "driver-not-installed": (("kernel",), ("driver",)),
    "kernel-too-old": (("kernel",),),
    "legacy-branch": (("driver",),),
    "driver-too-old-for-gpu": (("driver", "device"),),
    "open-module-unsupported": (("driver",),),
    "closed-module-unsupported": (("driver",),),
    "module-blacklisted": (("setting",),),
    "module-unsigned": (("setting",), ("kernel", "driver")),
    "nomodeset": (("setting",),),
    "reserved-for-vm": (("setting",),),
    "nouveau-bound": (("setting",), ("kernel",)),
    "secure-boot": (("firmware/Secure Boot",), ("kernel", "driver"), ("firmware",)),
    "firmware-missing": (("firmware",), ("kernel",)),
    "gsp-firmware-missing": (("firmware/nvidia", "driver"),),
    "version-mismatch": ((*_NVIDIA, "driver"),),
    "library-missing": (_NVIDIA,),
    "nvml-missing": (_NVIDIA,),
    "user-not-in-group": (("group", "node"),),
}
_OF_STEP = {
    "hardware": (("device",), ("firmware", "setting")),
    "driver": (("driver",), ("kernel",), ("setting",), ("firmware",)),
    "node": (("node",), ("container",), ("kernel",)),
    "permission": (("node", "group"), ("container",)),
    "library": (("library",), ("driver",)),
    "granted": (("container",), ("group",)),
    "runtime": (("library", "variable"), ("driver",)),
    "visible": (("variable",),),
}
_FOLLOWS = ("loaded", "bound")


class Change:
    """One fact that changed: at entry `n`, whose wall clock said `time`."""

    def __init__(self, fact: str, before: str | None, now: str | None, n: int, time: str) -> None:
        self.fact = fact
        self.before = before
        self.now = now
        self.n = n
        self.time = time

    @property
    def kind(self) -> str:
        """The class of the fact."""
        return self.fact.partition("/")[0]


class Fall:
    """When a device stopped working, and has not worked since.

    `ready` is the time of the last entry at which it worked, and `time` that of the first at which
    it did not. `broken` is the break that it has now, since entry `n`.
    """

    def __init__(self, device: str, broken: str, n: int, ready: str, time: str) -> None:
        self.device = device
        self.broken = broken
        self.n = n
        self.ready = ready
        self.time = time


def fall_of(entries: Sequence[EntryDoc], device: str | None = None) -> Fall | None:
    """Return the earliest fall that lasts, of a device or of any; None where none fell.

    A device that was broken when the journal began never fell; one that left the bus did.
    """
    falls: dict[str, Fall] = {}
    working: dict[str, str] = {}
    broken: dict[str, str] = {}
    present: set[str] = set()
    for entry in entries:
        n = entry["n"]
        for name, code in entry.get("broken", {}).items():
            if code is None:
                falls.pop(name, None)
                broken.pop(name, None)
            else:
                broken[name] = code
                if name in falls:  # the break of now is the one to explain
                    falls[name].broken, falls[name].n = code, n
                elif name in working:
                    falls[name] = Fall(name, code, n, working[name], entry["time"])
        for name in _devices(entry, present):
            if name not in present and name in working and name not in falls:
                falls[name] = Fall(name, "hardware:off-the-bus", n, working[name], entry["time"])
            elif name in present and name not in broken:
                falls.pop(name, None)
        for name in present - broken.keys():
            working[name] = entry["time"]
    chosen = [fall for name, fall in falls.items() if device in (None, name)]
    return min(chosen, key=lambda fall: fall.n, default=None)


def _devices(entry: EntryDoc, present: set[str]) -> list[str]:
    """Take the devices that came and went into `present`; return those of this entry."""
    named = []
    for fact, value in entry.get("facts", {}).items():
        kind, _, name = fact.partition("/")
        if kind == "device" and " " not in name:
            named.append(name)
            (present.discard if value is None else present.add)(name)
    return named


def changes_between(entries: Iterable[EntryDoc], since: str = "") -> list[Change]:
    """Return what is otherwise now than before a time, by entry; the first entry changes nothing.

    `before` is the value at that time: of what changed back there is nothing to tell.
    """
    first: dict[str, str | None] = {}
    last: dict[str, Change] = {}
    for change in _transitions(entries):
        if change.time >= since:
            first.setdefault(change.fact, change.before)
            last[change.fact] = change
    changes = list(last.values())
    for change in changes:
        change.before = first[change.fact]
    return _in_order(change for change in changes if change.before != change.now)


def changes_until(entries: Iterable[EntryDoc], n: int) -> list[Change]:
    """Return each fact's last change up to entry `n`, but for what had that value before.

    With that value the device worked, so it is no cause.
    """
    seen: dict[str, set[str | None]] = {}
    last: dict[str, Change] = {}
    for change in _transitions(entry for entry in entries if entry["n"] <= n):
        seen.setdefault(change.fact, set()).add(change.before)
        last[change.fact] = change
    return _in_order(change for change in last.values() if change.now not in seen[change.fact])


def _transitions(entries: Iterable[EntryDoc]) -> Iterator[Change]:
    """Yield each change of each fact."""
    facts: dict[str, str | None] = {}
    for number, entry in enumerate(entries):
        for fact, value in entry.get("facts", {}).items():
            old = facts.get(fact)
            facts[fact] = value
            if number and old != value:
                yield Change(fact, old, value, entry["n"], entry["time"])


def _in_order(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: (change.n, change.fact))


def ranked(changes: Sequence[Change], fall: Fall | None) -> list[Change]:
    """Return the changes, the likeliest cause first; without a fall by class, then by time."""
    if fall is None:
        return sorted(changes, key=lambda change: (_class(change), -change.n))
    step, _, code = fall.broken.partition(":")
    groups = _OF_CODE.get(code) or _OF_STEP.get(step, ())

    def rank(change: Change) -> tuple[bool, int, int, int]:
        named = (g for g, group in enumerate(groups) if {change.fact, change.kind} & {*group})
        # A module that is no longer loaded has no version: that follows from what broke it.
        follows = change.kind in _FOLLOWS or (change.kind == "driver" and change.now is None)
        return follows, next(named, len(groups)), fall.n - change.n, _class(change)

    return sorted(changes, key=rank)


def _class(change: Change) -> int:
    return CLASSES.index(change.kind) if change.kind in CLASSES else len(CLASSES)
