"""THE table of a sample's fields: what a live figure must be to be believed.

A new figure is an entry here and a key in `document`; validation, the order in a sample and the
reference page follow from this, or are tested equal to it.
"""

from __future__ import annotations

from probe_core.model.field import Field as F
from probe_core.model.field import FreeTable, Items, Number, Text, Word, by_name

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

_MEMORY = by_name(
    {
        "used": F(_BYTES, "What cannot be allocated now", unit="bytes"),
        "total": F(_BYTES, "All there is", unit="bytes"),
    }
)
_CLOCKS = by_name(
    {
        "sm": F(_MHZ, "Clock of the compute units", unit="MHz"),
        "memory": F(_MHZ, "Clock of the memory", unit="MHz"),
    }
)
_ACTIVITY = by_name(
    {
        "sm": F(_RATIO, "Share of time, averaged over all compute units, in which one worked"),
        "tensor": F(_RATIO, "Share of the matrix units' peak that was reached"),
        "memory": F(_RATIO, "Share of the memory's cycles that moved data"),
    }
)
_PRESSURE = by_name(
    {
        "cpu": F(_RATIO, "Share of the last 10 s in which a task waited for a processor"),
        "memory": F(_RATIO, "The same for memory"),
        "io": F(_RATIO, "The same for storage"),
    }
)
_LINK = by_name(
    {
        "kind": F(Word(), "pcie, nvlink, ethernet, infiniband …"),
        "name": F(Text(), "The system's name of it: eth0"),
        "generation": F(Number(1, 10, whole=True), "PCIe generation of now; 1 is normal when idle"),
        "width": F(Number(1, 32, whole=True), "Lanes of now"),
        "received": F(_RATE, "What came in since the last round", unit="bytes/s"),
        "sent": F(_RATE, "What went out since the last round", unit="bytes/s"),
    }
)
_COUNT = Number(0, (1 << 63) - 1, whole=True)
"""No counter of errors fills 63 bits; 2^64-1 is how a driver marks what it does not count."""

_SECONDS = Number(0, 1e10)
"""Three centuries; what is more was not converted from nanoseconds."""

_COUNTERS = by_name(
    {
        "energy_j": F(Number(0, 1e15), "Energy drawn", unit="J"),
        "ecc_corrected": F(_COUNT, "Errors of the memory that were corrected"),
        "ecc_uncorrected": F(_COUNT, "Errors of the memory that were not"),
        "pcie_replays": F(_COUNT, "Packets that were sent over PCIe again"),
        "pcie_correctable": F(_COUNT, "Errors of the PCIe link that it corrected (AER)"),
        "nvlink_crc": F(_COUNT, "Checksums of NVLink that were wrong"),
        "nvlink_replays": F(_COUNT, "Packets that were sent over NVLink again"),
        "nvlink_recoveries": F(_COUNT, "Times that an NVLink was trained again"),
        "throttled_power_s": F(_SECONDS, "Time with a lower clock for the power limit", unit="s"),
        "throttled_thermal_s": F(_SECONDS, "Time with a lower clock for heat", unit="s"),
    }
)
_XID = by_name(
    {
        "code": F(Number(1, 100_000, whole=True), "NVIDIA's number of the error"),
        "count": F(_COUNT, "How often it was reported"),
    }
)
_PROCESS = by_name(
    {
        "pid": F(_PID, "Process id, as this machine counts"),
        "user": F(Text(), "User's name, else the number"),
        "memory": F(_BYTES, "Memory of the device that it holds", unit="bytes"),
    }
)

SAMPLE_FIELDS = by_name(
    {
        "busy": F(_RATIO, "Share of the last second or less in which the device worked at all"),
        "activity": F(
            FreeTable(),
            "How much of the peak is reached; only where the hardware counts it",
            fields=_ACTIVITY,
        ),
        "memory": F(FreeTable(), "The device's memory", fields=_MEMORY),
        "temperature_c": F(_CELSIUS, "Temperature of the chip", unit="°C"),
        "power_w": F(_WATTS, "Power drawn", unit="W"),
        "power_cap_w": F(_WATTS, "Power that the driver keeps it below", unit="W"),
        "clocks_mhz": F(FreeTable(), "Clocks of now", fields=_CLOCKS),
        "throttled": F(
            Items(Word()),
            "Why the clock is lower than it could be: power, thermal, idle …; empty when it is not",
        ),
        "links": F(
            Items(FreeTable()),
            "Links with their rates",
            fields=_LINK,
            empty=[],
            nullable=False,
        ),
        "processes": F(
            Items(FreeTable(), limit=1024),
            "Processes that use the device; empty when there is none",
            fields=_PROCESS,
        ),
        "counters": F(
            FreeTable(),
            "What the driver or the hardware counts up; each may begin at 0 again",
            fields=_COUNTERS,
        ),
        "xids": F(
            Items(FreeTable(), limit=256),
            "Xid errors that NVIDIA's driver reported since this sampler began, by code",
            fields=_XID,
        ),
        "pressure": F(FreeTable(), "What tasks wait for (Linux PSI)", fields=_PRESSURE),
    }
)
"""Name to field, in the order of a sample. `device`, `prober`, `status`, `reason` and `unknown`
frame them."""
