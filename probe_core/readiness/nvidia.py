"""What NVIDIA's kernel driver says of itself, and which GPUs a version of it supports."""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.readiness.chain import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.distributions import Commands
    from probe_core.readiness.scene import Scene

    Maker = Callable[[DeviceDoc, StepDoc, Scene], str]


_STEP = "driver"

# Architecture to the last driver branch that supports it (NVIDIA, "Legacy GPUs", and release notes:
# 580 is the last of Maxwell, Pascal and Volta).
_LAST_BRANCH = {
    "tesla": 340,
    "fermi": 390,
    "kepler": 470,
    "maxwell": 580,
    "pascal": 580,
    "volta": 580,
}

# Architecture to the first production branch that supports it.
_FIRST_BRANCH = {
    "pascal": 367,
    "volta": 384,
    "turing": 410,
    "ampere": 450,
    "hopper": 520,
    "ada": 520,
    "blackwell": 570,
}

_OLDEST_OFFERED = 535
"""The oldest branch that distributions still have (Ubuntu 22.04 to 24.04, Debian 12)."""

# The open module needs a GSP, which came with Turing (open-gpu-kernel-modules, README).
_WITHOUT_GSP = ("tesla", "fermi", "kepler", "maxwell", "pascal", "volta")

# Only the open module supports these and Grace Hopper (NVIDIA, "Transitions Fully Towards
# Open-Source GPU Kernel Modules").
_OPEN_ALONE = ("blackwell", "rubin")
_GRACE_HOPPER = "nvidia/gh200"


def version_of(text: str) -> str | None:
    """Return "580.95.05" of /proc/driver/nvidia/version; None when it has no version."""
    for field in text.partition("\n")[0].split():
        parts = field.split(".")
        if len(parts) in (2, 3) and all(decimal(part) is not None for part in parts):
            return field
    return None


def major_of(version: str | None) -> int | None:
    """Return the branch's number: 580 of "580.95.05"."""
    return decimal((version or "").partition(".")[0])


def is_open(text: str) -> bool:
    """Return whether the loaded module is the open one."""
    return "Open Kernel Module" in text


def branch_for(device: DeviceDoc) -> str:
    """Return the branch to install for a GPU that the installed one does not support."""
    arch = device["arch"] or ""
    first = _FIRST_BRANCH.get(arch)
    branch = _LAST_BRANCH.get(arch) or (first and max(first, _OLDEST_OFFERED))
    return str(branch) if branch else "its release notes name"


def refusal(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return why the loaded module does not take the GPU; None where that is not known."""
    text, arch = scene.nvidia_version, device["arch"] or ""
    major = major_of(version_of(text))
    if major is None:
        return None
    evidence = f"/proc/driver/nvidia/version: {version_of(text)}; the GPU's architecture is {arch}"
    if arch in _LAST_BRANCH and major > _LAST_BRANCH[arch]:
        return broken(_STEP, "legacy-branch", evidence)
    if is_open(text) and arch in _WITHOUT_GSP:
        return broken(_STEP, "open-module-unsupported", f"{evidence}, Open Kernel Module")
    if arch in _FIRST_BRANCH and major < _FIRST_BRANCH[arch]:
        return broken(_STEP, "driver-too-old-for-gpu", evidence)
    if _needs_open(device, arch) and not is_open(text):
        return broken(_STEP, "closed-module-unsupported", f"{evidence}, not the open module")
    return None


def _needs_open(device: DeviceDoc, arch: str) -> bool:
    chip = device["chip"]
    chips = [chip["id"]] if chip["id"] else chip["candidates"]
    is_grace = bool(chips) and all(name.startswith(_GRACE_HOPPER) for name in chips)
    return arch in _OPEN_ALONE or is_grace


def problem(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Return what is wrong with the driver that holds a GPU, though it holds it."""
    if "nvidia_vgpu_vfio" in scene.modules.loaded:
        return broken(_STEP, "vgpu-host-driver", "/proc/modules: nvidia_vgpu_vfio")
    return _without_firmware(device, scene)


def _without_firmware(device: DeviceDoc, scene: Scene) -> StepDoc | None:
    """Judge the GSP's firmware, which the open module always loads.

    A container has no firmware and needs none: the kernel reads the host's.
    """
    version = version_of(scene.nvidia_version)
    if version is None or not is_open(scene.nvidia_version) or scene.container is not None:
        return None
    machine, folder = scene.machine, f"/lib/firmware/nvidia/{version}"
    if device["arch"] in _WITHOUT_GSP or not machine.listdir("/lib/firmware"):
        return None
    names = machine.listdir(folder)
    if any(name.startswith("gsp_") for name in names):
        return None
    return broken(_STEP, "gsp-firmware-missing", f"{folder} has no gsp_*.bin")


# The names in sentences of causes that are about NVIDIA's driver: branch, library, nodes' mode.

# Causes that a branch for the GPU repairs, whatever is loaded for another one.
_OF_GPU = (
    "no-driver",
    "driver-not-installed",
    "nouveau-bound",
    "nova-bound",
    "legacy-branch",
    "driver-too-old-for-gpu",
    "open-module-unsupported",
)


def _branch(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the branch of NVIDIA's driver: that which the GPU needs, else the loaded one."""
    if step["code"] in _OF_GPU:
        return branch_for(device)
    if step["code"] == "module-missing-for-kernel" and (flavour := _signed(device, step, scene)):
        return flavour
    return str(major_of(version_of(scene.nvidia_version)) or branch_for(device))


def _version(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    return version_of(scene.nvidia_version) or ""


def _cuda_library(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    return next(iter(scene.libraries.find("libcuda.so.1")), "libcuda.so.1")


def _cuda_branch(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    from probe_core.readiness.runtime import driver_of

    real = scene.machine.realpath(_cuda_library(device, step, scene))
    return str(major_of(driver_of(real)) or "of its version")


def _cuda_folder(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return what brings the library into the image: a folder, or the package itself."""
    folder = _cuda_library(device, step, scene).rpartition("/")[0]
    return f"{folder} in LD_LIBRARY_PATH" if "/compat" in folder else "cuda-compat"


def _cuda_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    folder = _cuda_library(device, step, scene).rpartition("/")[0]
    if folder in scene.environ.get("LD_LIBRARY_PATH", "").split(":"):
        return f"take {folder} out of LD_LIBRARY_PATH: the driver has a newer libcuda.so.1"
    if scene.container is not None:
        return "take libcuda.so.1 out of the image: the host's is mounted"
    return "install libcuda.so.1 of the driver's version"


def _libcuda_fix(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    if scene.container is not None:
        return "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    return "install libcuda.so.1 of the driver's version"


def _nvidia_group(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the group to which NVIDIA's module gives its nodes (NVreg_DeviceFileGID); "" if none.

    Mode 0660 is 432, as /proc/driver/nvidia/params writes it.
    """
    if device["vendor"] != "nvidia":
        return ""
    group = decimal(scene.nvidia_params.get("DeviceFileGID", ""))
    mode = decimal(scene.nvidia_params.get("DeviceFileMode", "432"))
    if not group or not mode or mode >> 3 & 6 != 6:
        return ""
    names = (n for n, (number, _) in scene.process.listed_groups().items() if number == group)
    return next(names, str(group))


def _nvidia_mode(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return the mode that closes NVIDIA's nodes to all but root, as "0600"; "" of another."""
    mode = decimal(scene.nvidia_params.get("DeviceFileMode", ""))
    is_open = mode is None or mode & 6 == 6 or _nvidia_group(device, step, scene)
    return "" if is_open or device["vendor"] != "nvidia" else f"{mode:04o}"


def _signed(device: DeviceDoc, step: StepDoc, scene: Scene) -> str:
    """Return which of Ubuntu's signed modules another kernel has: "580-server-open"; "" if none.

    The folder of linux-modules-nvidia-580-server-open-RELEASE is kernel/nvidia-580srv-open.
    """
    folder = scene.modules.for_other_kernel("nvidia")
    file = scene.modules.on_disk("nvidia", folder) if folder else None
    flavour = (file or "").partition("/kernel/nvidia-")[2].partition("/")[0]
    return flavour.replace("srv", "-server")


MAKERS: dict[str, Maker] = {
    "branch": _branch,
    "cuda_branch": _cuda_branch,
    "cuda_fix": _cuda_fix,
    "cuda_folder": _cuda_folder,
    "cuda_library": _cuda_library,
    "libcuda_fix": _libcuda_fix,
    "nvidia_group": _nvidia_group,
    "nvidia_mode": _nvidia_mode,
    "signed": _signed,
    "version": _version,
}
"""Name in a sentence's braces to what makes its text."""


# The commands of distributions about NVIDIA's driver: data, one line a fact.

NIX = "in /etc/nixos/configuration.nix set `{}`, then `sudo nixos-rebuild boot` and reboot"

NVIDIA: dict[str, Commands] = {
    # Google Cloud, "Running GPUs on Container-Optimized OS"; Manjaro wiki, "Configure Graphics".
    # Ubuntu Server Guide "NVIDIA drivers installation"; Debian wiki NvidiaGraphicsDrivers; RPM
    # Fusion Howto/NVIDIA; NVIDIA Driver Installation Guide (RHEL); Arch wiki NVIDIA; openSUSE
    # SDB:NVIDIA drivers; NixOS wiki NVIDIA; Gentoo wiki NVIDIA/nvidia-drivers.
    "driver nvidia": {
        "ubuntu": "`sudo ubuntu-drivers install`, then reboot",
        "debian": "`sudo apt install nvidia-driver` (section non-free), then reboot",
        "fedora": "`sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda` (RPM Fusion), reboot",
        "rhel": "`sudo dnf module install nvidia-driver:open-dkms` (NVIDIA's repository), reboot",
        "rhel10": "`sudo dnf install nvidia-open` (NVIDIA's repository), then reboot",
        "cos": "`sudo cos-extensions install gpu`",
        "manjaro": "`sudo mhwd -a pci nonfree 0300`, then reboot",
        "arch": "`sudo pacman -S nvidia-open` (before Turing: nvidia-580xx-dkms), then reboot",
        "suse": "`sudo zypper install nvidia-open-driver-G06-signed-kmp-meta`, then reboot",
        "alpine": "use a distribution with glibc: NVIDIA's driver has no build for musl",
        "nixos": NIX.format('services.xserver.videoDrivers = [ "nvidia" ];'),
        "gentoo": "`sudo emerge x11-drivers/nvidia-drivers`, then reboot",
    },
    # By the branch that the GPU needs, where the command above installs one without it: RHEL's
    # and SUSE's are open modules, Debian's is older than Blackwell. ELRepo; RPM Fusion
    # Howto/NVIDIA, "Legacy GeForce".
    "driver nvidia 580": {
        "fedora": "`sudo dnf install akmod-nvidia-580xx xorg-x11-drv-nvidia-580xx-cuda` (RPM"
        " Fusion), reboot",
        "rhel": "`sudo dnf module install nvidia-driver:580-dkms` (NVIDIA's repository), reboot",
        "rhel10": "`sudo dnf install cuda-drivers`, of branch 580 (NVIDIA's repository), reboot",
        "manjaro": "`sudo mhwd -a pci nonfree 0300`, then reboot",
        "arch": "install nvidia-580xx-dkms (AUR), then reboot",
        "suse": "`sudo zypper install nvidia-driver-G06-kmp-default`, then reboot",
    },
    "driver nvidia 570": {
        "debian": "`sudo apt install nvidia-open` (NVIDIA's repository), then reboot",
    },
    "driver nvidia 470": {
        "debian": "`sudo apt install nvidia-tesla-470-driver` (section non-free), then reboot",
        "fedora": "`sudo dnf install akmod-nvidia-470xx xorg-x11-drv-nvidia-470xx-cuda` (RPM"
        " Fusion), reboot",
        "rhel": "`sudo dnf install kmod-nvidia-470xx` (ELRepo), then reboot",
        "arch": "install nvidia-470xx-dkms (AUR), then reboot",
    },
    # The last branch of a legacy GPU. NVIDIA Driver Installation Guide, "Version locking" (Debian);
    # NixOS wiki NVIDIA, "Legacy branches".
    "driver branch": {
        "ubuntu": "`sudo apt install nvidia-driver-{branch}`, then reboot",
        "debian": "`sudo apt install nvidia-tesla-{branch}-driver`, then reboot",
        "fedora": "`sudo dnf install akmod-nvidia-{branch}xx` (RPM Fusion), then reboot",
        "rhel": "`sudo dnf module install nvidia-driver:{branch}-dkms` (NVIDIA's repository)",
        "rhel10": "`sudo dnf install cuda-drivers`, of branch {branch} (NVIDIA's repository)",
        "arch": "install nvidia-{branch}xx-dkms (AUR), then reboot",
        "nixos": NIX.format(
            "hardware.nvidia.package = config.boot.kernelPackages.nvidiaPackages.legacy_{branch};"
        ),
    },
    "driver branch 580": {
        "debian": "`sudo apt install nvidia-driver-pinning-580 cuda-drivers-580` (NVIDIA's"
        " repository), then reboot",
    },
    "driver open": {
        "ubuntu": "`sudo apt install nvidia-driver-{branch}-open` or a later one, then reboot",
        "fedora": "`sudo dnf upgrade akmod-nvidia` (RPM Fusion), then reboot",
        "debian": "`sudo apt install nvidia-open` (NVIDIA's repository), then reboot",
        "rhel": "`sudo dnf module switch-to nvidia-driver:open-dkms --allowerasing` (NVIDIA's"
        " repository), reboot",
        "rhel10": "`sudo dnf install --allowerasing nvidia-open` (NVIDIA's repository), reboot",
        "arch": "`sudo pacman -S nvidia-open`, then reboot",
        "suse": "`sudo zypper install nvidia-open-driver-G06-signed-kmp-meta`, then reboot",
        "nixos": NIX.format("hardware.nvidia.open = true;"),
    },
    # From the closed to the open module. NVIDIA Driver Installation Guide, "Switching between
    # Driver Module Flavors"; RPM Fusion Howto/NVIDIA, "Kernel Open".
    "module open": {
        "ubuntu": "`sudo apt install nvidia-driver-{branch}-open`, then reboot",
        "debian": "`sudo apt install --autoremove --purge nvidia-open` (NVIDIA's repository),"
        " then reboot",
        "fedora": "`echo '%_with_kmod_nvidia_open 1' | sudo tee /etc/rpm/macros.nvidia-kmod &&"
        " sudo akmods --rebuild` (RPM Fusion), then reboot",
        "rhel": "`sudo dnf module switch-to nvidia-driver:open-dkms --allowerasing` (NVIDIA's"
        " repository), reboot",
        "rhel10": "`sudo dnf install --allowerasing nvidia-open` (NVIDIA's repository), reboot",
        "arch": "`sudo pacman -S nvidia-open`, then reboot",
        "suse": "`sudo zypper install nvidia-open-driver-G06-signed-kmp-meta`, then reboot",
        "nixos": NIX.format("hardware.nvidia.open = true;"),
    },
    # From the open to the closed module, which no branch after 580 has for such a GPU.
    "module closed": {
        "ubuntu": "`sudo apt install nvidia-driver-{branch}`, then reboot",
        "debian": "`sudo apt install nvidia-kernel-dkms` (NVIDIA's repository:"
        " nvidia-driver-pinning-580 and cuda-drivers-580), then reboot",
        "fedora": "`sudo dnf install akmod-nvidia-{branch}xx` (RPM Fusion), then reboot",
        "rhel": "`sudo dnf module switch-to nvidia-driver:{branch}-dkms --allowerasing` (NVIDIA's"
        " repository), reboot",
        "rhel10": "`sudo dnf install --allowerasing cuda-drivers`, of branch {branch} (NVIDIA's"
        " repository), reboot",
        "arch": "install nvidia-{branch}xx-dkms (AUR), then reboot",
        "nixos": NIX.format("hardware.nvidia.open = false;"),
    },
    # The libraries that belong to the kernel driver, as each distribution splits NVIDIA's driver.
    "libraries nvidia": {
        "ubuntu": "`sudo apt install libnvidia-compute-{branch} nvidia-utils-{branch}`",
        "debian": "`sudo apt install libnvidia-ml1 libcuda1 nvidia-smi`",
        "fedora": "`sudo dnf install xorg-x11-drv-nvidia-cuda` (RPM Fusion)",
        "rhel": "`sudo dnf install nvidia-driver-cuda` (NVIDIA's repository)",
        "arch": "`sudo pacman -S nvidia-utils`",
        "suse": "`sudo zypper install nvidia-compute-utils-G06`",
        "nixos": NIX.format("hardware.graphics.enable = true;"),
        "gentoo": "`sudo emerge x11-drivers/nvidia-drivers`",
    },
    "gsp firmware": {
        "ubuntu": "`sudo apt install --reinstall nvidia-firmware-{branch}-{version}`",
        "debian": "`sudo apt install firmware-nvidia-gsp`",
        "fedora": "`sudo dnf reinstall xorg-x11-drv-nvidia` (RPM Fusion)",
        "rhel": "`sudo dnf install nvidia-kmod-common` (NVIDIA's repository)",
        "arch": "`sudo pacman -S nvidia-utils`",
        "suse": "`sudo zypper install nvidia-common-G06`",
        "nixos": "`sudo nixos-rebuild boot`",
    },
    "fabric manager": {
        "ubuntu": "`sudo apt install nvidia-fabricmanager-{branch} &&"
        " sudo systemctl enable --now nvidia-fabricmanager`",
        "debian": "`sudo apt install nvidia-fabricmanager-{branch} &&"
        " sudo systemctl enable --now nvidia-fabricmanager`",
        "rhel": "`sudo dnf install nvidia-fabric-manager &&"
        " sudo systemctl enable --now nvidia-fabricmanager`",
        "suse": "`sudo zypper install nvidia-fabricmanager-{branch} &&"
        " sudo systemctl enable --now nvidia-fabricmanager`",
    },
}
