"""Fills in what files know where NVML does not answer: a Jetson module's GPU, name and UUID."""

from __future__ import annotations

from probe_nvidia import passive
from probe_nvidia.memory import INTEGRATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]

__all__ = ["complete"]


def complete(scene: Scene, sighting: Sighting, identity: str | None) -> None:
    """Add to the sighting of the GPU `identity` (a PCI id, if it has one) what files know of it."""
    soc = scene.soc
    if soc and (identity is None or sighting.get("compute_capability") in INTEGRATED):
        base = passive.soc_sighting(scene, soc, "NVML does not report it")
        if identity:  # Thor: on the PCI bus as well
            base["ids"] = [name for name in soc.ids if name.startswith("dt:")]
        del base["step_facts"]
        _fill(sighting, base)
        if soc.model:
            sighting["extra"]["model"] = soc.model
    elif identity:
        _fill(sighting, passive.card(scene, identity, (), ""))


def _fill(sighting: Sighting, base: Sighting) -> None:
    """Add the fields of `base` that are missing, and forget that they were unknown."""
    ids = list(dict.fromkeys([*sighting["ids"], *base["ids"]]))
    for field, value in base.items():
        if field != "unknown" and not sighting.get(field):
            sighting[field] = value
    sighting["ids"] = ids
    filled = {field for field in sighting["unknown"] if _is_known(sighting, field)}
    sighting["unknown"] = {
        f: reason for f, reason in sighting["unknown"].items() if f not in filled
    }


def _is_known(sighting: Sighting, field: str) -> bool:
    if field == "uuid":
        return any(name.startswith("uuid:") for name in sighting["ids"])
    table, _, name = field.partition(".")
    value = sighting.get(table)
    return value is not None if not name else isinstance(value, dict) and name in value
