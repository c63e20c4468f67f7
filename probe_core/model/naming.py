"""A device's ids and its name as people write and read them, in tables and on command lines."""

from __future__ import annotations

from probe_core.model.ids import UUID_PREFIXES, whole
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from probe_core.model.document import DeviceDoc


# Ids as people write them: short in a table, and understood again by every command.

_UUID_DIGITS = 8
"""Digits of a short UUID: those before its first hyphen, as docker and git shorten theirs."""

_LEAST_UUID = 5
"""Characters of a UUID that name a device: ``GPU-`` alone would fit all of them."""

_PREFIXES = tuple(f"{prefix}-" for prefix in UUID_PREFIXES)


def short_id(identity: str) -> str:
    """Return an id as `lspci` writes it: without ``pci:`` and domain 0000; a UUID to eight digits.

    Ids of another kind, and UUIDs that hold another (``MIG-GPU-…/7/0``), stay as they are.
    """
    kind, _, value = identity.partition(":")
    if kind == "pci":
        return value.removeprefix("0000:")
    prefix, dash, digits = value.partition("-")
    if kind == "uuid" and dash and f"{prefix}-" in _PREFIXES:
        return value if digits.startswith("GPU-") else f"{prefix}-{digits[:_UUID_DIGITS]}"
    return identity


def short_ids(identities: Iterable[str]) -> dict[str, str]:
    """Return each id's short form; the whole id where two would look alike."""
    short = {identity: short_id(identity) for identity in identities}
    forms = [form.lower() for form in short.values()]
    return {
        identity: form if forms.count(form.lower()) == 1 else identity
        for identity, form in short.items()
    }


def answers_to(identities: Iterable[str], text: str) -> bool:
    """Return whether `text` is one of a device's ids, whole or short, or begins its UUID."""
    wanted_text = text.lower()
    for identity in identities:
        whole = identity.lower()
        value = whole.partition(":")[2]
        if wanted_text in (whole, short_id(identity).lower()):
            return True
        if whole.startswith("pci:") and wanted_text == value:
            return True
        is_prefix = len(wanted_text) >= _LEAST_UUID and value.startswith(wanted_text)
        if whole.startswith("uuid:") and is_prefix:
            return True
    return False


def named_by(text: str, devices: Iterable[Collection[str]]) -> list[int]:
    """Return the places of the devices that `text` names; each device is given by its ids.

    A domain may be left out of a PCI address as `lspci -s` allows it, and ``cpu:0-1`` names two.
    """
    listed = list(devices)
    numbers = _numbers(text)
    if numbers:
        return [at for at, ids in enumerate(listed) if numbers & {*map(str.lower, ids)}]
    fits = [at for at, ids in enumerate(listed) if answers_to(ids, text)]
    if fits or text.count(":") != 1:
        return fits
    ending = f":{text.lower()}"
    return [at for at, ids in enumerate(listed) if any(_is_pci_end(name, ending) for name in ids)]


def _is_pci_end(identity: str, ending: str) -> bool:
    return identity.startswith("pci:") and identity.endswith(ending)


def _numbers(text: str) -> set[str]:
    """Return the ids that ``cpu:0-1`` or ``cpu:0,2`` stands for; none of any other text."""
    kind, _, listed = text.lower().partition(":")
    if kind != "cpu" or not listed.replace("-", "").replace(",", "").isdecimal():
        return set()
    ids: set[str] = set()
    for part in listed[:256].split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if first.isdecimal() and last.isdecimal() and len(first + last) <= 8:
            ids |= {f"cpu:{number}" for number in range(int(first), int(last) + 1)}
    return ids


# A device's name as the table shows it: its model whole, without what every name repeats.

_MARKS = ("(R)", "(r)", "(TM)", "(tm)", "®", "™")
_GRAPHICS = (" w/ ", " with Radeon ")
"""What AMD writes between a processor's name and that of its graphics."""


def title(device: DeviceDoc, parent: DeviceDoc | None = None) -> str:
    """Return a device's name for a row; below its `parent` only what distinguishes it."""
    name = short_name(device)
    if parent is not None and (parent["name"] or "\0") in name:
        name = name.replace(parent["name"] or "", "").strip() or _part(device)
    return name


def _part(device: DeviceDoc) -> str:
    """Return a word for a part that has its parent's name: the partition of an MI300."""
    return f"partition {device['id'].rpartition('/')[2]}" if "/" in device["id"] else "partition"


def short_name(device: DeviceDoc) -> str:
    """Return the name without trademarks, a generation, a clock, core counts and graphics.

    That is ``Intel Core i9-13900K`` of ``13th Gen Intel(R) Core(TM) i9-13900K``. A nameless device
    is described by what is known of it.
    """
    name = device["name"]
    if not name:
        return nameless(device)
    for mark in _MARKS:
        name = name.replace(mark, " ")
    if device["kind"] == "cpu":
        name = _processor(name)
    return " ".join(name.split()) or device["name"] or ""


def _processor(name: str) -> str:
    name = name.partition(" @ ")[0]
    for graphics in _GRAPHICS:
        name = name.partition(graphics)[0]
    words = name.split()
    if words[1:2] == ["Gen"] and words[0][:1].isdigit():
        words = words[2:]
    if words[-1:] == ["Processor"] and "".join(words[-2:-1]).endswith("-Core"):
        words = words[:-2]
    return " ".join(word for word in words if word != "CPU")


def nameless(device: DeviceDoc) -> str:
    """Return what is known of a device without a name."""
    kind = " ".join(filter(None, [device["vendor"], device["kind"]]))
    if device["kind"] == "display":
        return f"{kind} adapter, cannot compute"
    candidates = [chip.rpartition("/")[2] for chip in device["chip"]["candidates"]]
    if len(candidates) > 3:
        return f"{kind}, one of {len(candidates)} chips"
    return " or ".join(candidates) or f"unknown {kind}"


def cores(device: DeviceDoc, *, each: bool = False) -> str:
    """Return a processor's cores, and what this process may use of it: `` (8 cores, 6 allowed)``.

    Empty for other devices, and where the count is unknown.
    """
    count = whole(device, "units") if device["kind"] == "cpu" else None
    if not count:
        return ""
    number = f"{counted(count, 'core')} each" if each else counted(count, "core")
    part = device.get("allowed")
    notes = _allowed(part, count) if part else []
    return f" ({', '.join([number, *notes])})"


def _allowed(part: Mapping[str, Any], count: int) -> list[str]:
    """Return what this process may use of a CPU with `count` cores, where that is not the whole."""
    allowed, quota = part.get("cores", part.get("threads")), part.get("quota")
    notes = []
    if allowed is not None and allowed != count:
        notes.append(f"{allowed} allowed")
    if quota is not None:
        notes.append(f"{quota} CPUs of time")
    return notes
