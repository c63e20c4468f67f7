"""What one GPU or MIG instance does now, through NVML: an answer to each question, or a reason."""

from __future__ import annotations

from probe_core.sysfs.rates import Rates
from probe_nvidia.ask import Asker
from probe_nvidia.codes import MISSING, NOT_SUPPORTED, name_of
from probe_nvidia.gpm import Activity
from probe_nvidia.limits import REASONS
from probe_nvidia.memory import live_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Machine, RawSample
    from probe_core.sysfs.users import Users

__all__ = ["Gpu"]

_SM, _MEMORY = 1, 2  # nvmlClockType_t
_DIE = 0  # NVML_TEMPERATURE_GPU

_ALL_LINKS = 0xFFFF_FFFF  # a scope: the sum of all NVLinks
_PCIE_SENT, _PCIE_RECEIVED = 197, 198  # NVML_FI_DEV_PCIE_COUNT_{TX,RX}_BYTES, since driver 535
_NVLINK_SENT, _NVLINK_RECEIVED = 138, 139  # NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_{TX,RX}, in KiB
_COUNTERS = (
    ("pcie", "sent", _PCIE_SENT, 0, 1),
    ("pcie", "received", _PCIE_RECEIVED, 0, 1),
    ("nvlink", "sent", _NVLINK_SENT, _ALL_LINKS, 1024),
    ("nvlink", "received", _NVLINK_RECEIVED, _ALL_LINKS, 1024),
)
"""Kind of link, direction, field, scope, bytes of the counter's unit.

nvmlDeviceGetPcieThroughput has the rate at once, and blocks 20 ms for each direction.
"""

_ABSENT = (1 << 64) - 1
"""NVML_VALUE_NOT_AVAILABLE: of WSL's and Windows' processes, and where nothing was measured."""

_NEVER = frozenset({NOT_SUPPORTED, *MISSING})
"""Answers that stay the same as long as the driver is loaded."""

_THIRTY_TWO_BITS = 1  # NVML_VALUE_TYPE_UNSIGNED_INT

_PROCESS_CALLS = tuple(
    tuple((f"nvmlDeviceGet{kind}RunningProcesses{version}",) for version in ("_v3", "_v2"))
    for kind in ("Compute", "Graphics")
)


class Gpu:
    """One device that is sampled again and again.

    `instance` is the number of a MIG device's GPU instance, and `parent` the handle of its GPU;
    None of a whole GPU. A call that the device does not support is not made again.
    """

    __slots__ = ("_activity", "_asker", "_rates", "_refused", "id", "instance", "integrated")

    def __init__(
        self,
        nvml: Any,
        handle: Any,
        identity: str,
        *,
        integrated: bool = False,
        instance: tuple[Any, int] | None = None,
    ) -> None:
        self.id = identity
        self.integrated = integrated
        self.instance = instance
        self._asker = Asker(nvml, handle)
        self._rates = Rates()
        self._refused: dict[str, str] = {}
        self._activity = Activity(nvml, handle, instance)

    def sample(self, machine: Machine, users: Users | None) -> RawSample:
        """Ask everything once; a device that is gone is unavailable, with the library's reason."""
        asker = self._asker
        asker.unknown, asker.lost, asker.faults = {}, None, {}
        sample: RawSample = {"device": self.id, "unknown": asker.unknown}
        self._add_busy(sample)
        if asker.lost:
            return {"device": self.id, "status": "unavailable", "reason": asker.lost}
        if memory := live_memory(asker, machine, integrated=self.integrated):
            sample["memory"] = memory
        self._add_processes(sample, users)
        if self.instance is None:
            self._add_sensors(sample)
            self._add_links(sample)
        else:
            for field in ("temperature_c", "power_w", "clocks_mhz"):
                asker.unknown[field] = "it is the whole GPU's"
        if activity := self._activity.read(asker.unknown):
            sample["activity"] = activity
        if asker.lost:
            return {"device": self.id, "status": "unavailable", "reason": asker.lost}
        return sample

    def close(self) -> None:
        """Give back what the library keeps for this device."""
        self._activity.close()

    def _ask(self, field: str, call: str, *arguments: Any) -> Any:
        """Ask what the device may not have; what it does not support is not asked again."""
        key = f"{call}{arguments}"
        if key in self._refused:
            self._asker.unknown[field] = self._refused[key]
            return None
        value = self._asker.get(field, call, *arguments)
        if value is None and self._asker.code in _NEVER:
            self._refused[key] = self._asker.unknown[field]
        return value

    def _add_busy(self, sample: RawSample) -> None:
        rates = self._ask("busy", "nvmlDeviceGetUtilizationRates")
        if rates is not None:
            sample["busy"] = int(rates.gpu) / 100

    def _add_sensors(self, sample: RawSample) -> None:
        celsius = self._ask("temperature_c", "nvmlDeviceGetTemperature", _DIE)
        if celsius is not None:
            sample["temperature_c"] = celsius
        if (milliwatts := self._ask("power_w", "nvmlDeviceGetPowerUsage")) is not None:
            sample["power_w"] = milliwatts / 1000
        if cap := self._ask("power_cap_w", "nvmlDeviceGetEnforcedPowerLimit"):
            sample["power_cap_w"] = cap / 1000
        clocks = {
            name: self._ask(f"clocks_mhz.{name}", "nvmlDeviceGetClockInfo", kind)
            for name, kind in (("sm", _SM), ("memory", _MEMORY))
        }
        sample["clocks_mhz"] = {name: mhz for name, mhz in clocks.items() if mhz is not None}
        mask = self._asker.first(
            "throttled",
            ("nvmlDeviceGetCurrentClocksEventReasons",),
            ("nvmlDeviceGetCurrentClocksThrottleReasons",),  # its name before driver 535
        )
        if mask is not None:
            sample["throttled"] = [word for bit, word in enumerate(REASONS) if mask & (1 << bit)]

    def _add_links(self, sample: RawSample) -> None:
        links: dict[str, dict[str, str | int | float]] = {"pcie": {"kind": "pcie"}}
        generation = self._ask("links.0.generation", "nvmlDeviceGetCurrPcieLinkGeneration")
        width = self._ask("links.0.width", "nvmlDeviceGetCurrPcieLinkWidth")
        if generation and width:
            links["pcie"] |= {"generation": generation, "width": width}
        for (kind, direction, *_), rate in self._counter_rates():
            links.setdefault(kind, {"kind": kind})
            if isinstance(rate, str):
                place = list(links).index(kind)
                self._asker.unknown[f"links.{place}.{direction}"] = rate
            else:
                links[kind][direction] = rate
        sample["links"] = list(links.values())

    def _counter_rates(self) -> list[tuple[tuple[str, str, int, int, int], float | str]]:
        """Return each counter's rate in bytes per second, or why it is not known.

        An NVLink counter that the device does not have is no link.
        """
        pairs = [(field, scope) for _, _, field, scope, _ in _COUNTERS]
        values = self._ask("links", "nvmlDeviceGetFieldValues", pairs)
        if values is None:
            return []
        rates: list[tuple[tuple[str, str, int, int, int], float | str]] = []
        for counter, value in zip(_COUNTERS, values, strict=True):
            if value.nvmlReturn == 0:
                rates.append((counter, self._rate(counter, value)))
            elif counter[0] == "pcie":
                rates.append((counter, name_of(value.nvmlReturn)))
        return rates

    def _rate(self, counter: tuple[str, str, int, int, int], value: Any) -> float | str:
        _, _, field, _, unit = counter
        if value.valueType == _THIRTY_TWO_BITS:
            # Such a counter wraps after 4 GiB, which a link carries in a tenth of a second.
            return "the driver counts in 32 bits, which wrap within a second"
        # The driver says when it read the counter, in microseconds since 1970.
        at = value.timestamp / 1e6 if value.timestamp > 0 else None
        rate = self._rates.per_second(field, value.value.ullVal, at)
        return self._rates.reason if rate is None else rate * unit

    def _add_processes(self, sample: RawSample, users: Users | None) -> None:
        """Add compute and graphics processes: one may be both, and counts once."""
        answers = [self._asker.first("processes", *calls) for calls in _PROCESS_CALLS]
        if all(answer is None for answer in answers):
            return
        self._asker.unknown.pop("processes", None)
        if users is None:
            self._asker.unknown["processes.user"] = "NVML counts processes as the host does"
        sample["processes"] = [
            _process(pid, used, users)
            for pid, used in _memory_by_pid([p for answer in answers for p in answer or ()]).items()
        ]


def _memory_by_pid(processes: list[Any]) -> dict[int, int | None]:
    """Return the memory of each process; None where the driver does not say.

    A process may be listed as compute and as graphics, with the same figure, and in several MIG
    instances, each with its own.
    """
    by_place: dict[tuple[int, int, int], int | None] = {}
    for process in processes:
        used = process.usedGpuMemory
        used = None if used is None or used == _ABSENT else int(used)
        place = (process.pid, process.gpuInstanceId, process.computeInstanceId)
        both = [size for size in (by_place.get(place), used) if size is not None]
        by_place[place] = max(both, default=None)
    memory: dict[int, int | None] = {}
    for (pid, _, _), used in by_place.items():
        before = memory.get(pid)
        memory[pid] = before if used is None else used + (before or 0)
    return memory


def _process(pid: int, memory: int | None, users: Users | None) -> dict[str, str | int]:
    process: dict[str, str | int] = {"pid": pid}
    if memory is not None:
        process["memory"] = memory
    if users is not None and (user := users.of(pid)):
        process["user"] = user
    return process
