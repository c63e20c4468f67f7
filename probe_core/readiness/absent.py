"""Why a device node is not there: what the container lacks, or what the host has not made."""

from __future__ import annotations

from probe_core.machine.access import MISSING
from probe_core.readiness.needs import KFD, UVM
from probe_core.readiness.steps import broken, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

__all__ = ["absent", "created_on_demand"]

_STEP = "node"
_BY_CONTAINER = {
    "flatpak": "flatpak",
    "snap": "snap",
    "kubernetes": "pod-without-gpu",
    "lxc": "lxc-device-missing",
}
_HIDING = ("none", "void")
_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
_MOUNTS = "/proc/self/mounts"
_HELPER = "/usr/bin/nvidia-modprobe"


def absent(device: DeviceDoc, scene: Scene, states: Mapping[str, str]) -> StepDoc:
    """Return the step of a device of whose nodes at least one is missing."""
    missing = [path for path, state in states.items() if state == MISSING]
    evidence = f"{', '.join(missing)}: missing"
    if missing == [KFD]:
        return _without_kfd(scene, evidence)
    if scene.container is not None:
        code, reason = _container_cause(device, scene, missing == [UVM] and len(states) > 1)
        return broken(_STEP, code, f"{evidence}; {reason}")
    if _is_sandboxed(scene):
        text = f"{evidence}; /proc/self/mounts: /dev is a tmpfs; {scene.service} runs this"
        return broken(_STEP, "service-without-devices", text)
    if scene.driver(device) == "nvidia":
        return _nvidia_host(scene, missing, evidence)
    return broken(_STEP, "node-missing", evidence)


def _container_cause(device: DeviceDoc, scene: Scene, uvm_alone: bool) -> tuple[str, str]:
    kind = scene.container or ""
    reason = f"this is a container ({kind})"
    if kind in _BY_CONTAINER:
        return _BY_CONTAINER[kind], reason
    if uvm_alone:
        return "uvm-missing", reason
    # Every CDI specification sets "void": it is a cause only where no node is there.
    value = scene.environ.get(_VARIABLE)
    if device["vendor"] == "nvidia" and value in _HIDING:
        return "hidden-by-container", f"{_VARIABLE}={value}"
    return "container-without-gpus", reason


def _is_sandboxed(scene: Scene) -> bool:
    """Return whether systemd gave a service a /dev of its own (PrivateDevices=, systemd.exec(5)).

    The kernel's is a devtmpfs.
    """
    if scene.service is None:
        return False
    lines = (scene.machine.read(_MOUNTS) or "").splitlines()
    kinds = [
        fields[2] for line in lines if (fields := line.split())[1:2] == ["/dev"] and fields[2:]
    ]
    return kinds[-1:] == ["tmpfs"]


def _without_kfd(scene: Scene, evidence: str) -> StepDoc:
    """The render node is there: Vulkan works, ROCm does not."""
    if scene.machine.exists("/sys/class/kfd"):
        where = f"this is a container ({scene.container})" if scene.container else "/sys has it"
        return broken(_STEP, "kfd-missing", f"{evidence}; {where}")
    if not scene.machine.exists("/sys/class/drm"):
        return unknown(_STEP, f"{evidence}; /sys/class is not there")
    return broken(_STEP, "kfd-missing", f"{evidence}; /sys/class/kfd is absent")


def _nvidia_host(scene: Scene, missing: list[str], evidence: str) -> StepDoc:
    if created_on_demand(scene):
        return unknown(_STEP, f"{evidence}; the first program that uses the GPU makes them")
    return broken(_STEP, "uvm-missing" if missing == [UVM] else "node-missing", evidence)


def created_on_demand(scene: Scene) -> bool:
    """Return whether NVIDIA's nodes come with the first use: by root, or by its setuid helper.

    In a container neither can load a module of the host, nor pass a node in.
    """
    if scene.container is not None:
        return False
    return scene.machine.exists(_HELPER) or scene.process.user == 0
