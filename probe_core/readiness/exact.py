"""The exact fix of a cause on this machine: commands of its distribution, engine and orchestrator.

What has none here keeps the general sentence of `model.causes`.
"""

from __future__ import annotations

from probe_core.readiness.distributions import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from probe_core.readiness.scene import Scene

    Names = MutableMapping[str, str]

__all__ = ["OF_COMMANDS", "ON_HOST", "OPERATOR", "exact_fix", "option"]

_RELOAD = (
    "=`sudo reboot`; or, with no GPU program running: `sudo rmmod nvidia_uvm nvidia_drm"
    " nvidia_modeset nvidia && sudo modprobe nvidia`"
)

# Code to pieces that are put together: a topic of `distributions.COMMANDS`, or after "=" a text.
# Where the distribution has no command for a topic, the cause's general sentence stands.
ON_HOST: dict[str, tuple[str, ...]] = {
    "no-driver": ("=`sudo modprobe {module}`; where that fails: ", "driver {module}"),
    "driver-not-installed": ("driver {module}",),
    "npu-no-module": ("=`sudo modprobe {module}`; where that fails: ", "driver {module}"),
    "module-missing-for-kernel": ("headers",),
    "secure-boot": ("module key",),
    "nouveau-bound": ("driver nvidia", "= (its package blacklists nouveau)"),
    "nova-bound": (
        "=`echo blacklist nova_core | sudo tee /etc/modprobe.d/nova.conf`, ",
        "driver nvidia",
    ),
    "legacy-branch": ("driver branch",),
    "open-module-unsupported": ("module closed",),
    "closed-module-unsupported": ("module open",),
    "driver-too-old-for-gpu": ("driver open",),
    "gsp-firmware-missing": ("gsp firmware", "=, then ", "initramfs", "=, then reboot"),
    "firmware-missing": ("firmware {module}", "=, then ", "initramfs", "=, then reboot"),
    "nomodeset": ("remove parameter",),
    "radeon-bound": ("add parameter",),
    "bar-unassigned": ("=switch on Above 4G Decoding in the firmware setup, or ", "add parameter"),
    "kernel-too-old": ("=install a newer kernel, or ", "add parameter"),
    "iommu-faults": ("add parameter",),
    "library-missing": ("libraries nvidia",),
    "nvml-missing": ("libraries nvidia",),
    "libcuda-missing": ("libraries nvidia",),
    "fabric-not-ready": ("fabric manager",),
    "rocm-missing": ("rocm", "=; wheels of PyTorch bring their own"),
    "level-zero-missing": ("level zero",),
    "compute-runtime-too-old": ("level zero",),
    "version-mismatch": (_RELOAD,),
    "module-not-loaded": ("=`sudo modprobe {module}`; if it fails: `sudo dmesg | tail`",),
    "jetson-no-nvgpu": ("=`sudo modprobe nvgpu`; if it fails: `sudo dmesg | grep nvgpu`",),
    "uvm-missing": ("=`sudo nvidia-modprobe -u -c 0`",),
}
OF_COMMANDS = ("module", "release", "branch", "version", "kernel")
"""The names that commands of distributions may have in braces, beside `parameter`."""

# Codes whose distribution's command changes the boot loader, and the parameter that it is about.
_PARAMETERS = {
    "nomodeset": "nomodeset",
    "radeon-bound": "{si_or_cik}",
    "bar-unassigned": "pci=realloc",
    "kernel-too-old": "{module}.force_probe={device_id}",
    "iommu-faults": "iommu=pt",
}

# What a container of an engine lacks is the host's to give: nothing inside repairs it.
_IN_CONTAINER: dict[str, tuple[str, ...]] = {
    "version-mismatch": ("=take the driver's libraries out of the image: the host's are mounted",),
    "driver-older-than-cuda": (
        "=install a newer driver on the host, or take an image of an older CUDA;",
        "= on data centre GPUs: the package cuda-compat",
    ),
    "uvm-missing": ("=on the host `sudo nvidia-modprobe -u -c 0`, then restart the container",),
}

# NVIDIA's device plugin grants a GPU, and the pod's container runtime is to mount it.
_RUNTIME_CLASS = ("=set `runtimeClassName: nvidia` in the pod's spec, or make it the default",)

# /etc/group of an image is not the host's: the node's number counts.
_GROUP_ADD = ("=start the container with `--group-add $(stat -c %g {node})`",)

_WITH_TOOLKIT = (
    "=start the container with {option}; nvidia-container-toolkit on the host adds the libraries",
)

# Nobody but NVIDIA's toolkit changes a running container's rules behind the engine's back.
_PASS_ON = ("=start the container anew, with {option}",)
_REQUEST = ("=request it: `resources.limits: {{{resource}: 1}}`, then start the pod anew",)

# What depends on the engine: Apptainer mounts the host's /dev, and the libraries with an option.
_OF_ENGINE = {
    ("not-in-group", "docker"): _GROUP_ADD,
    ("group-not-active", "docker"): _GROUP_ADD,
    ("not-in-group", "podman"): ("=`podman run --group-add keep-groups` (with crun)",),
    ("not-in-group", "kubernetes"): (
        "=set `securityContext.supplementalGroups` of the pod to what `stat -c %g {node}` prints",
    ),
    # The nodes alone were passed on (`--device=/dev/nvidia0`): the toolkit mounts the libraries.
    ("library-missing", "docker"): _WITH_TOOLKIT,
    ("library-missing", "podman"): _WITH_TOOLKIT,
    # lxc.container.conf(5); the number of a node's driver is its major one.
    ("cgroup-denied", "lxc"): (
        "=add `lxc.cgroup2.devices.allow: c MAJOR:* rwm` to the container's configuration,",
        "= with the MAJOR that `ls -l {node}` prints; then restart the container",
    ),
    ("library-missing", "apptainer"): ("=start the container with `apptainer exec --nv`",),
    # Flatpak has the libraries of each driver's version as an extension of its runtime.
    ("library-missing", "flatpak"): (
        "=`flatpak update` (it installs org.freedesktop.Platform.GL.nvidia of driver {version})",
    ),
    ("library-missing", "lxc"): (
        "=in the container run NVIDIA's installer of driver {version} with `--no-kernel-module`",
        "= (Incus: `incus config set NAME nvidia.runtime true`)",
    ),
    ("library-missing", "kubernetes"): _RUNTIME_CLASS,
    ("libcuda-missing", "apptainer"): ("=start the container with `apptainer exec --nv`",),
}
_ON_PROXMOX = ("=on the host `pct set ID {missing_nodes}`, then restart the container",)

# The driver is installed for this kernel, and nouveau was faster.
_BLACKLIST = (
    "=`echo blacklist nouveau | sudo tee /etc/modprobe.d/blacklist-nouveau.conf`, then ",
    "initramfs",
    "=, then reboot",
)

# NVIDIA's README, "Device files": the nodes are 0666 unless a parameter of the module closes them.
_OPEN_NODES = (
    "=where `grep -r NVreg_DeviceFile /etc/modprobe.d` shows {nvidia_mode}, ",
    "=set NVreg_DeviceFileMode=0666, ",
    "initramfs",
    "=, then reboot",
)

# systemd.resource-control(5), DeviceAllow=; in place of what holds for containers.
_IN_SERVICE = "=`sudo systemctl edit {service}`: `[Service]`, {device_rules}; then restart it"

# No container and no service: whoever made the cgroup gives devices.
_ASK_OWNER = "=ask whoever started this session or job for the device: its cgroup decides"

# NVIDIA GPU Operator: the driver's container mounts its whole root there, on the host.
OPERATOR = "/run/nvidia/driver/usr"
_IN_OPERATOR = (
    "=run the program in a pod that requests `nvidia.com/gpu`; the GPU operator has the driver's"
    " libraries in /run/nvidia/driver"
)

# A service has its groups from its unit, from when it was started on.
_OF_SERVICE = {
    "not-in-group": "=`sudo systemctl edit {service}`: `[Service]`,"
    " `SupplementaryGroups={groups}`; then restart it",
    "group-not-active": "=`sudo systemctl restart {service}`",
}

# (vendor, engine) to how a container is given the device; "" stands for every other engine.
# Docker and podman manuals, nvidia-container-toolkit (CDI), ROCm "Running ROCm Docker containers".
_OPTIONS = {
    ("nvidia", ""): "`--gpus all`, or CDI: `--device nvidia.com/gpu=all`",
    ("nvidia", "docker"): "`docker run --gpus all`, or CDI: `--device nvidia.com/gpu=all`",
    ("nvidia", "podman"): "`podman run --device nvidia.com/gpu=all` (CDI)",
    ("nvidia", "systemd-nspawn"): "`systemd-nspawn --bind=/dev/nvidia0 --bind=/dev/nvidiactl"
    " --bind=/dev/nvidia-uvm`, and DeviceAllow= for them",
    ("amd", ""): "`--device=/dev/kfd --device=/dev/dri`",
    ("amd", "docker"): "`docker run --device=/dev/kfd --device=/dev/dri --group-add render`",
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
    return _OPTIONS.get((known, engine)) or _OPTIONS[known, ""]


def exact_fix(code: str, scene: Scene, names: Names) -> str | None:
    """Return the fix for this machine, its names filled in; None where only the general is known.

    In a container the host's packages are out of reach.
    """
    if scene.container is None:
        if (line := _forbidden(code, scene, names)) is not None:
            return line
        pieces = _by_situation(code, scene, names) or ON_HOST.get(code, ())
    else:
        pieces = _OF_ENGINE.get((code, scene.container), _IN_CONTAINER.get(code, ()))
        if code == "lxc-device-missing" and scene.release.endswith("-pve"):
            pieces = _ON_PROXMOX
        if code == "pod-without-gpu" and _was_granted(scene):
            pieces = _RUNTIME_CLASS
        if code == "cgroup-denied" and names["vendor"] != "nvidia" and not pieces:
            pieces = _REQUEST if scene.container == "kubernetes" else _PASS_ON
    if code in _PARAMETERS:
        names["parameter"] = _PARAMETERS[code].format_map(names)
    texts = [_text(piece, scene, names) for piece in pieces]
    known = [text for text in texts if text is not None]
    return "".join(known) if known and len(known) == len(texts) else None


def _was_granted(scene: Scene) -> bool:
    """Return whether a pod lacks the GPU that NVIDIA's device plugin gave it.

    The plugin sets the variable to UUIDs. With the control node there, the granted GPUs are there,
    too, and what is missing is another pod's.
    """
    granted = scene.environ.get("NVIDIA_VISIBLE_DEVICES", "").startswith(("GPU-", "MIG-"))
    return granted and scene.access("/dev/nvidiactl") == "missing"


def _by_situation(code: str, scene: Scene, names: Names) -> tuple[str, ...]:
    """Return the pieces where the same cause has another fix: in a service, on an old kernel."""
    if code == "cgroup-denied" and scene.service is not None:
        return (_IN_SERVICE,)
    if scene.service is not None and code in _OF_SERVICE:
        return (_OF_SERVICE[code],)
    if code == "no-driver" and scene.modules.is_loaded(names["module"]):
        return ("=`sudo dmesg | grep -i -e {module} -e NVRM` has the reason of the driver",)
    if code == "cgroup-denied":
        return (names["job_request"] or _ASK_OWNER,)
    if code == "module-missing-for-kernel" and names["signed"]:
        return ("signed modules",)
    if code == "library-missing" and scene.machine.exists(OPERATOR):
        return (_IN_OPERATOR,)
    if code == "no-permission" and names["nvidia_group"]:
        return ("=`sudo usermod -aG {nvidia_group} $USER`, then log in again",)
    if code == "no-permission" and names["nvidia_mode"]:
        return _OPEN_NODES
    if code == "nouveau-bound" and scene.modules.on_disk("nvidia"):
        return _BLACKLIST
    if code in ("kernel-too-old", "npu-no-module") and names["first_kernel"]:
        return ("=install Linux {first_kernel} or later: ", "newer kernel")
    return ()


def _text(piece: str, scene: Scene, names: Names) -> str | None:
    if piece.startswith("="):
        return piece[1:].format_map(names)
    plain = {key: names[key] for key in OF_COMMANDS}
    parameter = names.get("parameter", "")
    topic = piece.format_map(names)
    # A branch may have a command of its own: Debian has packages of old ones alone.
    for name in (f"{topic} {plain['branch']}", topic):
        text = command(name, scene.family, parameter=parameter, **plain)
        if text is not None:
            return text
    return None


def _forbidden(code: str, scene: Scene, names: Names) -> str | None:
    """Return how to undo the line that keeps a module from loading."""
    line = scene.modules.forbidden(names["module"]) if code == "module-blacklisted" else None
    if line is None:
        return None
    place, _, text = line.partition(": ")
    if place == "/proc/cmdline":
        names["parameter"] = text
        return _text("remove parameter", scene, names)
    initramfs = command("initramfs", scene.family) or "rebuild the initramfs"
    return f"remove the line `{text}` from {place}, {initramfs}, then reboot"
