"""Walks over NVML's devices: one that fails costs its own figures, never another device."""

from __future__ import annotations

from probe_core.api import Unavailable
from probe_nvidia import findings, mig, passive
from probe_nvidia.ask import Asker, text
from probe_nvidia.codes import code_of, name_of
from probe_nvidia.device import describe, pci_facts
from probe_nvidia.memory import INTEGRATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]

__all__ = ["devices"]

_ALL = ("memory.total", "memory.free", "compute_capability", "units", "clocks.max_mhz")


def devices(nvml: Any, scene: Scene) -> Iterator[Sighting]:
    """Yield every GPU and MIG instance that NVML shows, and findings; closes NVML at the end."""
    try:
        yield from _devices(nvml, scene)
    finally:
        _quietly(nvml, "nvmlShutdown")


def _devices(nvml: Any, scene: Scene) -> Iterator[Sighting]:
    count = _count(nvml, scene)
    driver = _driver(nvml, scene)
    seen: set[str] = set()
    failed: dict[int, str] = {}
    for index in range(count):
        try:
            asker = Asker(nvml, nvml.nvmlDeviceGetHandleByIndex(index))
        except Exception as error:
            failed[index] = _reason(error, "nvmlDeviceGetHandleByIndex")
            continue
        for item in _device(asker, scene, index, driver):
            seen.update(item.get("ids", ()))
            yield item
    yield from _unseen(scene, seen, failed)


def _device(asker: Asker, scene: Scene, index: int, driver: dict[str, str]) -> Iterator[Sighting]:
    identity, facts = pci_facts(asker)
    sighting = describe(asker, scene, index, identity)
    sighting["driver"] = driver
    if facts:
        sighting["pci"] = facts
    _complete(scene, sighting, identity)
    if not sighting["ids"]:
        sighting["ids"] = [f"nvidia:index-{index}"]
    state = mig.mode(asker)
    if state == "enabled":
        sighting["extra"]["mig"] = state
    yield {field: value for field, value in sighting.items() if value not in ({}, [])}
    if state == "enabled":
        yield from mig.instances(asker, scene, sighting)
    yield from findings.of_device(asker, sighting)


def _complete(scene: Scene, sighting: Sighting, identity: str | None) -> None:
    """Fill in what files know where NVML does not answer."""
    soc = scene.soc
    if soc and (identity is None or sighting.get("compute_capability") in INTEGRATED):
        base = passive.soc_sighting(scene, soc, "NVML does not report it")
        if identity:  # Thor: on the PCI bus as well
            base["ids"] = [name for name in soc.ids if name.startswith("dt:")]
        _fill(sighting, base)
        if soc.model:
            sighting["extra"]["model"] = soc.model
    elif identity and sighting["unknown"]:
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


def _unseen(scene: Scene, seen: set[str], failed: dict[int, str]) -> Iterator[Sighting]:
    """Account for GPUs without a handle, and for GPUs that NVML does not list.

    NVML's order is the PCI order, so as many nameless failures as unseen cards are those cards.
    """
    unseen = [identity for identity in scene.reachable() if identity not in seen]
    if failed and len(failed) == len(unseen):
        for (index, reason), identity in zip(failed.items(), unseen, strict=True):
            sighting = passive.card(scene, identity, _ALL, reason)
            yield sighting | {"node_index": {"nvml": index}, "power_state": "unknown"}
            yield findings.failed(index, reason, identity)
    elif failed:
        for index, reason in failed.items():
            yield findings.failed(index, reason, None)
    elif unseen:
        yield findings.not_listed(unseen)


def _count(nvml: Any, scene: Scene) -> int:
    try:
        count = int(nvml.nvmlDeviceGetCount())
    except Exception as error:
        reason = _reason(error, "nvmlDeviceGetCount")
        raise Unavailable(f"NVML does not report how many GPUs there are: {reason}") from None
    if count == 0 and scene.reachable():
        raise Unavailable(
            f"NVML shows no GPU, but the driver serves {', '.join(scene.reachable())}",
            code="no-devices",
            fix="in a container, start it with the GPUs (--gpus all, or CDI); else see dmesg",
        )
    return count


def _driver(nvml: Any, scene: Scene) -> dict[str, str]:
    version = text(_quietly(nvml, "nvmlSystemGetDriverVersion")) or scene.version
    cuda = _quietly(nvml, "nvmlSystemGetCudaDriverVersion_v2")
    cuda = cuda or _quietly(nvml, "nvmlSystemGetCudaDriverVersion")
    driver = {"name": "nvidia", "version": version}
    if cuda:
        driver["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"  # 13000 is 13.0
    return {name: value for name, value in driver.items() if value}


def _quietly(nvml: Any, call: str) -> Any:
    """Call what no device is needed for; None when it fails or is not there."""
    try:
        return getattr(nvml, call)()
    except Exception:
        return None


def _reason(error: Exception, call: str) -> str:
    code = code_of(error)
    return f"{name_of(code)} from {call}" if code is not None else f"{call}: {error!r}"
