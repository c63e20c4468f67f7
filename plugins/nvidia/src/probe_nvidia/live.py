"""Samples NVIDIA GPUs: NVML is initialised once, and only while none of them sleeps.

nvmlInit opens every NVIDIA GPU, so one that sleeps forbids it for all. With the library open no GPU
falls asleep; the core ends this process when they are idle. The client is nvidia-ml-py, whose start
counts for nothing in a process that stays.
"""

from __future__ import annotations

import os
from time import monotonic

from probe_core.api import Unavailable, each_card
from probe_core.sysfs import meminfo
from probe_core.sysfs.rates import NEEDS_TWO, Rates
from probe_core.sysfs.users import Users
from probe_nvidia import mig, nvml
from probe_nvidia.causes import (
    FUNCTION_NOT_FOUND,
    MISSING,
    NOT_SUPPORTED,
    code_of,
    name_of,
    reason_of,
)
from probe_nvidia.device import capability_of, memory_info, mig_mode, pci_facts, slowed_by
from probe_nvidia.nvml import Asker, text
from probe_nvidia.scene import INTEGRATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import Machine, RawSample, SampleRequest
    from probe_nvidia.scene import Scene

_FIRST_PID_NAMESPACE = 0xEFFF_FFFC
"""PROC_PID_INIT_INO of linux/proc_ns.h."""

_AGAIN_S = 300.0
"""Seconds until a library that could not be initialised is tried again: each attempt opens all
GPUs. A judgement: long beside the second between two rounds, short for whoever loads a driver."""

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

_TALLIES = {
    "energy_j": ((83,), 1e-3),
    "ecc_corrected": ((3,), 1),
    "ecc_uncorrected": ((4,), 1),
    "pcie_replays": ((94,), 1),
    "nvlink_crc": ((38, 45), 1),
    "nvlink_replays": ((52,), 1),
    "nvlink_recoveries": ((59,), 1),
    "throttled_power_s": ((74,), 1e-9),
    "throttled_thermal_s": ((75,), 1e-9),
}
"""Counter to its NVML_FI_DEV_* fields, whose sum it is, and their unit: TOTAL_ENERGY_CONSUMPTION
(mJ), ECC_{SBE,DBE}_VOL_TOTAL, PCIE_REPLAY_COUNTER, NVLINK_{CRC_FLIT,CRC_DATA,REPLAY,RECOVERY}_
ERROR_COUNT_TOTAL, PERF_POLICY_{POWER,THERMAL}. All count from the start of the driver.

The manual gives no unit of the last two. On an H100 at its power limit (driver 580.159) field 74
and nvmlDeviceGetViolationStatus, in nanoseconds, both grew by 10.03 s in 10.03 s."""

_TALLY_FIELDS = [(field, 0) for fields, _ in _TALLIES.values() for field in fields]
_TALLY_S = 10.0
"""Seconds between two looks at the counters: on that H100 they take the driver 4 ms of CPU, the
energy alone 2.9, where all other figures of a round take less."""

_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Member of nvmlValue_t by nvmlValueType_t."""

_TIMEOUT = 10  # NVML_ERROR_TIMEOUT
_XID_EVENT = 8  # nvmlEventTypeXidCriticalError
_MAX_EVENTS = 64
"""Events of a GPU that are taken in a round; the library keeps what comes beyond it."""

_ABSENT = (1 << 64) - 1
"""NVML_VALUE_NOT_AVAILABLE: a monitor showed 17,179,869,184 GiB of it (nvtop#432)."""

_NEVER = frozenset({NOT_SUPPORTED, *MISSING})
"""Answers that stay the same as long as the driver is loaded."""

_THIRTY_TWO_BITS = 1  # NVML_VALUE_TYPE_UNSIGNED_INT

_PROCESS_CALLS = tuple(
    tuple((f"nvmlDeviceGet{kind}RunningProcesses{version}",) for version in ("_v3", "_v2"))
    for kind in ("Compute", "Graphics")
)


class Sampler:
    """The GPUs of a machine, between two rounds."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        # A process in a container is another one outside, and NVML counts outside.
        self._users = Users(scene.machine) if _is_first_namespace() else None
        self._nvml: Any = None
        self._gpus: list[Gpu] = []
        self._lost: dict[str, str] = {}
        """GPU without a handle to the reason: a lost one stays so until the driver restarts."""
        self._skipped: frozenset[str] | None = None
        self._failure: Unavailable | None = None
        self._again = 0.0

    def sample(self, request: SampleRequest) -> Iterator[RawSample]:
        """Return the samples of a round; raises `Unavailable` when the library cannot be used."""
        served = self._scene.reachable()
        asleep = [identity for identity in served if identity in request.asleep]
        if self._nvml is None and asleep:
            return _left_alone(request, served, asleep)
        self._open()
        return self._samples(request)

    def close(self) -> None:
        """Close the library, so that the GPUs may sleep."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None

    def _open(self) -> None:
        """Initialise the library, once; the handles are asked for with each new set of devices."""
        if self._failure is not None and monotonic() < self._again:
            raise self._failure
        if self._nvml is None:
            try:
                self._nvml = nvml.start(self._scene, live=True)
                self._failure = None
            except Unavailable as error:
                self._failure, self._again = error, monotonic() + _AGAIN_S
                raise

    def _samples(self, request: SampleRequest) -> Iterator[RawSample]:
        skipped = request.avoid | request.asleep
        if self._skipped != skipped:
            for gpu in self._gpus:
                gpu.close()
            self._gpus, self._lost, self._skipped = [], {}, None
            yield from self._find(request)
            self._skipped = skipped
            return
        for gpu, may_ask in each_card(request, self._gpus):
            if may_ask:
                yield gpu.sample(self._scene.machine, self._users)
        for name, reason in self._lost.items():
            if not request.skip(name):
                yield {"device": name, "status": "unavailable", "reason": reason}

    def _find(self, request: SampleRequest) -> Iterator[RawSample]:
        """Ask for every GPU's handle, and sample each at once: one that hangs costs no other.

        Where NVML counts as many GPUs as the driver serves, an index means an address (NVML counts
        in PCI order); where it does not, only the handle says which GPU it is.
        """
        served = self._scene.reachable()
        count = int(self._nvml.nvmlDeviceGetCount())
        in_order = count == len(served)
        names = served if in_order else [f"nvidia:index-{index}" for index in range(count)]
        for index, (name, may_ask) in enumerate(each_card(request, names)):
            if not may_ask:
                continue
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            except Exception as error:
                self._lost[name] = reason_of(error, "nvmlDeviceGetHandleByIndex")
                yield {"device": name, "status": "unavailable", "reason": self._lost[name]}
                continue
            yield from self._first(request, handle, name)

    def _first(self, request: SampleRequest, handle: Any, name: str) -> Iterator[RawSample]:
        asker = Asker(self._nvml, handle)
        identity = pci_facts(asker)[0] or name
        if identity != name:
            if request.skip(identity):
                return
            request.touching(identity)
        integrated = capability_of(asker) in INTEGRATED
        gpus = [Gpu(self._nvml, handle, identity, integrated=integrated)]
        if mig_mode(asker):
            gpus += self._instances(asker, handle)
        for gpu in gpus:
            self._gpus.append(gpu)
            yield gpu.sample(self._scene.machine, self._users)

    def _instances(self, asker: Any, handle: Any) -> list[Gpu]:
        gpus = []
        for _, instance in mig.handles(asker):
            own = Asker(self._nvml, instance)
            uuid = text(own.get(None, "nvmlDeviceGetUUID"))
            number = own.get(None, "nvmlDeviceGetGpuInstanceId")
            if uuid and number is not None:
                place = (handle, int(number))
                gpus.append(Gpu(self._nvml, instance, f"uuid:{uuid}", instance=place))
        return gpus


def _left_alone(
    request: SampleRequest, served: list[str], asleep: list[str]
) -> Iterator[RawSample]:
    reason = f"NVML opens all GPUs when it starts, and would wake {', '.join(asleep)}"
    for identity in served:
        if not request.skip(identity):
            yield {"device": identity, "status": "unavailable", "reason": reason}


def _is_first_namespace() -> bool:
    """Return whether this process counts processes as the host does."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == _FIRST_PID_NAMESPACE
    except OSError:  # no Linux, or a kernel without namespaces
        return True


class Gpu:
    """One device that is sampled again and again.

    `instance` is the number of a MIG device's GPU instance, and `parent` the handle of its GPU;
    None of a whole GPU. A call that the device does not support is not made again.
    """

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
        self._xids = Xids(nvml, handle)
        self._tallies: dict[str, float] = {}
        self._untold: dict[str, str] = {}
        self._tallied_at = float("-inf")

    def sample(self, machine: Machine, users: Users | None) -> RawSample:
        """Ask everything once; a device that is gone is unavailable, with the library's reason."""
        asker = self._asker
        asker.unknown, asker.lost, asker.faults = {}, None, {}
        sample: RawSample = {"device": self.id, "unknown": asker.unknown}
        self._add_busy(sample)
        if asker.lost:
            return {"device": self.id, "status": "unavailable", "reason": asker.lost}
        if memory := _memory(asker, machine, integrated=self.integrated):
            sample["memory"] = memory
        self._add_processes(sample, users)
        if self.instance is None:
            self._add_sensors(sample)
            self._add_links(sample)
            self._add_counters(sample)
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
        self._xids.close()

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
        if (reasons := slowed_by(self._asker, "throttled")) is not None:
            sample["throttled"] = reasons

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

    def _add_counters(self, sample: RawSample) -> None:
        """Add what is counted up, as of the last look; what is not counted has NVML's reason."""
        now = monotonic()
        if now >= self._tallied_at + _TALLY_S:
            self._tallied_at = now
            values = self._ask("counters", "nvmlDeviceGetFieldValues", _TALLY_FIELDS)
            self._tallies, self._untold = _tallies(values or [])
        for name, reason in self._untold.items():
            self._asker.unknown[f"counters.{name}"] = reason
        sample["counters"] = dict(self._tallies)
        xids = self._xids.read()
        if isinstance(xids, str):
            self._asker.unknown["xids"] = xids
        else:
            sample["xids"] = xids

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


def _tallies(values: list[Any]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the counters of field values, and the reason of each that is not known."""
    counters, reasons, unread = dict[str, float](), dict[str, str](), iter(values)
    for name, (fields, unit) in _TALLIES.items():
        read = [value for _, value in zip(fields, unread, strict=False)]
        refused = [value.nvmlReturn for value in read if value.nvmlReturn]
        numbers = [_number(value) for value in read]
        if refused or not read or None in numbers:
            reasons[name] = name_of(refused[0]) if refused else "the driver has no such field"
        else:
            counters[name] = sum(filter(None, numbers)) * unit
    return counters, reasons


def _number(value: Any) -> float | None:
    """Return a field's value by its own type; None of one that marks what is not counted."""
    if not 0 <= value.valueType < len(_MEMBERS):
        return None
    number: float = getattr(value.value, _MEMBERS[value.valueType])
    return None if number < 0 or number >= 1 << 63 else number


class Xids:
    """The Xid errors of one GPU: events that the library keeps until they are taken.

    They are counted from the first look on: what was before is in the kernel's log.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._events: Any = None
        self._counts: dict[int, int] = {}
        self._reason: str | None = None

    def read(self) -> list[dict[str, int]] | str:
        """Return how often each error came, or why that is not known. It never waits."""
        if self._reason is None:
            try:
                self._take()
            except Exception as error:
                code = code_of(error)
                self._reason = f"{name_of(code)} from the events" if code else str(error)[:120]
        if self._reason is not None:
            return self._reason
        return [{"code": code, "count": n} for code, n in sorted(self._counts.items())]

    def _take(self) -> None:
        nvml = self._nvml
        if self._events is None:
            self._events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(self._handle, _XID_EVENT, self._events)
        for _ in range(_MAX_EVENTS):
            try:
                event = nvml.nvmlEventSetWait_v2(self._events, 0)
            except nvml.NVMLError as error:
                if code_of(error) == _TIMEOUT:
                    return
                raise
            if event.eventType == _XID_EVENT:
                code = int(event.eventData)
                self._counts[code] = self._counts.get(code, 0) + 1

    def close(self) -> None:
        """Give the set of events back."""
        if self._events is not None:
            try:
                self._nvml.nvmlEventSetFree(self._events)
            except Exception:  # a driver that has gone: the end of the process frees it
                pass
            self._events = None


def _memory_by_pid(processes: list[Any]) -> dict[int, int | None]:
    """Return the memory of each process; None where the driver does not say.

    A process may be listed as compute and as graphics, with the same figure, and in several MIG
    instances, each with its own.
    """
    by_place: dict[tuple[int, int, int], int | None] = {}
    for process in processes:
        used = process.usedGpuMemory
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


def _memory(asker: Asker, machine: Machine, *, integrated: bool) -> dict[str, int] | None:
    """Return bytes used and in all; None with the reason in the asker.

    Of the sizes that NVML reports, `used` counts what the driver reserves in R525 and its manual
    is silent since: what is neither free nor reserved is the same in all.
    """
    if integrated:
        sizes = meminfo.sizes(machine)
        if "MemTotal" not in sizes or "MemAvailable" not in sizes:
            asker.unknown["memory"] = "it is the system's, which /proc/meminfo does not show"
            return None
        total = sizes["MemTotal"]
        return {"total": total, "used": max(0, total - sizes["MemAvailable"])}
    info = memory_info(asker, "memory")
    if info is None or not info.total or _ABSENT in (info.total, info.free):
        asker.unknown.setdefault("memory", "NVML reports no size")
        return None
    reserved = int(getattr(info, "reserved", 0))
    total = int(info.total)
    return {"total": total, "used": max(0, total - int(info.free) - reserved)}


_METRICS = {"sm": 2, "tensor": 5, "memory": 10}
"""NVML_GPM_METRIC_{SM_UTIL, ANY_TENSOR_UTIL, DRAM_BW_UTIL}, in percent."""

_OLD = "this GPU has no counters of it (GPM, Hopper and later)"


class Activity:
    """The counters of one GPU, or of a GPU instance: (its GPU's handle, its number)."""

    def __init__(self, nvml: Any, handle: Any, instance: tuple[Any, int] | None) -> None:
        self._nvml = nvml
        self._handle = handle if instance is None else instance[0]
        self._instance = instance
        self._before: Any = None
        self._spare: Any = None
        self._reason: str | None = None

    def read(self, unknown: dict[str, str]) -> dict[str, float] | None:
        """Return shares of the peak since the last call; None with the reason in `unknown`."""
        if self._reason is None:
            try:
                return self._read(unknown)
            except Exception as error:
                code = code_of(error)
                if code is None or code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                    self._reason = _OLD
                else:
                    self._reason = f"{name_of(code)} from GPM"
        unknown["activity"] = self._reason
        return None

    def _read(self, unknown: dict[str, str]) -> dict[str, float] | None:
        nvml = self._nvml
        if self._spare is None:
            if not nvml.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice:
                self._reason = unknown["activity"] = _OLD
                return None
            self._spare = nvml.nvmlGpmSampleAlloc()
        now, before = self._spare, self._before
        if self._instance is None:
            nvml.nvmlGpmSampleGet(self._handle, now)
        else:
            nvml.nvmlGpmMigSampleGet(self._handle, self._instance[1], now)
        self._before, self._spare = now, before
        if before is None:
            self._spare = nvml.nvmlGpmSampleAlloc()
            unknown["activity"] = NEEDS_TWO
            return None
        return self._shares(before, now, unknown)

    def close(self) -> None:
        """Give the room of both readings back, which is the library's own."""
        for sample in (self._before, self._spare):
            if sample is not None:
                try:
                    self._nvml.nvmlGpmSampleFree(sample)
                except Exception:  # a driver that has gone: the end of the process frees it
                    continue
        self._before = self._spare = None

    def _shares(self, before: Any, now: Any, unknown: dict[str, str]) -> dict[str, float]:
        query = self._nvml.c_nvmlGpmMetricsGet_t(
            version=self._nvml.NVML_GPM_METRICS_GET_VERSION,
            numMetrics=len(_METRICS),
            sample1=before,
            sample2=now,
        )
        for metric, number in zip(query.metrics, _METRICS.values(), strict=False):
            metric.metricId = number
        self._nvml.nvmlGpmMetricsGet(query)
        shares: dict[str, float] = {}
        for metric, name in zip(query.metrics, _METRICS, strict=False):
            if metric.nvmlReturn == 0:
                shares[name] = metric.value / 100
            else:
                unknown[f"activity.{name}"] = name_of(metric.nvmlReturn)
        return shares
