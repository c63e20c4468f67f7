"""The tables of the node's fields: the machine itself, its memory, and its links to others."""

from __future__ import annotations

from probe_core.model.field import Field as F
from probe_core.model.field import by_name
from probe_core.model.values import FreeTable, Items, Number, Text

__all__ = ["NETWORK", "NODE", "NODE_MEMORY"]

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
            "kubernetes, docker, podman, lxc, systemd-nspawn, flatpak, snap or container; null in"
            " none that shows itself",
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
