"""The devices that a list names: by number, name or id, of any runtime's form."""

from __future__ import annotations

from probe_core.model.naming import named_by
from probe_core.model.runtimes import RUNTIMES, canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.model.document import DeviceDoc
    from probe_core.selection.candidates import Candidates
    from probe_core.selection.refusals import Refusals

_NUMBER_DIGITS = 9
"""Digits of a device's number that are read: fewer than any 32-bit number has at most."""


def listed(choice: Candidates, selector: str, refusals: Refusals) -> list[DeviceDoc]:
    """Return the devices that a list names, in its order; raises `SelectionError`."""
    if not selector.strip():
        raise refusals.syntax("the list names no device")
    devices: list[DeviceDoc] = []
    for entry in entries(selector, choice, refusals):
        device = _device(choice, entry, refusals)
        if device in devices:
            unmet = f"{entry!a} names a device a second time"
            raise refusals.error(unmet, "repeated", "name each once", device=device["id"])
        devices.append(device)
    return devices


def _device(choice: Candidates, entry: str, refusals: Refusals) -> DeviceDoc:
    if entry.isascii() and entry.isdigit():
        return _by_number(choice, entry, refusals)
    # "-1" hides devices in CUDA_VISIBLE_DEVICES; here it would only hide a mistake.
    if not entry or entry.lstrip("+-").isdigit():
        raise refusals.syntax(f"{entry!a} is no device")
    ids = [(device["id"], *device["ids"]) for device in choice.accelerators]
    fits = [choice.accelerators[place] for place in named_by(entry, ids)]
    if not fits:
        model = named_model(entry, choice)
        if model is not None:
            raise refusals.error(f"no device is called {entry!a}", "unknown", model)
        raise refusals.unknown(f"no device is called {entry!a}")
    if len(fits) > 1:
        names = ", ".join(device["id"] for device in fits)
        fix = "write the whole id" if ":" in entry else "write more of the UUID"
        raise refusals.error(f"{entry!a} fits {names}", "unknown", fix)
    if fits[0]["id"] in choice.not_visible():
        raise refusals.not_shown(entry, fits[0]["id"])
    return fits[0]


def _by_number(choice: Candidates, entry: str, refusals: Refusals) -> DeviceDoc:
    number = int(entry) if len(entry) <= _NUMBER_DIGITS else -1
    if len(names := choice.numbered(number)) > 1 and number in choice.indexes.values():
        raise refusals.of_several(entry, names)
    for place, device in enumerate(choice.visible):
        # A device that no runtime numbers (an NPU) goes by its place in the list.
        default = None if device["visibility"] else place
        if choice.indexes.get(device["id"], default) == number:
            return device
    doubtful = [*choice.uncertain.values(), *choice.unordered.values()]
    if any(number in view.get("one_of", (number,)) for view in doubtful):
        raise refusals.unordered(entry)
    unmet = f"there is no number {entry}"
    if (model := named_model(entry, choice)) is not None:
        raise refusals.error(unmet, "unknown", model)
    raise refusals.unknown(unmet)


# The entries of a list of devices as people write them: ``0-3`` and ``cuda:0`` besides numbers.

_LONGEST_RANGE = 1024
"""Devices that a range names at most: far beyond every node."""

_ANY_RUNTIME = ("gpu", "device")
"""Words before a number that name no runtime: the one whose numbers count anyway is meant."""


def entries(selector: str, choice: Candidates, refusals: Refusals) -> Iterator[str]:
    """Yield each entry of a list, without its runtime, ranges written out.

    Raises `SelectionError` for another runtime's number, and a range that goes down.
    """
    for text in selector.split(","):
        entry = _without_runtime(text.strip(), choice, refusals)
        first, dash, last = entry.partition("-")
        if dash and first.isdecimal() and last.isdecimal() and entry.isascii():
            yield from _range(entry, first, last, refusals)
        else:
            yield entry


def _without_runtime(entry: str, choice: Candidates, refusals: Refusals) -> str:
    prefix, colon, number = entry.rpartition(":")
    if not colon or not number.replace("-", "").isdecimal():
        return entry
    name = prefix.lower()
    if name in _ANY_RUNTIME:
        return number
    runtime = canonical(name)
    if runtime not in RUNTIMES:  # a PCI address, or no device
        return entry
    if runtime != choice.runtime:
        raise refusals.error(
            f"{entry!a} counts as {runtime} does, the request as {choice.runtime} does",
            "syntax",
            f"--for {runtime}, or a number of {choice.runtime}",
        )
    return number


def _range(entry: str, first: str, last: str, refusals: Refusals) -> Iterator[str]:
    low, high = int(first[:9]), int(last[:9])
    if high < low:
        raise refusals.syntax(f"{entry!a} is no range; write the smaller number first, as in 0-3")
    if high - low >= _LONGEST_RANGE:
        raise refusals.syntax(f"{entry!a} is more than {_LONGEST_RANGE} devices")
    return map(str, range(low, high + 1))


def named_model(entry: str, choice: Candidates) -> str | None:
    """Return how to ask for the devices of the model that an entry names; None for no model.

    A number is a whole word of the name: 3090 is one of "GeForce RTX 3090", and 30 is none.
    """
    model = entry.lower()
    names = [(device, (device["name"] or "").lower()) for device in choice.visible]
    number = model.isdigit()
    fits = [device for device, name in names if model in (name.split() if number else name)]
    if len(model) < 2 or not fits:
        return None
    words = ",".join(choice.word_for(device) for device in fits)
    return f"{entry} is a model, not a device: --device {words}, or --gpus {len(fits)}"
