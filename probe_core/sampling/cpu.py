"""What the processors do now: /proc/stat, their sensors and their energy counters."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.sysfs.numbered import entries
from probe_core.sysfs.rates import NEEDS_TWO, WENT_BACK, Rates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import RawSample


_STAT_LIMIT = 1 << 20
"""Bytes of /proc/stat: 256 CPUs take 20 KiB, and their interrupts follow in lines of the same."""

_CPUS = "/sys/devices/system/cpu"
_RAPL = "/sys/class/powercap"
_HWMON = "/sys/class/hwmon"

_SENSORS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal"})
"""hwmon's names of the drivers of processors' sensors."""

_PACKAGE_LABELS = ("Package id {}", "Tctl", "Tdie")
"""The whole package's sensor: coretemp numbers it, k10temp has one device for each package."""

_CLOCKED = 16
"""CPUs whose clock is read, of each package: a read takes 15 µs, and a package has up to 384."""

Times = dict[int, tuple[int, int]]
"""CPU to (ticks in which it worked, ticks in all)."""


class CpuSampler:
    """Samples the processor packages; `groups` are the CPUs of each, in the order of their ids."""

    def __init__(self, machine: Machine, groups: Sequence[Sequence[int]]) -> None:
        self._machine = machine
        self._groups = groups
        self._last: Times = {}
        self._energy = Rates()
        self._places = [_Places(machine, index, group) for index, group in enumerate(groups)]

    def sample(self) -> Iterator[RawSample]:
        """Yield a sample for each package."""
        times = read_times(self._machine)
        for index, group in enumerate(self._groups):
            places, unknown = self._places[index], dict[str, str]()
            sample: RawSample = {"device": f"cpu:{index}", "unknown": unknown}
            busy, reason = _busy(group, self._last, times)
            if busy is None:
                unknown["busy"] = reason
            else:
                sample["busy"] = busy
            self._add_power(sample, places)
            if (celsius := places.temperature(self._machine)) is not None:
                sample["temperature_c"] = celsius
            else:
                unknown["temperature_c"] = "no sensor of this package is in /sys/class/hwmon"
            if (clock := places.clock(self._machine)) is not None:
                sample["clocks_mhz"] = {"sm": clock}
            else:
                unknown["clocks_mhz"] = "no cpufreq driver shows the clock"
            yield sample
        self._last = times

    def _add_power(self, sample: RawSample, places: _Places) -> None:
        unknown = sample["unknown"]
        if places.energy is None:
            unknown["power_w"] = "there is no energy counter of this package in /sys/class/powercap"
            return
        try:
            micro = int(self._machine.read_bytes(f"{places.energy}/energy_uj", 32))
        except OSError as error:
            # Root alone since Linux 5.10: energy tells what others compute (CVE-2020-8694).
            unknown["power_w"] = f"{places.energy}/energy_uj: {error.strerror}"
            return
        except ValueError:
            unknown["power_w"] = f"{places.energy}/energy_uj holds no number"
            return
        wrap = self._machine.read_int(f"{places.energy}/max_energy_range_uj")
        sample["counters"] = {"energy_j": micro * 1e-6}
        watts = self._energy.per_second(sample["device"], micro * 1e-6, wrap=(wrap or 0) * 1e-6)
        if watts is None:
            unknown["power_w"] = self._energy.reason
        else:
            sample["power_w"] = watts


class _Places:
    """Where one package's sensors, energy counter and clocks are; looked up once."""

    def __init__(self, machine: Machine, index: int, group: Sequence[int]) -> None:
        self.energy = _energy_counter(machine, index)
        self._sensor = _sensor(machine, index)
        step = max(1, len(group) // _CLOCKED)
        paths = (f"{_CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq" for cpu in group[::step][:_CLOCKED])
        self._clocks = [path for path in paths if machine.exists(path)]

    def temperature(self, machine: Machine) -> float | None:
        """Return the package's temperature in °C."""
        raw = machine.read_int(self._sensor) if self._sensor else None
        return raw / 1000 if raw is not None else None

    def clock(self, machine: Machine) -> float | None:
        """Return the mean clock of the CPUs that are read, in MHz."""
        clocks = [kilohertz for path in self._clocks if (kilohertz := machine.read_int(path))]
        return sum(clocks) / len(clocks) / 1000 if clocks else None


def read_times(machine: Machine) -> Times:
    """Return how long each CPU worked, in ticks; the time lent to guests is in it already."""
    if machine.os != "linux":
        return processor_times(machine)
    times: Times = {}
    for line in (machine.read("/proc/stat", _STAT_LIMIT) or "").splitlines():
        if not line.startswith("cpu"):
            break
        name, *fields = line.split()
        cpu = decimal(name[3:])
        ticks = [decimal(field) or 0 for field in fields[:8]]
        if cpu is not None and len(ticks) >= 4:
            # user, nice, system, idle, iowait, irq, softirq, steal, see proc_stat(5).
            idle = ticks[3] + (ticks[4] if len(ticks) > 4 else 0)
            times[cpu] = (sum(ticks) - idle, sum(ticks))
    return times


def _busy(group: Sequence[int], before: Times, now: Times) -> tuple[float | None, str]:
    """Return the share of time in which the CPUs of a group worked, or None and the reason."""
    shared = [cpu for cpu in group if cpu in now]
    if not shared:
        return None, "/proc/stat does not list its CPUs"
    both = [cpu for cpu in shared if cpu in before]
    worked = sum(now[cpu][0] - before[cpu][0] for cpu in both)
    passed = sum(now[cpu][1] - before[cpu][1] for cpu in both)
    if not both or passed == 0:
        return None, NEEDS_TWO
    # The kernel's idle time may step back by a tick (proc_stat(5), iowait).
    if passed < 0 or worked < -len(both):
        return None, WENT_BACK
    return min(1.0, max(0.0, worked / passed)), ""


def _energy_counter(machine: Machine, index: int) -> str | None:
    for name in machine.listdir(_RAPL):
        stem, _, rest = name.partition(":")
        # intel-rapl:0 is a package, intel-rapl:0:1 a part of it. AMD's have Intel's name.
        is_package = stem == "intel-rapl" and ":" not in rest
        if is_package and machine.read(f"{_RAPL}/{name}/name", 64) == f"package-{index}":
            return f"{_RAPL}/{name}"
    return None


def _sensor(machine: Machine, index: int) -> str | None:
    chips = [
        path
        for _, path in entries(machine, _HWMON, "hwmon")
        if machine.read(f"{path}/name", 64) in _SENSORS
    ]
    single = []
    for path in chips:
        labels = {
            machine.read(f"{path}/{name}", 64): f"{path}/{name.removesuffix('_label')}_input"
            for name in machine.listdir(path)
            if name.startswith("temp") and name.endswith("_label")
        }
        if package := labels.get(_PACKAGE_LABELS[0].format(index)):
            return package
        sensor = labels.get("Tctl") or labels.get("Tdie")
        if sensor or not labels:
            single.append(sensor or f"{path}/temp1_input")
    return single[index] if index < len(single) else None


# Times of processors and bytes of networks where there is no /proc: macOS and Windows.

_TICKS = 1000
"""Of a second: psutil's times are seconds with fractions."""


def processor_times(machine: Machine) -> dict[int, tuple[int, int]]:
    """Return how long each processor worked and passed in all; nothing on a recorded machine."""
    if not machine.live:
        return {}
    try:
        import psutil

        passed = psutil.cpu_times(percpu=True)
    except Exception:  # psutil raises what the system's own calls raise
        return {}
    ticks = {}
    for number, cpu in enumerate(passed):
        whole = int(sum(cpu) * _TICKS)
        ticks[number] = (whole - int(cpu.idle * _TICKS), whole)
    return ticks


def interfaces(machine: Machine) -> list[tuple[str, str, int, int]]:
    """Return (kind, name, bytes received, bytes sent) of each network interface but loopbacks."""
    if not machine.live:
        return []
    try:
        import psutil

        counters = psutil.net_io_counters(pernic=True)
    except Exception:  # as above
        return []
    return [
        ("network", name, int(counter.bytes_recv), int(counter.bytes_sent))
        for name, counter in sorted(counters.items())
        if not name.lower().startswith("lo")
    ]
