"""Chooses the devices that a request means among a runtime's: by list, count or layout."""

from __future__ import annotations

from probe_core.model.naming import named_by
from probe_core.model.runtimes import RUNTIMES, canonical
from probe_core.selection.candidates import candidates, free_memory, load
from probe_core.selection.refusals import Refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.selection.candidates import Candidates

    Groups = list[list[DeviceDoc]]


SHOWN_REQUEST = 80
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
        parts.append(ascii(selector[:SHOWN_REQUEST]))
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
    for place, device in enumerate(choice.visible):
        # A device that no runtime numbers (an NPU) goes by its place in the list.
        default = None if device["visibility"] else place
        if choice.indexes.get(device["id"], default) == number:
            return device
    if choice.uncertain or choice.unordered:
        raise refusals.unordered(entry)
    raise refusals.unknown(f"there is no number {entry}")


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
    if high < low or high - low >= _LONGEST_RANGE:
        raise refusals.syntax(f"{entry!a} is no range; write the smaller number first, as in 0-3")
    return map(str, range(low, high + 1))


def named_model(entry: str, choice: Candidates) -> str | None:
    """Return how to ask for the devices of the model that an entry names; None for no model."""
    model = entry.lower()
    fits = [device for device in choice.visible if model in (device["name"] or "").lower()]
    if len(model) < 2 or not fits:
        return None
    numbers = ",".join(_number(device, choice) for device in fits)
    return f"{entry} is a model, not a device: --device {numbers}, or --gpus {len(fits)}"


def _number(device: DeviceDoc, choice: Candidates) -> str:
    index = choice.indexes.get(device["id"])
    return device["id"] if index is None else str(index)


# Groups that have free memory and are near each other: memory first, in steps, then the links.

_MUCH, _HALF = 0.9, 0.5
"""Shares of the emptiest device's free memory down to which links decide: a tenth less does not
part two linked devices (a judgement); a device that is half full goes behind all that are not."""


def roomiest_group(
    devices: Sequence[DeviceDoc], size: int, among: Sequence[DeviceDoc] = ()
) -> list[DeviceDoc]:
    """Return the `size` devices that are closest together among those with the most memory free.

    Idle devices come before used ones. `among` are all that could have been had: what counts as
    much memory is measured by the emptiest of them.
    """
    from probe_core.selection.layout import best_group

    most = max((free_memory(device) or 0 for device in among or devices), default=0)
    classes = {device["id"]: _class(device, most) for device in devices}
    worst = sorted(classes.values())[size - 1]
    return best_group([device for device in devices if classes[device["id"]] <= worst], size)


def _class(device: DeviceDoc, most: int) -> tuple[int, bool, int]:
    used, unknown, _ = load(device)
    amount = free_memory(device) or 0
    return used, unknown, 0 if amount >= _MUCH * most else 1 if amount >= _HALF * most else 2
