"""The rows of `probe`'s table: which devices, in which order, and what stands in each cell."""

from __future__ import annotations

from probe_core.commands import text
from probe_core.model.kinds import ACCELERATORS
from probe_core.model.names import cores, title
from probe_core.model.readiness import state_word
from probe_core.model.runtimes import hidden
from probe_core.model.short_ids import short_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["FIGURES", "UNKNOWN", "Row", "has_own_memory", "rows_of"]

UNKNOWN = "–"
FIGURES = {"FP16": ("fp16", "TFLOPS"), "FP32": ("fp32", "TFLOPS"), "INT8": ("int8", "TOPS")}
"""Columns of peaks, the one that tells most first: field and unit."""

_STYLES = {
    "asleep": "cyan",
    "MIG mode": "dim",
    "not granted": "yellow",
    "passthrough": "yellow",
    "limited": "yellow",
    "no driver": "red",
    "no permission": "red",
    "driver error": "red",
    "timed out": "red",
    "lost": "red",
}
"""Word of STATE to its colour; the others have none."""


class Row:
    """One row: a device, or equal processors.

    `cells` has a text for each column but DEVICE; `is_primary`, `is_part` and `is_dim` say how the
    name is marked. `devices` are those that the row stands for.
    """

    __slots__ = ("cells", "devices", "is_dim", "is_part", "is_primary", "name", "state_style")

    def __init__(self, devices: Sequence[DeviceDoc], name: str, cells: dict[str, str]) -> None:
        first = devices[0]
        self.devices = devices
        self.name = name
        self.cells = cells
        self.is_primary = False
        self.is_part = bool(first.get("parent"))
        self.is_dim = first["kind"] in ("display", "coprocessor") or hidden(first)
        self.state_style = _STYLES.get(cells["STATE"])
        if self.state_style:  # the word has its own colour, and a device that is lost is no detail
            self.is_dim = False


def rows_of(report: ReportDoc, *, all_devices: bool, show: Callable[[str], str] = str) -> list[Row]:
    """Return the rows, in the order of the table; `show` makes a text fit for the terminal.

    Accelerators come first, the primary one with its parts before the others, then processors;
    display adapters only with `all_devices`.
    """
    devices = [d for d in report["devices"] if all_devices or d["kind"] != "display"]
    ids = short_ids(device["id"] for device in report["devices"])
    by_id = {device["id"]: device for device in devices}
    rows = []
    for group in _united(_in_order(devices, report["primary"])):
        parent = by_id.get(group[0].get("parent") or "")
        row = _row(group, parent, report, ids)
        row.is_primary = any(device["id"] == report["primary"] for device in group)
        row.name = show(row.name)
        row.cells = {name: show(cell) for name, cell in row.cells.items()}
        rows.append(row)
    return rows


def _in_order(devices: Sequence[DeviceDoc], primary: str | None) -> list[DeviceDoc]:
    """Return parents with their parts below them, the primary's family first of its kind."""
    by_id = {device["id"] for device in devices}
    families: dict[str, list[DeviceDoc]] = {}
    for device in sorted(devices, key=lambda device: device.get("parent") in by_id):
        head = device.get("parent")
        families.setdefault(head if head in by_id and head else device["id"], []).append(device)
    ranked = sorted(families.values(), key=lambda family: _rank(family, primary))
    return [device for family in ranked for device in family]


def _rank(family: Sequence[DeviceDoc], primary: str | None) -> tuple[bool, bool]:
    is_primary = any(device["id"] == primary for device in family)
    return family[0]["kind"] not in ACCELERATORS, not is_primary


def _united(devices: Sequence[DeviceDoc]) -> list[list[DeviceDoc]]:
    """Return the devices one by one, but equal processors together."""
    groups: dict[object, list[DeviceDoc]] = {}
    for device in devices:
        key: object = device["id"]
        if device["kind"] == "cpu":
            figures = [device["fp32"], device["fp16"], device["int8"], device["bandwidth"]]
            key = repr((device["name"], device.get("units"), device.get("allowed"), figures))
        groups.setdefault(key, []).append(device)
    return list(groups.values())


def _row(
    group: Sequence[DeviceDoc], parent: DeviceDoc | None, report: ReportDoc, ids: dict[str, str]
) -> Row:
    device, count = group[0], len(group)
    name = title(device, parent) + cores(device, each=count > 1)
    cells = {
        "STATE": state_word(device),
        "MEMORY": _memory(device, report),
        "FREE": _free(device, report),
        **{column: _figure(device, field) for column, (field, _) in FIGURES.items()},
        "BANDW.": _bandwidth(device["bandwidth"]),
        "ID": _joined_ids([ids[member["id"]] for member in group]),
    }
    return Row(group, f"{count} × {name}" if count > 1 else name, cells)


def has_own_memory(device: DeviceDoc, report: ReportDoc) -> bool:
    """Return whether the device's memory is another amount than the system's.

    An APU's is: what its firmware set aside, and what its driver may take of the system's.
    """
    memory = device["memory"]
    if memory["kind"] not in ("shared", "unified"):
        return True
    total = memory["total"]
    return total is not None and total != report["node"]["memory"]["total"]


def _memory(device: DeviceDoc, report: ReportDoc) -> str:
    if device["kind"] == "display":
        return ""
    total = device["memory"]["total"]
    return _gib(total) if has_own_memory(device, report) else "shared"


def _free(device: DeviceDoc, report: ReportDoc) -> str:
    memory = device["memory"]
    if device["kind"] == "display" or not has_own_memory(device, report):
        return ""
    # A static report may lack what only newer cores write.
    free = memory.get("free") if memory.get("free") is not None else memory.get("usable")
    return _gib(free)


def _gib(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count / (1 << 30):.1f}"


def _figure(device: DeviceDoc, field: str) -> str:
    """Return a peak, marked where it rests on an idle clock or an unknown core."""
    if device["kind"] == "display":
        return ""
    value: float | None = device[field]  # type: ignore[literal-required]  # of FIGURES
    shown = text.rate(value)
    return f"≥ {shown}" if value is not None and is_bound(device) else shown


def is_bound(device: DeviceDoc) -> bool:
    """Return whether the device's figures are lower bounds."""
    return any(peak.get("bound") == "lower" for peak in device["peaks"])


def _bandwidth(count: float | None) -> str:
    return UNKNOWN if count is None else text.bandwidth(count).partition(" ")[0]


def _joined_ids(ids: Sequence[str]) -> str:
    """Return the ids of one row: ``cpu:0-1`` for cpu:0 and cpu:1."""
    numbers = [name.removeprefix("cpu:") for name in ids]
    if len(ids) == 1 or not all(number.isdecimal() for number in numbers):
        return ", ".join(ids)
    first, last = int(numbers[0]), int(numbers[-1])
    if [int(number) for number in numbers] == list(range(first, last + 1)):
        return f"cpu:{first}-{last}"
    return f"cpu:{','.join(numbers)}"
