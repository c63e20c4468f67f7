"""The exact fix of a cause on this machine: commands of its distribution, engine and orchestrator.

What has none here keeps the general sentence of `model.causes`.
"""

from __future__ import annotations

from probe_core.model.causes import CAUSES, Command, Words, cause_of
from probe_core.model.findings import NO_FIX
from probe_core.readiness import nvidia
from probe_core.readiness.distributions import command
from probe_core.readiness.scene import address_of, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

    from probe_core.model.causes import Cause
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene

    Names = MutableMapping[str, str]


OF_COMMANDS = ("module", "release", "branch", "version", "kernel")
"""The names that commands of distributions may have in braces, beside `parameter`."""

# NVIDIA GPU Operator: the driver's container mounts its whole root there, on the host.
OPERATOR = "/run/nvidia/driver/usr"

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
    cause = cause_of(code)
    if cause is None:
        return None
    if scene.container is None and (line := _forbidden(code, scene, names)) is not None:
        return line
    parts = next((cause.fixes[name] for name in _situations(cause, scene, names)), ())
    if cause.parameter:
        names["parameter"] = cause.parameter.format_map(names)
    texts = [_text(part, scene, names) for part in parts]
    known = [text for text in texts if text is not None]
    return "".join(known) if known and len(known) == len(texts) else None


def _situations(cause: Cause, scene: Scene, names: Names) -> Iterator[str]:
    """Yield the situations of a cause's fixes that this machine is in, the most special first."""
    if scene.container is None:
        for name, holds in ON_HOST.items():
            if name in cause.fixes and holds(scene, names):
                yield name
        return
    for name, holds in IN_CONTAINER.items():
        if name in cause.fixes and holds(scene, names):
            yield name
    if scene.container in cause.fixes:
        yield scene.container
    if names["vendor"] != "nvidia" and "container without NVIDIA" in cause.fixes:
        # Nobody but NVIDIA's toolkit changes a running container's rules behind the engine's back.
        in_pod = scene.container == "kubernetes"
        yield "pod without NVIDIA" if in_pod else "container without NVIDIA"
    if "container" in cause.fixes:
        yield "container"


ON_HOST: dict[str, Callable[[Scene, Names], bool]] = {
    # A service has its groups and rules from its unit, from when it was started on.
    "service": lambda scene, names: scene.service is not None,
    "loaded": lambda scene, names: bool(scene.modules.is_loaded(names["module"])),
    "job": lambda scene, names: bool(names["job_request"]),
    "secure boot": lambda scene, names: bool(names["signed"]),
    "operator": lambda scene, names: scene.machine.exists(OPERATOR),
    "closed group": lambda scene, names: bool(names["nvidia_group"]),
    "closed mode": lambda scene, names: bool(names["nvidia_mode"]),
    # The driver is installed for this kernel, and nouveau was faster.
    "installed": lambda scene, names: bool(scene.modules.on_disk("nvidia")),
    "old kernel": lambda scene, names: bool(names["first_kernel"]),
    "host": lambda scene, names: True,
}
"""Situation outside of containers to whether this machine is in it; the first that is counts."""

IN_CONTAINER: dict[str, Callable[[Scene, Names], bool]] = {
    "proxmox": lambda scene, names: scene.release.endswith("-pve"),
    "granted pod": lambda scene, names: _was_granted(scene),
}
"""The same in a container. Fixes may also name its engine (``docker``), or ``container``: what it
lacks is the host's to give, and nothing inside repairs it."""


def _was_granted(scene: Scene) -> bool:
    """Return whether a pod lacks the GPU that NVIDIA's device plugin gave it.

    The plugin sets the variable to UUIDs. With the control node there, the granted GPUs are there,
    too, and what is missing is another pod's.
    """
    granted = scene.environ.get("NVIDIA_VISIBLE_DEVICES", "").startswith(("GPU-", "MIG-"))
    return granted and scene.access("/dev/nvidiactl") == "missing"


def _text(part: Words | Command, scene: Scene, names: Names) -> str | None:
    """Return a part of a fix; None where the distribution has no command for it."""
    if isinstance(part, Words):
        return part.format_map(names)
    plain = {key: names[key] for key in OF_COMMANDS}
    parameter = names.get("parameter", "")
    topic = part.format_map(names)
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
        return _text(Command("remove parameter"), scene, names)
    initramfs = command("initramfs", scene.family) or "rebuild the initramfs"
    return f"remove the line `{text}` from {place}, {initramfs}, then reboot"


# The names that sentences of causes may use in braces: each is made for a device and its step.

# (vendor, kind) to the resource of its Kubernetes device plugin: NVIDIA, AMD, Intel (one for each
# kernel driver), Habana, AWS Neuron, GKE, Qualcomm.
_RESOURCES = {
    ("nvidia", "gpu"): "nvidia.com/gpu",
    ("amd", "gpu"): "amd.com/gpu",
    ("intel", "gpu"): "gpu.intel.com/{driver}",
    ("intel", "npu"): "npu.intel.com/accel",
    ("intel", "accelerator"): "habana.ai/gaudi",
    ("amazon", "accelerator"): "aws.amazon.com/neuron",
    ("google", "accelerator"): "google.com/tpu",
    ("google", "npu"): "google.com/tpu",
    ("qualcomm", "accelerator"): "qualcomm.com/qaic",
}

# What a module's package is where the distribution's own command is not known.
_PACKAGES = {
    "nvidia": "NVIDIA's driver",
    "hailo_pci": "hailort-pcie-driver",
    "apex": "gasket-dkms",
    "amdxdna": "Linux 6.14 or later, which has amdxdna",
    "intel_vpu": "a kernel with intel_vpu",
    "rknpu": "the board vendor's kernel, and the NPU's device-tree overlay",
}


def _load(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.driver import module_of

    module = module_of(device, scene)
    if module is None:
        return f"install or load the driver of {device['vendor'] or 'its vendor'}"
    place = "on the host " if scene.container is not None else ""
    package = _package(device, step, scene)
    return f"{place}`sudo modprobe {module}`; where that fails, install {package}"


def _module(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.driver import module_of

    return scene.driver(device) or module_of(device, scene) or "of its vendor"


def _node(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the first of the device's nodes that is not well, else the first."""
    from probe_core.readiness.node import required

    paths = required(device, scene)
    bad = [path for path in paths if scene.access(path) not in ("ok", "unknown")]
    return (bad or paths or ["its device node"])[0]


def _group(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the groups to join: those of all nodes that refuse this process."""
    from probe_core.machine.access import status
    from probe_core.readiness.node import required
    from probe_core.readiness.permission import groups_of

    refused = [path for path in required(device, scene) if scene.access(path) == "EACCES"]
    if not any(status(scene.machine, path) for path in refused):
        return "render,video"  # a recording has no owners: the groups that AMD and Intel document
    groups = dict.fromkeys(groups_of(path, scene) for path in refused)
    return ",".join(groups) or "render"


def _option(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    text = option(_maker(device), scene.container or "")
    return text.replace("{node}", _node(device, step, scene))


def _maker(device: DeviceDoc) -> str:
    """Return the vendor, or the product line that containers are given in another way."""
    if device["vendor"] == "intel" and device["kind"] == "accelerator":
        return "gaudi"
    is_jetson = device["vendor"] == "nvidia" and device["id"].startswith("dt:")
    return "jetson" if is_jetson else device["vendor"] or ""


def _resource(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    text = _RESOURCES.get((device["vendor"] or "", device["kind"]), "the resource of its plugin")
    return text.format(driver=scene.driver(device) or "xe")


def _gfx_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.runtime import override_for

    value = override_for(device, scene)
    if value is None:
        return "install a ROCm version, or a build, with code for this GPU; or use Vulkan"
    return f"`export HSA_OVERRIDE_GFX_VERSION={value}`, for which it has code"


def _device_rules(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what a unit of systemd needs for the nodes that its cgroup refuses."""
    from probe_core.readiness.node import required

    paths = [path for path in required(device, scene) if scene.access(path) == "EPERM"]
    return ", ".join(f"`DeviceAllow={path} rw`" for path in paths or ["its nodes"])


def _selinux_boolean(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the boolean of container-selinux for a node's label: NVIDIA's is xserver_misc."""
    is_nvidia = device["vendor"] == "nvidia"
    return "container_use_xserver_devices" if is_nvidia else "container_use_devices"


def _missing_nodes(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the options of `pct set` for all nodes that a container of Proxmox VE lacks."""
    from probe_core.readiness.node import required

    paths = [path for path in required(device, scene) if scene.access(path) == "missing"]
    return " ".join(f"-dev{number} {path}" for number, path in enumerate(paths))


def _job_request(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return how to request a GPU of the batch system around this process; "" in none."""
    from probe_core.machine.surroundings import BATCH_SYSTEMS

    request = next((text for name, text in BATCH_SYSTEMS.items() if name in scene.environ), None)
    return f"request a GPU for the job ({request}), then start it anew" if request else ""


def _first_kernel(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.driver import too_old_for

    return too_old_for(device, scene, _module(device, step, scene)) or ""


def _kernel_package(release: str) -> str:
    """Return what Arch and Manjaro call the package of a running kernel.

    6.12.4-arch1-1 is linux, 6.12.4-zen1-1-zen linux-zen, 6.6.63-1-lts linux-lts; Manjaro's
    6.12.4-1-MANJARO is linux612.
    """
    end = release.rpartition("-")[2]
    if end == "MANJARO":
        return "linux" + "".join(release.split(".")[:2])
    return f"linux-{end}" if end.isalpha() else "linux"


def _kfd_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    if scene.container is not None:
        return "start the container with `--device=/dev/kfd`"
    return "load amdgpu of a kernel with CONFIG_HSA_AMD, or use Vulkan"


def _package(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    module = _module(device, step, scene)
    if step["code"] == "firmware-missing":
        return "linux-firmware"
    if step["code"] == "library-missing":
        inside = scene.container is not None
        return "nvidia-container-toolkit on the host, which adds them" if inside else "nvidia-utils"
    return _PACKAGES.get(module, f"the driver {module}")


def _si_or_cik(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the parameters that give a card of GCN 1 (SI) or GCN 2 (CIK) to amdgpu."""
    arch = device["arch"] or ""
    part = {"gcn1": ("si",), "gcn2": ("cik",)}.get(arch[:4], ("si", "cik"))
    return " ".join(f"amdgpu.{name}_support=1 radeon.{name}_support=0" for name in part)


MAKERS: dict[str, Callable[[DeviceDoc, StepDoc, Scene], str]] = {
    **nvidia.MAKERS,
    "address": lambda device, step, scene: address_of(device) or device["id"],
    "app": lambda device, step, scene: scene.environ.get("SNAP_NAME", "APP"),
    "device_rules": _device_rules,
    "device_id": lambda device, step, scene: (device["pci"] or {}).get("id", "")[5:9] or "ID",
    "first_kernel": _first_kernel,
    "folder": lambda device, step, scene: folder_of(device) or device["id"],
    "gfx": lambda device, step, scene: device.get("gfx") or "this GPU",
    "gfx_fix": _gfx_fix,
    "group": _group,
    "groups": lambda device, step, scene: _group(device, step, scene).replace(",", " "),
    "job_request": _job_request,
    "kfd_fix": _kfd_fix,
    "kernel": lambda device, step, scene: _kernel_package(scene.release),
    "load": _load,
    "library": lambda device, step, scene: "libnvidia-ml.so.1",
    "missing_nodes": _missing_nodes,
    "module": _module,
    "node": _node,
    "option": _option,
    "package": _package,
    "release": lambda device, step, scene: scene.release or "$(uname -r)",
    "resource": _resource,
    "selinux_boolean": _selinux_boolean,
    "service": lambda device, step, scene: scene.service or "NAME.service",
    "si_or_cik": _si_or_cik,
    "vendor": lambda device, step, scene: device["vendor"] or "its vendor",
}
"""Name in a sentence's braces to what makes its text."""


# The fix for this situation: the distribution's package, the container's option, the group.
#
# The sentences stand in `model.causes`; here the names in their braces are filled in.

_OF_HOST, _ON_HOST = ("hardware", "driver"), "on the host"


class _Names(dict[str, str]):
    """The names that a sentence may use, each worked out when it is used.

    What is not known reads as its own name.
    """

    def __init__(self, device: DeviceDoc, step: StepDoc, scene: Scene) -> None:
        super().__init__()
        self._of = (device, step, scene)

    def __missing__(self, key: str) -> str:
        make = MAKERS.get(key)
        value = self[key] = key if make is None else make(*self._of)
        return value


def fix_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what helps against a broken step of a device."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return NO_FIX if step["status"] != "broken" else f"see `probe explain {device['id']}`"
    names = _Names(device, step, scene)
    if exact := exact_fix(cause.code, scene, names):
        return exact
    text = cause.fix.format_map(names)
    # Nothing inside a container changes the host's card, kernel or driver.
    is_hosts = cause.step in _OF_HOST and scene.container is not None and not cause.intended
    return text if not is_hosts or _ON_HOST in text else f"{_ON_HOST}: {text}"


def is_exact(device: DeviceDoc, step: StepDoc, scene: Scene) -> bool:
    """Return whether `fix_of` is this machine's own command, not the cause's general sentence."""
    return exact_fix(step["code"] or "", scene, _Names(device, step, scene)) is not None


def meaning_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what a broken step means, as the end of a sentence."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return f"the step {step['step']} is broken"
    return cause.meaning.format_map(_Names(device, step, scene))
