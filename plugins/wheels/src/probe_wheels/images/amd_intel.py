"""Steps for GPUs of AMD and Intel, whose user space is the image's: groups, ROCm, Level Zero."""

from __future__ import annotations

from probe_wheels.images.steps import NO, UNKNOWN, Step
from probe_wheels.images.users import groups_of
from probe_wheels.rules import IMAGES, text_of, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from probe_wheels.devices import Gpu
    from probe_wheels.images.contents import Contents
    from probe_wheels.images.nodes import Node

_FIX_GROUP = "start it with --group-add {group}, or as root"


def group_steps(contents: Contents, node: Node, device: str) -> Iterator[Step]:
    """Yield whether the image's user may open the device nodes, which belong to a number."""
    if contents.image.kind == "sif":
        text = node.group if node.group is not None else "of the device"
        reason = f"Apptainer runs it as who starts it, whom {device} must admit (group {text})"
        yield Step("groups", UNKNOWN, reason, "", f"look with `test -w {device}` on the node")
        return
    user, _, group = contents.image.config.user.partition(":")
    if user in ("", "0", "root"):
        return
    if node.group is None:
        reason = f"the group of {device} is not recorded, and the image's user is {user}"
        fix = f"start it with --group-add and the number of `stat -c %g {device}`"
        yield Step("groups", UNKNOWN, reason, "User", fix)
        return
    own, listed = groups_of(contents, user, group)
    if node.group in own or (node.group in listed and not group):
        return
    if node.group in listed:
        reason = (
            f"the image's user {user}:{group} is in group {node.group} of {device} by /etc/group"
            " alone: Kubernetes counts that, and Docker, with a group in User, does not"
        )
        yield Step("groups", UNKNOWN, reason, "User", _FIX_GROUP.format(group=node.group))
        return
    reason = f"{device} belongs to group {node.group}, and the image's user {user} is not in it"
    yield Step("groups", NO, reason, "User", _FIX_GROUP.format(group=node.group))


def pairing_steps(contents: Contents, node: Node) -> Iterator[Step]:
    """Yield whether AMD supports the image's ROCm on the node's kernel driver."""
    if not contents.rocm:
        yield Step("driver", UNKNOWN, "the version of ROCm in the image is unknown")
        return
    rocm = text_of(contents.rocm)
    row = IMAGES["pairing"].get(node.rocm or "")
    if row is None:
        reason = f"which ROCm the node's kernel driver belongs to is unknown; the image has {rocm}"
        fix = "a driver of the kernel's own tree is in no table of AMD"
        yield Step("driver", UNKNOWN, reason, "/opt/rocm/.info/version", fix)
    elif not version_of(row[0]) <= contents.rocm[:2] <= version_of(row[1]):
        reason = (
            f"AMD supports ROCm {row[0]} to {row[1]} on the node's driver (of {node.rocm}), and"
        )
        reason += f" the image has {rocm}"
        yield Step("driver", UNKNOWN, reason, "/opt/rocm/.info/version")


def intel_steps(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    missing = _missing(contents, "libraries")
    # What has no code of its own (OpenVINO) compiles by OpenCL as well.
    if missing and (contents.is_sycl or _missing(contents, "opencl")):
        fix = "install Intel's compute runtime in the image (intel-opencl-icd, libze1)"
        yield Step("runtime", NO, f"Level Zero needs {missing}, which is not in it", "", fix)
        return
    if set(gpu.families) & set(IMAGES["intel"]["new"]):
        reason = f"whether the image's compute runtime knows {gpu.target} is unknown"
        yield Step("runtime", UNKNOWN, reason)


def _missing(contents: Contents, key: Literal["libraries", "opencl"]) -> str:
    """Return the first library of an interface that the image has not, "" where it has all."""
    names: list[str] = IMAGES["intel"][key]
    return next((n for n in names if not any(own.startswith(n) for own in contents.names)), "")
