"""Chooses the devices that a request means among a runtime's: by list, count or layout."""

from __future__ import annotations

from probe_core.model.short_ids import named_by
from probe_core.selection.candidates import candidates, free_memory
from probe_core.selection.refusals import Refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.selection.candidates import Candidates

    Groups = list[list[DeviceDoc]]

__all__ = ["choose"]

_SHOWN_REQUEST = 80
"""Characters of a list that an error repeats: two whole UUIDs."""

_NUMBER_DIGITS = 9
"""Digits of a device's number that are read: fewer than any 32-bit number has at most."""


def choose(
    document: ReportDoc,
    selector: str | None = None,
    *,
    count: int | None = None,
    memory: str | int | None = None,
    runtime: str | None = None,
) -> tuple[Groups, str]:
    """Return the groups of devices that a request means, and the runtime whose numbers counted.

    One group unless `selector` is a layout. Raises `SelectionError`; see `select`.
    """
    choice = candidates(document, runtime)
    refusals = Refusals(_in_words(selector, count, memory), choice)
    if selector is not None and selector.strip().lower() == "all":
        selector = None
    if selector is not None and count is not None:
        raise refusals.error("a list and a count exclude each other", "syntax", "give one of them")
    least = _bytes(memory, refusals)
    if selector is None:
        return [_counted(choice, count, least, refusals)], choice.runtime
    layout = _layout(selector)
    if layout is not None:
        return _grouped(choice, *layout, least, refusals), choice.runtime
    devices = _listed(choice, selector, refusals)
    for device in devices:
        if least is not None and (free_memory(device) or 0) < least:
            raise refusals.lacks_memory(device, least)
    return [devices], choice.runtime


def _in_words(selector: str | None, count: int | None, memory: str | int | None) -> str:
    parts = []
    if selector is not None:
        parts.append(ascii(selector[:_SHOWN_REQUEST]))
    if count is not None:
        parts.append(f"{count} device{'s' * (count != 1)}")
    if not parts:
        parts.append("every device")
    if memory is not None:
        parts.append(f"with {memory} free each")
    return " ".join(parts)


def _bytes(memory: str | int | None, refusals: Refusals) -> int | None:
    if memory is None:
        return None
    from probe_core.sizes import parse_size

    try:
        return parse_size(memory)
    except ValueError as error:
        raise refusals.error(str(error), "syntax") from None


def _layout(selector: str) -> tuple[int, int] | None:
    groups, cross, size = selector.strip().lower().partition("x")
    digits = groups + size
    if not cross or not groups or not size or not (digits.isascii() and digits.isdigit()):
        return None
    # Python refuses to convert more than 4,300 digits; six are beyond any node.
    return int(groups[:6]), int(size[:6])


def _counted(
    choice: Candidates, count: int | None, least: int | None, refusals: Refusals
) -> list[DeviceDoc]:
    usable = _with_memory(choice, least)
    if count is None:
        if not usable:
            raise refusals.none_usable(least)
        return usable
    if count < 1:
        raise refusals.error("a count is at least 1", "syntax")
    if count > len(usable):
        raise refusals.too_few(usable, count, least)
    from probe_core.selection.roomy import roomiest_group

    return roomiest_group(usable, count)


def _grouped(
    choice: Candidates, groups: int, size: int, least: int | None, refusals: Refusals
) -> Groups:
    if groups < 1 or size < 1:
        raise refusals.error("a layout has at least one group of one device", "syntax")
    usable = _with_memory(choice, least)
    if groups * size > len(usable):
        raise refusals.too_few(usable, groups * size, least)
    from probe_core.selection.layout import divide

    return divide(usable, groups, size)


def _with_memory(choice: Candidates, least: int | None) -> list[DeviceDoc]:
    if least is None:
        return list(choice.visible)
    return [device for device in choice.visible if (free_memory(device) or 0) >= least]


def _listed(choice: Candidates, selector: str, refusals: Refusals) -> list[DeviceDoc]:
    if not selector.strip():
        raise refusals.syntax("the list names no device")
    from probe_core.selection.entries import entries

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
        from probe_core.selection.entries import named_model

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
    for place, device in enumerate(choice.visible):
        # A device that no runtime numbers (an NPU) goes by its place in the list.
        default = None if device["visibility"] else place
        if choice.indexes.get(device["id"], default) == number:
            return device
    if choice.uncertain or choice.unordered:
        raise refusals.unordered(entry)
    raise refusals.unknown(f"there is no number {entry}")
