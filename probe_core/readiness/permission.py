"""Step `permission`: whether mode, access list and security module let this process open the nodes.

access(2) is asked, never names: in a user namespace a group that was kept reads 65534 and counts.
"""

from __future__ import annotations

from probe_core.machine.access import MISSING, OK, mode_allows, status
from probe_core.readiness.chain import broken, not_applicable, ok, unknown
from probe_core.readiness.node import NVIDIA_CAPS, despite, required, set_aside
from probe_core.readiness.scene import OVERFLOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "permission"

# What the cgroup refuses has passed mode and access list: they are asked first.
_PASSED = (OK, "EPERM")


def permission(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return not_applicable(_STEP, f"{scene.machine.os} has no device nodes")
    paths = [path for path in required(device, scene) if not path.startswith(NVIDIA_CAPS)]
    states = {path: scene.access(path) for path in paths}
    refused = [p for p, state in states.items() if state == "EACCES" and p not in scene.opened]
    if refused:
        scene.load("broken")
        code, evidence = cause(refused[0], scene)
        return broken(_STEP, code, evidence)
    if closed := set_aside(states, ("EACCES",), scene):
        return despite(_STEP, closed, scene)
    if not paths:
        return unknown(_STEP, "which node its programs open is not known")
    # Whether an absent node may be absent is the step before: this one is about those there are.
    there = [path for path, state in states.items() if state != MISSING]
    if not there:
        return not_applicable(_STEP, "no node is there yet")
    if all(states[path] in _PASSED or path in scene.opened for path in there):
        return ok(_STEP, f"access(2) allows {', '.join(there)}")
    return unknown(_STEP, "a recording does not say who may open a node")


# Why this process may not open a node whose mode, access list or security module refuses (EACCES).
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
