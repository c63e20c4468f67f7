"""The variables that confine tinygrad, which changed their names three times.

Sources: tinygrad at tags v0.9.2 to v0.13.0, runtime/ops_nv.py, ops_amd.py, support/hcq.py,
support/system.py, device.py and helpers.py (`Target.parse`).
"""

from __future__ import annotations

from probe_core.visibility.pool import ids_of
from probe_core.visibility.tinygrad import DEV_SINCE, HCQ, HCQ_SINCE, numbered, release_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

    Changes = dict[str, str | None]

__all__ = ["tinygrad_changes", "versions"]


def versions() -> dict[str, str]:
    """Return the version of the tinygrad that this interpreter would import; empty without one.

    Read from the names of the folders on the path: nothing is imported.
    """
    import sys

    from probe_core.selection.interpreter import installed

    return installed(("tinygrad",), [folder or "." for folder in sys.path])


def tinygrad_changes(
    installed: Sequence[DeviceDoc],
    devices: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    version: str | None = None,
) -> Changes:
    """Return what makes tinygrad show `devices` alone, of all devices of the node (`installed`).

    Up to 0.11 it reads VISIBLE_DEVICES, before the vendors' variables: needed, for it takes no
    UUIDs from CUDA_VISIBLE_DEVICES and does not count what ROCr left. It has one list for NV and
    AMD, so it is set only where one of them is on the node. 0.12 reads HCQ_VISIBLE_DEVICES, which
    later ones refuse; since 0.13 indices stand in DEV, which 0.11 and 0.12 take for a backend's
    name. Where no version is known the newest counts.
    """
    ranked = _ranked(installed)
    numbers = {backend: _numbers(ids, devices) for backend, ids in ranked.items()}
    listed = ",".join(next(iter(numbers.values()))) if len(numbers) == 1 else ""
    release = release_of(version)
    changes: Changes = {}
    if listed and HCQ_SINCE <= release < DEV_SINCE:
        changes[HCQ] = listed
    if listed and (version is None or release < HCQ_SINCE):
        changes["VISIBLE_DEVICES"] = listed
    dev = environ.get("DEV", "")
    if ranked and release >= DEV_SINCE and (not dev or _names_a_backend(dev)):
        # No index means all: one behind the last is refused, so that it stands for none.
        indices = {name: own or [str(len(ranked[name]))] for name, own in numbers.items()}
        changes["DEV"] = _merged(dev, indices) if dev else _new(indices, numbers)
    return changes


def _ranked(installed: Sequence[DeviceDoc]) -> dict[str, list[str]]:
    """Return each backend that has devices, and their ids as it numbers them."""
    return {name: ids_of(gpus) for name, gpus in numbered(installed).items() if gpus}


def _numbers(ranked: Sequence[str], devices: Sequence[DeviceDoc]) -> list[str]:
    return [str(ranked.index(device["id"])) for device in devices if device["id"] in ranked]


def _names_a_backend(dev: str) -> bool:
    names = [target.rpartition("+")[2].split(":")[0].upper() for target in dev.split(";")]
    return any(name in ("NV", "AMD") for name in names)


def _new(indices: Mapping[str, Sequence[str]], numbers: Mapping[str, Sequence[str]]) -> str:
    """Return DEV where it was not set: the first target is also the backend that is used."""
    if not any(numbers.values()):
        return f":{max(int(index) for own in indices.values() for index in own)}+"
    ordered = sorted(indices, key=lambda backend: not numbers[backend])
    return ";".join(f":{','.join(indices[backend])}+{backend}" for backend in ordered)


def _merged(dev: str, indices: Mapping[str, Sequence[str]]) -> str:
    """Return DEV with the indices put into the targets that it names, in its own order."""
    targets = []
    for target in dev.split(";"):
        front, _, renderer = target.rpartition("+")
        own = indices.get(renderer.split(":")[0].upper())
        interface = front.rpartition(":")[0] if ":" in front else front
        targets.append(target if own is None else f"{interface}:{','.join(own)}+{renderer}")
    return ";".join(targets)
