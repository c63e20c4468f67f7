"""THE table of a sample's fields: what a live figure must be to be believed.

A new figure is an entry here and a key in `document`; validation, the order in a sample, the views
and the reference page follow from this, or are tested equal to it.
"""

from __future__ import annotations

from probe_core.model.field import (
    TEXT,
    FreeTable,
    Items,
    Number,
    TableOf,
    Text,
    View,
    Word,
    field,
    fields_of,
    part,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.model.document import SampleDoc

STATUSES: dict[str, str] = {
    "ok": "the device was asked and answered",
    "asleep": "the device sleeps and was not asked, because that would wake it",
    "unresponsive": "asking the device hung or killed its prober's process",
    "unavailable": "the device could not be asked, see `reason`",
    "pending": "the device was not asked yet, or is asked again because another one hung",
}
"""A sample's `status`, and what it says."""

_RATIO = Number(0, 1)
_BYTES = Number(0, 64 << 40, whole=True)
"""64 TiB, as of a device's memory in the report."""

_MHZ = Number(0, 100_000)
_WATTS = Number(0, 20_000)
"""A rack's shelf of GPUs draws less; what is more was not converted from milliwatts."""

_CELSIUS = Number(-55, 150)
"""What silicon is specified for, and 25 degrees beyond. 0xFFFF in hundredths is 655."""

_RATE = Number(0, 1e13)
"""Bytes per second: ten times what all NVLinks of a B200 carry (1.8 TB/s)."""

_PID = Number(1, (1 << 32) - 1, whole=True)


class Plain(View):
    """A view that is read as its document, too: ``sample["memory"]["used"]``."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.__fields__:
            raise KeyError(name)
        return _plain(getattr(self, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.__fields__)

    def __len__(self) -> int:
        return len(self.__fields__)

    def __contains__(self, name: object) -> bool:
        return name in self.__fields__

    def keys(self) -> list[str]:
        """Return the names of the fields, so that ``dict(sample)`` is the document."""
        return list(self.__fields__)

    def get(self, name: str, default: Any = None) -> Any:
        """Return what stands under a name in the document."""
        return self[name] if name in self.__fields__ else default

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dict):
            return self.to_json() == other
        return super().__eq__(other)

    __hash__ = View.__hash__

    def to_json(self) -> dict[str, Any]:
        """Return the document as plain data, to be changed at will."""
        return {name: _plain(getattr(self, name)) for name in self.__fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, dict) else value


@part
class LiveMemory(Plain):
    """A device's memory of now, in bytes; None where unknown."""

    used: int | None = field(_BYTES, "What cannot be allocated now", unit="bytes")
    total: int | None = field(_BYTES, "All there is", unit="bytes")


@part
class LiveClocks(Plain):
    """Clocks of now, in MHz; None where unknown."""

    sm: float | None = field(_MHZ, "Clock of the compute units", unit="MHz")
    memory: float | None = field(_MHZ, "Clock of the memory", unit="MHz")


@part
class Activity(Plain):
    """How much of the peak is reached, each 0 to 1; None where unknown."""

    sm: float | None = field(
        _RATIO, "Share of time, averaged over all compute units, in which one worked"
    )
    tensor: float | None = field(_RATIO, "Share of the matrix units' peak that was reached")
    memory: float | None = field(_RATIO, "Share of the memory's cycles that moved data")


@part
class Pressure(Plain):
    """What tasks wait for, each 0 to 1; None where unknown."""

    cpu: float | None = field(
        _RATIO, "Share of the last 10 s in which a task waited for a processor"
    )
    memory: float | None = field(_RATIO, "The same for memory")
    io: float | None = field(_RATIO, "The same for storage")


@part
class LiveLink(Plain):
    """One link of a device, with its rates of now in bytes per second; None where unknown."""

    kind: str | None = field(Word(), "pcie, nvlink, ethernet, infiniband …")
    name: str | None = field(TEXT, "The system's name of it: eth0")
    generation: int | None = field(
        Number(1, 10, whole=True), "PCIe generation of now; 1 is normal when idle"
    )
    width: int | None = field(Number(1, 32, whole=True), "Lanes of now")
    received: float | None = field(_RATE, "What came in since the last round", unit="bytes/s")
    sent: float | None = field(_RATE, "What went out since the last round", unit="bytes/s")


_COUNT = Number(0, (1 << 63) - 1, whole=True)
"""No counter of errors fills 63 bits; 2^64-1 is how a driver marks what it does not count."""

_SECONDS = Number(0, 1e10)
"""Three centuries; what is more was not converted from nanoseconds."""


@part
class Counters(Plain):
    """What a device has counted since its driver began; None where unknown."""

    energy_j: float | None = field(Number(0, 1e15), "Energy drawn", unit="J")
    ecc_corrected: int | None = field(_COUNT, "Errors of the memory that were corrected")
    ecc_uncorrected: int | None = field(_COUNT, "Errors of the memory that were not")
    pcie_replays: int | None = field(_COUNT, "Packets that were sent over PCIe again")
    pcie_correctable: int | None = field(_COUNT, "Errors of the PCIe link that it corrected (AER)")
    nvlink_crc: int | None = field(_COUNT, "Checksums of NVLink that were wrong")
    nvlink_replays: int | None = field(_COUNT, "Packets that were sent over NVLink again")
    nvlink_recoveries: int | None = field(_COUNT, "Times that an NVLink was trained again")
    throttled_power_s: float | None = field(
        _SECONDS, "Time with a lower clock for the power limit", unit="s"
    )
    throttled_thermal_s: float | None = field(
        _SECONDS, "Time with a lower clock for heat", unit="s"
    )


@part
class Xid(Plain):
    """One kind of error that NVIDIA's driver reported; None where unknown."""

    code: int | None = field(Number(1, 100_000, whole=True), "NVIDIA's number of the error")
    count: int | None = field(_COUNT, "How often it was reported")


@part
class Process(Plain):
    """One process that uses a device; None where unknown."""

    pid: int | None = field(_PID, "Process id, as this machine counts")
    user: str | None = field(TEXT, "User's name, else the number")
    memory: int | None = field(_BYTES, "Memory of the device that it holds", unit="bytes")


@part
class Sample(Plain):
    """One device in one round.

    A figure is None where it is not known; `unknown` then has the reason, by field ("power_w",
    "clocks_mhz.memory"). A status other than "ok" has its reason in `reason`, and no figures.
    """

    device: str = field(Text(least=1), "Id of the device in the report", required=True)
    prober: str | None = field(TEXT, "Prober whose sampler answered")
    status: str = field(Word(), "ok, asleep, unresponsive, unavailable or pending", required=True)
    reason: str | None = field(TEXT, "Why there are no figures")
    busy: float | None = field(
        _RATIO, "Share of the last second or less in which the device worked at all", unit="1"
    )
    activity: Activity | None = field(
        FreeTable(),
        "How much of the peak is reached; only where the hardware counts it",
        part=Activity,
    )
    memory: LiveMemory | None = field(FreeTable(), "The device's memory", part=LiveMemory)
    temperature_c: float | None = field(_CELSIUS, "Temperature of the chip", unit="°C")
    power_w: float | None = field(_WATTS, "Power drawn", unit="W")
    power_cap_w: float | None = field(_WATTS, "Power that the driver keeps it below", unit="W")
    clocks_mhz: LiveClocks | None = field(FreeTable(), "Clocks of now", part=LiveClocks)
    throttled: tuple[str, ...] | None = field(
        Items(Word()),
        "Why the clock is lower than it could be: power, thermal, idle …; empty when it is not",
    )
    links: tuple[LiveLink, ...] = field(
        Items(FreeTable()), "Links with their rates", part=LiveLink, empty=[]
    )
    processes: tuple[Process, ...] | None = field(
        Items(FreeTable(), limit=1024),
        "Processes that use the device; empty when there is none",
        part=Process,
    )
    counters: Counters | None = field(
        FreeTable(),
        "What the driver or the hardware counts up; each may begin at 0 again",
        part=Counters,
    )
    xids: tuple[Xid, ...] | None = field(
        Items(FreeTable(), limit=256),
        "Xid errors that NVIDIA's driver reported since this sampler began, by code",
        part=Xid,
    )
    pressure: Pressure | None = field(FreeTable(), "What tasks wait for (Linux PSI)", part=Pressure)
    unknown: Mapping[str, str] = field(
        TableOf(Text(least=1)), "Field to the reason why it is not known", nullable=True, empty={}
    )

    @classmethod
    def of(cls, document: SampleDoc) -> Sample:
        """Return the view of a sample that is known to be sound: what the core itself made."""
        from probe_core.model.report import freeze, view

        made = view(cls, freeze(document))
        for name, value in document.items():
            if value is None:  # unknown, which is not the same as empty
                object.__setattr__(made, name, None)
        return made


FRAME = ("device", "prober", "status", "reason", "unknown")
"""What frames the figures of a sample."""

SAMPLE_FIELDS = {name: known for name, known in fields_of(Sample).items() if name not in FRAME}
"""Name to field of each figure, in the order of a sample."""
