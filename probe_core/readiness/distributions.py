"""Which distribution a machine runs, and its commands: data, one line a fact.

Keys are the family of /etc/os-release (ID, else the first of ID_LIKE that is known). Sources are
the distributions' own package lists and guides; where a family has no entry, nothing is guessed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine import Machine

    Commands = Mapping[str, str]

__all__ = ["COMMANDS", "FAMILIES", "command", "family_of", "os_release"]

# ID to family, where they differ. RHEL's rebuilds take NVIDIA's and AMD's repositories for RHEL.
FAMILIES = {
    "ubuntu": "ubuntu",
    "debian": "debian",
    "fedora": "fedora",
    "rhel": "rhel",
    "centos": "rhel",
    "rocky": "rhel",
    "almalinux": "rhel",
    "ol": "rhel",
    "amzn": "rhel",  # its ID_LIKE is fedora, and RPM Fusion has nothing for it
    "arch": "arch",
    "opensuse-leap": "suse",
    "opensuse-tumbleweed": "suse",
    "sles": "suse",
    "opensuse": "suse",
    "suse": "suse",
    "alpine": "alpine",
    "nixos": "nixos",
    "gentoo": "gentoo",
}

_NIX = "in /etc/nixos/configuration.nix set `{}`, then `sudo nixos-rebuild boot` and reboot"

# Cloud images have a small kernel; the modules of GPUs are in another package of the same version.
_IN_KERNEL = {
    "ubuntu": "`sudo apt install linux-modules-extra-{release}`",
    "debian": "`sudo apt install linux-image-amd64` (not the cloud kernel), then reboot",
    "fedora": "`sudo dnf install kernel-modules-{release}`",
    "rhel": "`sudo dnf install kernel-modules-{release}`",
    "arch": "`sudo pacman -S linux`, then reboot",
    "suse": "`sudo zypper install kernel-default`, then reboot",
    "alpine": "`sudo apk add linux-lts` (linux-virt lacks it), then reboot",
    "nixos": _NIX.format('boot.kernelModules = [ "{module}" ];'),
}

COMMANDS: dict[str, Commands] = {
    # Ubuntu Server Guide "NVIDIA drivers installation"; Debian wiki NvidiaGraphicsDrivers; RPM
    # Fusion Howto/NVIDIA; NVIDIA Driver Installation Guide (RHEL); Arch wiki NVIDIA; openSUSE
    # SDB:NVIDIA drivers; NixOS wiki NVIDIA; Gentoo wiki NVIDIA/nvidia-drivers.
    "driver nvidia": {
        "ubuntu": "`sudo ubuntu-drivers install`, then reboot",
        "debian": "`sudo apt install nvidia-driver` (section non-free), then reboot",
        "fedora": "`sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda` (RPM Fusion), reboot",
        "rhel": "`sudo dnf module install nvidia-driver:open-dkms` (NVIDIA's repository), reboot",
        "arch": "`sudo pacman -S nvidia-open` (before Turing: nvidia-580xx-dkms), then reboot",
        "suse": "`sudo zypper install nvidia-open-driver-G06-signed-kmp-meta`, then reboot",
        "alpine": "use a distribution with glibc: NVIDIA's driver has no build for musl",
        "nixos": _NIX.format('services.xserver.videoDrivers = [ "nvidia" ];'),
        "gentoo": "`sudo emerge x11-drivers/nvidia-drivers`, then reboot",
    },
    "driver amdgpu": _IN_KERNEL,
    "driver i915": _IN_KERNEL,
    "driver xe": _IN_KERNEL,
    "driver intel_vpu": _IN_KERNEL,
    "driver amdxdna": _IN_KERNEL,
    "driver qaic": _IN_KERNEL,
    "driver habanalabs": _IN_KERNEL,
    # Hailo's documentation of Raspberry Pi OS, and its own package for others.
    "driver hailo_pci": {
        "debian": "`sudo apt install hailo-all` (Raspberry Pi OS) or hailort-pcie-driver, reboot",
        "ubuntu": "install hailort-pcie-driver of Hailo's developer zone, then reboot",
    },
    "driver apex": {
        "debian": "`sudo apt install gasket-dkms` (Coral's repository), then reboot",
        "ubuntu": "`sudo apt install gasket-dkms` (Coral's repository), then reboot",
    },
    # AWS Neuron documentation, "Install Neuron Driver".
    "driver neuron": {
        "ubuntu": "`sudo apt install aws-neuronx-dkms` (the Neuron repository)",
        "rhel": "`sudo dnf install aws-neuronx-dkms` (the Neuron repository)",
    },
    "driver tenstorrent": {
        "ubuntu": "`sudo apt install tenstorrent-dkms` (Tenstorrent's repository)",
        "debian": "`sudo apt install tenstorrent-dkms` (Tenstorrent's repository)",
        "fedora": "`sudo dnf install tenstorrent-dkms` (Tenstorrent's repository)",
    },
    "headers": {
        "ubuntu": "`sudo apt install linux-headers-{release} && sudo dkms autoinstall`, reboot",
        "debian": "`sudo apt install linux-headers-{release} && sudo dkms autoinstall`, reboot",
        "fedora": "`sudo dnf install kernel-devel-{release} && sudo akmods --force`, then reboot",
        "rhel": "`sudo dnf install kernel-devel-{release} && sudo dkms autoinstall`, then reboot",
        "arch": "`sudo pacman -S linux-headers && sudo dkms autoinstall`, then reboot",
        "suse": "`sudo zypper install kernel-default-devel && sudo dkms autoinstall`, then reboot",
        "nixos": "`sudo nixos-rebuild boot`, then reboot",
        "gentoo": "`sudo emerge @module-rebuild`, then reboot",
    },
    # Where each distribution keeps the key that it signs modules with on this machine.
    "module key": {
        "ubuntu": "`sudo mokutil --import /var/lib/shim-signed/mok/MOK.der`, reboot, enrol the key",
        "debian": "`sudo mokutil --import /var/lib/dkms/mok.pub`, reboot, enrol the key",
        "fedora": "`sudo mokutil --import /etc/pki/akmods/certs/public_key.der`, reboot, enrol it",
        "rhel": "`sudo mokutil --import /var/lib/dkms/mok.pub`, reboot, enrol the key",
        "suse": "`sudo mokutil --import /var/lib/nvidia-pubkeys/*.der`, reboot, enrol the key",
        "arch": "sign the module with your own key (sbctl, or `mokutil --import`), then reboot",
    },
    "driver branch": {
        "ubuntu": "`sudo apt install nvidia-driver-{branch}`, then reboot",
        "debian": "`sudo apt install nvidia-tesla-{branch}-driver`, then reboot",
        "fedora": "`sudo dnf install akmod-nvidia-{branch}xx` (RPM Fusion), then reboot",
        "rhel": "`sudo dnf module install nvidia-driver:{branch}-dkms` (NVIDIA's repository)",
        "arch": "install nvidia-{branch}xx-dkms (AUR), then reboot",
    },
    "driver open": {
        "ubuntu": "`sudo apt install nvidia-driver-{branch}-open` or a later one, then reboot",
        "fedora": "`sudo dnf upgrade akmod-nvidia` (RPM Fusion), then reboot",
        "rhel": "`sudo dnf module install nvidia-driver:open-dkms` (NVIDIA's repository), reboot",
        "arch": "`sudo pacman -S nvidia-open`, then reboot",
        "suse": "`sudo zypper install nvidia-open-driver-G06-signed-kmp-meta`, then reboot",
        "nixos": _NIX.format("hardware.nvidia.open = true;"),
    },
    "initramfs": {
        "ubuntu": "`sudo update-initramfs -u`",
        "debian": "`sudo update-initramfs -u`",
        "fedora": "`sudo dracut --force`",
        "rhel": "`sudo dracut --force`",
        "arch": "`sudo mkinitcpio -P`",
        "suse": "`sudo dracut --force`",
        "alpine": "`sudo mkinitfs`",
        "nixos": "`sudo nixos-rebuild boot`",
        "gentoo": "`sudo dracut --force`",
    },
    "remove parameter": {
        "ubuntu": "remove {parameter} from /etc/default/grub, `sudo update-grub`, then reboot",
        "debian": "remove {parameter} from /etc/default/grub, `sudo update-grub`, then reboot",
        "fedora": "`sudo grubby --update-kernel=ALL --remove-args={parameter}`, then reboot",
        "rhel": "`sudo grubby --update-kernel=ALL --remove-args={parameter}`, then reboot",
        "arch": "remove {parameter} from the boot entry (/boot/loader/entries, or /etc/default/grub"
        " and `sudo grub-mkconfig -o /boot/grub/grub.cfg`), then reboot",
        "suse": "remove {parameter} from /etc/default/grub,"
        " `sudo grub2-mkconfig -o /boot/grub2/grub.cfg`, then reboot",
        "nixos": "remove {parameter} from boot.kernelParams, `sudo nixos-rebuild boot`, reboot",
    },
    "add parameter": {
        "ubuntu": "add {parameter} to GRUB_CMDLINE_LINUX in /etc/default/grub, `sudo update-grub`,"
        " then reboot",
        "debian": "add {parameter} to GRUB_CMDLINE_LINUX in /etc/default/grub, `sudo update-grub`,"
        " then reboot",
        "fedora": '`sudo grubby --update-kernel=ALL --args="{parameter}"`, then reboot',
        "rhel": '`sudo grubby --update-kernel=ALL --args="{parameter}"`, then reboot',
        "arch": "add {parameter} to the boot entry (/boot/loader/entries, or /etc/default/grub and"
        " `sudo grub-mkconfig -o /boot/grub/grub.cfg`), then reboot",
        "suse": "add {parameter} to /etc/default/grub,"
        " `sudo grub2-mkconfig -o /boot/grub2/grub.cfg`, then reboot",
        "nixos": "add {parameter} to boot.kernelParams, `sudo nixos-rebuild boot`, then reboot",
    },
    # The libraries that belong to the kernel driver, as each distribution splits NVIDIA's driver.
    "libraries nvidia": {
        "ubuntu": "`sudo apt install libnvidia-compute-{branch} nvidia-utils-{branch}`",
        "debian": "`sudo apt install libnvidia-ml1 libcuda1 nvidia-smi`",
        "fedora": "`sudo dnf install xorg-x11-drv-nvidia-cuda` (RPM Fusion)",
        "rhel": "`sudo dnf install nvidia-driver-cuda` (NVIDIA's repository)",
        "arch": "`sudo pacman -S nvidia-utils`",
        "suse": "`sudo zypper install nvidia-compute-utils-G06`",
        "nixos": _NIX.format("hardware.graphics.enable = true;"),
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
    "firmware amdgpu": {
        "ubuntu": "`sudo apt install linux-firmware`",
        "debian": "`sudo apt install firmware-amd-graphics` (section non-free-firmware)",
        "fedora": "`sudo dnf install amd-gpu-firmware`",
        "rhel": "`sudo dnf install linux-firmware`",
        "arch": "`sudo pacman -S linux-firmware`",
        "suse": "`sudo zypper install kernel-firmware-amdgpu`",
        "alpine": "`sudo apk add linux-firmware-amdgpu`",
        "nixos": _NIX.format("hardware.enableRedistributableFirmware = true;"),
        "gentoo": "`sudo emerge sys-kernel/linux-firmware`",
    },
    "firmware xe": {
        "ubuntu": "`sudo apt install linux-firmware`",
        "debian": "`sudo apt install firmware-intel-graphics` (Debian 12: firmware-misc-nonfree)",
        "fedora": "`sudo dnf install intel-gpu-firmware`",
        "rhel": "`sudo dnf install linux-firmware`",
        "arch": "`sudo pacman -S linux-firmware`",
        "suse": "`sudo zypper install kernel-firmware-i915`",
        "alpine": "`sudo apk add linux-firmware-xe`",
        "nixos": _NIX.format("hardware.enableRedistributableFirmware = true;"),
        "gentoo": "`sudo emerge sys-kernel/linux-firmware`",
    },
    "firmware intel_vpu": {
        "ubuntu": "`sudo apt install linux-firmware`",
        "debian": "`sudo apt install firmware-intel-misc` (section non-free-firmware)",
        "fedora": "`sudo dnf install linux-firmware`",
        "arch": "`sudo pacman -S linux-firmware`",
        "nixos": _NIX.format("hardware.enableRedistributableFirmware = true;"),
    },
    "firmware panthor": {
        "ubuntu": "`sudo apt install linux-firmware`",
        "debian": "`sudo apt install firmware-misc-nonfree` (section non-free-firmware)",
        "fedora": "`sudo dnf install linux-firmware`",
        "arch": "`sudo pacman -S linux-firmware`",
        "alpine": "`sudo apk add linux-firmware-arm`",
    },
    # ROCm installation guide (AMD's repository); Fedora, Arch and NixOS package it themselves.
    "rocm": {
        "ubuntu": "`sudo apt install rocm` (AMD's repository)",
        "debian": "`sudo apt install rocm` (AMD's repository)",
        "fedora": "`sudo dnf install rocm-hip rocm-runtime`",
        "rhel": "`sudo dnf install rocm` (AMD's repository)",
        "arch": "`sudo pacman -S rocm-hip-runtime`",
        "suse": "`sudo zypper install rocm` (AMD's repository)",
        "nixos": _NIX.format("hardware.amdgpu.opencl.enable = true;"),
    },
    # Intel, "Installing client GPUs" (Ubuntu's PPA); Debian 13 and later have the packages.
    "level zero": {
        "ubuntu": "`sudo apt install libze-intel-gpu1 intel-opencl-icd` (before Ubuntu 24.10:"
        " ppa:kobuk-team/intel-graphics)",
        "debian": "`sudo apt install libze-intel-gpu1 intel-opencl-icd`",
        "fedora": "`sudo dnf install intel-level-zero intel-opencl`",
        "arch": "`sudo pacman -S intel-compute-runtime level-zero-loader`",
        "nixos": _NIX.format("hardware.graphics.extraPackages = [ pkgs.intel-compute-runtime ];"),
    },
}
"""Topic to the command of each family; braces are filled in for the machine."""


def os_release(machine: Machine) -> dict[str, str]:
    """Return the fields of os-release (os-release(5)); empty where there is none."""
    text = machine.read("/etc/os-release", 16 << 10)
    if text is None:
        text = machine.read("/usr/lib/os-release", 16 << 10)
    pairs = (line.partition("=") for line in (text or "").splitlines())
    return {name: value.strip().strip("\"'") for name, equals, value in pairs if equals}


def family_of(fields: Mapping[str, str]) -> str:
    """Return the family whose commands a distribution takes; "" where it is none of them."""
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    return next((FAMILIES[name] for name in names if name in FAMILIES), "")


def command(topic: str, family: str, **names: str) -> str | None:
    """Return the command for a topic; None where the family's own is not known."""
    text = COMMANDS.get(topic, {}).get(family)
    return text.format(**names) if text is not None else None
