"""What the node as a whole does now: its memory, its network, and what its tasks wait for."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.pipeline.node import memory
from probe_core.sampling.cpu import CpuSampler, read_times
from probe_core.sysfs.rates import NEEDS_TWO, Rates
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import RawSample


NODE = "node:self"
"""The id under which the node's own figures stand among those of its devices."""

_NET = "/sys/class/net"
_INFINIBAND = "/sys/class/infiniband"

_ETHERNET, _LOOPBACK, _IPOIB = 1, 772, 32
"""ARPHRD_… of linux/if_arp.h, as /sys/class/net/*/type has them."""

_WORD = 4
"""Bytes of a unit of InfiniBand's port counters (PortXmitData of the IBTA specification)."""

_MAX_LINKS = 32
"""Interfaces shown. A node of containers has hundreds of virtual ones, which are left out."""


class NodeSampler:
    """Samples the node."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._rates = Rates()
        self._ticks: tuple[int, int] | None = None

    def sample(self) -> RawSample:
        """Return the node's sample."""
        unknown: dict[str, str] = {}
        sample: RawSample = {"device": NODE, "unknown": unknown, "links": self._links(unknown)}
        self._add_busy(sample)
        sizes = memory(self._machine)
        total, available = sizes["total"], sizes["available"]
        total = min(filter(None, (total, sizes["limit"])), default=None)
        if total is None:
            unknown["memory"] = "/proc/meminfo has no MemTotal"
        else:
            sample["memory"] = {"total": total}
            if available is not None:
                sample["memory"]["used"] = max(0, total - available)
        pressure = _pressure(self._machine)
        if pressure:
            sample["pressure"] = pressure
        else:
            unknown["pressure"] = "this kernel has no /proc/pressure"
        return sample

    def _add_busy(self, sample: RawSample) -> None:
        times = read_times(self._machine).values()
        worked, whole = sum(time[0] for time in times), sum(time[1] for time in times)
        before, self._ticks = self._ticks, (worked, whole)
        if before is None or whole <= before[1]:
            sample["unknown"]["busy"] = NEEDS_TWO if times else "/proc/stat cannot be read"
        else:
            sample["busy"] = min(1.0, max(0.0, (worked - before[0]) / (whole - before[1])))

    def _links(self, unknown: dict[str, str]) -> list[dict[str, str | int | float]]:
        links: list[dict[str, str | int | float]] = []
        for kind, name, received, sent in [*_interfaces(self._machine), *_ports(self._machine)]:
            link: dict[str, str | int | float] = {"kind": kind, "name": name}
            for direction, counter in (("received", received), ("sent", sent)):
                rate = self._rates.per_second((kind, name, direction), counter)
                if rate is None:
                    unknown[f"links.{len(links)}.{direction}"] = self._rates.reason
                else:
                    link[direction] = rate
            links.append(link)
        return links


def _interfaces(machine: Machine) -> list[tuple[str, str, int, int]]:
    """Return (kind, name, bytes received, bytes sent) of each interface with hardware behind it.

    Where none has, as in a container, all that are no loopback.
    """
    if machine.os != "linux":
        from probe_core.sampling import cpu

        return cpu.interfaces(machine)[:_MAX_LINKS]
    interfaces: list[tuple[str, str, int, int]] = []
    virtual: list[tuple[str, str, int, int]] = []
    for name in machine.listdir(_NET):
        folder = f"{_NET}/{name}"
        kind = {_ETHERNET: "ethernet", _IPOIB: "ipoib"}.get(machine.read_int(f"{folder}/type") or 0)
        if kind is None:
            continue
        received = machine.read_int(f"{folder}/statistics/rx_bytes")
        sent = machine.read_int(f"{folder}/statistics/tx_bytes")
        if received is not None and sent is not None:
            # Bridges, tunnels and containers' ends have no device: what they carry passes twice.
            physical = machine.exists(f"{folder}/device")
            (interfaces if physical else virtual).append((kind, name, received, sent))
    return (interfaces or virtual)[:_MAX_LINKS]


def _ports(machine: Machine) -> list[tuple[str, str, int, int]]:
    """Return the same of InfiniBand ports, whose traffic no network interface counts."""
    ports = []
    for adapter in machine.listdir(_INFINIBAND):
        for port in machine.listdir(f"{_INFINIBAND}/{adapter}/ports"):
            folder = f"{_INFINIBAND}/{adapter}/ports/{port}/counters"
            received = machine.read_int(f"{folder}/port_rcv_data")
            sent = machine.read_int(f"{folder}/port_xmit_data")
            if received is not None and sent is not None:
                words = (received * _WORD, sent * _WORD)
                ports.append(("infiniband", f"{adapter}/{port}", *words))
    return ports[:_MAX_LINKS]


def _pressure(machine: Machine) -> dict[str, float]:
    """Return the shares of the last ten seconds in which some task waited."""
    shares: dict[str, float] = {}
    for name in ("cpu", "memory", "io"):
        line = (machine.read(f"/proc/pressure/{name}", 256) or "").partition("\n")[0]
        for word in line.split():
            whole, _, tenths = word.removeprefix("avg10=").partition(".")
            if word.startswith("avg10=") and (hundredths := decimal(whole + tenths)) is not None:
                shares[name] = hundredths / 10 ** (len(tenths) + 2)
    return shares


# Samples what needs no driver: the processors and the node, in this process, from files.

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
        try:
            samples.append(self._node.sample())
        except Exception as error:
            samples.append(_failed(NODE, error))
        return samples


def _failed(device: str, error: Exception) -> RawSample:
    return {"device": device, "status": "unavailable", "reason": error_text(error)}


def _groups(machine: Machine, packages: int) -> Sequence[Sequence[int]]:
    """Return the CPUs of each package that the report has.

    The clusters of a system-on-chip, which the kernel shows as packages, are one device.
    """
    if machine.os != "linux":
        from probe_core.sampling import cpu

        return [sorted(cpu.processor_times(machine))] if packages == 1 else [[]] * packages
    from probe_core.probers import cpu_files

    running = cpu_files.online(machine)
    groups = cpu_files.sockets(machine, running)
    if len(groups) == packages:
        return groups
    return [running] if packages == 1 else [[] for _ in range(packages)]
