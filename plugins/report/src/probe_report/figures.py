"""How the page writes figures and names devices.

A figure has a unit, a text is cut to a length, and what is not known is a dash. Devices that are
alike are shown once.
"""

from __future__ import annotations

from collections import defaultdict

from probe_core.commands import rate
from probe_core.model.ids import ACCELERATORS
from probe_core.model.naming import short_ids, short_name
from probe_core.model.verdict import native_runtime, native_sight, state_word
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc


UNKNOWN = "–"

NAME = 80
"""Characters of a device's name: the longest in chipdb has 65."""

CELL = 160
"""Characters of a name, an address or a driver: no real one has more than half of them."""

SENTENCE = 480
"""Characters of a sentence; a chip's longest list of sources has 350, a finding's cause 300."""


def cut(text: str | None, limit: int = CELL) -> str:
    """Return foreign text fit for a page, with an ellipsis for what is beyond `limit`."""
    return clean_text(text, limit) if text else ""


def percent(part: float | None, whole: float | None) -> float | None:
    """Return 0 to 100, to a tenth; None where a bar would need a guess."""
    # A report that somebody wrote by hand may have a total below zero: no bar is that long.
    if part is None or whole is None or part < 0 or whole <= 0:
        return None
    return min(100.0, round(100 * part / whole, 1))


def spaced(tera: float | None) -> str:
    """Return TFLOPS with three digits, thousands apart: ``7 915`` (with a thin space)."""
    shown = rate(tera)
    whole, dot, digits = shown.partition(".")
    if len(whole) > 4:
        whole = f"{int(whole):,}".replace(",", "\u2009")
    return whole + dot + digits


def summed(values: Iterable[float | None]) -> tuple[float | None, int]:
    """Return the sum of the values that are known (None: none is), and how many are not."""
    listed = list(values)
    amounts = [value for value in listed if value is not None]
    return (sum(amounts) if amounts else None), len(listed) - len(amounts)


def dense(device: DeviceDoc, field: str) -> float | None:
    """Return one of a device's shorthands: ``fp32``, ``fp16`` or ``int8``; None where unknown."""
    value: float | None = device.get(field)  # type: ignore[assignment]  # of three names
    return value


def short(items: Sequence[str], limit: int = 8) -> str:
    """Return the items with spaces between, and how many are beyond `limit`."""
    hidden = len(items) - limit
    return " ".join([*items[:limit], *([f"and {hidden} more"] if hidden > 0 else [])])


# Which devices are shown, what each is called on the page, and which are alike.

_NOUNS = {"gpu": "GPU", "npu": "NPU", "accelerator": "accelerator", "coprocessor": "coprocessor"}

_STYLES = {
    "ready": "good",
    "limited": "warn",
    "passthrough": "warn",
    "asleep": "asleep",
    "hidden": "none",
    "MIG mode": "none",
    "unknown": "none",
    "": "none",
}
"""Word of a state to its style; the others keep the device from use."""


def style_of(status: str) -> str:
    """Return the style of a state's word: good, warn, asleep, none or bad."""
    return _STYLES.get(status, "bad")


def is_whole(device: DeviceDoc, ids: frozenset[str]) -> bool:
    """Return whether a device is no part of another device of the report, whose `ids` are given."""
    return device.get("parent") not in ids


def whole_of(report: ReportDoc) -> list[DeviceDoc]:
    """Return the devices that are no part of another one."""
    ids = frozenset(device["id"] for device in report["devices"])
    return [device for device in report["devices"] if is_whole(device, ids)]


def accelerators(report: ReportDoc) -> list[DeviceDoc]:
    """Return the accelerators that are no part of another one."""
    return [device for device in whole_of(report) if device["kind"] in ACCELERATORS]


class Names:
    """What the page calls each device: ``GPU 0`` and its short address.

    A GPU has the number of its own runtime (`CUDA_VISIBLE_DEVICES`) where all GPUs have numbers of
    one runtime; else its place in the report. `runtime` is that runtime, "" where there is none.
    """

    def __init__(self, report: ReportDoc) -> None:
        self._short = short_ids(device["id"] for device in report["devices"])
        self._labels: dict[str, str] = {}
        self.runtime = ""
        kinds: dict[str, list[DeviceDoc]] = defaultdict(list)
        for device in whole_of(report):
            kinds[device["kind"]].append(device)
        for kind, noun in _NOUNS.items():
            for number, device in zip(self._numbers(kinds[kind]), kinds[kind], strict=True):
                self._labels[device["id"]] = f"{noun} {number}"

    def _numbers(self, devices: Sequence[DeviceDoc]) -> list[int]:
        entries = [native_sight(device) for device in devices]
        numbers = [entry["index"] for entry in entries if entry and entry["index"] is not None]
        vendors = {device["vendor"] for device in devices}
        if len(vendors) == 1 and len({*numbers}) == len(devices):
            self.runtime = native_runtime(devices[0]) if devices[0]["kind"] == "gpu" else ""
            return numbers
        return list(range(len(devices)))

    def label(self, device: DeviceDoc) -> str:
        """Return ``GPU 0``; the short id for what is counted by nobody."""
        return self._labels.get(device["id"]) or self.address(device["id"])

    def address(self, identity: str) -> str:
        """Return an id as `lspci` writes it."""
        return cut(self._short.get(identity, identity), 80)

    def of(self, identity: str | None) -> str:
        """Return the label of an id, or its short form where it names no device of the page."""
        if identity is None:
            return ""
        return self._labels.get(identity) or self.address(identity)


def alike(
    devices: Sequence[DeviceDoc], key: Callable[[DeviceDoc], Hashable]
) -> list[list[DeviceDoc]]:
    """Return the devices in groups of one `key`, in the order of their first members."""
    groups: dict[Hashable, list[DeviceDoc]] = {}
    for device in devices:
        groups.setdefault(key(device), []).append(device)
    return list(groups.values())


def has_own_memory(device: DeviceDoc) -> bool:
    """Return whether a device's memory is its own; unknown counts as such, but not of an NPU.

    NPUs of processors use the system's memory, and most of their drivers do not say so.
    """
    kind = device["memory"]["kind"]
    return kind == "dedicated" or (kind is None and device["kind"] != "npu")


def model_of(device: DeviceDoc) -> str:
    """Return the model's name, without trademarks."""
    return cut(short_name(device), NAME) or "unknown device"


def word_of(device: DeviceDoc) -> str:
    """Return the word of a device's state; ``display only`` for an adapter that cannot compute."""
    return "display only" if device["kind"] == "display" else state_word(device)
