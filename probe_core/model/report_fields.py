"""The tables of the node's fields: the machine itself, its memory, and its links to others."""

from __future__ import annotations

from probe_core.model.field import (
    Choice,
    Flag,
    FreeTable,
    Items,
    Number,
    TableOf,
    Text,
    Word,
    by_name,
)
from probe_core.model.field import Field as F
from probe_core.model.fields import FIELDS
from probe_core.model.findings import SEVERITIES

BYTES = Number(whole=True)
COUNT = Number(whole=True)

NODE_MEMORY = by_name(
    (
        F("total", BYTES, "All of the machine's memory", unit="bytes", always=True),
        F(
            "available",
            BYTES,
            "What can be taken now without swapping, within the limit",
            unit="bytes",
            always=True,
            volatile=True,
        ),
        F(
            "limit",
            BYTES,
            "The smallest limit of the cgroups this process is in; null without one",
            unit="bytes",
            always=True,
        ),
        F(
            "limited_by",
            Text(),
            "Where that limit is written: the path of a control group's file",
            added=True,
        ),
        F(
            "devices",
            BYTES,
            "Memory of GPUs that the kernel lists as NUMA nodes; not a part of the others",
            unit="bytes",
            added=True,
        ),
    )
)

NETWORK = by_name(
    (
        F(
            "name",
            Text(),
            "Name of the interface, the RDMA port (mlx5_0/1) or the Thunderbolt connection (0-1)",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "kind",
            Text(),
            "ethernet, wifi, wwan, infiniband, thunderbolt-net or other of interfaces; rdma;"
            " thunderbolt of a connection to another host",
            always=True,
            nullable=False,
            empty="other",
        ),
        F(
            "state",
            Text(),
            "up, down, or another state as the kernel reports it",
            always=True,
            volatile=True,
        ),
        F(
            "bandwidth",
            Number(),
            "Speed of the link in one direction, as negotiated",
            unit="bytes per second",
            always=True,
            volatile=True,
        ),
        F("reason", Text(), "Why the bandwidth is not known", always=True, volatile=True),
        F("mtu", COUNT, "Bytes of its largest packet", unit="bytes"),
        F("driver", Text(), "The kernel driver that is bound to it"),
        F("device", Text(), "PCI id of its hardware: pci:dddd:bb:dd.f"),
        F("numa_node", COUNT, "The NUMA node it is attached to", unit="ordinal"),
        F("layer", Text(), "Link layer of an RDMA port: infiniband, ethernet (RoCE) or another"),
        F("interface", Text(), "The interface of the same hardware as an RDMA port"),
        F(
            "id",
            Text(),
            "This host's id on the Thunderbolt bus; absent with the setting anonymous",
        ),
        F(
            "peer",
            Text(),
            "The id of the host at the other end; absent with the setting anonymous",
        ),
    )
)

NODE = by_name(
    (
        F(
            "os",
            Text(),
            "linux, darwin, windows, or what Python calls the system",
            always=True,
            nullable=False,
        ),
        F("kernel", Text(), "Release of the kernel", always=True),
        F(
            "arch",
            Text(),
            "Architecture as uname -m names it: x86_64, aarch64",
            always=True,
            nullable=False,
        ),
        F("model", Text(), "The board's or product's name, as firmware gives it", always=True),
        F(
            "id",
            Text(),
            "Stable id of the node: a keyed hash of its machine id; null where there is none, in a"
            " container of an image, and with the setting anonymous",
            always=True,
            added=True,
        ),
        F("host", Text(), "The host's name, with the setting hostname", always=True, added=True),
        F(
            "time",
            Text(),
            "When it was probed: UTC, as 2026-11-22T09:30:00.000Z, which sorts as text; null of a"
            " recorded machine",
            always=True,
            volatile=True,
            added=True,
        ),
        F(
            "container",
            Text(),
            "kubernetes, apptainer, docker, podman, lxc, systemd-nspawn, flatpak, snap or"
            " container; null in none that shows itself",
            always=True,
            added=True,
        ),
        F(
            "vm",
            Text(),
            "Kind of virtual machine: kvm, qemu, vmware, hyper-v, xen, wsl …; vm where the kind is"
            " not known; null in none that shows itself",
            always=True,
            added=True,
        ),
        F(
            "cgroup",
            Text(),
            "Who made the cgroup of this process: slurm, kubernetes, docker, podman, lxc, user,"
            " system, machine, root or other",
            always=True,
            added=True,
        ),
        F(
            "memory",
            FreeTable(),
            "The system's memory",
            always=True,
            nullable=False,
            empty={},
            fields=NODE_MEMORY,
            shape="node_memory",
        ),
        F(
            "network",
            Items(FreeTable(), limit=256),
            "Links to other nodes: interfaces of hardware, RDMA ports, Thunderbolt connections; no"
            " packet is sent",
            nullable=False,
            empty=[],
            fields=NETWORK,
            shape="network",
            added=True,
        ),
    )
)


# The tables of a report's own fields: outcomes, decisions, findings, the whole.

FALLBACK = Choice("no-accelerator", "degraded")

OUTCOME = by_name(
    (
        F("prober", Text(), "Its name", always=True, nullable=False, empty=""),
        F(
            "distribution",
            Text(),
            "The distribution that ships it, with version",
            always=True,
            nullable=False,
            empty="",
        ),
        F("status", Text(), "How it ended", always=True, nullable=False, empty=""),
        F(
            "reason",
            Text(least=1),
            "Why; never null unless the status is ok",
            always=True,
        ),
        F(
            "partial",
            Flag(),
            "Whether devices arrived before it failed",
            always=True,
            nullable=False,
            empty=False,
        ),
        F(
            "devices",
            COUNT,
            "How many devices it reported",
            unit="count",
            always=True,
            nullable=False,
            empty=0,
        ),
        F(
            "elapsed_ms",
            Number(),
            "How long it took",
            unit="milliseconds",
            always=True,
            nullable=False,
            empty=0,
        ),
        F("code", Text(), "The prober's own word for why, for scripts"),
        F("fix", Text(), "What would help"),
        F(
            "phase",
            Choice("start", "import", "call", "cleanup"),
            "Where it failed: start (its process), import (its module), call (its hook) or cleanup"
            " (after all its devices were read)",
        ),
        F("signal", Text(), "Name of the signal that killed its process: SIGSEGV"),
        F(
            "exit_status",
            COUNT,
            "Status with which its process exited before it had answered",
            unit="number",
        ),
        F(
            "stuck_at",
            Text(),
            "The line that ran at the deadline: /path/prober.py:5 in probe_devices",
        ),
        F(
            "avoided",
            Items(Text()),
            "Devices over which its process hung, died or raised; another process read the others",
        ),
        F("replayed", Flag(), "Whether it is the answer of a recording, and no process ran"),
        F(
            "stderr",
            Items(Text()),
            "The last lines that it wrote, where it failed or `verbose` is set",
            nullable=False,
            empty=[],
        ),
    )
)

DECISION = by_name(
    (
        F("prober", Text(), "Its name", always=True, nullable=False, empty=""),
        F(
            "distribution",
            Text(),
            "The distribution that ships it, with version",
            always=True,
            nullable=False,
            empty="",
        ),
        F("selected", Flag(), "Whether it was run", nullable=False, always=True, empty=False),
        F(
            "cause",
            Text(),
            "Word for scripts: blocked, when, api, shadowed, trust, sealed, active, veto,"
            " unkillable, rejected, no-child",
        ),
        F("reason", Text(), "Why it was not run; null when it was", always=True),
        F(
            "priority",
            COUNT,
            "Its priority from 1 to 999, after the settings",
            unit="1 to 999",
            nullable=False,
            empty=100,
        ),
        F(
            "deadline_s",
            Number(1e-6),
            "Its deadline, after the settings",
            unit="seconds",
            nullable=False,
            empty=5.0,
        ),
        F("active", Flag(), "Whether it opens devices", nullable=False, empty=False),
        F("setting", Text(), "The setting that kept it from running, by its name in the settings"),
        F("variable", Text(), "The environment variable that set it"),
    )
)

FINDING = by_name(
    (
        F(
            "code",
            Text(least=1),
            "Word for scripts: see the core's list of codes; probers add theirs",
            always=True,
            nullable=False,
            empty="",
        ),
        F(
            "severity",
            Choice(*SEVERITIES),
            "info, warning or error",
            always=True,
            nullable=False,
            empty="info",
        ),
        F("what", Text(least=1), "What was found", always=True, nullable=False, empty=""),
        F("why", Text(least=1), "Its cause", always=True, nullable=False, empty=""),
        F("fix", Text(least=1), "What would help", always=True, nullable=False, empty=""),
        F("device", Text(), "Id of the device it is about", always=True),
        F(
            "prober",
            Text(),
            "Name of the prober it is about, or that reported it",
            always=True,
            added=True,
        ),
        F(
            "setting",
            Text(),
            "The setting that matters, by its name in the settings",
            always=True,
            added=True,
        ),
        F("variable", Text(), "The environment variable that matters", always=True, added=True),
        F("step", Text(), "The step of readiness that it breaks", always=True, added=True),
        F(
            "evidence",
            Text(),
            "What it was read from: a path and its content, an error code, a library's own text",
            always=True,
            added=True,
        ),
    )
)

REPORT = by_name(
    (
        F(
            "schema",
            COUNT,
            "Number of this schema; raised only when a field changes its meaning or goes away",
            unit="number",
            always=True,
            nullable=False,
        ),
        F(
            "probe_core",
            Text(),
            "Version of the core that made the report",
            always=True,
            nullable=False,
            empty="",
        ),
        F("chipdb", Text(), "Version of the chip data; null without chipdb", always=True),
        F(
            "node",
            FreeTable(),
            "The machine itself",
            always=True,
            nullable=False,
            empty={},
            fields=NODE,
            shape="node",
        ),
        F("primary", Text(), "Id of the device to use first", always=True),
        F(
            "devices",
            Items(FreeTable(), least=1),
            "GPUs, other accelerators, CPUs, displays; a part follows its parent",
            always=True,
            nullable=False,
            empty=[],
            fields=FIELDS,
            shape="device",
        ),
        F(
            "outcomes",
            Items(FreeTable()),
            "How each prober's run ended",
            always=True,
            nullable=False,
            empty=[],
            fields=OUTCOME,
            shape="outcome",
        ),
        F(
            "decisions",
            Items(FreeTable()),
            "Which probers were run, and why the others were not",
            always=True,
            nullable=False,
            empty=[],
            fields=DECISION,
            shape="decision",
        ),
        F(
            "fallback",
            FALLBACK,
            "null when an accelerator is primary; no-accelerator when there is none; degraded when"
            " something failed, so that there may be one",
            always=True,
        ),
        F(
            "findings",
            Items(FreeTable()),
            "What a person should know, worst first",
            always=True,
            nullable=False,
            empty=[],
            fields=FINDING,
            shape="finding",
        ),
        F(
            "timings_ms",
            TableOf(Number()),
            "Milliseconds per step, and their total",
            unit="milliseconds",
            always=True,
            nullable=False,
            empty={},
        ),
        F(
            "asked",
            TableOf(FreeTable()),
            "Runtime to what it itself showed, where the user allowed to open devices",
        ),
    )
)
"""Name to field, in the document's order."""


# THE table of a sample's fields: what a live figure must be to be believed.
#
# A new figure is an entry here and a key in `sample_document`; validation, the order in a sample
# and
# the reference page follow from this, or are tested equal to it.

STATUSES: dict[str, str] = {
    "ok": "the device was asked and answered",
    "asleep": "the device sleeps and was not asked, because that would wake it",
    "unresponsive": "asking the device hung or killed its prober's process",
    "unavailable": "the device could not be asked, see `reason`",
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
    (
        F("used", _BYTES, "What cannot be allocated now", unit="bytes"),
        F("total", _BYTES, "All there is", unit="bytes"),
    )
)
_CLOCKS = by_name(
    (
        F("sm", _MHZ, "Clock of the compute units", unit="MHz"),
        F("memory", _MHZ, "Clock of the memory", unit="MHz"),
    )
)
_ACTIVITY = by_name(
    (
        F("sm", _RATIO, "Share of time, averaged over all compute units, in which one worked"),
        F("tensor", _RATIO, "Share of the matrix units' peak that was reached"),
        F("memory", _RATIO, "Share of the memory's cycles that moved data"),
    )
)
_PRESSURE = by_name(
    (
        F("cpu", _RATIO, "Share of the last 10 s in which a task waited for a processor"),
        F("memory", _RATIO, "The same for memory"),
        F("io", _RATIO, "The same for storage"),
    )
)
_LINK = by_name(
    (
        F("kind", Word(), "pcie, nvlink, ethernet, infiniband …"),
        F("name", Text(), "The system's name of it: eth0"),
        F("generation", Number(1, 10, whole=True), "PCIe generation of now; 1 is normal when idle"),
        F("width", Number(1, 32, whole=True), "Lanes of now"),
        F("received", _RATE, "What came in since the last round", unit="bytes/s"),
        F("sent", _RATE, "What went out since the last round", unit="bytes/s"),
    )
)
_PROCESS = by_name(
    (
        F("pid", _PID, "Process id, as this machine counts"),
        F("user", Text(), "User's name, else the number"),
        F("memory", _BYTES, "Memory of the device that it holds", unit="bytes"),
    )
)

SAMPLE_FIELDS = by_name(
    (
        F("busy", _RATIO, "Share of the last second or less in which the device worked at all"),
        F(
            "activity",
            FreeTable(),
            "How much of the peak is reached; only where the hardware counts it",
            fields=_ACTIVITY,
        ),
        F("memory", FreeTable(), "The device's memory", fields=_MEMORY),
        F("temperature_c", _CELSIUS, "Temperature of the chip", unit="°C"),
        F("power_w", _WATTS, "Power drawn", unit="W"),
        F("power_cap_w", _WATTS, "Power that the driver keeps it below", unit="W"),
        F("clocks_mhz", FreeTable(), "Clocks of now", fields=_CLOCKS),
        F(
            "throttled",
            Items(Word()),
            "Why the clock is lower than it could be: power, thermal, idle …; empty when it is not",
        ),
        F(
            "links",
            Items(FreeTable()),
            "Links with their rates",
            fields=_LINK,
            empty=[],
            nullable=False,
        ),
        F(
            "processes",
            Items(FreeTable(), limit=1024),
            "Processes that use the device; empty when there is none",
            fields=_PROCESS,
        ),
        F("pressure", FreeTable(), "What tasks wait for (Linux PSI)", fields=_PRESSURE),
    )
)
"""Name to field, in the order of a sample. `device`, `prober`, `status`, `reason` and `unknown`
frame them."""
