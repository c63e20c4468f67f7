"""Which distribution a machine runs, and its commands: data, one line a fact.

Keys are the family of /etc/os-release (ID, else the first of ID_LIKE that is known). Sources are
the distributions' own package lists and guides; where a family has no entry, nothing is guessed.
"""

from __future__ import annotations

from probe_core.readiness.nvidia import NIX, NVIDIA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine import Machine

    Commands = Mapping[str, str]

__all__ = [
    "COMMANDS",
    "FAMILIES",
    "OSTREE",
    "VARIANTS",
    "command",
    "family_of",
    "family_on",
    "os_release",
]

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
    "manjaro": "manjaro",
    "cos": "cos",
    "opensuse-leap": "suse",
    "opensuse-tumbleweed": "suse",
    "sles": "suse",
    "opensuse": "suse",
    "suse": "suse",
    "alpine": "alpine",
    "nixos": "nixos",
    "gentoo": "gentoo",
}

# Family to the one whose commands it takes, where it has none of its own. RHEL 10 has no module
# streams; Proxmox VE says of itself that it is Debian.
VARIANTS = {"manjaro": "arch", "rhel10": "rhel", "proxmox": "debian", "ostree": "fedora"}

# Silverblue, Kinoite, Bazzite and CoreOS: /usr is read-only, and packages are layered.
_LAYERED = (
    ("sudo dnf install", "sudo rpm-ostree install"),
    ("sudo dnf upgrade", "sudo rpm-ostree install"),
)

OSTREE = "/run/ostree-booted"
"""The mark of a system that is one image (ostree(1))."""

# Cloud images have a small kernel; the modules of GPUs are in another package of the same version.
_IN_KERNEL = {
    "ubuntu": "`sudo apt install linux-modules-extra-{release}`",
    "debian": "`sudo apt install linux-image-amd64` (not the cloud kernel), then reboot",
    "fedora": "`sudo dnf install kernel-modules-{release}`",
    "rhel": "`sudo dnf install kernel-modules-{release}`",
    "arch": "`sudo pacman -S {kernel}`, then reboot",
    "suse": "`sudo zypper install kernel-default`, then reboot",
    "alpine": "`sudo apk add linux-lts` (linux-virt lacks it), then reboot",
    "nixos": NIX.format('boot.kernelModules = [ "{module}" ];'),
}

_OF_INTEL = {
    "ubuntu": "`sudo apt install linux-firmware`",
    "debian": "`sudo apt install firmware-intel-graphics` (Debian 12: firmware-misc-nonfree)",
    "fedora": "`sudo dnf install intel-gpu-firmware`",
    "rhel": "`sudo dnf install linux-firmware`",
    "arch": "`sudo pacman -S linux-firmware`",
    "suse": "`sudo zypper install kernel-firmware-i915`",
    "alpine": "`sudo apk add linux-firmware-xe`",
    "nixos": NIX.format("hardware.enableRedistributableFirmware = true;"),
    "gentoo": "`sudo emerge sys-kernel/linux-firmware`",
}

COMMANDS: dict[str, Commands] = {
    **NVIDIA,
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
        "proxmox": "`sudo apt install proxmox-headers-{release} && sudo dkms autoinstall`, reboot",
        "fedora": "`sudo dnf install kernel-devel-{release} && sudo akmods --force`, then reboot",
        "rhel": "`sudo dnf install kernel-devel-{release} && sudo dkms autoinstall`, then reboot",
        "arch": "`sudo pacman -S {kernel}-headers && sudo dkms autoinstall`, then reboot",
        "suse": "`sudo zypper install kernel-default-devel && sudo dkms autoinstall`, then reboot",
        "nixos": "`sudo nixos-rebuild boot`, then reboot",
        "gentoo": "`sudo emerge @module-rebuild`, then reboot",
    },
    # Built and signed by Ubuntu, one package for a kernel (Ubuntu Server Guide, "NVIDIA drivers
    # installation", manual).
    "signed modules": {
        "ubuntu": "`sudo apt install linux-modules-nvidia-{branch}-{release}`, then reboot",
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
    # Ubuntu's hardware enablement stack; Debian's backports.
    "newer kernel": {
        "ubuntu": "`sudo apt install linux-generic-hwe-$(. /etc/os-release; echo $VERSION_ID)`,"
        " then reboot",
        "debian": "`sudo apt install -t $(. /etc/os-release; echo $VERSION_CODENAME)-backports"
        " linux-image-$(dpkg --print-architecture)`, then reboot",
        "proxmox": "`sudo apt full-upgrade`, then reboot",
        "fedora": "`sudo dnf upgrade --refresh`, then reboot",
        "ostree": "`sudo rpm-ostree upgrade`, then reboot",
        "arch": "`sudo pacman -Syu`, then reboot",
        "suse": "`sudo zypper dup` (Tumbleweed), then reboot",
        "nixos": NIX.format("boot.kernelPackages = pkgs.linuxPackages_latest;"),
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
        "proxmox": "remove {parameter} from /etc/kernel/cmdline, `sudo proxmox-boot-tool refresh`"
        " (with GRUB: /etc/default/grub, `sudo update-grub`), then reboot",
        "ostree": "`sudo rpm-ostree kargs --delete={parameter}`, then reboot",
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
        "proxmox": "add {parameter} to /etc/kernel/cmdline, `sudo proxmox-boot-tool refresh`"
        " (with GRUB: /etc/default/grub, `sudo update-grub`), then reboot",
        "ostree": '`sudo rpm-ostree kargs --append="{parameter}"`, then reboot',
        "fedora": '`sudo grubby --update-kernel=ALL --args="{parameter}"`, then reboot',
        "rhel": '`sudo grubby --update-kernel=ALL --args="{parameter}"`, then reboot',
        "arch": "add {parameter} to the boot entry (/boot/loader/entries, or /etc/default/grub and"
        " `sudo grub-mkconfig -o /boot/grub/grub.cfg`), then reboot",
        "suse": "add {parameter} to /etc/default/grub,"
        " `sudo grub2-mkconfig -o /boot/grub2/grub.cfg`, then reboot",
        "nixos": "add {parameter} to boot.kernelParams, `sudo nixos-rebuild boot`, then reboot",
    },
    "firmware amdgpu": {
        "ubuntu": "`sudo apt install linux-firmware`",
        "debian": "`sudo apt install firmware-amd-graphics` (section non-free-firmware)",
        "fedora": "`sudo dnf install amd-gpu-firmware`",
        "rhel": "`sudo dnf install linux-firmware`",
        "arch": "`sudo pacman -S linux-firmware`",
        "suse": "`sudo zypper install kernel-firmware-amdgpu`",
        "alpine": "`sudo apk add linux-firmware-amdgpu`",
        "nixos": NIX.format("hardware.enableRedistributableFirmware = true;"),
        "gentoo": "`sudo emerge sys-kernel/linux-firmware`",
    },
    "firmware i915": _OF_INTEL,
    "firmware xe": _OF_INTEL,
    "firmware intel_vpu": {
        "ubuntu": "`sudo apt install linux-firmware`",
        "debian": "`sudo apt install firmware-intel-misc` (section non-free-firmware)",
        "fedora": "`sudo dnf install linux-firmware`",
        "arch": "`sudo pacman -S linux-firmware`",
        "nixos": NIX.format("hardware.enableRedistributableFirmware = true;"),
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
        "nixos": NIX.format("hardware.amdgpu.opencl.enable = true;"),
    },
    # Intel, "Installing client GPUs" (Ubuntu's PPA); Debian 13 and later have the packages.
    "level zero": {
        "ubuntu": "`sudo apt install libze-intel-gpu1 intel-opencl-icd` (before Ubuntu 24.10:"
        " ppa:kobuk-team/intel-graphics)",
        "debian": "`sudo apt install libze-intel-gpu1 intel-opencl-icd`",
        "fedora": "`sudo dnf install intel-level-zero intel-opencl`",
        "arch": "`sudo pacman -S intel-compute-runtime level-zero-loader`",
        "nixos": NIX.format("hardware.graphics.extraPackages = [ pkgs.intel-compute-runtime ];"),
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
    family = next((FAMILIES[name] for name in names if name in FAMILIES), "")
    is_ten = fields.get("VERSION_ID", "").partition(".")[0] == "10"
    return "rhel10" if family == "rhel" and is_ten else family


def family_on(machine: Machine, release: str) -> str:
    """Return the family of the distribution that runs, by its files and its kernel's release."""
    family = family_of(os_release(machine))
    if family in ("fedora", "rhel", "rhel10") and machine.exists(OSTREE):
        return "ostree" if family == "fedora" else ""  # an image of RHEL is built anew instead
    return "proxmox" if family == "debian" and release.endswith("-pve") else family


def command(topic: str, family: str, **names: str) -> str | None:
    """Return the command for a topic; None where the family's own is not known."""
    commands = COMMANDS.get(topic, {})
    text = commands.get(family)
    if text is None and family in VARIANTS:
        text = commands.get(VARIANTS[family])
        if family == "ostree":
            text = _layered(text)
    return text.format(**names) if text is not None else None


def _layered(text: str | None) -> str | None:
    """Return Fedora's command as rpm-ostree takes it; None where it is another one."""
    for plain, own in _LAYERED:
        if text is not None and plain in text:
            text = text.replace(plain, own)
            return text if "reboot" in text else f"{text}, then reboot"
    return None
