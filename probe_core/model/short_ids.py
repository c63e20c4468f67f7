"""Ids as people write them: short in a table, and understood again by every command."""

from __future__ import annotations

from probe_core.model.ids import UUID_PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["answers_to", "named_by", "short_id", "short_ids"]

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
