"""Which backend tinygrad takes under the user's own environment, and what breaks it there.

Mirrors ``Device.DEFAULT`` of tinygrad/device.py in its three generations, because asking it itself
would mean to run under that environment, unsafe interfaces included.

``DEV`` has a little language since 0.13: ``KFD:0,1+AMD;CPU:LLVM`` is two targets: interface KFD and
device indices 0 and 1 for AMD, the renderer LLVM for CPU (tinygrad/helpers.py, class Target).
"""

from __future__ import annotations

from probe_core.api import finding
from probe_tinygrad.match import NOT_HARDWARE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from probe_tinygrad.messages import About, Answer


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
        names = [target.device for target in parse_targets(environ.get("DEV", ""))[:1]]
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
        device = parse_targets(environ.get("DEV", ""))[0].device
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


# The language of ``DEV``, and how to make a value of it harmless.

KERNEL_INTERFACES = {"AMD": "KFD", "NV": "NVK"}
"""The interface that goes through the kernel's driver. The others take the PCI device itself:
their constructors write to ``driver/unbind`` (tinygrad/runtime/support/system.py)."""


class Target:
    """One target of a ``DEV`` value: ``interface:indices+device:renderer``, each but one optional.

    suffix: what follows the device, its renderer and architecture.
    """

    __slots__ = ("device", "front", "indices", "interface", "suffix")

    def __init__(self, text: str) -> None:
        front, plus, back = text.rpartition("+")
        interface, colon, indices = front.rpartition(":")
        self.front = front if plus else ""
        self.interface = (interface if colon else front).upper()
        self.indices = indices if colon else ""
        device, _, self.suffix = back.partition(":")
        self.device = device.upper()


def parse_targets(value: str) -> list[Target]:
    """Return the targets of a ``DEV`` value; raises `ValueError` where tinygrad raises."""
    texts = value.split(";")
    for text in texts:
        if text.count("+") > 1 or text.rpartition("+")[2].count(":") > 2:
            raise ValueError(f"too many '+' or ':' in the target {text!r}")
    return [Target(text) for text in texts]


def safe_targets(targets: Sequence[Target]) -> tuple[str, dict[str, str]]:
    """Return (a ``DEV`` value bound to kernel drivers, backend to the reason it is not queried).

    Indices, renderers and architectures stay the user's.
    """
    parts: list[str] = []
    refused: dict[str, str] = {}
    for device, interface in KERNEL_INTERFACES.items():
        own = next((target for target in targets if target.device in ("", device)), None)
        parts.append(_bound(device, interface, own))
        if own and own.interface not in ("", interface):
            refused[device] = (
                f"DEV asks for its interface {own.interface}, and a probe opens {interface} alone"
            )
    parts += [_unbound(target) for target in targets if target.device not in _BOUND]
    return ";".join(parts), refused


_BOUND = ("", *KERNEL_INTERFACES)


def _bound(device: str, interface: str, own: Target | None) -> str:
    """Return a target that goes through the kernel's driver, with the user's other choices."""
    indices = f":{own.indices}" if own and own.indices else ""
    return f"{interface}{indices}+{device}{_suffix(own)}"


def _unbound(target: Target) -> str:
    return f"{target.device}{_suffix(target)}"


def _suffix(target: Target | None) -> str:
    return f":{target.suffix}" if target and target.suffix else ""
