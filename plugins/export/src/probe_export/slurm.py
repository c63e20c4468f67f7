"""Slurm: the lines of gres.conf and the Gres of slurm.conf's NodeName.

slurmd is strict: a file that does not exist or a line without a type beside lines with one ends it,
a type that differs from slurm.conf's gives a node without GPUs. So a device whose node in /dev is
not known is left out with a comment, and both files come from one list.
"""

from __future__ import annotations

from probe_export.capacity import by_model, capacity, cause, missing, node_of
from probe_export.labels import label_value, slurm_type
from probe_export.slurm_cpus import cores_near, node_keys
from probe_export.stable import stable_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc

__all__ = ["export"]

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
    lines += [f"# left out, {_gap(d)}: {names[d['id']]}" for d in devices if d not in usable]
    lines += [f"# left out, {cause(d)}: {names[d['id']]}" for d in missing(report)]
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
    caps = [path for path in device.get("nodes") or () if path.startswith(_CAPS)]
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
