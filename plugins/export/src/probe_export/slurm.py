"""Slurm: the lines of gres.conf and the Gres of slurm.conf's NodeName.

slurmd is strict: a file that does not exist or a line without a type beside lines with one ends it,
a type that differs from slurm.conf's gives a node without GPUs. So a device whose node in /dev is
not known is left out with a comment, and both files come from one list.

Slurm counts *logical* cores (hwloc's L#), socket by socket. Where packages differ, or a package has
several NUMA nodes, that order is not known here, and nothing is written: a wrong core drains.
"""

from __future__ import annotations

from probe_core.model.ids import whole
from probe_export.capacity import (
    by_model,
    capacity,
    cause,
    label_value,
    missing,
    node_of,
    of_unknown_state,
    set_aside,
    slurm_type,
    stable_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc


_NODES = {"nvidia": "/dev/nvidia", "amd": "/dev/dri/renderD", "intel": "/dev/dri/renderD"}
_FLAGS = {"amd": "amd_gpu_env", "intel": "intel_gpu_env"}
"""Without a flag slurmd sets the variables of all vendors together."""

_MAX_HOST = 64
"""Characters of a host name: HOST_NAME_MAX of Linux."""

_CAPS = "/dev/nvidia-caps/nvidia-cap"


def export(report: ReportDoc) -> str:
    """Return both: gres.conf as lines, slurm.conf's part as comments to be copied."""
    names = stable_names(report["devices"])
    devices = [device for device in capacity(report) if device["kind"] == "gpu"]
    usable = [device for device in devices if _files(device) and slurm_type(device)]
    counts = by_model(usable, slurm_type)
    gres = ",".join(f"gpu:{name}:{len(own)}" for name, own in counts.items())
    gres = gres and f"Gres={gres}"
    node = _node_name(report["node"]["host"] or "")
    lines = [
        "# gres.conf of this node, from `probe export slurm`. slurm.conf needs:",
        "#   GresTypes=gpu",
        "#   " + " ".join(filter(None, [f"NodeName={node}", gres, node_keys(report)])),
        "AutoDetect=off",
    ]
    lines += [_line(device, usable, cores_near(device, report)) for device in usable]
    lines += [
        f"# whether a job can use it is not known: {names[device['id']]}"
        for device in of_unknown_state(report)
        if device in usable
    ]
    lines += [f"# left out, {_gap(d)}: {names[d['id']]}" for d in devices if d not in usable]
    useless = [*missing(report), *set_aside(report)]
    lines += [f"# left out, {cause(device)}: {names[device['id']]}" for device in useless]
    return "".join(f"{line}\n" for line in lines)


def _gap(device: DeviceDoc) -> str:
    """Return why a GPU that works has no line."""
    if device["vendor"] not in _NODES:
        return f"Slurm has no GPUs of {label_value(device['vendor'] or '') or 'an unknown vendor'}"
    return f"its {'name' if _files(device) else 'node in /dev'} is not known"


def _node_name(host: str) -> str:
    """Return the short name, which slurmd compares; a placeholder where it is not known."""
    short = host.partition(".")[0]
    is_plain = short.isascii() and short.replace("-", "a").replace("_", "a").isalnum()
    return short if is_plain and len(short) <= _MAX_HOST else "NODENAME"


def _line(device: DeviceDoc, usable: Sequence[DeviceDoc], cores: str) -> str:
    files = _files(device)
    key = "File" if len(files) == 1 else "MultipleFiles"
    parts = ["Name=gpu", f"Type={slurm_type(device)}", f"{key}={','.join(files)}"]
    if cores:
        parts.append(f"Cores={cores}")
    if links := _links(device, usable):
        parts.append(f"Links={links}")
    if flag := _FLAGS.get(device["vendor"] or ""):
        parts.append(f"Flags={flag}")
    return " ".join(parts)


def _files(device: DeviceDoc) -> list[str]:
    """Return the nodes that stand for the device: its own, and a MIG instance's capabilities."""
    own = node_of(device, _NODES.get(device["vendor"] or "", "\0"))
    nodes = device.get("nodes") or ()
    caps = [n for n in nodes if n.startswith(_CAPS) and n[len(_CAPS) :].isdecimal()]
    if own is None or (device["parent"] and not caps):
        return []
    return [own, *caps]


def _links(device: DeviceDoc, usable: Sequence[DeviceDoc]) -> str:
    """Return the number of links to each GPU in their order, -1 for itself; "" without any."""
    if device["parent"]:
        return ""
    peers: dict[str, int] = {}
    for link in device["links"]:
        peer, count = link.get("peer"), link.get("count")
        if link["kind"] in ("nvlink", "xgmi") and peer and count:
            peers[peer] = peers.get(peer, 0) + count
    # Links to switches lead to every GPU, in numbers that no report has.
    if not any(peers.get(other["id"]) for other in usable):
        return ""
    own = device["id"]
    return ",".join("-1" if d["id"] == own else str(peers.get(d["id"], 0)) for d in usable)


# The processors of a node in Slurm's words: sockets, cores, threads, and the cores near a GPU.

_MIB = 1 << 20
_ROOM = 100
"""One part of so many of the memory is left out: slurmd drains a node that has less than
RealMemory, and the kernel's own share differs from start to start."""


def node_keys(report: ReportDoc) -> str:
    """Return ``Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=…`` as far as known."""
    parts = []
    if layout := _layout(report):
        parts = [
            f"Sockets={layout[0]}",
            f"CoresPerSocket={layout[1]}",
            f"ThreadsPerCore={layout[2]}",
        ]
    memory = report["node"]["memory"]["total"]
    if memory is not None:
        parts.append(f"RealMemory={(memory - memory // _ROOM) // _MIB}")
    return " ".join(parts)


def cores_near(device: DeviceDoc, report: ReportDoc) -> str:
    """Return the logical cores of the GPU's own socket, ``16-31``; "" where that is not sure."""
    layout, packages = _layout(report), _packages(report)
    nodes = [package.get("numa_node") for package in packages]
    own = device.get("numa_node")
    split = any(package.get("numa_nodes") for package in packages)
    if layout is None or len(packages) < 2 or split or len(set(nodes)) != len(nodes):
        return ""
    if own is None or own not in nodes:
        return ""
    first = nodes.index(own) * layout[1]
    return f"{first}-{first + layout[1] - 1}"


def _packages(report: ReportDoc) -> list[DeviceDoc]:
    packages = [device for device in report["devices"] if device["id"].startswith("cpu:")]
    return sorted(packages, key=lambda device: (len(device["id"]), device["id"]))


def _layout(report: ReportDoc) -> tuple[int, int, int] | None:
    """Return sockets, cores a socket and threads a core; None where packages differ."""
    packages = _packages(report)
    shapes = {(whole(package, "units"), whole(package, "threads")) for package in packages}
    if len(shapes) != 1 or any((package.get("cpu") or {}).get("clusters") for package in packages):
        return None
    cores, threads = shapes.pop()
    if not cores or not threads or threads % cores:
        return None
    return len(packages), cores, threads // cores
