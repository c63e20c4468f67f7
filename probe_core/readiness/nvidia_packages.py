"""The commands of distributions about NVIDIA's driver: data, one line a fact."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.readiness.distributions import Commands

__all__ = ["NIX", "NVIDIA"]

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
