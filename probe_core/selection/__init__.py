"""Checks a request for devices before any model is loaded: by number, UUID, count or layout."""

from __future__ import annotations

from probe_core.selection.candidates import candidates, document_of, free_memory
from probe_core.selection.errors import SelectionError, unmet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from probe_core.selection.candidates import Candidates

    Device = Mapping[str, Any]
    Fail = Callable[[str, str, str | None], SelectionError]

__all__ = ["Selection", "SelectionError", "select"]


class Selection:
    """Devices that were asked for and may be used.

    `groups` holds one list of devices for each group (one group unless a layout was asked for),
    `devices` all of them in order, `consumer` whose numbers counted.
    """

    __slots__ = ("consumer", "devices", "groups")

    def __init__(self, groups: Sequence[Sequence[Device]], consumer: str) -> None:
        self.groups = [list(group) for group in groups]
        self.devices = [device for group in self.groups for device in group]
        self.consumer = consumer

    @property
    def ids(self) -> list[str]:
        """Ids of the devices, in order."""
        return [str(device.get("id")) for device in self.devices]

    def environ(self, document: Any, environ: Mapping[str, str]) -> dict[str, str | None]:
        """Return the variables that confine a process to these devices (None: to be unset)."""
        from probe_core.selection.environment import confine

        return confine(document_of(document), self.devices, environ)

    def __len__(self) -> int:
        return len(self.devices)

    def __repr__(self) -> str:
        return f"Selection({self.ids!r}, consumer={self.consumer!r})"


def select(
    report: Any,
    wanted: str | None = None,
    *,
    count: int | None = None,
    memory: str | int | None = None,
    consumer: str | None = None,
) -> Selection:
    """Return the devices that a request means, or raise `SelectionError` with what would work.

    `report` is a report or its document, its visibility made for the environment that counts.
    `wanted` is a list of the consumer's numbers (``0,2``), of beginnings of UUIDs (``GPU-1a2b``)
    or of ids (``pci:0000:01:00.0``), mixed as one likes, or a layout (``2x1``: two groups of one
    device each), or ``all``. `count` asks for that many devices instead; with neither, every
    visible device is meant. `memory` (bytes or ``20GiB``) is what each device must have free.
    `consumer` is whose sight counts (``cuda``); by default that of the primary device's vendor.
    """
    document = document_of(report)
    found = candidates(document, consumer)
    if wanted is not None and wanted.strip().lower() == "all":
        wanted = None
    asked = _asked(wanted, count, memory)
    fail = _failing(found, asked)
    if wanted is not None and count is not None:
        raise fail("a list and a count exclude each other", "syntax", "give one of them")
    least = _least(memory, fail)
    if wanted is None:
        return _counted(found, count, least, fail)
    layout = _layout(wanted)
    if layout is not None:
        return _grouped(found, *layout, least, fail)
    chosen = _listed(found, wanted, fail)
    for device in chosen:
        _enough(device, least, fail, found)
    return Selection([chosen], found.consumer)


def _asked(wanted: str | None, count: int | None, memory: str | int | None) -> str:
    words = []
    if wanted is not None:
        words.append(ascii(wanted[:80]))
    if count is not None:
        words.append(f"{count} device{'s' * (count != 1)}")
    if not words:
        words.append("every device")
    return " ".join([*words, *([f"with {memory} free each"] if memory is not None else [])])


def _failing(found: Candidates, asked: str) -> Fail:
    def fail(problem: str, code: str, fix: str | None) -> SelectionError:
        return unmet(
            problem,
            code=code,
            asked=asked,
            consumer=found.consumer,
            visible=found.visible,
            hidden=found.hidden | found.doubtful,
            fix=fix,
        )

    return fail


def _least(memory: str | int | None, fail: Fail) -> int | None:
    if memory is None:
        return None
    from probe_core.selection.sizes import parse_size

    try:
        return parse_size(memory)
    except ValueError as error:
        raise fail(str(error), "syntax", None) from None


def _layout(wanted: str) -> tuple[int, int] | None:
    groups, cross, size = wanted.strip().partition("x")
    plain = groups + size
    if not cross or not groups or not size or not (plain.isascii() and plain.isdigit()):
        return None
    return int(groups[:6]), int(size[:6])


def _counted(found: Candidates, count: int | None, least: int | None, fail: Fail) -> Selection:
    usable = _with_memory(found, least)
    if count is None:
        if not usable:
            raise fail(*_nothing(found, least))
        return Selection([usable], found.consumer)
    if count < 1:
        raise fail("a count is at least 1", "syntax", None)
    if count > len(usable):
        raise fail(*_too_few(found, usable, least, count))
    from probe_core.selection.layout import best_group

    return Selection([best_group(usable, count)], found.consumer)


def _grouped(found: Candidates, groups: int, size: int, least: int | None, fail: Fail) -> Selection:
    if groups < 1 or size < 1:
        raise fail("a layout has at least one group of one device", "syntax", None)
    usable = _with_memory(found, least)
    if groups * size > len(usable):
        raise fail(*_too_few(found, usable, least, groups * size))
    from probe_core.selection.layout import divide

    return Selection(divide(usable, groups, size), found.consumer)


def _with_memory(found: Candidates, least: int | None) -> list[Device]:
    if least is None:
        return list(found.visible)
    return [device for device in found.visible if (free_memory(device) or 0) >= least]


def _nothing(found: Candidates, least: int | None) -> tuple[str, str, str | None]:
    if found.visible:
        return _too_few(found, [], least, 1)
    if found.hidden or found.doubtful:
        return "no device is visible", "hidden", _unhide(found)
    return "this node has no accelerator", "too-few", "run it on the CPU, or on another node"


def _too_few(
    found: Candidates, usable: Sequence[Device], least: int | None, count: int
) -> tuple[str, str, str | None]:
    if not found.every:
        return "this node has no accelerator", "too-few", "run it on the CPU, or on another node"
    if len(found.visible) >= count and least is not None:
        from probe_core.selection.sizes import format_size

        amounts = sorted((free_memory(device) or 0 for device in found.visible), reverse=True)
        fix = f"ask for {format_size(amounts[count - 1])} each" if amounts[count - 1] else None
        said = f"only {len(usable)} of the visible devices have that much memory free"
        return said, "memory", fix
    said = f"only {len(usable)} device{'s' * (len(usable) != 1)} can be had"
    fix = f"ask for {len(usable)}" if usable else _unhide(found)
    if usable and len(found.every) >= count and (found.hidden or found.doubtful):
        fix = f"{fix}, or {_unhide(found)}"
    return said, "too-few" if usable or found.visible else "hidden", fix


def _unhide(found: Candidates) -> str | None:
    """Return how hidden devices could be had."""
    reasons = [*found.hidden.values(), *found.doubtful.values()]
    if any("CUDA_DEVICE_ORDER" in reason for reason in reasons):
        return "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name devices by UUID"
    names = [word.split("=")[0].strip(",:") for reason in reasons for word in reason.split()[:1]]
    variable = next((name for name in names if name.isupper() and "_" in name), None)
    return f"change or unset {variable}" if variable else None


def _listed(found: Candidates, wanted: str, fail: Fail) -> list[Device]:
    entries = [entry.strip() for entry in wanted.split(",")]
    if not wanted.strip():
        raise fail("the list names no device", "syntax", _numbers(found))
    chosen: list[Device] = []
    for entry in entries:
        device = _one(found, entry, fail)
        if device in chosen:
            raise fail(f"{entry!a} names a device a second time", "repeated", "name each once")
        chosen.append(device)
    return chosen


def _one(found: Candidates, entry: str, fail: Fail) -> Device:
    if entry.isascii() and entry.isdigit():
        return _by_number(found, entry, fail)
    if not entry or entry.lstrip("+-").isdigit():
        raise fail(f"{entry!a} is no device", "syntax", _numbers(found))
    named = [device for device in found.every if _answers_to(device, entry)]
    if not named:
        raise fail(f"no device is called {entry!a}", "unknown", _numbers(found))
    if len(named) > 1:
        names = ", ".join(str(device.get("id")) for device in named)
        raise fail(f"{entry!a} fits {names}", "unknown", "write more of the UUID")
    identity = str(named[0].get("id"))
    if identity in found.hidden:
        raise fail(f"{entry!a} is hidden: {found.hidden[identity]}", "hidden", _unhide(found))
    if identity in found.doubtful:
        raise fail(f"{entry!a}: {found.doubtful[identity]}", "uncertain", _unhide(found))
    return named[0]


def _by_number(found: Candidates, entry: str, fail: Fail) -> Device:
    number = int(entry) if len(entry) < 10 else -1
    for at, device in enumerate(found.visible):
        index = found.indexes.get(str(device.get("id")))
        if index == number or (index is None and not device.get("visibility") and at == number):
            return device
    unordered = [one for one in found.visible if str(one.get("id")) not in found.indexes]
    if found.doubtful or any(one.get("visibility") for one in unordered):
        said = next(iter(found.doubtful.values()), "the order is known to the driver alone")
        fix = "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name devices by UUID"
        raise fail(f"which device is number {entry} is not known: {said}", "uncertain", fix)
    raise fail(f"there is no number {entry}", "unknown", _numbers(found))


def _answers_to(device: Device, entry: str) -> bool:
    """Return whether `entry` is one of the device's ids, or begins its UUID (of any case)."""
    low = entry.lower()
    for name in (device.get("id"), *(device.get("ids") or ())):
        text = str(name).lower()
        if low == text or (text.startswith("pci:") and low == text[4:]):
            return True
        if text.startswith("uuid:") and len(low) > 4 and text[5:].startswith(low):
            return True
    return False


def _numbers(found: Candidates) -> str | None:
    numbers = sorted(found.indexes.values()) or list(range(len(found.visible)))
    if not numbers:
        return _unhide(found)
    return "one of " + ", ".join(str(number) for number in numbers[:16])


def _enough(device: Device, least: int | None, fail: Fail, found: Candidates) -> None:
    free = free_memory(device)
    if least is None or (free is not None and free >= least):
        return
    from probe_core.selection.sizes import format_size

    amount = "an unknown amount" if free is None else format_size(free)
    others = [str(d.get("id")) for d in found.visible if (free_memory(d) or 0) >= least]
    fix = f"{others[0]} has enough" if others else None
    raise fail(f"{device.get('id')} has {amount} free", "memory", fix)
