"""Which distribution a machine runs, and its commands: data, one line a fact.

Keys are the family of /etc/os-release (ID, else the first of ID_LIKE that is known). Sources are
the distributions' own package lists and guides; where a family has no entry, nothing is guessed.
"""

from __future__ import annotations

from probe_core.model.fix import CONFLICTING, REBOOT, Part, by_hand, parts_of, reboot, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine import Machine
    from probe_core.model.fix import Fix

    Commands = Mapping[str, Fix]

__all__ = [
    "COMMANDS",
    "FAMILIES",
    "LEGACY",
    "OSTREE",
    "VARIANTS",
    "command",
    "command_of_branch",
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
    "opensuse-microos": "transactional",
    "sle-micro": "transactional",
    "sl-micro": "transactional",
    "suse": "suse",
    "alpine": "alpine",
    "nixos": "nixos",
    "gentoo": "gentoo",
}

# Family to the one whose commands it takes, where it has none of its own. RHEL 10 has no module
# streams; Proxmox VE says of itself that it is Debian; Oracle Linux with Oracle's own kernel (UEK)
# has that kernel's packages by other names.
VARIANTS = {
    **{"manjaro": "arch", "rhel10": "rhel", "proxmox": "debian", "ostree": "fedora"},
    **{"transactional": "suse", "oracle": "rhel", "oracle10": "rhel10"},
    **{"raspberry debian": "debian", "raspberry ubuntu": "ubuntu"},
}

# /usr is read-only, and packages come into the image that is started next: Silverblue, Kinoite,
# Bazzite and CoreOS; openSUSE MicroOS and SUSE Linux Micro (SUSE, "Administering SUSE Linux Micro
# Using transactional-update").
_LAYERED = {
    "ostree": ("sudo dnf install ", "sudo rpm-ostree install "),
    "transactional": ("sudo zypper install ", "sudo transactional-update pkg install "),
}

OSTREE = "/run/ostree-booted"
"""The mark of a system that is one image (ostree(1))."""

# The forms that commands have.

_NVIDIAS = "NVIDIA's repository"
# For zypper, NVIDIA has two: of graphics drivers, and of CUDA and what belongs to it.
_NVIDIAS_CUDA = "NVIDIA's CUDA repository"
# dkms is in neither RHEL nor NVIDIA's repository (dkms-nvidia.spec requires it).
_WITH_DKMS = f"{_NVIDIAS}, and EPEL for dkms"


def _noted(command: str, note: str = "") -> Fix:
    """Return a command, and a note about it, such as where its package is from."""
    return (run(command), f" ({note})") if note else run(command)


def _at_boot(command: str, note: str = "") -> Fix:
    """Return a command whose change counts once the machine is started anew."""
    return (*parts_of(_noted(command, note)), REBOOT)


def _nix(setting: str, value: str) -> Fix:
    return (
        by_hand(
            f"in /etc/nixos/configuration.nix set `{setting} = {value};`",
            changes=(f"setting {setting}",),
        ),
        ", then ",
        run("sudo nixos-rebuild boot"),
        reboot(" and reboot"),
    )


def _added(place: str) -> Part:
    return by_hand(f"add {{parameter}} to {place}", changes=("parameter {parameter}",))


def _removed(place: str) -> Part:
    return by_hand(f"remove {{parameter}} from {place}", removes=("parameter {parameter}",))


def _cuda_drivers(command: str, branch: str) -> Part:
    """Return how to install one branch of the driver, whose package has no branch in its name.

    The command alone installs the newest one.
    """
    text = f"`sudo dnf {command} cuda-drivers`, of branch {branch} ({_WITH_DKMS})"
    removes = (CONFLICTING,) if "--allowerasing" in command else ()
    return by_hand(text, changes=("package cuda-drivers",), removes=removes)


def _aur(branch: str) -> Part:
    package = f"nvidia-{branch}xx-dkms"
    return by_hand(f"install {package} (AUR)", changes=(f"package {package}",))


def _rpmfusion(branch: str, options: str = "") -> Fix:
    """Return how Fedora installs a legacy branch: its packages exclude those of the newest."""
    packages = f"akmod-nvidia-{branch}xx xorg-x11-drv-nvidia-{branch}xx-cuda"
    return _at_boot(f"sudo dnf install {options}{packages}", "RPM Fusion")


def _in_place_of_the_newest(branch: str) -> Commands:
    """Return what puts a legacy branch in the place of the driver that is installed.

    xorg-x11-drv-nvidia.spec of RPM Fusion: "Conflicts:" with each legacy branch.
    """
    return {"fedora": _rpmfusion(branch, "--allowerasing ")}


_GRUB = (", ", run("sudo update-grub"), REBOOT)
_GRUB_2 = (", ", run("sudo grub2-mkconfig -o /boot/grub2/grub.cfg"), REBOOT)
_PROXMOX = (
    ", ",
    run("sudo proxmox-boot-tool refresh"),
    " (with GRUB: /etc/default/grub, `sudo update-grub`)",
    REBOOT,
)
_BOOT_ENTRY = (
    "the boot entry (/boot/loader/entries, or /etc/default/grub and"
    " `sudo grub-mkconfig -o /boot/grub/grub.cfg`)"
)

# A Raspberry Pi starts without GRUB (its documentation, "Kernel command line").
_RASPBERRY = "the only line of /boot/firmware/cmdline.txt"
_ON_RASPBERRY = ("raspberry debian", "raspberry ubuntu")

# Cloud images have a small kernel; the modules of GPUs are in another package of the same version.
_IN_KERNEL = {
    "ubuntu": run("sudo apt install linux-modules-extra-{release}"),
    "debian": _at_boot("sudo apt install linux-image-amd64", "not the cloud kernel"),
    "fedora": run("sudo dnf install kernel-modules-{release}"),
    "rhel": run("sudo dnf install kernel-modules-{release}"),
    "oracle": run("sudo dnf install kernel-uek-modules-{release}"),
    "oracle10": run("sudo dnf install kernel-uek-modules-{release}"),
    "arch": _at_boot("sudo pacman -S {kernel}"),
    "suse": _at_boot("sudo zypper install kernel-default"),
    "alpine": _at_boot("sudo apk add linux-lts", "linux-virt lacks it"),
    "nixos": _nix("boot.kernelModules", '[ "{module}" ]'),
}

_OF_INTEL = {
    "ubuntu": run("sudo apt install linux-firmware"),
    "debian": _noted(
        "sudo apt install firmware-intel-graphics", "Debian 12: firmware-misc-nonfree"
    ),
    "fedora": run("sudo dnf install intel-gpu-firmware"),
    "rhel": run("sudo dnf install linux-firmware"),
    "arch": run("sudo pacman -S linux-firmware"),
    "suse": run("sudo zypper install kernel-firmware-i915"),
    "alpine": run("sudo apk add linux-firmware-xe"),
    "nixos": _nix("hardware.enableRedistributableFirmware", "true"),
    "gentoo": run("sudo emerge sys-kernel/linux-firmware"),
}


# NVIDIA's driver.

_SWITCH = "sudo dnf module switch-to nvidia-driver:{}-dkms --allowerasing"
_TO_580 = _at_boot(_SWITCH.format("580"), _WITH_DKMS)
_TO_OPEN = {
    "rhel": _at_boot(_SWITCH.format("open"), _WITH_DKMS),
    "rhel10": _at_boot("sudo dnf install --allowerasing nvidia-open", _WITH_DKMS),
    "arch": _at_boot("sudo pacman -S nvidia-open"),
    "suse": _at_boot("sudo zypper install nvidia-open-driver-G06-signed-kmp-meta", _NVIDIAS),
    "nixos": _nix("hardware.nvidia.open", "true"),
}

_NVIDIA: dict[str, Commands] = {
    # Google Cloud, "Running GPUs on Container-Optimized OS"; Manjaro wiki, "Configure Graphics".
    # Ubuntu Server Guide "NVIDIA drivers installation"; Debian wiki NvidiaGraphicsDrivers; RPM
    # Fusion Howto/NVIDIA; NVIDIA Driver Installation Guide (RHEL); Arch wiki NVIDIA; openSUSE
    # SDB:NVIDIA drivers; NixOS wiki NVIDIA; Gentoo wiki NVIDIA/nvidia-drivers.
    "driver nvidia": {
        "ubuntu": _at_boot("sudo ubuntu-drivers install"),
        "debian": _at_boot("sudo apt install nvidia-driver", "section non-free"),
        "fedora": _at_boot("sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda", "RPM Fusion"),
        "rhel": _at_boot("sudo dnf module install nvidia-driver:open-dkms", _WITH_DKMS),
        "rhel10": _at_boot("sudo dnf install nvidia-open", _WITH_DKMS),
        "cos": run("sudo cos-extensions install gpu"),
        "manjaro": _at_boot("sudo mhwd -a pci nonfree 0300"),
        "arch": _at_boot("sudo pacman -S nvidia-open", "before Turing: nvidia-580xx-dkms"),
        "suse": _at_boot("sudo zypper install nvidia-open-driver-G06-signed-kmp-meta", _NVIDIAS),
        "alpine": "use a distribution with glibc: NVIDIA's driver has no build for musl",
        "nixos": _nix("services.xserver.videoDrivers", '[ "nvidia" ]'),
        "gentoo": _at_boot("sudo emerge x11-drivers/nvidia-drivers"),
    },
    # By the branch that the GPU needs, where the command above installs one without it: RHEL's
    # and SUSE's are open modules, Debian's is older than Blackwell. ELRepo; RPM Fusion
    # Howto/NVIDIA, "Legacy GeForce"; openSUSE SDB:NVIDIA drivers, where nvidia-driver-G06-kmp-meta
    # is of the newest version that there is, and -kmp-default alone may be of an older one (its
    # names of G05 are recalled, not read).
    "driver nvidia 580": {
        "fedora": _rpmfusion("580"),
        "rhel": _at_boot("sudo dnf module install nvidia-driver:580-dkms", _WITH_DKMS),
        "rhel10": (_cuda_drivers("install", "580"), REBOOT),
        "manjaro": _at_boot("sudo mhwd -a pci nonfree 0300"),
        "arch": (_aur("580"), REBOOT),
        "suse": _at_boot("sudo zypper install nvidia-driver-G06-kmp-meta", _NVIDIAS),
    },
    "driver nvidia 570": {
        "debian": _at_boot("sudo apt install nvidia-open", _NVIDIAS),
    },
    "driver nvidia 470": {
        "debian": _at_boot("sudo apt install nvidia-tesla-470-driver", "section non-free"),
        "fedora": _rpmfusion("470"),
        "rhel": _at_boot("sudo dnf install kmod-nvidia-470xx", "ELRepo"),
        "rhel10": (),  # ELRepo's for 10 are not known
        "arch": (_aur("470"), REBOOT),
        "suse": _at_boot("sudo zypper install x11-video-nvidiaG05 nvidia-computeG05", _NVIDIAS),
    },
    "driver nvidia 390": {"fedora": _rpmfusion("390"), "arch": (_aur("390"), REBOOT)},
    "driver nvidia 340": {"arch": (_aur("340"), REBOOT)},
    # The last branch of a legacy GPU, in the place of a newer one. NVIDIA Driver Installation
    # Guide, "Version locking" (Debian) and "Switching between Driver Module Flavors" (RHEL, whose
    # `module install` refuses another stream than the enabled one); NixOS wiki NVIDIA, "Legacy
    # branches".
    "driver branch": {
        "ubuntu": _at_boot("sudo apt install nvidia-driver-{branch}"),
        "debian": _at_boot("sudo apt install nvidia-tesla-{branch}-driver"),
        "arch": (_aur("{branch}"), REBOOT),
        "nixos": _nix(
            "hardware.nvidia.package", "config.boot.kernelPackages.nvidiaPackages.legacy_{branch}"
        ),
    },
    "driver branch 390": _in_place_of_the_newest("390"),
    "driver branch 470": _in_place_of_the_newest("470"),
    "driver branch 580": {
        **_in_place_of_the_newest("580"),
        "debian": _at_boot("sudo apt install nvidia-driver-pinning-580 cuda-drivers-580", _NVIDIAS),
        "rhel": _TO_580,
        "rhel10": (_cuda_drivers("install --allowerasing", "580"), REBOOT),
    },
    "driver open": {
        "ubuntu": (run("sudo apt install nvidia-driver-{branch}-open"), " or a later one", REBOOT),
        "fedora": _at_boot("sudo dnf upgrade akmod-nvidia", "RPM Fusion"),
        "ostree": _at_boot("sudo rpm-ostree upgrade"),
        "debian": _at_boot("sudo apt install nvidia-open", _NVIDIAS),
        **_TO_OPEN,
    },
    # From the closed to the open module. NVIDIA Driver Installation Guide, "Switching between
    # Driver Module Flavors"; RPM Fusion Howto/NVIDIA, "Kernel Open".
    "module open": {
        "ubuntu": _at_boot("sudo apt install nvidia-driver-{branch}-open"),
        "debian": _at_boot("sudo apt install --autoremove --purge nvidia-open", _NVIDIAS),
        "fedora": _at_boot(
            "echo '%_with_kmod_nvidia_open 1' | sudo tee /etc/rpm/macros.nvidia-kmod &&"
            " sudo akmods --rebuild",
            "RPM Fusion",
        ),
        **_TO_OPEN,
    },
    # From the open to the closed module, which no branch after 580 has for such a GPU.
    "module closed": {
        "ubuntu": _at_boot("sudo apt install nvidia-driver-{branch}"),
        "debian": _at_boot(
            "sudo apt install nvidia-kernel-dkms",
            "NVIDIA's repository: nvidia-driver-pinning-580 and cuda-drivers-580",
        ),
        "arch": (_aur("{branch}"), REBOOT),
        "nixos": _nix("hardware.nvidia.open", "false"),
    },
    "module closed 390": _in_place_of_the_newest("390"),
    "module closed 470": _in_place_of_the_newest("470"),
    "module closed 580": {
        **_in_place_of_the_newest("580"),
        "rhel": _TO_580,
        "rhel10": (_cuda_drivers("install --allowerasing", "580"), REBOOT),
    },
    # The libraries that belong to the kernel driver, as each distribution splits NVIDIA's driver.
    "libraries nvidia": {
        "ubuntu": run("sudo apt install libnvidia-compute-{branch} nvidia-utils-{branch}"),
        "debian": run("sudo apt install libnvidia-ml1 libcuda1 nvidia-smi"),
        "fedora": _noted("sudo dnf install xorg-x11-drv-nvidia-cuda", "RPM Fusion"),
        "rhel": _noted("sudo dnf install nvidia-driver-cuda", _NVIDIAS),
        "arch": run("sudo pacman -S nvidia-utils"),
        "suse": _noted("sudo zypper install nvidia-compute-utils-G06", _NVIDIAS),
        "nixos": _nix("hardware.graphics.enable", "true"),
        "gentoo": run("sudo emerge x11-drivers/nvidia-drivers"),
    },
    # Where a file of them is damaged: they are installed, so that installing them does nothing.
    "libraries nvidia again": {
        "ubuntu": run("sudo apt install --reinstall libnvidia-compute-{branch}"),
        "debian": run("sudo apt install --reinstall libnvidia-ml1 libcuda1"),
        "fedora": _noted("sudo dnf reinstall xorg-x11-drv-nvidia-cuda-libs", "RPM Fusion"),
        "rhel": _noted("sudo dnf reinstall libnvidia-ml nvidia-driver-cuda-libs", _NVIDIAS),
        "arch": run("sudo pacman -S nvidia-utils"),
        "suse": _noted("sudo zypper install --force nvidia-compute-G06", _NVIDIAS),
    },
    "gsp firmware": {
        "ubuntu": run("sudo apt install --reinstall nvidia-firmware-{branch}-{version}"),
        "debian": run("sudo apt install firmware-nvidia-gsp"),
        "fedora": _noted("sudo dnf reinstall xorg-x11-drv-nvidia", "RPM Fusion"),
        # The package is installed, as the module needs it: it is what lacks its files.
        "rhel": _noted("sudo dnf reinstall nvidia-kmod-common", _NVIDIAS),
        "arch": run("sudo pacman -S nvidia-utils"),
        "suse": _noted("sudo zypper install --force nvidia-common-G06", _NVIDIAS),
        "nixos": run("sudo nixos-rebuild boot"),
    },
    # NVIDIA/gpu-driver-container, nvlink5_pkgs_install of Ubuntu's and RHEL's drivers.
    "subnet manager": {
        "ubuntu": _noted("sudo apt install nvlsm infiniband-diags", _NVIDIAS_CUDA),
        "debian": _noted("sudo apt install nvlsm infiniband-diags", _NVIDIAS_CUDA),
        "rhel": _noted("sudo dnf install nvlsm infiniband-diags", _NVIDIAS),
    },
    "fabric manager": {
        "ubuntu": run(
            "sudo apt install nvidia-fabricmanager-{branch} &&"
            " sudo systemctl enable --now nvidia-fabricmanager"
        ),
        "debian": run(
            "sudo apt install nvidia-fabricmanager-{branch} &&"
            " sudo systemctl enable --now nvidia-fabricmanager"
        ),
        # In exactly the driver's version: "Fabric Manager User Guide".
        "rhel": _noted(
            "sudo dnf install {fabric_manager}-{version} &&"
            " sudo systemctl enable --now nvidia-fabricmanager",
            _NVIDIAS,
        ),
        "suse": _noted(
            "sudo zypper install nvidia-fabricmanager={version} &&"
            " sudo systemctl enable --now nvidia-fabricmanager",
            _NVIDIAS_CUDA,
        ),
    },
}

COMMANDS: dict[str, Commands] = {
    **_NVIDIA,
    "driver amdgpu": _IN_KERNEL,
    "driver i915": _IN_KERNEL,
    "driver xe": _IN_KERNEL,
    "driver intel_vpu": _IN_KERNEL,
    "driver amdxdna": _IN_KERNEL,
    "driver qaic": _IN_KERNEL,
    "driver habanalabs": _IN_KERNEL,
    # Hailo's documentation of Raspberry Pi OS, and its own package for others.
    "driver hailo_pci": {
        "debian": (
            run("sudo apt install hailo-all"),
            " (Raspberry Pi OS) or hailort-pcie-driver",
            REBOOT,
        ),
        "ubuntu": ("install hailort-pcie-driver of Hailo's developer zone", REBOOT),
    },
    "driver apex": {
        "debian": _at_boot("sudo apt install gasket-dkms", "Coral's repository"),
        "ubuntu": _at_boot("sudo apt install gasket-dkms", "Coral's repository"),
    },
    # AWS Neuron documentation, "Install Neuron Driver".
    "driver neuron": {
        "ubuntu": _noted("sudo apt install aws-neuronx-dkms", "the Neuron repository"),
        "rhel": _noted(
            "sudo dnf install aws-neuronx-dkms",
            "the Neuron repository, and EPEL for dkms where the distribution has none",
        ),
    },
    "driver tenstorrent": {
        "ubuntu": _noted("sudo apt install tenstorrent-dkms", "Tenstorrent's repository"),
        "debian": _noted("sudo apt install tenstorrent-dkms", "Tenstorrent's repository"),
        "fedora": _noted("sudo dnf install tenstorrent-dkms", "Tenstorrent's repository"),
    },
    "headers": {
        "ubuntu": _at_boot("sudo apt install linux-headers-{release} && sudo dkms autoinstall"),
        "debian": _at_boot("sudo apt install linux-headers-{release} && sudo dkms autoinstall"),
        "proxmox": _at_boot("sudo apt install proxmox-headers-{release} && sudo dkms autoinstall"),
        "fedora": _at_boot("sudo dnf install kernel-devel-{release} && sudo akmods --force"),
        "rhel": _at_boot("sudo dnf install kernel-devel-{release} && sudo dkms autoinstall"),
        # Packages of UEK 7 and later: its release notes, "Changes to UEK Content Distribution and
        # Packaging".
        "oracle": _at_boot("sudo dnf install kernel-uek-devel-{release} && sudo dkms autoinstall"),
        "oracle10": _at_boot(
            "sudo dnf install kernel-uek-devel-{release} && sudo dkms autoinstall"
        ),
        "arch": _at_boot("sudo pacman -S {kernel}-headers && sudo dkms autoinstall"),
        "suse": _at_boot("sudo zypper install kernel-default-devel && sudo dkms autoinstall"),
        "nixos": _at_boot("sudo nixos-rebuild boot"),
        "gentoo": _at_boot("sudo emerge @module-rebuild"),
    },
    # Built and signed by Ubuntu, one package for a kernel (Ubuntu Server Guide, "NVIDIA drivers
    # installation", manual).
    "signed modules": {
        "ubuntu": _at_boot("sudo apt install linux-modules-nvidia-{branch}-{release}"),
    },
    # Where each distribution keeps the key that it signs modules with on this machine.
    "module key": {
        "ubuntu": (
            run("sudo mokutil --import /var/lib/shim-signed/mok/MOK.der"),
            ", reboot, enrol the key",
        ),
        "debian": (run("sudo mokutil --import /var/lib/dkms/mok.pub"), ", reboot, enrol the key"),
        "fedora": (
            run("sudo mokutil --import /etc/pki/akmods/certs/public_key.der"),
            ", reboot, enrol it",
        ),
        "rhel": (run("sudo mokutil --import /var/lib/dkms/mok.pub"), ", reboot, enrol the key"),
        "suse": (
            run("sudo mokutil --import /var/lib/nvidia-pubkeys/*.der"),
            ", reboot, enrol the key",
        ),
        "arch": (
            by_hand("sign the module with your own key (sbctl, or `mokutil --import`)"),
            REBOOT,
        ),
    },
    # Ubuntu's hardware enablement stack; Debian's backports.
    "newer kernel": {
        "ubuntu": _at_boot(
            "sudo apt install linux-generic-hwe-$(. /etc/os-release; echo $VERSION_ID)"
        ),
        "debian": _at_boot(
            "sudo apt install -t $(. /etc/os-release; echo $VERSION_CODENAME)-backports"
            " linux-image-$(dpkg --print-architecture)"
        ),
        "proxmox": _at_boot("sudo apt full-upgrade"),
        "fedora": _at_boot("sudo dnf upgrade --refresh"),
        "ostree": _at_boot("sudo rpm-ostree upgrade"),
        "arch": _at_boot("sudo pacman -Syu"),
        "suse": _at_boot("sudo zypper dup", "Tumbleweed"),
        "nixos": _nix("boot.kernelPackages", "pkgs.linuxPackages_latest"),
    },
    "initramfs": {
        "ubuntu": run("sudo update-initramfs -u"),
        "debian": run("sudo update-initramfs -u"),
        "fedora": run("sudo dracut --force"),
        "rhel": run("sudo dracut --force"),
        "arch": run("sudo mkinitcpio -P"),
        "suse": run("sudo dracut --force"),
        "alpine": run("sudo mkinitfs"),
        "nixos": run("sudo nixos-rebuild boot"),
        "gentoo": run("sudo dracut --force"),
    },
    "remove parameter": {
        "ubuntu": (_removed("/etc/default/grub"), *_GRUB),
        "debian": (_removed("/etc/default/grub"), *_GRUB),
        "proxmox": (_removed("/etc/kernel/cmdline"), *_PROXMOX),
        **dict.fromkeys(_ON_RASPBERRY, (_removed(_RASPBERRY), REBOOT)),
        "ostree": _at_boot("sudo rpm-ostree kargs --delete={parameter}"),
        "fedora": _at_boot("sudo grubby --update-kernel=ALL --remove-args={parameter}"),
        "rhel": _at_boot("sudo grubby --update-kernel=ALL --remove-args={parameter}"),
        "arch": (_removed(_BOOT_ENTRY), REBOOT),
        "suse": (_removed("/etc/default/grub"), *_GRUB_2),
        "nixos": (_removed("boot.kernelParams"), ", ", run("sudo nixos-rebuild boot"), REBOOT),
    },
    "add parameter": {
        "ubuntu": (_added("GRUB_CMDLINE_LINUX in /etc/default/grub"), *_GRUB),
        "debian": (_added("GRUB_CMDLINE_LINUX in /etc/default/grub"), *_GRUB),
        "proxmox": (_added("/etc/kernel/cmdline"), *_PROXMOX),
        **dict.fromkeys(_ON_RASPBERRY, (_added(_RASPBERRY), REBOOT)),
        "ostree": _at_boot('sudo rpm-ostree kargs --append="{parameter}"'),
        "fedora": _at_boot('sudo grubby --update-kernel=ALL --args="{parameter}"'),
        "rhel": _at_boot('sudo grubby --update-kernel=ALL --args="{parameter}"'),
        "arch": (_added(_BOOT_ENTRY), REBOOT),
        "suse": (_added("/etc/default/grub"), *_GRUB_2),
        "nixos": (_added("boot.kernelParams"), ", ", run("sudo nixos-rebuild boot"), REBOOT),
    },
    "firmware amdgpu": {
        "ubuntu": run("sudo apt install linux-firmware"),
        "debian": _noted("sudo apt install firmware-amd-graphics", "section non-free-firmware"),
        "fedora": run("sudo dnf install amd-gpu-firmware"),
        "rhel": run("sudo dnf install linux-firmware"),
        "arch": run("sudo pacman -S linux-firmware"),
        "suse": run("sudo zypper install kernel-firmware-amdgpu"),
        "alpine": run("sudo apk add linux-firmware-amdgpu"),
        "nixos": _nix("hardware.enableRedistributableFirmware", "true"),
        "gentoo": run("sudo emerge sys-kernel/linux-firmware"),
    },
    "firmware i915": _OF_INTEL,
    "firmware xe": _OF_INTEL,
    "firmware intel_vpu": {
        "ubuntu": run("sudo apt install linux-firmware"),
        "debian": _noted("sudo apt install firmware-intel-misc", "section non-free-firmware"),
        "fedora": run("sudo dnf install linux-firmware"),
        "arch": run("sudo pacman -S linux-firmware"),
        "nixos": _nix("hardware.enableRedistributableFirmware", "true"),
    },
    "firmware panthor": {
        "ubuntu": run("sudo apt install linux-firmware"),
        "debian": _noted("sudo apt install firmware-misc-nonfree", "section non-free-firmware"),
        "fedora": run("sudo dnf install linux-firmware"),
        "arch": run("sudo pacman -S linux-firmware"),
        "alpine": run("sudo apk add linux-firmware-arm"),
    },
    # ROCm installation guide (AMD's repository); Fedora, Arch and NixOS package it themselves.
    "rocm": {
        "ubuntu": _noted("sudo apt install rocm", "AMD's repository"),
        "debian": _noted("sudo apt install rocm", "AMD's repository"),
        "fedora": run("sudo dnf install rocm-hip rocm-runtime"),
        "rhel": _noted("sudo dnf install rocm", "AMD's repository"),
        "arch": run("sudo pacman -S rocm-hip-runtime"),
        "suse": _noted("sudo zypper install rocm", "AMD's repository"),
        "nixos": _nix("hardware.amdgpu.opencl.enable", "true"),
    },
    # Intel, "Installing client GPUs" (Ubuntu's PPA); Debian 13 and later have the packages.
    "level zero": {
        "ubuntu": _noted(
            "sudo apt install libze-intel-gpu1 intel-opencl-icd",
            "before Ubuntu 24.10: ppa:kobuk-team/intel-graphics",
        ),
        "debian": run("sudo apt install libze-intel-gpu1 intel-opencl-icd"),
        "fedora": run("sudo dnf install intel-level-zero intel-opencl"),
        "arch": run("sudo pacman -S intel-compute-runtime level-zero-loader"),
        "nixos": _nix("hardware.graphics.extraPackages", "[ pkgs.intel-compute-runtime ]"),
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
    if "uek." in release:  # 5.15.0-100.96.32.el9uek.x86_64
        return {"rhel": "oracle", "rhel10": "oracle10"}.get(family, family)
    if family in ("debian", "ubuntu") and _is_raspberry(machine):
        return f"raspberry {family}"
    return "proxmox" if family == "debian" and release.endswith("-pve") else family


def _is_raspberry(machine: Machine) -> bool:
    return (machine.read("/proc/device-tree/model", 256) or "").startswith("Raspberry Pi")


def command(topic: str, family: str) -> tuple[str, ...] | None:
    """Return the parts of the command for a topic; None where the family's own is not known."""
    commands = COMMANDS.get(topic, {})
    fix = commands.get(family)
    if fix is None and family in VARIANTS:
        parts = command(topic, VARIANTS[family])
        return _layered(parts, *_LAYERED[family]) if parts and family in _LAYERED else parts
    return None if not fix else parts_of(fix)


# Branches of NVIDIA's driver that no distribution's newest package is of, and the families whose
# command chooses the branch by the GPU, or is none.
LEGACY = ("340", "390", "470")
_CHOOSING = ("ubuntu", "manjaro", "alpine", "cos")


def command_of_branch(topic: str, family: str, branch: str) -> tuple[str, ...] | None:
    """Return the command of a topic for one branch of NVIDIA's driver; "" is any.

    The newest driver does not serve a GPU of a legacy branch: where the family has no package of
    that, there is no command.
    """
    own = command(f"{topic} {branch}", family)
    is_newest = topic == "driver nvidia" and branch in LEGACY and family not in _CHOOSING
    return own if own or is_newest else command(topic, family)


def _layered(parts: tuple[str, ...], program: str, layering: str) -> tuple[str, ...] | None:
    """Return a command as what layers packages takes it; None where it is another one."""
    first, *others = parts
    plain = first.command if isinstance(first, Part) else ""
    # dnf's options are none of rpm-ostree's.
    if not plain.startswith(program) or "--allowerasing" in plain:
        return None
    layered = run(plain.replace(program, layering, 1))
    return (layered, *(part for part in others if part is not REBOOT), REBOOT)
