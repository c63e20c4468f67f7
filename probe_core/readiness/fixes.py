"""The exact fix of a cause on this machine: commands of its distribution, engine and orchestrator.

What has none here keeps the general sentence of `model.causes`.
"""

from __future__ import annotations

from probe_core.machine.engines import OPERATOR_ROOT, option
from probe_core.machine.surroundings import DISTROBOX, hypervisor
from probe_core.model.causes import CAUSES
from probe_core.model.findings import NO_FIX
from probe_core.model.fix import Blank, Command, Made, Part, at, fill, filled, otherwise, run
from probe_core.model.ids import pci_address, pci_product
from probe_core.readiness import nvidia_fixes
from probe_core.readiness.actions import (
    CONTAINER,
    FIRMWARE,
    HOST,
    POD,
    SERVICE,
    WINDOWS,
    action_of,
)
from probe_core.readiness.distributions import command_of_branch
from probe_core.readiness.modules import COMMAND_LINE
from probe_core.readiness.scene import folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from probe_core.model.causes import Cause
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.actions import Action
    from probe_core.readiness.scene import Scene


# NVIDIA GPU Operator: the driver's container mounts its whole root there, on the host.
OPERATOR = f"{OPERATOR_ROOT}/usr"


INSTALLER = "/usr/bin/nvidia-uninstall"
"""What NVIDIA's own installer (.run) leaves for its removal (its README, "nvidia-uninstall")."""


def _exact(cause: Cause, scene: Scene, names: Names) -> tuple[list[str], str] | None:
    """Return the parts of the fix for this machine, and the situation that it is for.

    None where only the general sentence is known: in a container the host's packages are out of
    reach.
    """
    if cause.step == "driver" and names["vendor"] == "nvidia" and (text := names["opposed"]):
        return [text], "opposed"
    if cause.parameter:
        names["parameter"] = fill(cause.parameter, names)
    situation = next(_situations(cause, scene, names), "")
    parts = _expanded(cause.fixes.get(situation, ()), scene, names)
    return (parts, situation) if parts else None


def _expanded(fix: Sequence[str], scene: Scene, names: Names) -> list[str] | None:
    """Return parts with their names filled in; None where the distribution has no command."""
    result: list[str] = []
    for part in fix:
        if isinstance(part, Made):
            result += PARTS[part.name](names.device, names.step, scene)
        elif isinstance(part, Command):
            parts = _of_distribution(part, scene, names)
            if parts is None and part.general is None:
                return None
            result += filled(parts or (part.general or "",), names)
        else:
            result += filled((part,), names)
    return result


def _of_distribution(topic: Command, scene: Scene, names: Names) -> tuple[str, ...] | None:
    """Return the parts of the distribution's command; None where it has none, or a blank in it."""
    name = fill(topic, names)
    # A branch may have a command of its own: Debian has packages of old ones alone.
    parts = command_of_branch(name, scene.family, names["branch"])
    has_blank = any(isinstance(fill(part, names), Blank) for part in parts or ())
    return None if has_blank else parts


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
    has_own = scene.container == "lxc" and "lxc" in cause.fixes
    if names["vendor"] != "nvidia" and "container without NVIDIA" in cause.fixes and not has_own:
        # Nobody but NVIDIA's toolkit changes a running container's rules behind the engine's back.
        in_pod = scene.container == "kubernetes"
        yield "pod without NVIDIA" if in_pod else "container without NVIDIA"
    if scene.container in cause.fixes:
        yield scene.container
    if "container" in cause.fixes:
        yield "container"


def _has_installer(scene: Scene, names: Names) -> bool:
    return scene.machine.exists(INSTALLER)


_ANYWHERE: dict[str, Callable[[Scene, Names], bool]] = {
    # A stub comes first: what is installed behind it the loader never takes.
    "stub": lambda scene, names: bool(names["stub"]) and not names["stub_alone"],
}

ON_HOST: dict[str, Callable[[Scene, Names], bool]] = {
    **_ANYWHERE,
    "stub alone": lambda scene, names: bool(names["stub"]),
    "empty library": lambda scene, names: bool(names["empty_library"]),
    "forbidden by parameter": lambda scene, names: names["forbidden_in"] == COMMAND_LINE,
    "forbidden": lambda scene, names: bool(names["forbidden_in"]),
    "WSL": lambda scene, names: scene.wsl and scene.service is None,
    "driver packages": lambda scene, names: bool(names["driver_packages"]),
    "driver installer": _has_installer,
    "rack": lambda scene, names: bool(names["fabric"] == "rack"),
    "fourth switches": lambda scene, names: bool(names["fabric"] == "fourth switches"),
    "switches": lambda scene, names: bool(names["fabric"] == "switches"),
    "nvidia host": lambda scene, names: names["module"] == "nvidia",
    # A service has its groups and rules from its unit, from when it was started on.
    "service": lambda scene, names: scene.service is not None,
    "loaded": lambda scene, names: bool(scene.modules.is_loaded(names["module"])),
    "job": lambda scene, names: bool(names["job_request"]),
    "secure boot": lambda scene, names: bool(names["signed"]),
    "operator": lambda scene, names: scene.machine.exists(OPERATOR),
    "closed group": lambda scene, names: bool(names["nvidia_group"]),
    "node's group": lambda scene, names: bool(names["node_group"]),
    "closed mode": lambda scene, names: bool(names["nvidia_mode"]),
    # The driver is installed for this kernel, and nouveau was faster.
    "installed": lambda scene, names: bool(scene.modules.on_disk("nvidia")),
    "old kernel": lambda scene, names: bool(names["first_kernel"]),
    "enrolled": lambda scene, names: bool(scene.modules.enrolled),
    "signed by parameter": lambda scene, names: scene.modules.signed_alone,
    "old module on disk": lambda scene, names: bool(names["stale_module"]),
    "Hailo": lambda scene, names: names["module"] == "hailo",
    "virtual machine": lambda scene, names: hypervisor(scene.machine) is not None,
    "host": lambda scene, names: True,
}
"""Situation outside of containers to whether this machine is in it; the first that is counts."""

IN_CONTAINER: dict[str, Callable[[Scene, Names], bool]] = {
    **_ANYWHERE,
    "empty library of an image": lambda scene, names: bool(names["empty_library"]),
    "uvm loaded": lambda scene, names: "nvidia_uvm" in scene.loaded,
    "container without the group": lambda scene, names: (
        scene.container in ("docker", "podman") and bool(names["node_group"])
    ),
    "proxmox": lambda scene, names: scene.release.endswith("-pve"),
    "granted pod": lambda scene, names: _was_granted(scene),
    "musl": lambda scene, names: scene.family == "alpine",
    "distrobox": lambda scene, names: DISTROBOX in scene.environ,
    "no capabilities": lambda scene, names: _lacks_capabilities(scene),
}
"""The same in a container. Fixes may also name its engine (``docker``), or ``container``: what it
lacks is the host's to give, and nothing inside repairs it."""


_CAPABILITIES = ("all", "compute", "utility")


def _lacks_capabilities(scene: Scene) -> bool:
    """Return whether the container asks NVIDIA's toolkit for other libraries than CUDA and NVML.

    nvidia-container-toolkit, "Driver Capabilities": `compute` is CUDA, `utility` NVML.
    """
    asked = scene.environ.get("NVIDIA_DRIVER_CAPABILITIES", "").split(",")
    return asked != [""] and not any(name.strip() in _CAPABILITIES for name in asked)


def _was_granted(scene: Scene) -> bool:
    """Return whether a pod lacks the GPU that NVIDIA's device plugin gave it.

    The plugin sets the variable to UUIDs. With the control node there, the granted GPUs are there,
    too, and what is missing is another pod's.
    """
    granted = scene.environ.get("NVIDIA_VISIBLE_DEVICES", "").startswith(("GPU-", "MIG-"))
    return granted and scene.access("/dev/nvidiactl") == "missing"


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


def _load(device: DeviceDoc, step: StepDoc, scene: Scene) -> tuple[str, ...]:
    from probe_core.readiness.unbound import module_of

    module = module_of(device, scene)
    if module is None:
        return (f"install or load the driver of {device['vendor'] or 'its vendor'}",)
    place = (at(HOST, "on the host "),) if scene.container is not None else ()
    package = _package(device, step, scene)
    return (
        *place,
        run(f"sudo modprobe {module}"),
        otherwise("; where that fails, "),
        f"install {package}",
    )


def _module(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.unbound import module_of

    return scene.driver(device) or module_of(device, scene) or Blank("of its vendor")


def _node(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the first of the device's nodes that is not well, else the first."""
    from probe_core.readiness.node import required

    paths = [path for path in required(device, scene) if path not in scene.opened]
    bad = [path for path in paths if scene.access(path) not in ("ok", "unknown")]
    if not bad and "prober" in step:  # which node it means is known to the prober alone
        return Blank("its device node")
    if not bad and step["code"] == "node-missing" and scene.driver(device) == "amdgpu":
        return "/dev/dri/renderD*"  # the kernel gave it none, so that it has no number
    return (bad or paths or [Blank("its device node")])[0]


def _minor(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the number of a missing /dev/nvidiaN, which nvidia-modprobe is to make."""
    number = _node(device, step, scene).removeprefix("/dev/nvidia")
    return number if number.isdecimal() else "0"


def _group(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the groups to join: those of all nodes that refuse this process, never root's."""
    from probe_core.machine.access import status
    from probe_core.readiness.closed import group_of_row, groups_of

    refused = _refused(device, scene)
    stats = {path: status(scene.machine, path) for path in refused}
    if not any(stats.values()):
        # A recording has no owners: the driver's row has the group, of GPUs AMD and Intel name two.
        groups = dict.fromkeys(group for path in refused if (group := group_of_row(path)))
        return ",".join(groups) if groups.keys() - {"render"} else "render,video"
    of_groups = [path for path, stat in stats.items() if stat is None or stat.st_gid != 0]
    groups = dict.fromkeys(groups_of(path, scene) for path in of_groups)
    return ",".join(groups) or "render"


def _refused(device: DeviceDoc, scene: Scene) -> list[str]:
    from probe_core.readiness.node import required

    return [path for path in required(device, scene) if scene.access(path) == "EACCES"]


def _node_group(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the group whose members may open the node that is refused; "" where joining none does.

    Root's group opens far more than a GPU, and a mode without the group's rights opens nothing.
    """
    from probe_core.machine.access import status
    from probe_core.readiness.closed import OVERFLOW, groups_of

    path = next(iter(_refused(device, scene)), None)
    stat = status(scene.machine, path) if path else None
    if path is None or stat is None or stat.st_gid in (0, OVERFLOW):
        return ""
    # A member that is refused all the same meets an access list or a security module.
    is_member = stat.st_gid in scene.process.groups
    return "" if is_member or stat.st_mode >> 3 & 6 != 6 else groups_of(path, scene)


def _option(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.driver_nodes import container_option

    text = container_option(device, scene) or option(_maker(device), scene.container or "")
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


def _gfx_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> tuple[str, ...]:
    from probe_core.readiness.rocm import override_for

    value = override_for(device, scene)
    if value is None:
        return ("install the last ROCm version, or a build, with code for this GPU; or use Vulkan",)
    return (run(f"export HSA_OVERRIDE_GFX_VERSION={value}"), ", for which it has code")


def _forbidden(device: DeviceDoc, step: StepDoc, scene: Scene) -> tuple[str, str]:
    """Return the file and its line, or parameter, that keeps the module from loading."""
    return scene.modules.forbidden(_module(device, step, scene)) or ("", "")


def _log_words(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what grep looks for in the kernel's log: NVIDIA's GPU driver writes "NVRM", too."""
    module = _module(device, step, scene)
    return "-e nvidia -e NVRM" if module == "nvidia" else f"-e {module}"


def _driver_packages(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.packages import driver_packages

    return " ".join(driver_packages(scene.machine))


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

    return next((text for name, text in BATCH_SYSTEMS.items() if name in scene.environ), "")


def _first_kernel(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.unbound import too_old_for

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


def _kfd_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> tuple[str, ...]:
    if scene.container == "flatpak":
        return CAUSES["flatpak"].parts
    if scene.container is not None:
        return (f"start the container with {_option(device, step, scene)}",)
    instead = "" if step.get("blocks") else ", or use Vulkan"
    return (f"load amdgpu of a kernel with CONFIG_HSA_AMD{instead}",)


def _package(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    module = _module(device, step, scene)
    if step["code"] == "firmware-missing":
        return "linux-firmware"
    if step["code"] == "library-missing":
        inside = scene.container is not None
        return "nvidia-container-toolkit on the host, which adds them" if inside else "nvidia-utils"
    if module == "nvidia" and (branch := nvidia_fixes.legacy_branch(device, step, scene)):
        return f"NVIDIA's driver of branch {branch}"
    return _PACKAGES.get(module, f"the driver {module}")


def _si_or_cik(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the parameters that give a card of GCN 1 (SI) or GCN 2 (CIK) to amdgpu."""
    arch = device["arch"] or ""
    part = {"gcn1": ("si",), "gcn2": ("cik",)}.get(arch[:4], ("si", "cik"))
    return " ".join(f"amdgpu.{name}_support=1 radeon.{name}_support=0" for name in part)


MAKERS: dict[str, Callable[[DeviceDoc, StepDoc, Scene], str]] = {
    **nvidia_fixes.MAKERS,
    "address": lambda device, step, scene: pci_address(device) or device["id"],
    "app": lambda device, step, scene: scene.environ.get("SNAP_NAME", Blank("APP")),
    "device_rules": _device_rules,
    "driver_packages": _driver_packages,
    "device_id": lambda device, step, scene: pci_product(device) or Blank("ID"),
    "first_kernel": _first_kernel,
    "folder": lambda device, step, scene: folder_of(device) or device["id"],
    "gfx": lambda device, step, scene: device.get("gfx") or "this GPU",
    "forbidden_in": lambda device, step, scene: _forbidden(device, step, scene)[0],
    "forbidden_line": lambda device, step, scene: _forbidden(device, step, scene)[1],
    "group": _group,
    "one_group": lambda device, step, scene: _group(device, step, scene).partition(",")[0],
    "groups": lambda device, step, scene: _group(device, step, scene).replace(",", " "),
    "job_request": _job_request,
    "kernel": lambda device, step, scene: _kernel_package(scene.release),
    "library": lambda device, step, scene: "libnvidia-ml.so.1",
    "iommu_off": lambda device, step, scene: scene.modules.iommu_off,
    "log_words": _log_words,
    "minor": _minor,
    "missing_nodes": _missing_nodes,
    "module": _module,
    "node": _node,
    "node_group": _node_group,
    "option": _option,
    "package": _package,
    "release": lambda device, step, scene: scene.release or "$(uname -r)",
    "resource": _resource,
    "selinux_boolean": _selinux_boolean,
    "service": lambda device, step, scene: scene.service or Blank("NAME.service"),
    "si_or_cik": _si_or_cik,
    "vendor": lambda device, step, scene: device["vendor"] or "its vendor",
}
"""Name in a sentence's braces to what makes its text."""

PARTS: dict[str, Callable[[DeviceDoc, StepDoc, Scene], tuple[str, ...]]] = {
    **nvidia_fixes.PARTS,
    "gfx_fix": _gfx_fix,
    "kfd_fix": _kfd_fix,
    "load": _load,
}
"""Name of a `Made` part to what makes it."""


# The fix for this situation: the distribution's package, the container's option, the group.
#
# What is declared stands in `model.causes`; here its names are filled in.

_OF_HOST = ("hardware", "driver", "responding")


class Names(dict[str, str]):
    """The names that a fix may use, each worked out when it is used.

    What is not known reads as its own name.
    """

    def __init__(self, device: DeviceDoc, step: StepDoc, scene: Scene) -> None:
        super().__init__()
        self.device = device
        self.step = step
        self.scene = scene

    def __missing__(self, key: str) -> str:
        make = MAKERS.get(key)
        value = self[key] = make(self.device, self.step, self.scene) if make else Blank(key)
        return value


class Fix:
    """What helps against a cause: the `line` for people, and the `action` that it stands for.

    `is_exact` says that it is this machine's own, not the cause's general sentence.
    """

    __slots__ = ("action", "is_exact", "line")

    def __init__(self, line: str, action: Action, *, is_exact: bool) -> None:
        self.line = line
        self.action = action
        self.is_exact = is_exact


def _fix(cause: Cause, names: Names) -> Fix:
    """Return the fix of a cause on this machine."""
    scene = names.scene
    exact = _exact(cause, scene, names)
    parts, situation = exact or (_general(cause, scene, names), "")
    action = action_for(parts, cause, scene, situation)
    return Fix("".join(parts), action, is_exact=exact is not None)


def _general(cause: Cause, scene: Scene, names: Names) -> list[str]:
    parts = _expanded(cause.parts, scene, names) or []
    # Nothing inside a container changes the host's card, kernel or driver.
    has_place = any(isinstance(part, Part) and part.where for part in parts)
    if scene.container is not None and _is_hosts(cause) and not has_place:
        parts.insert(0, "on the host: ")
    return parts


def _is_hosts(cause: Cause) -> bool:
    # What a plugin could not ask is told of by a finding of this report.
    is_step = cause.step in _OF_HOST and cause.code != "query-fails"
    is_elsewhere = cause.where in (CONTAINER, WINDOWS)
    return cause.where == HOST or (is_step and not cause.intended and not is_elsewhere)


def action_for(parts: Sequence[str], cause: Cause, scene: Scene, situation: str = "") -> Action:
    """Return what a fix does; its parts may be a prober's, which knows more of its library."""
    action = action_of(parts, _where(cause, scene, situation), situation)
    if not action.command and cause.where in (HOST, WINDOWS, FIRMWARE):
        action.where = cause.where
    _add_replaced(action, scene)
    return action


def _add_replaced(action: Action, scene: Scene) -> None:
    """Add the packages of another branch, which go when a branch of the driver is installed.

    Those of other drivers take the place of none that can be read.
    """
    from probe_core.readiness.packages import replaced

    names = replaced(scene.machine, action.changes)
    if names:
        action.removes += [f"package {name}" for name in names]
        # Arch has no older packages to install again.
        is_apt = action.command.startswith("sudo apt ")
        action.undo = f"sudo apt install {' '.join(names)}" if is_apt else None


def _where(cause: Cause, scene: Scene, situation: str) -> str:
    if scene.machine.os == "windows":
        return WINDOWS
    if scene.container is None:
        return SERVICE if situation == "service" else HOST
    if not situation and _is_hosts(cause):
        return HOST
    return POD if scene.container == "kubernetes" else CONTAINER


def fix_for(device: DeviceDoc, step: StepDoc, scene: Scene) -> Fix | None:
    """Return what helps against a broken step of a device; None of a cause of others."""
    cause = CAUSES.get(step["code"] or "")
    return None if cause is None else _fix(cause, Names(device, step, scene))


def fix_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what helps against a broken step of a device, as a line."""
    fix = fix_for(device, step, scene)
    if fix is None:
        return NO_FIX if step["status"] != "broken" else f"see `probe explain {device['id']}`"
    return fix.line


def fix_of_machine(code: str, scene: Scene) -> Fix:
    """Return what helps against a cause that no device is named for."""
    cause = CAUSES[code]
    step: StepDoc = {"step": cause.step, "status": "broken", "evidence": None, "code": code}
    return _fix(cause, Names(_nobody(cause), step, scene))


def _nobody(cause: Cause) -> DeviceDoc:
    """Return what sentences need of a device where none is known: no id, no place, no driver."""
    device: dict[str, object] = {
        **{"id": "", "ids": [], "kind": "gpu", "vendor": cause.vendor or None, "name": None},
        **{"arch": None, "parent": None, "pci": None, "seen_by": [], "sources": {}, "driver": None},
        **{"chip": {"id": None, "candidates": []}, "power_state": None, "node_index": {}},
    }
    return device  # type: ignore[return-value]  # a part of a device


def meaning_of(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what a broken step means, as the end of a sentence."""
    cause = CAUSES.get(step["code"] or "")
    if cause is None:
        return f"the step {step['step']} is broken"
    # A device that is for computing alone is not told of what a graphics card has left.
    meaning = cause.what if step.get("blocks") else cause.meaning
    return str(fill(meaning, Names(device, step, scene)))
