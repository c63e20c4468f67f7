"""The variables that confine tinygrad, which changed their names three times.

Sources: tinygrad at tags v0.9.2 to v0.13.0, runtime/ops_nv.py, ops_amd.py, support/hcq.py,
support/system.py, device.py and helpers.py (`Target.parse`).
"""

from __future__ import annotations

from probe_core.visibility.pool import gpus_of, identifier, in_order
from probe_core.visibility.tinygrad import release_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]
    Changes = dict[str, str | None]

__all__ = ["tinygrad_changes", "versions"]

_HCQ, _DEV = (0, 12), (0, 13)


def versions() -> dict[str, str]:
    """Return the version of the tinygrad that this interpreter would import; empty without one.

    Read from the names of the folders on the path: nothing is imported.
    """
    import os
    import sys

    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            stem, dot, suffix = name.rpartition(".")
            if stem.startswith("tinygrad-") and dot and suffix in ("dist-info", "egg-info"):
                return {"tinygrad": stem.split("-")[1]}
    return {}


def tinygrad_changes(
    every: Sequence[Device],
    devices: Sequence[Device],
    environ: Mapping[str, str],
    version: str | None = None,
) -> Changes:
    """Return what makes tinygrad show `devices` alone, of all devices of the node (`every`).

    Up to 0.11 it reads VISIBLE_DEVICES, before the vendors' variables: needed, for it takes no
    UUIDs from CUDA_VISIBLE_DEVICES and does not count what ROCr left. It has one list for NV and
    AMD, so it is set only where one of them is on the node. 0.12 reads HCQ_VISIBLE_DEVICES, which
    later ones refuse; since 0.13 indices stand in DEV, which 0.11 and 0.12 take for a backend's
    name. Where no version is known the newest counts.
    """
    ranked = _ranked(every)
    numbers = {backend: _numbers(ids, devices) for backend, ids in ranked.items()}
    listed = ",".join(next(iter(numbers.values()))) if len(numbers) == 1 else ""
    release = release_of(version)
    changes: Changes = {}
    if listed and _HCQ <= release < _DEV:
        changes["HCQ_VISIBLE_DEVICES"] = listed
    if listed and (version is None or release < _HCQ):
        changes["VISIBLE_DEVICES"] = listed
    said = environ.get("DEV", "")
    if ranked and release >= _DEV and (not said or _replaceable(said)):
        # No index means all: one behind the last is refused, so that it stands for none.
        indices = {name: mine or [str(len(ranked[name]))] for name, mine in numbers.items()}
        changes["DEV"] = _merged(said, indices) if said else _new(indices, numbers)
    return changes


def _ranked(every: Sequence[Device]) -> dict[str, list[str]]:
    """Return each backend that has devices, and their ids as it numbers them."""
    from probe_core.visibility.rocr import agents

    nvidia = in_order(gpus_of(every, "nvidia"), "nvml")
    found = {"NV": nvidia, "AMD": agents(every)}
    return {name: [identifier(one) for one in ranked] for name, ranked in found.items() if ranked}


def _numbers(ranked: Sequence[str], devices: Sequence[Device]) -> list[str]:
    return [str(ranked.index(identifier(one))) for one in devices if identifier(one) in ranked]


def _replaceable(value: str) -> bool:
    names = [target.rpartition("+")[2].split(":")[0].upper() for target in value.split(";")]
    return any(name in ("NV", "AMD") for name in names)


def _new(indices: Mapping[str, Sequence[str]], numbers: Mapping[str, Sequence[str]]) -> str:
    """Return DEV where it was not set: the first target is also the backend that is used."""
    if not any(numbers.values()):
        return f":{max(int(none) for mine in indices.values() for none in mine)}+"
    ordered = sorted(indices, key=lambda backend: not numbers[backend])
    return ";".join(f":{','.join(indices[backend])}+{backend}" for backend in ordered)


def _merged(said: str, indices: Mapping[str, Sequence[str]]) -> str:
    """Return DEV with the indices put into the targets that it names, in its own order."""
    found = []
    for target in said.split(";"):
        front, _, rest = target.rpartition("+")
        mine = indices.get(rest.split(":")[0].upper())
        interface = front.rpartition(":")[0] if ":" in front else front
        found.append(f"{interface}:{','.join(mine)}+{rest}" if mine is not None else target)
    return ";".join(found)
