"""What a request may choose from: the devices that a consumer sees, and what hides the others."""

from __future__ import annotations

from probe_core.model.kinds import ACCELERATORS
from probe_core.model.runtimes import NATIVE, canonical, native_runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["Candidates", "candidates", "document_of", "free_memory"]


class Candidates:
    """The devices that can be asked for.

    `consumer`: whose numbers count. `visible`: devices it surely sees, in its order where that is
    known. `doubtful`: id → why only the driver knows. `hidden`: id → why. `indexes`: id → the
    consumer's number, for those that have one. `every`: all accelerators of the report.
    """

    __slots__ = ("consumer", "doubtful", "every", "hidden", "indexes", "visible")

    def __init__(self, consumer: str, every: Sequence[Device]) -> None:
        self.consumer = consumer
        self.every = list(every)
        self.visible: list[Device] = []
        self.doubtful: dict[str, str] = {}
        self.hidden: dict[str, str] = {}
        self.indexes: dict[str, int] = {}


def document_of(report: Any) -> Mapping[str, Any]:
    """Return a report as plain data, be it a document already or a `Report`."""
    if hasattr(report, "to_json"):
        found: Mapping[str, Any] = report.to_json()
        return found
    if not hasattr(report, "get"):
        raise TypeError(f"select() needs a report or its document, not {type(report).__name__}")
    return report  # type: ignore[no-any-return]


def candidates(document: Mapping[str, Any], consumer: str | None = None) -> Candidates:
    """Return what can be asked for on this node.

    Without a consumer it is that of the primary device's vendor, else of the first accelerator's;
    an accelerator that no consumer of ours knows (an NPU) is numbered with the others in the
    report's order.
    """
    every = [one for one in document.get("devices") or () if one.get("kind") in ACCELERATORS]
    name = canonical(consumer) if consumer else _default(every, document.get("primary"))
    found = Candidates(name, every)
    placed: list[tuple[int, int, Device]] = []
    for place, device in enumerate(every):
        said = (device.get("visibility") or {}).get(name)
        identity = str(device.get("id"))
        if said is None:
            if consumer is None and not device.get("visibility") and device.get("kind") != "gpu":
                placed.append((len(every) + place, place, device))
            else:
                found.hidden[identity] = f"it is no device of {name}"
        elif said.get("visible"):
            index = said.get("index")
            placed.append((place if index is None else index, place, device))
            if index is not None:
                found.indexes[identity] = index
        elif said.get("visible") is None:
            found.doubtful[identity] = str(said.get("reason"))
        else:
            found.hidden[identity] = str(said.get("reason"))
    found.visible = [device for _, _, device in sorted(placed, key=lambda item: item[:2])]
    return found


def _default(every: Sequence[Device], primary: object) -> str:
    first = next((one for one in every if one.get("id") == primary), None)
    if first is None:
        first = next((one for one in every if one.get("vendor") in NATIVE), None)
    return native_runtime(first or (every[0] if every else {}))


def free_memory(device: Device) -> int | None:
    """Return the bytes that can be used now, as far as is known: free, else usable, else total."""
    memory = device.get("memory")
    for field in ("free", "usable", "total"):
        amount = memory.get(field) if isinstance(memory, dict) else None
        if isinstance(amount, (int, float)):
            return int(amount)
    return None
