"""Ray: the options of `ray start`, so that tasks are placed on what works and on nothing else.

Ray counts what the vendor's library lists, hidden, lost and forbidden GPUs alike, and takes the
type from the first GPU alone. Here each type is a resource, and what cannot be used is not counted.

How Ray spells a GPU's type in `accelerator_type:X` and `ray.io/accelerator-type` is learned from
Ray 2.60 (python/ray/_private/accelerators); the tests compare with an installed Ray.
"""

from __future__ import annotations

from probe_core.commands import write_json
from probe_core.model.ids import pci_product
from probe_core.model.verdict import usable_here
from probe_export.capacity import (
    MAX_LABEL,
    by_cause,
    by_model,
    capacity,
    label_value,
    memory_of,
    missing,
    of_unknown_state,
    set_aside,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from probe_core.model.document import DeviceDoc, ReportDoc

    class RayOptions(TypedDict):
        """What `ray start` is told. Resources are whole numbers."""

        num_gpus: int
        resources: dict[str, int]
        labels: dict[str, str]


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
    if unknown := of_unknown_state(report):
        labels["probe/unknown"] = str(len(unknown))
    for name, useless in (("missing", missing(report)), ("set-aside", set_aside(report))):
        for code, own in by_cause(useless).items():
            labels[f"probe/{name}.{label_value(code, 48)}"] = str(len(own))
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
    """Return whether this process may use the device, through the runtime that Ray goes by."""
    if usable_here(device).usable is False:
        return False
    runtime = _RUNTIMES.get(device["vendor"] or "")
    view = device["visibility"].get(runtime or "")
    return view is None or view["visible"] is not False


# How Ray spells a GPU's type.

_AMD = {
    "66a1": "AMD-Instinct-MI50",
    "738c": "AMD-Instinct-MI100",
    "7408": "AMD-Instinct-MI250X",
    "740c": "AMD-Instinct-MI250X-MI250",
    "740f": "AMD-Instinct-MI210",
    "74a0": "AMD-Instinct-MI300A",
    "74a1": "AMD-Instinct-MI300X-OAM",
    "74a2": "AMD-Instinct-MI308X-OAM",
    "74a5": "AMD-Instinct-MI325X-OAM",
    "74a9": "AMD-Instinct-MI300X-HF",
    "75a0": "AMD-Instinct-MI350X-OAM",
    "75a3": "AMD-Instinct-MI355X-OAM",
    "6798": "AMD-Radeon-R9-200-HD-7900",
    "6799": "AMD-Radeon-HD-7900",
}
"""PCI device id to Ray's name; Ray has no names for other AMD GPUs."""

_INTEL_WORDS = 2


def ray_type(device: DeviceDoc) -> str | None:
    """Return Ray's type of a GPU; None where Ray has none."""
    name = device["name"] or ""
    if device["vendor"] == "nvidia" and name:
        # A MIG instance is of its card's type: Ray asks the card.
        return nvidia_type(name.partition(" MIG ")[0])
    if device["vendor"] == "amd":
        return _AMD.get(pci_product(device) or "")
    if device["vendor"] == "intel" and name:
        return "Intel-GPU-" + "-".join(name.split(" ")[-_INTEL_WORDS:])
    return None


def nvidia_type(name: str) -> str | None:
    """Return the type in a name of NVIDIA's driver.

    Behind the first word: words of capitals, then capitals and digits with at least one digit (RTX
    6000, H100 of ``H100-SXM``). Without those, the whole product name with dashes.
    """
    first, blank, remainder = name.partition(" ")
    parts = remainder.split()
    kept: list[str] = []
    for part in parts if blank and first.replace("_", "a").isalnum() else ():
        plain = _capitals(part)
        if any(char.isdigit() for char in plain):
            kept.append(plain)
            result = "-".join(kept)
            return result if len(result) > 1 else _whole(name)
        if plain != part or not part.isalpha():
            break
        kept.append(part)
    return _whole(name)


def _capitals(text: str) -> str:
    """Return the capitals and digits that a word begins with."""
    for place, char in enumerate(text):
        if not (char.isascii() and (char.isupper() or char.isdigit())):
            return text[:place]
    return text


def _whole(name: str) -> str | None:
    parts = name.split()
    cleaned = parts[1:] if parts[:1] == ["NVIDIA"] and len(parts) > 1 else parts
    return "-".join(cleaned) or None
