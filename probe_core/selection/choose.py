"""Chooses the devices that a request means among a runtime's: by list, count or layout."""

from __future__ import annotations

from probe_core.model.ids import KIND_ORDER
from probe_core.model.verdict import is_integrated
from probe_core.selection.candidates import candidates, free_memory, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.selection.candidates import Candidates
    from probe_core.selection.refusals import Refusals

    Groups = list[list[DeviceDoc]]


SHOWN_REQUEST = 80
"""Characters of a list that an error repeats: two whole UUIDs."""


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
    asked = _in_words(selector, count, memory)
    if selector is not None and selector.strip().lower() == "all":
        selector = None
    if selector is not None and count is not None:
        unmet = "a list and a count exclude each other"
        raise refusals(asked, choice).error(unmet, "syntax", "give one of them")
    try:
        least = bytes_of(memory)
    except ValueError as error:
        raise refusals(asked, choice).error(str(error), "syntax") from None
    if selector is None:
        return [_counted(choice, count, least, asked)], choice.runtime
    layout = _layout(selector)
    if layout is not None:
        return _grouped(choice, *layout, least, asked), choice.runtime
    from probe_core.selection.listed import listed

    devices = listed(choice, selector, refusals(asked, choice))
    for device in devices:
        if least is not None and (free_memory(device) or 0) < least:
            raise refusals(asked, choice).lacks_memory(device, least)
    return [devices], choice.runtime


def refusals(asked: str, choice: Candidates) -> Refusals:
    """Return what makes the errors of a request, which most requests never import."""
    from probe_core.selection.refusals import Refusals

    return Refusals(asked, choice)


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


def bytes_of(amount: str | int | None) -> int | None:
    """Return the bytes of an amount of memory, None where none is asked; raises `ValueError`."""
    if amount is None:
        return None
    from probe_core.sizes import parse_size

    return parse_size(amount)


def _layout(selector: str) -> tuple[int, int] | None:
    groups, cross, size = selector.strip().lower().partition("x")
    digits = groups + size
    if not cross or not groups or not size or not (digits.isascii() and digits.isdigit()):
        return None
    # Python refuses to convert more than 4,300 digits; six are beyond any node.
    return int(groups[:6]), int(size[:6])


def _counted(
    choice: Candidates, count: int | None, least: int | None, asked: str
) -> list[DeviceDoc]:
    usable = _with_memory(choice, least)
    if count is None:
        if not usable:
            raise refusals(asked, choice).none_usable(least)
        return usable
    if count < 1:
        raise refusals(asked, choice).error("a count is at least 1", "syntax")
    if count > len(usable):
        raise refusals(asked, choice).too_few(usable, count, least)
    own = of_one_kind(usable, count)
    if not own:
        raise refusals(asked, choice).of_several_kinds(usable)
    return roomiest_group(own, count)


def of_one_kind(devices: Sequence[DeviceDoc], count: int) -> list[DeviceDoc]:
    """Return the devices of the best kind that has `count`; none where no kind has so many.

    The ranks of one program work alike: none runs on a GPU and an NPU. One device may be any.
    """
    if count == 1:
        return list(devices)
    for kind in sorted({device["kind"] for device in devices}, key=KIND_ORDER.__getitem__):
        own = [device for device in devices if device["kind"] == kind]
        if len(own) >= count:
            return own
    return []


def _grouped(choice: Candidates, groups: int, size: int, least: int | None, asked: str) -> Groups:
    if groups < 1 or size < 1:
        unmet = "a layout has at least one group of one device"
        raise refusals(asked, choice).error(unmet, "syntax")
    usable = _with_memory(choice, least)
    if groups * size > len(usable):
        raise refusals(asked, choice).too_few(usable, groups * size, least)
    from probe_core.selection.layout import divide

    return divide(usable, groups, size)


def _with_memory(choice: Candidates, least: int | None) -> list[DeviceDoc]:
    if least is None:
        return list(choice.visible)
    return [device for device in choice.visible if (free_memory(device) or 0) >= least]


# Groups that have free memory and are near each other: memory first, in steps, then the links.

_MUCH, _HALF = 0.9, 0.5
"""Shares of the emptiest device's free memory down to which links decide: a tenth less does not
part two linked devices (a judgement); a device that is half full goes behind all that are not."""


def roomiest_group(
    devices: Sequence[DeviceDoc], size: int, among: Sequence[DeviceDoc] = ()
) -> list[DeviceDoc]:
    """Return the `size` devices that are closest together among those with the most memory free.

    GPUs come before NPUs, cards before a processor's own graphics, and idle devices before used
    ones. `among` are all that could have been had: what counts as much memory is measured by the
    emptiest card of them.
    """
    from probe_core.selection.layout import best_group

    all_ = among or devices
    cards = [device for device in all_ if not is_integrated(device)] or all_
    most = max((free_memory(device) or 0 for device in cards), default=0)
    classes = {device["id"]: _class(device, most) for device in devices}
    worst = sorted(classes.values())[size - 1]
    return best_group([device for device in devices if classes[device["id"]] <= worst], size)


def _class(device: DeviceDoc, most: int) -> tuple[tuple[int, bool], int, bool, int]:
    kind, used, unknown, _ = load(device)
    amount = free_memory(device) or 0
    return kind, used, unknown, 0 if amount >= _MUCH * most else 1 if amount >= _HALF * most else 2


def better_kinds(taken: Sequence[DeviceDoc], devices: Iterable[DeviceDoc]) -> tuple[list[str], str]:
    """Return the ids of devices of a better kind than some of `taken`, and what these are instead.

    Who asked for one device expects a card, and runs far slower on the processor's own graphics or
    an NPU.
    """
    least = max(load(device)[0] for device in taken)
    own = [device["id"] for device in taken]
    better = [d["id"] for d in devices if d["id"] not in own and load(d)[0] < least]
    lesser = [_with_kind(device) for device in taken if load(device)[0] == least]
    return better, f"taken instead: {', '.join(lesser)}"


def _with_kind(device: DeviceDoc) -> str:
    kind = "the processor's own graphics" if is_integrated(device) else f"of kind {device['kind']}"
    return f"{device['id']} ({kind})"
