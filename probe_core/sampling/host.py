"""Samples what needs no driver: the processors and the node, in this process, from files."""

from __future__ import annotations

from probe_core.sampling.cpu import CpuSampler
from probe_core.sampling.node import NodeSampler
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.model.sample_document import RawSample

__all__ = ["HOST_PROBER", "Host"]

HOST_PROBER = "cpu"
"""The prober whose devices these are."""


class Host:
    """Samples the processors among `devices`, and the node."""

    def __init__(self, machine: Machine, devices: Iterable[Mapping[str, object]]) -> None:
        packages = [device for device in devices if device.get("kind") == "cpu"]
        self._node = NodeSampler(machine)
        self._cpus = CpuSampler(machine, _groups(machine, len(packages)))

    def sample(self) -> list[RawSample]:
        """Return the samples of this round; of what cannot be read at all only the reason."""
        samples: list[RawSample] = []
        try:
            samples += self._cpus.sample()
        except Exception as error:  # whatever a file holds, the other samples come
            samples.append(_failed("cpu:0", error))
        samples.append(self._node.sample())
        return samples


def _failed(device: str, error: Exception) -> RawSample:
    return {"device": device, "status": "unavailable", "reason": error_text(error)}


def _groups(machine: Machine, packages: int) -> Sequence[Sequence[int]]:
    """Return the CPUs of each package that the report has.

    The clusters of a system-on-chip, which the kernel shows as packages, are one device.
    """
    if machine.os != "linux":
        return [[] for _ in range(packages)]
    from probe_core.probers import topology

    running = topology.online(machine)
    groups = topology.sockets(machine, running)
    if len(groups) == packages:
        return groups
    return [running] if packages == 1 else [[] for _ in range(packages)]
