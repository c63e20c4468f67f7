"""Causes on the way to the device: its nodes, their permissions, the driver's library."""

from __future__ import annotations

from probe_core.model.cause import blocks, intended, limits

__all__ = ["LIBRARY", "NODE", "PERMISSION"]

NODE = (
    blocks(
        "node-missing",
        "a device node is missing",
        "`ls -l {node}`",
        "`nvidia-modprobe -c 0 -u` creates NVIDIA's nodes; udev creates all others",
    ),
    blocks(
        "uvm-missing",
        "CUDA needs /dev/nvidia-uvm, which is missing or has no driver",
        "`ls -l /dev/nvidia-uvm; lsmod | grep nvidia_uvm`",
        "on the host: `nvidia-modprobe -u -c 0`; pass /dev/nvidia-uvm to the container",
    ),
    blocks(
        "service-without-devices",
        "{service} runs with a /dev of its own, without its device nodes",
        "`systemctl show {service} -p PrivateDevices -p DevicePolicy -p DeviceAllow`",
        "`sudo systemctl edit {service}`: `[Service]`, `PrivateDevices=no`; then restart it",
    ),
    blocks(
        "node-number-stale",
        "a device node has the number of another driver",
        "`ls -l {node}; cat /proc/devices`",
        "create the node again; the numbers of nvidia-uvm and nvidia-caps change at each start",
    ),
    blocks(
        "container-without-gpus",
        "the container has no device node for it",
        "`ls /dev`",
        "start the container with {option}",
    ),
    intended(
        "hidden-by-container",
        "the container was started without GPUs (NVIDIA_VISIBLE_DEVICES)",
        "`echo $NVIDIA_VISIBLE_DEVICES; ls /dev/nvidia*`",
        "start the container with NVIDIA_VISIBLE_DEVICES=all",
    ),
    blocks(
        "pod-without-gpu",
        "the pod has no device node for it",
        "`kubectl get pod -o yaml`: resources.limits",
        "request it: `resources.limits: {{{resource}: 1}}`",
    ),
    blocks(
        "lxc-device-missing",
        "the LXC container lacks a device node",
        "`ls -l {node}`",
        "add `lxc.mount.entry` and `lxc.cgroup2.devices.allow` for {node} (Incus: a gpu device)",
    ),
    blocks(
        "flatpak",
        "the Flatpak sandbox has no device node for it",
        "`flatpak info --show-permissions APP`",
        "`flatpak override --user --device=all APP`",
    ),
    blocks(
        "snap",
        "the snap has no device node for it",
        "`snap connections {app}`",
        "`snap connect {app}:opengl` (or its gpu interface)",
    ),
    blocks(
        "cdi-spec-stale",
        "the container's CDI specification is of another driver version",
        "`head /etc/cdi/nvidia.yaml /var/run/cdi/nvidia.yaml`",
        "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
    ),
    limits(
        "kfd-missing",
        "ROCm needs /dev/kfd, which is missing; Vulkan can use the device",
        "`ls -l /dev/kfd /sys/class/kfd`",
        "{kfd_fix}",
    ),
)

LOG_IN = "then log in again"

PERMISSION = (
    blocks(
        "no-permission",
        "this user may not open {node}",
        "`ls -l {node}; id`",
        f"add the user to the group that owns {{node}}, {LOG_IN}",
    ),
    blocks(
        "not-in-group",
        "this user may not open {node}",
        "`ls -l {node}; id`",
        f"`sudo usermod -aG {{group}} $USER`, {LOG_IN}",
    ),
    blocks(
        "group-not-active",
        "the user is in the group of {node}, and this process is not",
        "`id; getent group {group}`",
        "log in again, or start the program with `sg {group}`",
    ),
    blocks(
        "userns-group-lost",
        "the user namespace drops the group that may open {node}",
        "`cat /proc/self/uid_map; ls -ln {node}` prints 65534",
        "podman with crun: `--group-add keep-groups`; Docker: run as a user of that group",
    ),
    blocks(
        "selinux-denies",
        "mode and groups allow {node}; SELinux refuses it",
        "`cat /sys/fs/selinux/enforce /proc/self/attr/current`; `ausearch -m avc`",
        "`sudo setsebool -P {selinux_boolean} on`, or `--security-opt label=disable`",
    ),
    blocks(
        "ssh-no-seat",
        "only the user at the screen may open {node}",
        "`getfacl {node}`",
        f"`sudo usermod -aG {{group}} $USER`, {LOG_IN}",
    ),
)

LIBRARY = (
    blocks(
        "library-missing",
        "the libraries of NVIDIA's driver are not installed",
        "`ldconfig -p | grep -e libcuda -e libnvidia-ml`",
        "install the libraries of the driver's version ({package})",
    ),
    limits(
        "nvml-missing",
        "libnvidia-ml.so.1 is not installed; CUDA is",
        "`ldconfig -p | grep libnvidia-ml`",
        "install it in the driver's version (Debian: libnvidia-ml1)",
    ),
    blocks(
        "library-broken",
        "a library of the driver cannot be loaded",
        "`ls -lL {library}`; `file -L {library}`",
        "install it again; take CUDA's `stubs` folder out of LD_LIBRARY_PATH",
    ),
    blocks(
        "version-mismatch",
        "kernel driver and libraries differ in version",
        "`cat /proc/driver/nvidia/version; ls -l {library}`",
        "reboot, or unload and load the nvidia modules; in a container: no driver in the image",
    ),
    blocks(
        "wsl-no-library",
        "WSL has no CUDA library of the Windows driver",
        "`ls /usr/lib/wsl/lib`",
        "install the driver in Windows, `wsl --update`; remove a Linux driver from WSL",
    ),
    blocks(
        "wsl-linux-driver",
        "a Linux driver inside WSL hides the CUDA library of the Windows driver",
        "`ldconfig -p | grep libcuda.so.1` lists another folder before /usr/lib/wsl/lib",
        "`sudo apt purge '^nvidia-.*' '^libnvidia-.*'` inside WSL; the driver is Windows's",
    ),
)
