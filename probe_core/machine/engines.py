"""How a container of each engine is given a device: by its own option, or by NVIDIA's toolkit."""

from __future__ import annotations

from probe_core.machine.surroundings import cgroup_kind

# (vendor, engine) to how a container is given the device; "" stands for any vendor, and for an
# engine that nothing names. Docker and podman manuals, nvidia-container-toolkit (CDI), ROCm
# "Running ROCm Docker containers"; the others' own options, so that none is told of Docker's.
_OPTIONS = {
    ("", "kubernetes"): "the device in `resources.limits`",
    ("", "lxc"): "`lxc.mount.entry` and `lxc.cgroup2.devices.allow` for its nodes",
    ("", "flatpak"): "`--device=all`",
    ("", "snap"): "its `opengl` interface connected",
    ("jetson", "apptainer"): "`apptainer exec --nv`",
    ("nvidia", ""): "`--gpus all`, or CDI: `--device nvidia.com/gpu=all`",
    ("nvidia", "docker"): "`docker run --gpus all`, or CDI: `--device nvidia.com/gpu=all`",
    ("nvidia", "podman"): "`podman run --device nvidia.com/gpu=all` (CDI)",
    ("nvidia", "systemd-nspawn"): "`systemd-nspawn --bind=/dev/nvidia0 --bind=/dev/nvidiactl"
    " --bind=/dev/nvidia-uvm`, and DeviceAllow= for them",
    ("amd", ""): "`--device=/dev/kfd --device=/dev/dri`",
    # By number: Docker looks a name up in the image, and ends with "Unable to find group render".
    ("amd", "docker"): "`docker run --device=/dev/kfd --device=/dev/dri"
    " --group-add $(stat -c %g /dev/kfd)`",
    ("amd", "podman"): "`podman run --device=/dev/kfd --device=/dev/dri --group-add keep-groups`",
    ("amd", "systemd-nspawn"): "`systemd-nspawn --bind=/dev/kfd --bind=/dev/dri`, and DeviceAllow=",
    ("", ""): "`--device={node}`",
    ("nvidia", "apptainer"): "`apptainer exec --nv`",
    ("amd", "apptainer"): "`apptainer exec --rocm`",
    ("jetson", ""): "`--runtime nvidia`, or CDI: `--device nvidia.com/gpu=all`",
    ("jetson", "docker"): "`docker run --runtime nvidia`",
    ("jetson", "podman"): "`podman run --device nvidia.com/gpu=all` (CDI)",
    ("gaudi", ""): "`--device={node}`",
    ("gaudi", "docker"): "`docker run --runtime=habana -e HABANA_VISIBLE_DEVICES=all`",
    ("", "apptainer"): "`apptainer exec --bind {node}`",
    ("", "docker"): "`docker run --device={node}`",
    ("", "podman"): "`podman run --device={node} --group-add keep-groups`",
    ("", "systemd-nspawn"): "`systemd-nspawn --bind={node}`, and DeviceAllow= for it",
}


def option(vendor: str, engine: str) -> str:
    """Return how a container of an engine is given a vendor's device, with ``{node}``."""
    known = vendor if (vendor, "") in _OPTIONS else ""
    by_engine = _OPTIONS.get((known, engine)) or _OPTIONS.get(("", engine))
    return by_engine or _OPTIONS[known, ""]


# How a limit of a control group is raised, by who made the group: docker-run(1), podman-run(1),
# sbatch(1), systemd.resource-control(5), Kubernetes' "Resource Management for Pods".

_RAISED = {
    ("memory", ""): "`docker run --memory`, or `MemoryMax=` of the systemd unit",
    ("memory", "docker"): "`docker run --memory`",
    ("memory", "podman"): "`podman run --memory`",
    ("memory", "slurm"): "`sbatch --mem`, or `--mem-per-gpu`",
    ("memory", "kubernetes"): "`resources.limits.memory` of the container",
    ("memory", "system"): "`MemoryMax=` of the systemd unit",
    ("cpu", ""): "`docker run --cpus --cpuset-cpus`, or `CPUQuota=` and `AllowedCPUs=` of the"
    " systemd unit",
    ("cpu", "docker"): "`docker run --cpus --cpuset-cpus`",
    ("cpu", "podman"): "`podman run --cpus --cpuset-cpus`",
    ("cpu", "slurm"): "`sbatch --cpus-per-task`, or `--cpus-per-gpu`",
    ("cpu", "kubernetes"): "`resources.limits.cpu` of the container",
    ("cpu", "system"): "`CPUQuota=` and `AllowedCPUs=` of the systemd unit",
}


def raised(controller: str, file: str, engine: str | None) -> str:
    """Return how the limit in a control group's `file` is raised.

    `engine` is the container that the process is in: within a namespace of control groups, as pods
    and podman's containers have, no path names who made the group.
    """
    for maker in (cgroup_kind(f"0::{file}"), engine):
        if known := _RAISED.get((controller, maker or "")):
            return known
    return _RAISED[controller, ""]


# What the configuration of nvidia-container-toolkit says.

TOOLKIT = "/etc/nvidia-container-runtime/config.toml"
OPERATOR_ROOT = "/run/nvidia/driver"
_SECTION, _KEY = "nvidia-container-runtime", "mode"
_MODES = ("auto", "legacy", "cdi", "jit-cdi", "csv")
"""The modes of nvidia-container-toolkit 1.20.0, internal/info/resolver.go and internal/modifier."""


def mode_of_toolkit(text: str) -> str:
    """Return the mode that a configuration fixes, "auto" included; "" for none that is known."""
    value = _of_toolkit(text, _SECTION, _KEY)
    return value if value in _MODES else ""


def driver_of_operator(text: str) -> bool:
    """Return whether a configuration looks for the driver where NVIDIA's operator puts its own."""
    return _of_toolkit(text, "nvidia-container-cli", "root").rstrip("/") == OPERATOR_ROOT


def _of_toolkit(text: str, section: str, key: str) -> str:
    """Return the text that a configuration has for a key; "" without one."""
    if not text:
        return ""
    import tomllib

    try:
        table = tomllib.loads(text).get(section)
    except (ValueError, RecursionError):
        return ""
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, str) else ""
