"""Which backend tinygrad would take under the user's own environment, and what breaks it there.

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

__all__ = ["Choice", "choose", "named"]


class Choice:
    """The backend taken (None: none works), its device, the variable that named it, what breaks."""

    __slots__ = ("backend", "breaks", "index", "variable")

    def __init__(self, name: str | None, variable: str | None, breaks: str | None) -> None:
        # Up to 0.12 DEV may hold an index: CUDA:1.
        backend, _, index = (name or "").partition(":")
        digits = index.isascii() and index.isdigit() and len(index) <= 20
        self.backend = backend if digits or not index else name
        self.backend = self.backend or None
        self.index = int(index) if digits else 0
        self.variable = variable
        self.breaks = breaks

    def takes(self, backend: str, index: int) -> bool:
        """Return whether this is what tinygrad would take."""
        return (backend, index) == (self.backend, self.index)

    def findings(self) -> Iterable[dict[str, Any]]:
        """Yield the finding about a variable on which tinygrad itself would fail."""
        if self.breaks:
            yield finding(
                "tinygrad-variable-breaks",
                what="tinygrad would fail in this environment",
                why=self.breaks,
                fix="unset the variable, or give it the value that tinygrad expects",
                severity="error",
            )


def named(environ: Mapping[str, str]) -> list[str]:
    """Return the backend that ``DEV`` names, as a list; it may be one tinygrad never tries."""
    try:
        names = [target.device for target in parse(environ.get("DEV", ""))[:1]]
    except ValueError:
        return []
    return [name for name in names if name and name not in NOT_HARDWARE]


def choose(
    about: Mapping[str, Any], backends: Mapping[str, Mapping[str, Any]], environ: Mapping[str, str]
) -> Choice:
    """Return what tinygrad would take. `about` is its hello, `backends` its answers."""
    style = about["style"]
    first = next((name for name in about["order"] if _opens(backends, name)), None)
    flags, breaks = _flags(about["backends"], environ)
    breaks = breaks or _not_a_number(about["numbers"], environ)
    if style == "targets":
        return _by_target(environ, first, flags, breaks)
    dev = environ.get("DEV", "").upper() if style == "names" else ""
    chosen = list(dict.fromkeys([*([dev] if dev else []), *flags]))
    if style == "names" and len(chosen) > 1:
        return Choice(None, None, breaks or f"it refuses several devices: {', '.join(chosen)}")
    if chosen:
        variable = f"DEV={dev}" if dev else f"{chosen[0]}=1"
        return Choice(chosen[0], variable, breaks)
    return Choice(first, None, breaks)


def _opens(backends: Mapping[str, Mapping[str, Any]], name: str) -> bool:
    return bool(backends.get(name, {}).get("opens"))


def _by_target(
    environ: Mapping[str, str], first: str | None, flags: Sequence[str], breaks: str | None
) -> Choice:
    try:
        device = parse(environ.get("DEV", ""))[0].device
    except ValueError as error:
        return Choice(None, None, f"DEV: {error}")
    if device:
        return Choice(device, f"DEV={environ['DEV']}", breaks)
    if flags:
        breaks = breaks or f"{flags[0]}=1 is refused since tinygrad 0.13: set DEV={flags[0]}"
        return Choice(None, None, breaks)
    return Choice(first, None, breaks)


def _flags(names: Iterable[str], environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Return (backends set to 1 by a variable of their name, the variable that is no number).

    ``CPU=1`` means CPU; tinygrad reads ``CPU=true`` with ``int`` and fails.
    """
    flags = []
    for name in names:
        if name in ("DISK", "NPY", "TINYFS") or name not in environ:
            continue
        try:
            if int(environ[name]) == 1:
                flags.append(name)
        except ValueError:
            return [], f"{name}={environ[name]!r} is no number, and tinygrad reads it as one"
    return flags, None


def _not_a_number(numbers: Iterable[str], environ: Mapping[str, str]) -> str | None:
    for name in numbers:
        try:
            int(environ.get(name, "0"))
        except ValueError:
            return f"{name}={environ[name]!r} is no number, and tinygrad reads it as one"
    return None
