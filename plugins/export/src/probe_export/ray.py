"""Ray: the options of `ray start`, so that tasks are placed on what works and on nothing else.

Ray counts what the vendor's library lists, hidden, lost and forbidden GPUs alike, and takes
the type from the first GPU alone. Here each type is a resource, and what cannot be used is not
counted.
"""

from __future__ import annotations

from probe_core.commands import write_json
from probe_export.capacity import by_model, capacity, cause, memory_of, missing
from probe_export.labels import MAX_LABEL, label_value
from probe_export.ray_types import ray_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from probe_core.model.document import DeviceDoc, ReportDoc

    class RayOptions(TypedDict):
        """What `ray start` is told. Resources are whole numbers."""

        num_gpus: int
        resources: dict[str, int]
        labels: dict[str, str]


__all__ = ["export", "options"]

_RUNTIMES = {"nvidia": "cuda", "amd": "hip", "intel": "level-zero", "apple": "metal"}
_ORDER = ("amd", "intel", "apple", "nvidia")
"""Ray serves one vendor a node: the first of these that has GPUs (accelerators/__init__.py)."""

_GIB = 1 << 30


def export(report: ReportDoc) -> str:
    """Return the options on one line, without a blank inside an option.

    A shell splits `$(…)` at blanks and takes no quotes away.
    """
    start = options(report)
    parts = [f"--num-gpus={start['num_gpus']}"]
    if start["resources"]:
        # No name of a resource holds a blank.
        parts.append("--resources=" + write_json(start["resources"]).replace(" ", ""))
    if start["labels"]:
        parts.append("--labels=" + ",".join(f"{k}={v}" for k, v in start["labels"].items()))
    return " ".join(parts) + "\n"


def options(report: ReportDoc) -> RayOptions:
    """Return what `ray start` is to be told of this node."""
    gpus, hidden = _offered(report)
    resources = {f"accelerator_type:{name}": 1 for name in by_model(gpus, _type)}
    memory = [memory_of(device) for device in gpus]
    if memory and None not in memory:
        resources["vram_gib"] = sum(n for n in memory if n is not None) // _GIB
    # The name of a label has 63 characters at most, of which these take ten.
    types = by_model(gpus, lambda device: _type(device, 50))
    labels = {f"probe/gpu.{name}.count": str(len(own)) for name, own in types.items()}
    if hidden:
        labels["probe/hidden"] = str(hidden)
    absent = missing(report)
    for code, own in sorted(by_model(absent, lambda device: cause(device) or "unknown").items()):
        labels[f"probe/missing.{label_value(code, 50)}"] = str(len(own))
    return {"num_gpus": len(gpus), "resources": resources, "labels": labels}


def _type(device: DeviceDoc, limit: int = MAX_LABEL) -> str | None:
    """Return Ray's type as a label; None where nothing of it can be one."""
    return label_value(ray_type(device) or "", limit) or None


def _offered(report: ReportDoc) -> tuple[list[DeviceDoc], int]:
    """Return the GPUs of the vendor that Ray serves here, and the number that is hidden from it.

    Ray gives tasks the ordinals of what the vendor's runtime shows, and refuses to start with more.
    """
    gpus = [device for device in capacity(report) if device["kind"] == "gpu"]
    vendors = {device["vendor"] for device in gpus if _is_shown(device)}
    vendor = next((name for name in _ORDER if name in vendors), None)
    own = [device for device in gpus if device["vendor"] == vendor]
    shown = [device for device in own if _is_shown(device)]
    return shown, len(own) - len(shown)


def _is_shown(device: DeviceDoc) -> bool:
    runtime = _RUNTIMES.get(device["vendor"] or "")
    view = device["visibility"].get(runtime or "")
    return view is None or view["visible"] is not False
