"""Which backend tinygrad takes under the user's own environment, and what breaks it there.

Mirrors ``Device.DEFAULT`` of tinygrad/device.py in its three generations, because asking it
itself would mean to run under that environment, unsafe interfaces included.
"""

from __future__ import annotations

from probe_core.api import finding
from probe_tinygrad.names import NOT_HARDWARE
from probe_tinygrad.targets import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from probe_tinygrad.messages import About, Answer

__all__ = ["Broken", "Choice", "choose", "named"]

# Backends without a variable of their name: nobody computes on a disk or an array.
_STORAGE = ("DISK", "NPY", "TINYFS")


class Broken:
    """A variable on which tinygrad fails: its name, and a sentence that says why."""

    __slots__ = ("reason", "variable")

    def __init__(self, variable: str, reason: str) -> None:
        self.variable = variable
        self.reason = reason


class Choice:
    """The backend taken (None: none works), its index, what names it, and what breaks it.

    named_by: the variable and its value ("DEV=CUDA"); None where tinygrad chose by itself.
    """

    __slots__ = ("backend", "broken", "index", "named_by")

    def __init__(self, name: str | None, named_by: str | None, broken: Broken | None) -> None:
        # Up to 0.12 DEV may hold an index: CUDA:1.
        backend, _, index = (name or "").partition(":")
        # int() of more than 4,300 digits raises; no machine has a device of 20.
        digits = index.isascii() and index.isdigit() and len(index) <= 20
        self.backend = backend if digits or not index else name
        self.backend = self.backend or None
        self.index = int(index) if digits else 0
        self.named_by = named_by
        self.broken = broken

    @property
    def variable(self) -> str | None:
        """The name of the variable that names the backend."""
        return self.named_by.partition("=")[0] if self.named_by else None

    def takes(self, backend: str, index: int) -> bool:
        """Return whether this is what tinygrad takes."""
        return (backend, index) == (self.backend, self.index)

    def findings(self) -> Iterable[dict[str, Any]]:
        """Yield the finding about a variable on which tinygrad itself fails."""
        if self.broken:
            yield finding(
                "tinygrad-variable-breaks",
                what="tinygrad fails in this environment",
                why=self.broken.reason,
                fix=f"unset {self.broken.variable}, or give it the value that tinygrad expects",
                severity="error",
                variable=self.broken.variable,
            )


def named(environ: Mapping[str, str]) -> list[str]:
    """Return the backend that ``DEV`` names, as a list; it may be one tinygrad never tries."""
    try:
        names = [target.device for target in parse(environ.get("DEV", ""))[:1]]
    except ValueError:
        return []
    return [name for name in names if name and name not in NOT_HARDWARE]


def choose(about: About, backends: Mapping[str, Answer], environ: Mapping[str, str]) -> Choice:
    """Return what tinygrad takes, from what it is and what its backends answered."""
    first = next((name for name in about["order"] if _opens(backends, name)), None)
    flags, broken = _flags(about["backends"], environ)
    broken = broken or _not_a_number(about["numbers"], environ)
    if about["style"] == "targets":
        return _by_target(environ, first, flags, broken)
    if about["style"] == "names":
        return _by_name(environ.get("DEV", "").upper(), first, flags, broken)
    return Choice(flags[0], f"{flags[0]}=1", broken) if flags else Choice(first, None, broken)


def _opens(backends: Mapping[str, Answer], name: str) -> bool:
    return name in backends and bool(backends[name]["opens"])


def _by_name(dev: str, first: str | None, flags: Sequence[str], broken: Broken | None) -> Choice:
    """Choose as tinygrad 0.10 to 0.12: ``DEV`` is a name, and so is a flag such as ``CUDA=1``."""
    names = list(dict.fromkeys([dev, *flags] if dev else flags))
    if len(names) > 1:
        reason = f"it refuses several devices: {', '.join(names)}"
        return Choice(None, None, broken or Broken("DEV" if dev else names[0], reason))
    if not names:
        return Choice(first, None, broken)
    return Choice(names[0], f"DEV={dev}" if dev else f"{names[0]}=1", broken)


def _by_target(
    environ: Mapping[str, str], first: str | None, flags: Sequence[str], broken: Broken | None
) -> Choice:
    """Choose as tinygrad since 0.13: ``DEV`` holds targets, and flags are refused."""
    try:
        device = parse(environ.get("DEV", ""))[0].device
    except ValueError as error:
        return Choice(None, None, Broken("DEV", f"DEV: {error}"))
    if device:
        return Choice(device, f"DEV={environ['DEV']}", broken)
    if flags:
        reason = f"{flags[0]}=1 is refused since tinygrad 0.13: set DEV={flags[0]}"
        return Choice(None, None, broken or Broken(flags[0], reason))
    return Choice(first, None, broken)


def _flags(names: Iterable[str], environ: Mapping[str, str]) -> tuple[list[str], Broken | None]:
    """Return (backends set to 1 by a variable of their name, the variable that is no number).

    ``CPU=1`` means CPU; tinygrad reads ``CPU=true`` with ``int`` and fails.
    """
    present = [name for name in names if name in environ and name not in _STORAGE]
    broken = _not_a_number(present, environ)
    if broken:
        return [], broken
    return [name for name in present if int(environ[name]) == 1], None


def _not_a_number(names: Iterable[str], environ: Mapping[str, str]) -> Broken | None:
    for name in names:
        try:
            int(environ.get(name, "0"))
        except ValueError:
            reason = f"{name}={environ[name]!r} is no number, and tinygrad reads it as one"
            return Broken(name, reason)
    return None
