"""What a request may choose from: the devices that a runtime shows, and what hides the others."""

from __future__ import annotations

from probe_core.model.findings import NO_FIX
from probe_core.model.ids import ACCELERATORS, KIND_ORDER, NO_PLACE, pci_place
from probe_core.model.runtimes import NATIVE, canonical
from probe_core.model.verdict import blocking_step, is_integrated, native_runtime, state_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from probe_core.model.document import DeviceDoc, ReportDoc, VisibilityDoc


class Candidates:
    """The devices that can be asked for.

    `runtime`: whose numbers count. `accelerators`: all of the report. `visible`: those that the
    runtime surely shows, in its order where that is known. `indexes`: id → the runtime's number,
    for those that have one. `unordered`, `uncertain` and `hidden`: id → the entry of a device
    that is shown under an unknown number, that only the driver can decide on, that is not shown.
    `fixes`: id → the fix of the finding about the step that keeps a device from this process.
    """

    def __init__(self, runtime: str, accelerators: Sequence[DeviceDoc]) -> None:
        self.runtime = runtime
        self.accelerators = list(accelerators)
        self.visible: list[DeviceDoc] = []
        self.indexes: dict[str, int] = {}
        self.unordered: dict[str, VisibilityDoc] = {}
        self.uncertain: dict[str, VisibilityDoc] = {}
        self.hidden: dict[str, VisibilityDoc] = {}
        self.fixes: dict[str, str] = {}

    def not_visible(self) -> dict[str, VisibilityDoc]:
        """Return the entries of the devices that are hidden, or may be."""
        return self.hidden | self.uncertain

    def excluded(self) -> dict[str, str]:
        """Return the devices that a step of readiness keeps from this process, each with why."""
        entries = self.not_visible()
        return {
            name: entry["reason"] or ""
            for name, entry in entries.items()
            if entry.get("step") not in (None, "visible")
        }

    def numbered(self, number: int) -> list[str]:
        """Return the ids of the devices that have this number, or may have it.

        More than one where a runtime numbers each vendor's devices apart (OpenCL, SYCL, tinygrad).
        """
        doubtful = self.unordered | self.uncertain
        return [
            *(name for name, index in self.indexes.items() if index == number),
            *(name for name, entry in doubtful.items() if number in entry.get("one_of", ())),
        ]

    def word_for(self, device: DeviceDoc) -> str:
        """Return the number that means this device alone, else its id."""
        index = self.indexes.get(device["id"])
        if index is None:  # no runtime numbers an NPU: it goes by its place
            return device["id"] if device["visibility"] else str(self.visible.index(device))
        return str(index) if len(self.numbered(index)) == 1 else device["id"]

    def place(self, device: DeviceDoc, entry: VisibilityDoc) -> None:
        """Put a device where its entry of this runtime says."""
        name, index = device["id"], entry["index"]
        if entry["visible"] is False:
            self.hidden[name] = entry
        elif entry["visible"] is None:
            self.uncertain[name] = entry
        elif index is None:
            self.unordered[name] = entry
        else:
            self.indexes[name] = index


def candidates(document: ReportDoc, runtime: str | None = None) -> Candidates:
    """Return what can be asked for on this node.

    Without a runtime it is that of the primary device's vendor, else of the first accelerator's;
    an accelerator that no runtime of ours knows (an NPU) is numbered with the others in the
    report's order.
    """
    accelerators = [device for device in document["devices"] if device["kind"] in ACCELERATORS]
    name = canonical(runtime) if runtime else _default(accelerators, document["primary"])
    choice = Candidates(name, accelerators)
    shown: list[DeviceDoc] = []
    for device in accelerators:
        entry = _entry(device, name)
        if entry is not None:
            choice.place(device, entry)
            if entry["visible"]:
                shown.append(device)
        # Nothing hides an NPU. A GPU without any entry is one that its driver keeps from all
        # runtimes, and a runtime that was asked for by name numbers its own devices alone.
        elif runtime is None and not device["visibility"] and device["kind"] != "gpu":
            shown.append(device)
        else:
            choice.hidden[device["id"]] = _not_concerned(name)
    choice.visible = sorted(shown, key=lambda device: _rank(device, choice.indexes))
    choice.fixes = _fixes(document, choice.not_visible())
    return choice


def _entry(device: DeviceDoc, runtime: str) -> VisibilityDoc | None:
    """Return what the runtime shows of the device; a blocked one is never shown.

    Its readiness may say more than the runtime's rules: an NPU has no such rules.
    """
    entry = device["visibility"].get(runtime)
    step = blocking_step(device)
    if step is None or (entry is not None and entry["visible"] is False):
        return entry
    fact = step["evidence"] or step["code"]
    blocked: VisibilityDoc = {
        "visible": False,
        "index": None,
        "reason": f"{state_word(device)}: {fact}" if fact else state_word(device),
        "variable": None,
        "step": step["step"],
    }
    return blocked


def _rank(device: DeviceDoc, indexes: Mapping[str, int]) -> tuple[bool, int, tuple[int, ...]]:
    """Return the place of a device: by its number, without one by its address.

    The address does not depend on the order in which a prober reports like devices.
    """
    index = indexes.get(device["id"])
    return index is None, index or 0, pci_place(device) or NO_PLACE


def _fixes(document: ReportDoc, entries: Mapping[str, VisibilityDoc]) -> dict[str, str]:
    """Return the fix of each finding about the step that an entry names."""
    fixes: dict[str, str] = {}
    for finding in document["findings"]:
        name = finding.get("device")
        entry = entries.get(name) if name is not None else None
        if entry is None or entry.get("variable") is not None or finding["fix"] == NO_FIX:
            continue
        if name is not None and finding.get("step") == entry.get("step", ""):
            fixes.setdefault(name, finding["fix"])
    return fixes


def _not_concerned(runtime: str) -> VisibilityDoc:
    reason = f"it is no device of {runtime}"
    return {"visible": False, "index": None, "reason": reason, "variable": None}


def _default(accelerators: Iterable[DeviceDoc], primary: str | None) -> str:
    ranked = sorted(
        accelerators, key=lambda device: (device["id"] != primary, device["vendor"] not in NATIVE)
    )
    return native_runtime(ranked[0] if ranked else {})


def free_memory(device: DeviceDoc) -> int | None:
    """Return the bytes that can be used now, as far as is known: free, else usable, else total."""
    memory = device["memory"]
    # Without "free" nobody knows what others use: the whole then counts, not nothing, so that a
    # device whose driver is silent can be asked for.
    for amount in (memory["free"], memory["usable"], memory["total"]):
        if amount is not None:
            return int(amount)
    return None


def load(device: DeviceDoc) -> tuple[tuple[int, bool], int, bool, int]:
    """Rank a device: idle ones first, then those with more free memory; unknown behind known.

    As for `primary`, NPUs are behind all GPUs, and a processor's own graphics behind all cards:
    their memory is the system's, of which there often is more. In whole GiB, so that a few MiB of
    a desktop do not decide between equal cards. A driver that tells no free memory would otherwise
    pass for an empty device.
    """
    processes, memory = device.get("processes"), device["memory"]
    used = 1 if processes is None else 2 if processes else 0
    unknown = memory["free"] is None and memory["usable"] is None
    kind = KIND_ORDER[device["kind"]], is_integrated(device)
    return kind, used, unknown, -((free_memory(device) or 0) >> 30)


# Where a host's report comes in: checked and completed here once, typed from here on.


def document_of(report: object) -> Mapping[str, Any]:
    """Return a `Report` as plain data, or the document itself, unchecked.

    Raises `TypeError` for anything else.
    """
    if hasattr(report, "to_json"):
        document: Mapping[str, Any] = report.to_json()
        return document
    if not hasattr(report, "get"):
        raise TypeError(f"it needs a report or its document, not {type(report).__name__}")
    return report  # type: ignore[return-value]


def report_document(report: object) -> ReportDoc:
    """Return the document of a `Report`, or a checked copy of a document, with no key missing.

    Raises `TypeError` for anything else, and `ValueError` for a document that is no report: with
    a value of the wrong type, or a device that lacks its id or kind. What else is missing counts
    as not known, as in a static report.
    """
    from probe_core.pipeline.static import complete_report

    try:
        return complete_report(_copy(document_of(report)))
    except ValueError as error:
        raise ValueError(f"the report cannot be used: {error}") from None


def _copy(value: Any) -> Any:
    """Return plain data of its own: the host's report is not to be filled in."""
    if hasattr(value, "items"):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(item) for item in value]
    return value
