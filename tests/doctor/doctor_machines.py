"""Machines that combine facts: distributions, engines, services, boards, several GPUs.

Invented, each after a situation that people report. A broken one has the code of its first finding
and a part of the fix that repairs it; a sound one has no finding above a hint.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import readiness_nodes as nodes
import test_readiness_causes as causes
from readiness_nodes import FOLDER, LIBRARIES, PCI, Node, amd, intel, nvidia
from test_readiness_causes import DKMS, MODULES, people, unbound, without_nodes

Make = Callable[[Path], Node]

UBUNTU = 'ID=ubuntu\nVERSION_ID="24.04"\n'
DEBIAN = 'ID=debian\nVERSION_ID="12"\n'
FEDORA = "ID=fedora\nVERSION_ID=42\n"
ROCKY = 'ID="rocky"\nVERSION_ID="9.5"\nID_LIKE="rhel centos fedora"\n'
RHEL10 = 'ID="rhel"\nVERSION_ID="10.0"\nID_LIKE="centos fedora"\n'
ARCH = "ID=arch\n"
NIXOS = "ID=nixos\n"

SPECIFICATION = """kind: nvidia.com/gpu
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
    - path: /dev/dri/renderD128
    hooks:
    - args: [nvidia-cdi-hook, create-symlinks, --link, ../card7::/dev/dri/by-path/pci-card]
      path: /usr/bin/nvidia-cdi-hook
"""

BROKEN: dict[str, tuple[str, str, Make]] = {}
"""Name to the code of the first finding, a part of its fix, and what makes the machine."""
SOUND: dict[str, Make] = {}


def broken(code: str, fix: str, release: str = UBUNTU) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        BROKEN[make.__name__] = (code, fix, on(release, make))
        return make

    return add


def sound(make: Make) -> Make:
    SOUND[make.__name__] = on(UBUNTU, make)
    return make


def on(release: str, make: Make) -> Make:
    def maker(root: Path) -> Node:
        node = make(root)
        node.file("/etc/os-release", release)
        return node

    return maker


def loaded(root: Path, device: str, driver: str, *, is_open: bool = False) -> Node:
    """Return a machine whose NVIDIA module is loaded and leaves the GPU alone."""
    node = unbound(root, "nvidia")
    node.file(f"{FOLDER}/device", f"0x{device}\n")
    text = nodes.OPEN_TEXT if is_open else nodes.VERSION_TEXT
    node.file("/proc/driver/nvidia/version", text.replace(nodes.VERSION, driver))
    return node


def further(node: Node, number: int, answer: str = "ok") -> None:
    """Add an RTX 4090 whose node is /dev/nvidiaN."""
    address = f"0000:{number + 1:02x}:00.0"
    node.tree.pci(address, "10de:2684", driver="nvidia", drm=(number, 128 + number))
    node.nodes(f"/dev/nvidia{number}", answer=answer)
    text = f"Device Minor: {number}\n"
    node.file(f"/proc/driver/nvidia/gpus/{address}/information", text)


# --- NVIDIA's driver and the distribution


@broken("closed-module-unsupported", "`sudo apt install nvidia-driver-580-open`")
def rtx_5090_on_the_closed_module(root: Path) -> Node:
    return loaded(root, "2b85", "580.95.05")


@broken("closed-module-unsupported", "apt install --autoremove --purge nvidia-open", DEBIAN)
def b200_on_debian(root: Path) -> Node:
    return loaded(root, "2901", "570.133.20")


@broken("closed-module-unsupported", "dnf module switch-to nvidia-driver:open-dkms", ROCKY)
def grace_hopper_whose_memory_nobody_counted(root: Path) -> Node:
    return loaded(root, "2342", "570.133.20")


@broken("closed-module-unsupported", "macros.nvidia-kmod", FEDORA)
def rtx_5080_on_fedora(root: Path) -> Node:
    return loaded(root, "2c02", "570.133.20")


@broken("driver-too-old-for-gpu", "`sudo apt install nvidia-driver-535-open` or a later one")
def h100_on_an_old_branch(root: Path) -> Node:
    return loaded(root, "2330", "470.57.02")


@broken("legacy-branch", "nvidia-580xx-dkms", ARCH)
def pascal_after_an_upgrade(root: Path) -> Node:
    return loaded(root, "1b80", "590.44.01")


@broken("legacy-branch", "nvidiaPackages.legacy_470", NIXOS)
def kepler_on_nixos(root: Path) -> Node:
    return loaded(root, "1180", "570.44")


@broken("legacy-branch", "nvidia-driver-pinning-580 cuda-drivers-580", DEBIAN)
def volta_with_nvidias_repository(root: Path) -> Node:
    return loaded(root, "1db5", "590.44.01")


@broken("open-module-unsupported", "nvidia-kernel-dkms", DEBIAN)
def volta_on_the_open_module(root: Path) -> Node:
    return loaded(root, "1db5", "550.163.01", is_open=True)


@broken("driver-not-installed", "`sudo rpm-ostree install akmod-nvidia", FEDORA)
def silverblue_without_driver(root: Path) -> Node:
    node = causes.no_module_on_disk(root)
    node.file("/run/ostree-booted")
    return node


@broken(
    "driver-not-installed",
    "`sudo transactional-update pkg install nvidia-open-driver-G06-signed-kmp-meta` (NVIDIA's"
    " repository), then reboot",
    'ID="opensuse-microos"\nID_LIKE="suse opensuse opensuse-tumbleweed microos"\n',
)
def microos_without_driver(root: Path) -> Node:
    return causes.no_module_on_disk(root)


@broken("nomodeset", "rpm-ostree kargs --delete=nomodeset", FEDORA)
def silverblue_with_nomodeset(root: Path) -> Node:
    node = causes.nomodeset(root)
    node.file("/run/ostree-booted")
    return node


@broken("driver-not-installed", "`sudo dnf install nvidia-open`", RHEL10)
def rhel_10_without_driver(root: Path) -> Node:
    return causes.no_module_on_disk(root)


@broken("module-missing-for-kernel", "proxmox-headers-6.8.12-4-pve", DEBIAN)
def proxmox_after_a_kernel_update(root: Path) -> Node:
    node = unbound(root)
    node.tree.release("6.8.12-4-pve")
    node.file("/lib/modules/6.8.12-4-pve/modules.dep", "kernel/fs/ext4/ext4.ko:\n")
    node.file("/lib/modules/6.8.8-2-pve/updates/dkms/nvidia.ko")
    return node


@broken("secure-boot", "mokutil --import /var/lib/dkms/mok.pub", DEBIAN)
def debians_own_name_of_the_module(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{MODULES}/modules.dep", "updates/dkms/nvidia-current.ko.xz:\n")
    node.file(f"{DKMS}/nvidia-current.ko.xz")
    node.file(causes.SECURE_BOOT, b"\x06\0\0\0\1")
    return node


@broken("module-missing-for-kernel", "linux-headers", ARCH)
def arch_between_upgrade_and_restart(root: Path) -> Node:
    node = unbound(root)
    node.tree.release("6.11.5-arch1-1")
    node.file("/usr/lib/modules/6.12.1-arch1-1/modules.dep", "extramodules/nvidia.ko.zst:\n")
    return node


@broken("module-missing-for-kernel", "pacman -S linux-zen-headers", ARCH)
def arch_with_another_kernel(root: Path) -> Node:
    node = unbound(root)
    node.tree.release("6.11.5-zen1-1-zen")
    node.file("/usr/lib/modules/6.12.1-zen1-1-zen/updates/dkms/nvidia.ko.zst")
    return node


@broken("driver-not-installed", "mhwd -a pci nonfree 0300", "ID=manjaro\nID_LIKE=arch\n")
def manjaro_without_driver(root: Path) -> Node:
    return causes.no_module_on_disk(root)


@broken("driver-not-installed", "cos-extensions install gpu", "ID=cos\n")
def gke_node_without_driver(root: Path) -> Node:
    return causes.no_module_on_disk(root)


@broken("legacy-branch", "apt install nvidia-driver-580")
def pascal_beside_a_sound_ada(root: Path) -> Node:
    node = nvidia(root)
    version = nodes.VERSION_TEXT.replace(nodes.VERSION, "590.44.01")
    node.file("/proc/driver/nvidia/version", version)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        node.remove(f"{LIBRARIES}/{name}.1")
        node.file(f"{LIBRARIES}/{name}.590.44.01", b"\x7fELF\x02")
        node.tree.link(f"{LIBRARIES}/{name}.1", f"{LIBRARIES}/{name}.590.44.01")
    node.tree.pci("0000:02:00.0", "10de:1b80")
    return node


@broken("no-driver", "sudo dmesg | grep -i -e nvidia -e NVRM")
def ampere_that_the_module_leaves_alone(root: Path) -> Node:
    return loaded(root, "2204", "580.95.05")


@broken("nouveau-bound", "echo blacklist nouveau | sudo tee")
def nouveau_before_an_installed_driver(root: Path) -> Node:
    node = nvidia(root, driver="nouveau")
    node.modules("nouveau")
    node.file(f"{DKMS}/nvidia.ko")
    return node


@broken("nouveau-bound", "ubuntu-drivers install")
def laptop_with_nouveau_beside_a_sound_radeon(root: Path) -> Node:
    node = amd(root, ids="1002:15bf")
    node.tree.pci("0000:02:00.0", "10de:28e0", driver="nouveau", drm=(1, 129))
    return node


@broken("gsp-firmware-missing", "apt install firmware-nvidia-gsp", DEBIAN)
def debian_without_firmware(root: Path) -> Node:
    return causes.no_gsp_firmware(root)


@broken("no-permission", "usermod -aG video $USER")
def nodes_of_the_group_video(root: Path) -> Node:
    node = people(nvidia(root))
    node.nodes(*nodes.NVIDIA_NODES, answer="EACCES")
    text = "DeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n"
    node.file("/proc/driver/nvidia/params", text)
    return node


@broken("version-mismatch", "for this kernel the module 520.56.06 is built, and no other", DEBIAN)
def mismatch_that_a_reboot_keeps(root: Path) -> Node:
    """illinois-scicomp/machine-shop-maintenance#70."""
    node = nvidia(root)
    text = nodes.VERSION_TEXT.replace(nodes.VERSION, "520.56.06")
    node.file("/proc/driver/nvidia/version", text)
    node.file(f"/var/lib/dkms/nvidia/520.56.06/{nodes.RELEASE}/x86_64/module/nvidia.ko")
    return node


@broken("version-mismatch", "`sudo reboot`", DEBIAN)
def mismatch_that_a_reboot_ends(root: Path) -> Node:
    node = mismatch_that_a_reboot_keeps(root)
    node.file(f"/var/lib/dkms/nvidia/{nodes.VERSION}/{nodes.RELEASE}/x86_64/module/nvidia.ko")
    return node


# --- CUDA in containers


@sound
def specification_of_this_card(root: Path) -> Node:
    node = nvidia(root)
    node.file("/etc/cdi/nvidia.yaml", SPECIFICATION)
    return node


@broken("kfd-missing", "on the host `flatpak override --user --device=all {APP}`")
def flatpak_with_graphics_alone(root: Path) -> Node:
    """Jeffser/Alpaca#139."""
    node = amd(root)
    node.nodes("/dev/kfd", answer="missing")
    node.container("/.flatpak-info")
    return node


@broken("cuda-compat-unsupported", "install driver 580 or later on the host")
def compat_that_the_toolkit_mounted_for_a_geforce(root: Path) -> Node:
    node = causes.image_of_a_newer_cuda(root)
    node.remove(f"{LIBRARIES}/libcuda.so.1")
    node.file(f"{LIBRARIES}/libcuda.so.580.65.06", b"\x7fELF\x02")
    node.tree.link(f"{LIBRARIES}/libcuda.so.1", f"{LIBRARIES}/libcuda.so.580.65.06")
    return node


@broken("cuda-library-mismatch", "take /usr/local/cuda/compat out of LD_LIBRARY_PATH")
def old_image_with_compat_on_a_new_driver(root: Path) -> Node:
    return causes.compat(root, "2684", "580.95.05", "535.104.05")


@broken("library-missing", "`apptainer exec --nv`")
def apptainer_without_nv(root: Path) -> Node:
    node = causes.container_without_libraries(root)
    node.container("/.singularity.d")
    return node


@broken("container-without-gpus", "`apptainer exec --rocm`")
def contained_apptainer(root: Path) -> Node:
    node = amd(root)
    node.nodes(*node.access, answer="missing")
    node.container("/.singularity.d")
    return node


@broken("library-missing", "flatpak update")
def flatpak_without_the_drivers_extension(root: Path) -> Node:
    node = causes.container_without_libraries(root)
    node.container("/.flatpak-info")
    return node


@broken("library-missing", "--no-kernel-module")
def lxc_without_libraries(root: Path) -> Node:
    node = causes.container_without_libraries(root)
    node.environ["container"] = "lxc"
    return node


@broken("lxc-device-missing", "pct set ID -dev0 /dev/nvidiactl -dev1 /dev/nvidia0")
def lxc_on_proxmox(root: Path) -> Node:
    node = nvidia(root)
    node.tree.release("6.8.12-4-pve")
    node.nodes(*nodes.NVIDIA_NODES, answer="missing")
    node.environ["container"] = "lxc"
    return node


def in_a_snap(answer: str) -> Make:
    """/dev is the host's there (canonical/inference-snaps#132)."""

    def make(root: Path) -> Node:
        node = nvidia(root)
        node.nodes(*nodes.NVIDIA_NODES, answer=answer)
        node.environ["SNAP"] = "/snap/deepseek-r1/3"
        node.file("/proc/self/attr/current", "snap.deepseek-r1.chat (enforce)\n")
        return node

    return make


@broken("no-permission", "sudo snap connect APP:opengl")
def snap_that_apparmor_confines(root: Path) -> Node:
    return in_a_snap("EACCES")(root)


@broken("cgroup-denied", "sudo snap connect APP:opengl")
def snap_with_a_device_cgroup(root: Path) -> Node:
    return in_a_snap("EPERM")(root)


@broken("secure-boot", "signed with the key that is enrolled")
def key_enrolled_and_module_refused(root: Path) -> Node:
    """deepin-community/kernel#2144: to enrol it once more changes nothing."""
    node = causes.key_was_rejected(root)
    key = b"0\x82 a certificate"
    node.file("/var/lib/dkms/mok.pub", key)
    variable = "/sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
    node.file(variable, b"\x06\0\0\0" + b"another" + key)
    return node


@broken("selinux-denies", "container_use_xserver_devices")
def podman_on_fedora(root: Path) -> Node:
    node = nvidia(root)
    node.nodes(*nodes.NVIDIA_NODES, answer="EACCES")
    node.container("/run/.containerenv")
    node.file("/sys/fs/selinux/enforce", "1")
    node.file("/proc/self/attr/current", "system_u:system_r:container_t:s0:c1,c2\0")
    return node


# --- Kubernetes


def pod(node: Node) -> Node:
    without_nodes(node).environ["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    return node


@broken("pod-without-gpu", "gpu.intel.com/i915")
def pod_beside_an_arc_of_i915(root: Path) -> Node:
    return pod(intel(root, driver="i915", ids="8086:56a0"))


@broken("pod-without-gpu", "habana.ai/gaudi")
def pod_beside_a_gaudi(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(PCI, "1da3:1020", pci_class="120000", driver="habanalabs", accel=0)
    node.nodes("/dev/accel/accel0")
    return pod(node)


@broken("pod-without-gpu", "amd.com/gpu")
def pod_beside_a_radeon(root: Path) -> Node:
    return pod(amd(root))


@broken("pod-without-gpu", "runtimeClassName: nvidia")
def pod_that_was_granted_a_gpu(root: Path) -> Node:
    node = pod(nvidia(root))
    node.environ["NVIDIA_VISIBLE_DEVICES"] = "GPU-01234567-89ab-cdef-0123-456789abcdef"
    return node


@broken("cgroup-denied", "`docker run --device=/dev/kfd --device=/dev/dri")
def docker_with_nodes_that_the_cgroup_refuses(root: Path) -> Node:
    node = amd(root)
    node.container()
    node.nodes("/dev/kfd", answer="EPERM")
    return node


@broken("cgroup-denied", "lxc.cgroup2.devices.allow: c MAJOR:* rwm")
def lxc_without_a_rule(root: Path) -> Node:
    node = nvidia(root)
    node.environ["container"] = "lxc"
    node.nodes(*nodes.NVIDIA_NODES, answer="EPERM")
    return node


@broken("library-missing", "`docker run --gpus all`")
def docker_with_the_nodes_alone(root: Path) -> Node:
    node = causes.container_without_libraries(root)
    node.container()
    return node


@broken("library-missing", "`distrobox create --nvidia`", FEDORA)
def distrobox_without_the_hosts_libraries(root: Path) -> Node:
    node = causes.container_without_libraries(root)
    node.container("/run/.containerenv")
    node.environ["DISTROBOX_ENTER_PATH"] = "/usr/bin/distrobox-enter"
    return node


@broken("library-missing", "take an image with glibc", "ID=alpine\n")
def docker_with_an_image_of_musl(root: Path) -> Node:
    return docker_with_the_nodes_alone(root)


@broken("library-missing", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
def docker_with_the_libraries_of_graphics_alone(root: Path) -> Node:
    node = docker_with_the_nodes_alone(root)
    node.environ["NVIDIA_DRIVER_CAPABILITIES"] = "graphics"
    return node


@broken("libcuda-missing", "remove the link /usr/lib/x86_64-linux-gnu/libcuda.so.1")
def docker_with_the_stub_under_the_soname(root: Path) -> Node:
    return causes.stub_under_the_soname(root)


@broken("driver-older-than-cuda", "take an image of an older CUDA")
def docker_with_an_image_of_a_newer_cuda(root: Path) -> Node:
    node = causes.image_of_a_newer_cuda(root)
    node.container()
    return node


# --- services


@broken("cgroup-denied", "systemctl edit ollama.service`: `[Service]`, `DeviceAllow=")
def service_with_a_device_policy(root: Path) -> Node:
    node = causes.service(root)
    node.nodes(*nodes.NVIDIA_NODES, answer="EPERM")
    return node


@broken("service-without-devices", "PrivateDevices=no")
def service_of_root_with_private_devices(root: Path) -> Node:
    node = causes.service_with_private_devices(root)
    node.file("/usr/bin/nvidia-modprobe")
    return node


# --- AMD


# Kernels for gfx1100 may ask for more registers than gfx1103 has (ROCm/legacy-rocm-build#4557).
@broken("gfx-not-supported", "install the last ROCm version, or a build, with code for this GPU")
def phoenix_with_code_for_navi_31(root: Path) -> Node:
    node = amd(root, ids="1002:15bf")
    node.file("/opt/rocm/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat")
    return with_gfx(node, "gfx1103")


@broken("gfx-not-supported", "HSA_OVERRIDE_GFX_VERSION=10.3.0")
def navi_23_with_code_for_navi_21(root: Path) -> Node:
    node = amd(root, ids="1002:73ff")
    node.file("/opt/rocm/lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat")
    return with_gfx(node, "gfx1032")


@broken("hsa-override-foreign", "unset HSA_OVERRIDE_GFX_VERSION")
def mi210_with_the_override_of_another_card(root: Path) -> Node:
    node = amd(root, ids="1002:740f")
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "10.3.0"
    return node


@broken("hsa-override-bad", "unset HSA_OVERRIDE_GFX_VERSION")
def override_of_two_numbers(root: Path) -> Node:
    node = amd(root)
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "11.0"
    return node


@broken("firmware-missing", "apt install linux-firmware")
def rx_9070_on_an_old_linux_firmware(root: Path) -> Node:
    node = amd(root, driver=None, ids="1002:7550")
    node.tree.release("6.14.0-24-generic")
    for name in ("gc_11_0_0_pfp.bin", "navi10_ce.bin"):
        node.file(f"/lib/firmware/amdgpu/{name}")
    return node


@broken("kernel-too-old", "install Linux 6.12 or later")
def rx_9070_on_ubuntus_first_kernel(root: Path) -> Node:
    node = amd(root, driver=None, ids="1002:7550")
    node.file("/lib/firmware/amdgpu/gc_12_0_1_pfp.bin")
    return node


@broken("amdgpu-refused", "check firmware")
def rx_9070_that_the_packaged_driver_refuses(root: Path) -> Node:
    node = rx_9070_on_ubuntus_first_kernel(root)
    node.file(f"{MODULES}/updates/dkms/amdgpu.ko.zst")
    return node


@broken("not-in-group", "--group-add $(stat -c %g /dev/kfd)")
def docker_user_without_the_nodes_group(root: Path) -> Node:
    node = people(amd(root))
    node.nodes(*nodes.AMD_NODES, answer="EACCES")
    node.container()
    return node


@broken("not-in-group", "`SupplementaryGroups=render video`")
def service_without_the_nodes_groups(root: Path) -> Node:
    node = people(amd(root))
    node.nodes(*nodes.AMD_NODES, answer="EACCES")
    node.file("/proc/self/cgroup", causes.SERVICE)
    return node


@broken("group-not-active", "`sudo systemctl restart ollama.service`")
def service_older_than_its_group(root: Path) -> Node:
    node = people(amd(root), members="ada")
    node.nodes(*nodes.AMD_NODES, answer="EACCES")
    node.file("/proc/self/cgroup", causes.SERVICE)
    return node


@broken("module-blacklisted", "/etc/modprobe.d/blacklist-amdgpu.conf")
def amdgpu_blacklisted(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(PCI, "1002:744c")
    node.modules("ext4")
    node.file(f"{MODULES}/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko")
    node.file("/etc/modprobe.d/blacklist-amdgpu.conf", "blacklist amdgpu\n")
    return node


@broken("kfd-missing", "--device=/dev/kfd")
def docker_with_dri_alone(root: Path) -> Node:
    node = amd(root)
    node.nodes("/dev/kfd", answer="missing")
    node.container()
    return node


@broken("radeon-bound", "add amdgpu.cik_support=1 radeon.cik_support=0")
def hawaii(root: Path) -> Node:
    return amd(root, driver="radeon", ids="1002:67b0")


# --- Intel


@broken("kernel-too-old", "install Linux 6.12 or later: `sudo apt install linux-generic-hwe")
def b580_with_i915_alone(root: Path) -> Node:
    node = intel(root, driver=None)
    node.modules("i915")
    return node


@broken(
    "kernel-too-old", "xe.force_probe=56a1 to the only line of /boot/firmware/cmdline.txt", DEBIAN
)
def a750_on_a_raspberry_pi(root: Path) -> Node:
    """geerlingguy/raspberry-pi-pcie-devices#510: nothing there starts by GRUB."""
    node = intel(root, driver=None, ids="8086:56a1")
    node.modules("xe")
    node.file("/proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0")
    return node


@broken("kernel-too-old", "install Linux 6.2 or later")
def a770_on_ubuntus_first_kernel(root: Path) -> Node:
    node = intel(root, driver=None, ids="8086:56a0")
    node.tree.release("5.15.0-91-generic")
    node.modules("i915")
    return node


@broken("firmware-missing", "apt install firmware-intel-graphics", DEBIAN)
def a770_wedged_without_firmware(root: Path) -> Node:
    node = intel(root, driver="i915", ids="8086:56a0")
    node.file("/lib/firmware/regulatory.db")
    return node


@broken("container-without-gpus", "docker run --device=/dev/dri/renderD128")
def docker_beside_an_arc(root: Path) -> Node:
    return without_nodes(intel(root))


@broken("not-in-group", "usermod -aG")
def npu_of_the_group_render(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(PCI, "8086:643e", pci_class="120000", driver="intel_vpu", accel=0)
    node.modules("intel_vpu")
    people(node).nodes("/dev/accel/accel0", answer="EACCES")
    return node


# --- boards and NPUs


@broken("npu-no-module", "install Linux 6.14 or later")
def xdna_on_linux_6_8(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(PCI, "1022:17f0", pci_class="118000")
    node.modules("ext4")
    return node


@broken("container-without-gpus", "docker run --device=/dev/hailo0")
def hailo_in_docker(root: Path) -> Node:
    return without_nodes(causes.hailo(root))


@broken("firmware-missing", "firmware-misc-nonfree", DEBIAN)
def rock_5b_without_firmware(root: Path) -> Node:
    node = Node(root)
    node.tree.arch = "aarch64"
    node.tree.node("/gpu@fb000000", "rockchip,rk3588-mali", "arm,mali-valhall-csf")
    node.tree.platform("fb000000.gpu", "/gpu@fb000000")
    node.modules("panthor")
    node.file("/lib/firmware/regulatory.db")
    return node


@broken("not-in-group", "usermod -aG")
def jetson_of_another_user(root: Path) -> Node:
    node = people(causes.jetson(root))
    node.nodes("/dev/nvmap", answer="EACCES")
    return node


@broken("container-without-gpus", "docker run --runtime nvidia")
def jetson_in_docker(root: Path) -> Node:
    node = causes.jetson(root)
    node.nodes("/dev/nvmap", answer="missing")
    node.container()
    return node


@broken("library-missing", "hardware.graphics.enable = true;", NIXOS)
def nixos_without_graphics(root: Path) -> Node:
    node = causes.container_without_libraries(root)
    node.file("/etc/NIXOS")
    node.file("/run/current-system/nixos-version")
    return node


# --- sound


@broken("no-permission", "set NVreg_DeviceFileMode=0666")
def nodes_for_root_alone(root: Path) -> Node:
    node = people(nvidia(root))
    node.nodes(*nodes.NVIDIA_NODES, answer="EACCES")
    text = "DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 384\n"
    node.file("/proc/driver/nvidia/params", text)
    return node


@sound
def ssh_login_beside_an_unused_integrated_gpu(root: Path) -> Node:
    node = people(nvidia(root))
    node.tree.pci("0000:0a:00.0", "1002:164e", driver="amdgpu", drm=(1, 129))
    node.nodes("/dev/kfd", "/dev/dri/renderD129", answer="EACCES")
    return node


@sound
def slurm_job_with_two_of_four(root: Path) -> Node:
    node = nvidia(root)
    for number, answer in ((1, "ok"), (2, "EPERM"), (3, "EPERM")):
        further(node, number, answer)
    node.environ["SLURM_JOB_ID"] = "3"
    return node


def slurm_job_in_a_container_with_the_hosts_number(root: Path) -> Node:
    """NVIDIA/pyxis#47: of four GPUs the container has the last, whose number there is 0."""
    node = nvidia(root)
    node.container()
    node.nodes("/dev/nvidia0", answer="missing")
    for number, answer in ((1, "missing"), (2, "missing"), (3, "ok")):
        further(node, number, answer)
    node.environ |= {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "3"}
    return node


@sound
def pod_with_one_of_two(root: Path) -> Node:
    node = nvidia(root)
    further(node, 1, "missing")
    node.environ["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    node.environ["NVIDIA_VISIBLE_DEVICES"] = "GPU-01234567-89ab-cdef-0123-456789abcdef"
    return node


@sound
def docker_with_two_of_four(root: Path) -> Node:
    node = nvidia(root)
    node.container()
    for number, answer in ((1, "ok"), (2, "missing"), (3, "missing")):
        further(node, number, answer)
    return node


@sound
def rootless_podman_with_cdi(root: Path) -> Node:
    node = nvidia(root)
    node.container("/run/.containerenv")
    node.file("/proc/self/uid_map", "0 1000 1\n1 100000 65536\n")
    node.environ["NVIDIA_VISIBLE_DEVICES"] = "void"
    return node


@sound
def apptainer_with_nv(root: Path) -> Node:
    node = causes.container_without_libraries(root)
    node.container("/.singularity.d")
    for name in ("libcuda.so", "libnvidia-ml.so"):
        folder = "/opt/container/libs"
        node.file(f"{folder}/{name}.{nodes.VERSION}", b"\x7fELF\x02")
        node.tree.link(f"{folder}/{name}.1", f"{folder}/{name}.{nodes.VERSION}")
    node.environ["LD_LIBRARY_PATH"] = "/opt/container/libs"
    return node


@sound
def optimus_laptop_whose_gpu_sleeps(root: Path) -> Node:
    node = nvidia(root, power="suspended")
    node.tree.pci("0000:00:02.0", "8086:a7a0", driver="i915", drm=(1, 129))
    node.nodes("/dev/dri/renderD129")
    node.file(f"{LIBRARIES}/libze_intel_gpu.so.1", b"\x7fELF\x02")
    return node


@sound
def gpu_for_a_guest_beside_a_gpu_of_the_host(root: Path) -> Node:
    node = nvidia(root)
    node.tree.pci("0000:02:00.0", "10de:2204", driver="vfio-pci")
    return node


@sound
def proxmox_whose_gpus_are_all_reserved(root: Path) -> Node:
    node = Node(root)
    node.tree.release("6.8.12-4-pve")
    node.tree.pci(PCI, "10de:2684", driver="vfio-pci")
    return node


@sound
def nixos_with_graphics(root: Path) -> Node:
    node = nixos_without_graphics(root)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        folder = "/run/opengl-driver/lib"
        node.file(f"{folder}/{name}.{nodes.VERSION}", b"\x7fELF\x02")
        node.tree.link(f"{folder}/{name}.1", f"{folder}/{name}.{nodes.VERSION}")
    return node


@sound
def integrated_gpu_beside_the_one_that_an_override_is_for(root: Path) -> Node:
    return nodes.card_and_processor(root)


@sound
def debian_with_its_own_name_of_the_module(root: Path) -> Node:
    node = nvidia(root)
    node.file(f"{DKMS}/nvidia-current.ko.xz")
    line = "install nvidia modprobe -i nvidia-current $CMDLINE_OPTS\n"
    node.file("/etc/modprobe.d/nvidia.conf", line)
    return node


@sound
def a100_with_an_image_of_an_older_cuda(root: Path) -> Node:
    node = nvidia(root, ids="10de:20b2", pci_class="030200")
    node.container()
    node.environ["CUDA_VERSION"] = "11.8.0"
    return node


@sound
def arc_on_a_kernel_with_backports(root: Path) -> Node:
    node = intel(root, driver="i915", ids="8086:56a0")
    node.tree.release("5.14.0-503.el9.x86_64")
    return node


@sound
def arc_with_a_kernel_that_has_all_built_in(root: Path) -> Node:
    node = a770_wedged_without_firmware(root)
    node.file(f"{MODULES}/modules.builtin", "kernel/drivers/gpu/drm/i915/i915.ko\n")
    return node


@sound
def server_with_a_management_display(root: Path) -> Node:
    node = nvidia(root)
    node.tree.pci("0000:05:00.0", "1a03:2000", driver="ast", drm=(1, 129))
    return node


@sound
def jetson_with_its_nodes(root: Path) -> Node:
    node = causes.jetson(root)
    node.nodes("/dev/nvmap")
    return node


@sound
def service_that_may_open_all(root: Path) -> Node:
    return causes.service(root)


@sound
def root_whose_nodes_come_with_the_first_use(root: Path) -> Node:
    node = nvidia(root)
    node.nodes("/dev/nvidia-uvm", answer="missing")
    node.file("/proc/self/status", "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n")
    return node


def with_gfx(node: Node, gfx: str) -> Node:
    """Note the ISA that KFD reports, which a prober gives."""
    version = {"gfx1103": 110003, "gfx1032": 100302}[gfx]
    path = "/sys/class/kfd/kfd/topology/nodes/1/properties"
    node.file(path, f"simd_count 192\nlocation_id 256\ndomain 0\ngfx_target_version {version}\n")
    return node
