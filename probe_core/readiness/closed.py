"""Why this process cannot open a device node: it is not there, or it is refused.

The other half of the steps `node` and `permission`, which need it for such nodes alone.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.machine.access import MISSING, mode_allows, status
from probe_core.machine.surroundings import MOUNTS
from probe_core.readiness.chain import broken, ok, unknown
from probe_core.readiness.node import KFD, UVM

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_NODE = "node"

# Why a node is not there: what the container lacks, or what the host has not made.

_BY_CONTAINER = {
    "flatpak": "flatpak",
    "snap": "snap",
    "kubernetes": "pod-without-gpu",
    "lxc": "lxc-device-missing",
}
_HIDING = ("none", "void")
_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
_HELPER = "/usr/bin/nvidia-modprobe"


def absent(device: DeviceDoc, scene: Scene, states: Mapping[str, str]) -> StepDoc:
    """Return the step of a device of whose nodes at least one is missing."""
    missing = [path for path in states if states[path] == MISSING and path not in scene.opened]
    evidence = f"{', '.join(missing)}: missing"
    if missing == [KFD] and scene.driver(device) == "amdgpu":
        return _without_kfd(scene, evidence)
    if scene.container is not None:
        code, reason = _container_cause(device, scene, missing, len(states))
        return broken(_NODE, code, f"{evidence}; {reason}")
    if _is_sandboxed(scene):
        text = f"{evidence}; /proc/self/mounts: /dev is a tmpfs; {scene.service} runs this"
        return broken(_NODE, "service-without-devices", text)
    if scene.driver(device) == "nvidia":
        return _nvidia_host(scene, missing, evidence)
    return broken(_NODE, "node-missing", evidence)


def _container_cause(
    device: DeviceDoc, scene: Scene, missing: Sequence[str], total: int
) -> tuple[str, str]:
    """Return code and reason; `missing` are those of `total` nodes."""
    kind = scene.container or ""
    reason = f"this is a container ({kind})"
    if kind in _BY_CONTAINER:
        return _BY_CONTAINER[kind], reason
    if missing == [UVM] and total > 1:
        return "uvm-missing", reason
    # Every CDI specification sets "void": it is a cause only where no node is there.
    value = scene.environ.get(_VARIABLE)
    if device["vendor"] == "nvidia" and value in _HIDING and len(missing) == total:
        return "hidden-by-container", f"{_VARIABLE}={value}"
    return "container-without-gpus", reason


def _is_sandboxed(scene: Scene) -> bool:
    """Return whether systemd gave a service a /dev of its own (PrivateDevices=, systemd.exec(5)).

    The kernel's is a devtmpfs.
    """
    if scene.service is None:
        return False
    lines = (scene.machine.read(MOUNTS) or "").splitlines()
    kinds = [
        fields[2] for line in lines if (fields := line.split())[1:2] == ["/dev"] and fields[2:]
    ]
    return kinds[-1:] == ["tmpfs"]


def _without_kfd(scene: Scene, evidence: str) -> StepDoc:
    """The render node is there: Vulkan works, ROCm does not."""
    if scene.machine.exists("/sys/class/kfd"):
        where = f"this is a container ({scene.container})" if scene.container else "/sys has it"
        return broken(_NODE, "kfd-missing", f"{evidence}; {where}")
    if not scene.machine.exists("/sys/class/drm"):
        return unknown(_NODE, f"{evidence}; /sys/class is not there")
    return broken(_NODE, "kfd-missing", f"{evidence}; /sys/class/kfd is absent")


def _nvidia_host(scene: Scene, missing: list[str], evidence: str) -> StepDoc:
    if created_on_demand(scene):
        return ok(_NODE, f"{evidence}; the first program that uses the GPU makes them")
    return broken(_NODE, "uvm-missing" if missing == [UVM] else "node-missing", evidence)


def created_on_demand(scene: Scene) -> bool:
    """Return whether NVIDIA's nodes come with the first use: by root, or by its setuid helper.

    In a container neither can load a module of the host, nor pass a node in.
    """
    if scene.container is not None:
        return False
    return scene.machine.exists(_HELPER) or scene.process.user == 0


# Why a node is refused (EACCES): its mode, its access list or a security module.
#
# `usermod` helps in one case of five, so the cause decides the fix.

_SELINUX = "/sys/fs/selinux/enforce"
_LABEL = "/proc/self/attr/current"

# udev's rule 50-udev-default gives kfd, accel and render nodes to `render`, others to `video`;
# systems without the group `render` give them all to `video`.
_USUAL_GROUPS = ("render", "video")
_OF_RENDER = ("/dev/kfd", "/dev/dri/renderD", "/dev/accel/")

Reason = tuple[str, str]
"""Code and evidence."""


def cause(path: str, scene: Scene) -> Reason:
    """Return why `path` is refused."""
    node = status(scene.machine, path)
    evidence = f"access(2) of {path}: EACCES"
    if node is None:
        return _without_mode(path, scene, evidence)
    process = scene.process
    evidence += f"; mode {node.st_mode & 0o777:04o}, owner {node.st_uid}:{node.st_gid}"
    if process.mapped and OVERFLOW in (node.st_gid, node.st_uid):
        return "userns-group-lost", f"{evidence}; /proc/self/uid_map is not the host's"
    if process.user is not None and mode_allows(node, process.user, process.groups):
        return _module_refuses(scene, f"{evidence}, which allows this process")
    return _not_a_member(path, node, scene, evidence)


def _not_a_member(path: str, node: os.stat_result, scene: Scene, evidence: str) -> Reason:
    group = next(
        (
            (name, listed)
            for name, (number, listed) in scene.process.listed_groups().items()
            if number == node.st_gid
        ),
        None,
    )
    opens_for_group = node.st_mode >> 3 & 6 == 6 and node.st_gid != 0
    if group and group[1] and opens_for_group:
        return "group-not-active", f"{evidence}; /etc/group lists the user in {group[0]}"
    if not opens_for_group or path.startswith("/dev/nvidia"):
        return "no-permission", evidence + _nvidia_mode(path, scene)
    if "SSH_CONNECTION" in scene.environ and _has_list(path, scene):
        return "ssh-no-seat", f"{evidence}; its access list names another user"
    return "not-in-group", f"{evidence}; this process is not in group {node.st_gid}"


def _has_list(path: str, scene: Scene) -> bool:
    """Return whether logind gave the node to the user at the screen (udev's `uaccess`)."""
    import os

    try:
        return bool(os.getxattr(scene.machine.path(path), "system.posix_acl_access"))
    except (AttributeError, OSError):
        return False


def _module_refuses(scene: Scene, evidence: str) -> Reason:
    if scene.machine.read(_SELINUX, 16) == "1":
        label = scene.machine.read(_LABEL, 256)
        return "selinux-denies", f"{evidence}; {_SELINUX} is 1" + (f", {label}" if label else "")
    return "no-permission", f"{evidence}; an access list or a security module refuses"


def _without_mode(path: str, scene: Scene, evidence: str) -> Reason:
    """Tell the cause in a recording, which has no mode and owner of the node."""
    process = scene.process
    if process.mapped:
        return "userns-group-lost", f"{evidence}; /proc/self/uid_map is not the host's"
    label = scene.machine.read(_LABEL, 256) or ""
    if scene.machine.read(_SELINUX, 16) == "1" and ":container_t:" in label:
        return "selinux-denies", f"{evidence}; {_SELINUX} is 1, {label}"
    if path.startswith("/dev/nvidia"):
        return "no-permission", evidence + _nvidia_mode(path, scene)
    listed = process.listed_groups()
    group = next((name for name in _likely_groups(path) if name in listed), None)
    if group is None or listed[group][0] in process.groups:
        return "no-permission", evidence
    if listed[group][1]:
        return "group-not-active", f"{evidence}; /etc/group lists the user in {group}"
    return "not-in-group", f"{evidence}; this process is not in group {group}"


def _likely_groups(path: str) -> tuple[str, ...]:
    """Return the names of the groups that a node may belong to, the likeliest first."""
    if path.startswith(_OF_RENDER):
        return _USUAL_GROUPS
    group = group_of_row(path)
    return (group,) if group else _USUAL_GROUPS[::-1]


def group_of_row(path: str) -> str | None:
    """Return the group that the vendor of an accelerator beside GPUs gives its nodes to."""
    from probe_core.readiness.driver_nodes import group_of

    return group_of(path)


def _nvidia_mode(path: str, scene: Scene) -> str:
    """Return what NVIDIA's module was told of its nodes' mode: 438 is 0666, the default."""
    names = ("DeviceFileUID", "DeviceFileGID", "DeviceFileMode")
    parameters = [
        f"{name} {scene.nvidia_params[name]}" for name in names if name in scene.nvidia_params
    ]
    if not path.startswith("/dev/nvidia") or not parameters:
        return ""
    return f"; /proc/driver/nvidia/params: {', '.join(parameters)}"


def groups_of(path: str, scene: Scene) -> str:
    """Return the name of the group to join for a node; the usual ones where it is not known."""
    node = status(scene.machine, path)
    for name, (number, _) in scene.process.listed_groups().items():
        if node is not None and number == node.st_gid and number != 0:
            return name
    if node is not None and node.st_gid not in (0, OVERFLOW):
        return str(node.st_gid)
    return group_of_row(path) or "render"


# The process that is judged: its user, its groups, and whether a user namespace maps them.
#
# Groups are the process's own, not those of /etc/group: after `usermod` an old login lacks them.

OVERFLOW = 65534
"""What a user or group outside the namespace's map reads as (kernel.overflowuid)."""

_WHOLE = ["0", "0", "4294967295"]


class Process:
    """Who runs this; numbers are None, and `groups` empty, where /proc cannot be read.

    `groups` holds the primary group too. `mapped` says that this is a user namespace other than
    the first one.
    """

    __slots__ = ("_machine", "groups", "mapped", "user")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        lines = _lines(machine.read("/proc/self/status", 16 << 10) or "")
        users, groups = _numbers(lines.get("Uid", "")), _numbers(lines.get("Gid", ""))
        self.user = users[0] if users else None
        self.groups = {*groups[:1], *_numbers(lines.get("Groups", ""))}
        first = (machine.read("/proc/self/uid_map", 4096) or "").split("\n")[0].split()
        self.mapped = len(first) == 3 and first != _WHOLE

    @property
    def name(self) -> str | None:
        """The user's name in /etc/passwd."""
        for line in (self._machine.read("/etc/passwd") or "").splitlines():
            name, _, numbers = line.partition(":")
            fields = numbers.split(":")
            if len(fields) > 1 and self.user is not None and fields[1] == str(self.user):
                return name
        return None

    def listed_groups(self) -> dict[str, tuple[int, bool]]:
        """Return /etc/group: name to (number, whether it lists this user)."""
        user = self.name
        groups = {}
        for line in (self._machine.read("/etc/group") or "").splitlines():
            name, *fields = line.split(":")
            number = decimal(fields[1]) if len(fields) > 2 else None
            if number is not None:
                groups[name] = (number, user is not None and user in fields[2].split(","))
        return groups


def _lines(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value for name, _, value in pairs}


def _numbers(text: str) -> list[int]:
    return [number for part in text.split() if (number := decimal(part)) is not None]
