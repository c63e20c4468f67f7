"""For each step and each cause a machine that breaks it, and a look-alike that does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import readiness_nodes as nodes
from readiness_nodes import DEVICE, FOLDER, LIBRARIES, RELEASE, Node, amd, intel, nvidia, verdict

from probe_core.model.causes import CAUSES

READY = ("ready", None, None)
MODULES = f"/lib/modules/{RELEASE}"
DKMS = f"{MODULES}/updates/dkms"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
INFORMATION = f"/proc/driver/nvidia/gpus/{nodes.PCI}/information"

Machine = Callable[[Path], Node]
BROKEN: dict[str, tuple[str, Machine]] = {}
"""Name of a machine to the code of its cause, and what makes it."""
HEALTHY: dict[str, Machine] = {}


def breaks(code: str) -> Callable[[Machine], Machine]:
    def add(make: Machine) -> Machine:
        BROKEN[make.__name__] = (code, make)
        return make

    return add


def healthy(make: Machine) -> Machine:
    HEALTHY[make.__name__] = make
    return make


def unbound(root: Path, *loaded: str, **pci: object) -> Node:
    """Return a machine whose NVIDIA GPU has no driver, with none of its nodes and libraries."""
    node = Node(root)
    node.tree.pci(nodes.PCI, "10de:2684", driver=None, **pci)  # type: ignore[arg-type]
    node.modules("ext4", *loaded)
    return node


# --- hardware


@breaks("off-the-bus")
def never_woke(root: Path) -> Node:
    """Its driver's resume failed (minisforum-docs/MS-02-Ultra#26); ROCm/legacy-rocm-build#6101 has
    the status that the kernel shows from then on."""
    link = {"current_link_width": 63, "max_link_width": 63}
    node = amd(root, power="error", **link)
    node.file(f"{FOLDER}/config", b"\xff" * 64)
    return node


@breaks("off-the-bus")
def fell_off(root: Path) -> Node:
    node = nvidia(root, current_link_width=63, max_link_width=63, current_link_speed="Unknown")
    node.file(f"{FOLDER}/config", b"\xff" * 64)
    return node


@healthy
def width_of_a_sleeper(root: Path) -> Node:
    return nvidia(root, power="suspended", current_link_width=63)


@healthy
def odd_width_of_a_function_that_answers(root: Path) -> Node:
    node = nvidia(root, current_link_width=63)
    node.file(f"{FOLDER}/config", b"\xde\x10\x84\x26" + b"\0" * 60)
    return node


def regions(*starts: int) -> str:
    lines = [(start, start + 0xFFFFFF if start else 0) for start in starts]
    return "".join(f"0x{start:016x} 0x{end:016x} 0x0000000000140204\n" for start, end in lines)


@breaks("bar-unassigned")
def no_address_for_bar_1(root: Path) -> Node:
    node = unbound(root, "nvidia")
    node.file(f"{FOLDER}/resource", regions(0xFA000000, 0, 0, 0, 0, 0))
    return node


@breaks("bar-unassigned")
def no_address_for_the_registers(root: Path) -> Node:
    """An MI210 whose fifth region found no room (ROCm/legacy-rocm-build#6281)."""
    node = amd(root, driver=None, ids="1002:740f")
    large, small = "0x61000000000 0x61fffffffff 0x14220c\n", "0x0 0x7ffff 0x40200\n"
    node.file(f"{FOLDER}/resource", large + "0x0 0x0 0x0\n" * 4 + small)
    return node


@breaks("amdgpu-refused")
def no_address_for_ports(root: Path) -> Node:
    """Ports of I/O are no memory, and no driver needs them."""
    node = amd(root, driver=None, ids="1002:740f")
    large, ports = "0x61000000000 0x61fffffffff 0x14220c\n", "0x0 0xff 0x40101\n"
    node.file(f"{FOLDER}/resource", large + "0x0 0x0 0x0\n" * 3 + ports)
    return node


@healthy
def regions_in_an_odd_form(root: Path) -> Node:
    node = window(root, "0000000000007fc0\n")
    node.file(f"{FOLDER}/resource", "0xfa000000 0xfaffffff\n0xe0000000 0xefffffff 0x1\n")
    return node


@healthy
def regions_that_end_before_they_begin(root: Path) -> Node:
    node = window(root, "0000000000007fc0\n")
    node.file(f"{FOLDER}/resource", "0xfaffffff 0xfa000000 0x1\n0xe0000000 0xefffffff 0x1\n")
    return node


@healthy
def regions_beyond_64_bits(root: Path) -> Node:
    node = window(root, "0000000000007fc0\n")
    node.file(f"{FOLDER}/resource", f"0x1 0x1{'0' * 16} 0x1\n0xe0000000 0xefffffff 0x1\n")
    return node


@healthy
def windows_in_an_odd_form(root: Path) -> Node:
    return window(root, "all\n")


@healthy
def window_that_cannot_be_larger(root: Path) -> Node:
    return window(root, "00000000000001c0\n")


@breaks("link-narrow")
def four_of_sixteen_lanes(root: Path) -> Node:
    return nvidia(root, link=(4, 16.0), max_link=(16, 16.0))


@healthy
def idle_link(root: Path) -> Node:
    return nvidia(root, link=(16, 2.5), max_link=(16, 16.0))


@healthy
def lanes_beside_nvlink(root: Path) -> Node:
    node = nvidia(root, ids="10de:1db5", link=(2, 8.0), max_link=(16, 8.0))
    node.tree.arch = "ppc64le"
    return node


@breaks("aer-errors")
def fatal_errors(root: Path) -> Node:
    return nvidia(root, link=(16, 16.0), aer_dev_fatal="DLP 1\nTOTAL_ERR_FATAL 1")


@healthy
def no_fatal_errors(root: Path) -> Node:
    return nvidia(root, link=(16, 16.0), aer_dev_fatal="DLP 0\nTOTAL_ERR_FATAL 0")


def window(root: Path, sizes: str | None) -> Node:
    node = nvidia(root, link=(16, 16.0))
    node.file(f"{FOLDER}/resource", "0xfa000000 0xfaffffff 0x40200\n0xe0000000 0xefffffff 0x1\n")
    if sizes:
        node.file(f"{FOLDER}/resource1_resize", sizes)
    return node


@breaks("rebar-off")
def small_window_that_could_be_large(root: Path) -> Node:
    return window(root, "0000000000007fc0\n")


@healthy
def small_window_by_design(root: Path) -> Node:
    return window(root, None)


# --- driver


@breaks("no-driver")
def nothing_known_of_modules(root: Path) -> Node:
    node = unbound(root)
    node.remove("/proc/modules")
    return node


@breaks("driver-not-installed")
def no_module_on_disk(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{MODULES}/modules.dep", "kernel/fs/ext4/ext4.ko.zst:\n")
    return node


@breaks("module-missing-for-kernel")
def module_of_another_kernel(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{MODULES}/modules.dep", "kernel/fs/ext4/ext4.ko.zst:\n")
    node.file("/lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko.zst")
    return node


@breaks("module-missing-for-kernel")
def dkms_did_not_build(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{MODULES}/modules.dep", "kernel/fs/ext4/ext4.ko.zst:\n")
    node.file("/var/lib/dkms/nvidia/580.95.05/source/dkms.conf")
    return node


@breaks("secure-boot")
def key_was_rejected(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{DKMS}/nvidia.ko.zst")
    node.file(SECURE_BOOT, b"\x06\0\0\0\1")
    return node


@healthy
def secure_boot_with_a_loaded_module(root: Path) -> Node:
    node = nvidia(root)
    node.file(SECURE_BOOT, b"\x06\0\0\0\1")
    node.file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    return node


@breaks("module-unsigned")
def signatures_by_a_parameter(root: Path) -> Node:
    """Without Secure Boot (secureblue/secureblue#1043)."""
    node = unbound(root)
    node.file(f"{DKMS}/nvidia.ko.zst")
    node.file("/proc/cmdline", "rw quiet module.sig_enforce=1\n")
    return node


@breaks("module-not-loaded")
def signatures_of_the_kernels_own_modules(root: Path) -> Node:
    node = amd(root, driver=None)
    node.modules("ext4")
    node.file(f"{MODULES}/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst")
    node.file("/proc/cmdline", "rw module.sig_enforce\n")
    return node


@breaks("module-blacklisted")
def blacklisted_by_prime_select(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{DKMS}/nvidia.ko.zst")
    node.file("/lib/modprobe.d/blacklist-nvidia.conf", "# prime\nblacklist nvidia\n")
    return node


@breaks("module-blacklisted")
def blacklisted_by_the_command_line(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{DKMS}/nvidia.ko")
    node.file("/proc/cmdline", "ro quiet modprobe.blacklist=nouveau,nvidia\n")
    return node


@breaks("module-blacklisted")
def switched_off_by_an_alias(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{DKMS}/nvidia-current.ko")  # Debian's name of it
    node.file("/etc/modprobe.d/off.conf", "alias nouveau off\nalias nvidia \\\noff\n")
    return node


@breaks("module-blacklisted")
def installed_as_nothing(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{DKMS}/nvidia-tesla-470.ko.xz")
    node.file("/etc/modprobe.d/off.conf", "install nvidia /bin/false\n")
    return node


@breaks("module-not-loaded")
def modules_that_are_named_and_may_load(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{DKMS}/nvidia.ko")
    text = "alias gpu nvidia\nalias nvidia nvidia-current\ninstall nvidia /sbin/modprobe nvidia\n"
    node.file("/etc/modprobe.d/named.conf", text + "options nvidia off\nnvidia\n\n")
    return node


@breaks("driver-not-installed")
def another_part_of_the_driver_alone(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{MODULES}/modules.dep", "updates/dkms/nvidia-current-uvm.ko:\n")
    return node


@breaks("module-not-loaded")
def blacklist_in_a_file_that_modprobe_does_not_read(root: Path) -> Node:
    node = unbound(root)
    node.file(f"{DKMS}/nvidia.ko")
    node.file("/etc/modprobe.d/nvidia.conf.disabled", "blacklist nvidia\n")
    node.file("/etc/modprobe.d/nouveau.conf", "blacklist nouveau\noptions nvidia x=1\n")
    return node


@healthy
def nouveau_blacklisted(root: Path) -> Node:
    node = nvidia(root)
    node.file("/etc/modprobe.d/nouveau.conf", "blacklist nouveau\n")
    node.file("/proc/sys/kernel/tainted", "12289\n")
    return node


@breaks("nouveau-bound")
def nouveau(root: Path) -> Node:
    return nvidia(root, driver="nouveau")


@breaks("nova-bound")
def nova(root: Path) -> Node:
    return nvidia(root, driver="nova_core")


@breaks("reserved-for-vm")
def passthrough(root: Path) -> Node:
    return nvidia(root, driver="vfio-pci")


@breaks("vgpu-host-driver")
def host_of_virtual_gpus(root: Path) -> Node:
    node = nvidia(root)
    node.modules("nvidia", "nvidia_uvm", "nvidia_vgpu_vfio")
    return node


@breaks("open-module-unsupported")
def open_module_and_a_volta(root: Path) -> Node:
    node = unbound(root, "nvidia")
    node.file(f"{FOLDER}/device", "0x1db5\n")  # Tesla V100
    node.file("/proc/driver/nvidia/version", nodes.OPEN_TEXT)
    return node


@breaks("legacy-branch")
def kepler_and_a_new_driver(root: Path) -> Node:
    node = unbound(root, "nvidia")
    node.file(f"{FOLDER}/device", "0x102d\n")  # Tesla K80
    node.file("/proc/driver/nvidia/version", nodes.VERSION_TEXT)
    return node


@breaks("driver-too-old-for-gpu")
def blackwell_and_an_old_driver(root: Path) -> Node:
    node = unbound(root, "nvidia")
    node.file(f"{FOLDER}/device", "0x2b85\n")  # GeForce RTX 5090
    text = nodes.OPEN_TEXT.replace(nodes.VERSION, "550.54.14")
    node.file("/proc/driver/nvidia/version", text)
    return node


@breaks("closed-module-unsupported")
def blackwell_and_the_closed_module(root: Path) -> Node:
    node = unbound(root, "nvidia")
    node.file(f"{FOLDER}/device", "0x2b85\n")  # GeForce RTX 5090
    node.file("/proc/driver/nvidia/version", nodes.VERSION_TEXT)
    return node


@breaks("closed-module-unsupported")
def closed_module_that_holds_a_blackwell(root: Path) -> Node:
    """It binds, and no program can open the GPU (NVIDIA/open-gpu-kernel-modules#862)."""
    return nvidia(root, ids="10de:2b85")


def refused_at_boot(root: Path, ids: str, version: str) -> Node:
    """Return a machine whose installed driver is for other GPUs, and so does not stay loaded."""
    node = unbound(root)
    node.file(f"{FOLDER}/device", f"0x{ids}\n")
    node.file(f"{DKMS}/nvidia.ko.zst")
    node.file(f"{LIBRARIES}/libnvidia-ml.so.{version}", b"\x7fELF\x02\x01\x01")
    path = f"{LIBRARIES}/libnvidia-ml.so"
    node.tree.link(f"{path}.1", f"{path}.{version}")
    return node


@breaks("legacy-branch")
def pascal_and_a_driver_that_ignores_it(root: Path) -> Node:
    """NixOS/nixos-hardware#1828."""
    return refused_at_boot(root, "1c8d", "595.58.03")


@breaks("driver-too-old-for-gpu")
def blackwell_and_a_driver_before_it(root: Path) -> Node:
    """NVIDIA/open-gpu-kernel-modules#393 has what it logs."""
    return refused_at_boot(root, "2f04", "535.183.01")


@breaks("module-not-loaded")
def ada_and_a_driver_that_supports_it(root: Path) -> Node:
    return refused_at_boot(root, "2684", "580.95.05")


@healthy
def blackwell_and_the_open_module(root: Path) -> Node:
    node = nvidia(root, ids="10de:2b85")
    node.file("/proc/driver/nvidia/version", nodes.OPEN_TEXT)
    return node


@breaks("gsp-firmware-missing")
def no_gsp_firmware(root: Path) -> Node:
    node = nvidia(root)
    node.file("/proc/driver/nvidia/version", nodes.OPEN_TEXT)
    node.file("/lib/firmware/regulatory.db")
    return node


@healthy
def gsp_firmware(root: Path) -> Node:
    node = no_gsp_firmware(root)
    node.file(f"/lib/firmware/nvidia/{nodes.VERSION}/gsp_ga10x.bin")
    return node


@healthy
def firmware_of_a_driver_in_a_container(root: Path) -> Node:
    """Return a host of NVIDIA's GPU operator, or COS: the kernel is told where to look."""
    node = no_gsp_firmware(root)
    path = "/run/nvidia/driver/lib/firmware"
    node.file("/sys/module/firmware_class/parameters/path", path)
    return node


@healthy
def container_without_firmware(root: Path) -> Node:
    node = no_gsp_firmware(root)
    node.container()
    return node


@breaks("radeon-bound")
def radeon(root: Path) -> Node:
    return amd(root, driver="radeon", ids="1002:6798")


@breaks("amdgpu-refused")
def amdgpu_refused(root: Path) -> Node:
    return amd(root, driver=None)


@breaks("firmware-missing")
def amdgpu_without_firmware(root: Path) -> Node:
    node = amd(root, driver=None)
    node.file("/lib/firmware/regulatory.db")
    return node


@breaks("amdgpu-refused")
def firmware_of_amds_own_packages(root: Path) -> Node:
    """What it lacks is not the firmware, which amdgpu-dkms-firmware has elsewhere."""
    node = amdgpu_without_firmware(root)
    node.file("/lib/firmware/updates/amdgpu/gc_11_0_0_pfp.bin")
    return node


@breaks("nomodeset")
def nomodeset(root: Path) -> Node:
    node = amd(root, driver=None)
    node.file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz nomodeset\n")
    return node


@breaks("nomodeset")
def nomodeset_that_keeps_a_module_from_loading(root: Path) -> Node:
    node = nomodeset(root)
    node.modules("ext4")
    node.file(f"{MODULES}/modules.dep", "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst:\n")
    node.file(f"{MODULES}/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst")
    return node


@healthy
def nomodeset_does_not_concern_nvidia(root: Path) -> Node:
    node = nvidia(root)
    node.file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz nomodeset\n")
    return node


@breaks("kernel-too-old")
def amdgpu_that_is_older_than_the_card(root: Path) -> Node:
    node = amd(root, driver=None, ids="1002:7550")
    node.file(f"{MODULES}/modules.dep", "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko:\n")
    node.file(f"{MODULES}/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko")
    return node


@breaks("amdgpu-refused")
def amdgpu_of_amds_own_packages(root: Path) -> Node:
    """The kernel's number says nothing of a module that is not its own."""
    node = amd(root, driver=None, ids="1002:7550")
    node.file(f"{MODULES}/modules.dep", "updates/dkms/amdgpu.ko:\n")
    node.file(f"{MODULES}/updates/dkms/amdgpu.ko")
    return node


@breaks("kernel-too-old")
def xe_does_not_know_it(root: Path) -> Node:
    return intel(root, driver=None)


@breaks("firmware-missing")
def hailo_without_firmware(root: Path) -> Node:
    """The driver binds and makes the node (home-assistant/operating-system#3663)."""
    node = Node(root)
    folder = node.tree.pci(nodes.PCI, "1e60:2864", pci_class="120000", driver="hailo")
    node.file(f"{folder}/hailo_chardev/hailo0/dev", "510:0\n")
    node.nodes("/dev/hailo0")
    node.file("/lib/firmware/regulatory.db")
    return node


@healthy
def hailo_with_firmware(root: Path) -> Node:
    node = hailo_without_firmware(root)
    node.file("/lib/firmware/hailo/hailo8_fw.4.20.0.bin")
    return node


@healthy
def hailo_that_the_host_started(root: Path) -> Node:
    """A virtual machine's kernel finds its firmware loaded, and asks for no file."""
    node = hailo_without_firmware(root)
    node.file("/sys/class/dmi/id/sys_vendor", "QEMU\n")
    return node


@breaks("npu-no-module")
def hailo_without_module(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(nodes.PCI, "1e60:2864", pci_class="120000")
    node.modules("ext4")
    return node


@healthy
def hailo(root: Path) -> Node:
    node = Node(root)
    folder = node.tree.pci(nodes.PCI, "1e60:2864", pci_class="120000", driver="hailo")
    node.file(f"{folder}/hailo_chardev/hailo0/dev", "510:0\n")
    node.nodes("/dev/hailo0")
    return node


@breaks("jetson-no-nvgpu")
def jetson_without_nvgpu(root: Path) -> Node:
    node = Node(root)
    node.tree.arch = "aarch64"
    node.tree.node("/bus@0/gpu@17000000", "nvidia,ga10b")
    node.tree.platform("17000000.gpu", "/bus@0/gpu@17000000")
    return node


@healthy
def jetson(root: Path) -> Node:
    node = jetson_without_nvgpu(root)
    node.tree.platform("17000000.gpu", "/bus@0/gpu@17000000", driver="gk20a")
    return node


@healthy
def tpu_through_vfio(root: Path) -> Node:
    node = Node(root)
    folder = node.tree.pci(nodes.PCI, "1ae0:0063", pci_class="120000", driver="vfio-pci")
    node.tree.link(f"{folder}/iommu_group", "/sys/kernel/iommu_groups/5")
    node.nodes("/dev/vfio/5", "/dev/vfio/vfio")
    return node


# --- node


def without_nodes(node: Node) -> Node:
    node.nodes(*node.access, answer="missing")
    node.container()
    return node


@breaks("container-without-gpus")
def docker_without_gpus(root: Path) -> Node:
    return without_nodes(nvidia(root))


@breaks("container-without-gpus")
def docker_without_gpus_as_files_show_it(root: Path) -> Node:
    node = docker_without_gpus(root)
    node.access.clear()
    return node


@breaks("container-without-gpus")
def docker_without_amd_nodes(root: Path) -> Node:
    return without_nodes(amd(root))


@breaks("hidden-by-container")
def void_and_no_nodes(root: Path) -> Node:
    node = without_nodes(nvidia(root))
    node.environ["NVIDIA_VISIBLE_DEVICES"] = "void"
    return node


@healthy
def void_of_cdi_with_nodes(root: Path) -> Node:
    node = nvidia(root)
    node.container()
    node.environ["NVIDIA_VISIBLE_DEVICES"] = "void"
    return node


@breaks("pod-without-gpu")
def pod(root: Path) -> Node:
    node = without_nodes(nvidia(root))
    node.environ["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    return node


@breaks("flatpak")
def flatpak(root: Path) -> Node:
    node = intel(root)
    node.nodes(*node.access, answer="missing")
    node.container("/.flatpak-info")
    return node


@breaks("snap")
def snap(root: Path) -> Node:
    node = intel(root)
    node.nodes(*node.access, answer="missing")
    node.environ["SNAP"] = "/snap/app/12"
    return node


@healthy
def child_of_a_snap(root: Path) -> Node:
    node = intel(root)
    node.environ["SNAP"] = "/snap/code/12"
    return node


@breaks("lxc-device-missing")
def lxc_without_uvm(root: Path) -> Node:
    node = nvidia(root)
    node.nodes("/dev/nvidia-uvm", answer="missing")
    node.environ["container"] = "lxc"
    return node


# A login over ssh has no variables of its container, and a cgroup namespace shows "/" as the path.
_UNMARKED = "0::/\n"
_ROOT_USER = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
_LAYERS = "overlay / overlay rw,relatime,lowerdir=/x/snapshots/5/fs 0 0\n"
_OWN_DEV = "tmpfs /dev tmpfs rw,nosuid,size=65536k,mode=755 0 0\n"


def shown_by_mounts(node: Node, mounts: str, *missing: str) -> Node:
    """Make a container of root's, of which nothing but its mounts shows that it is one."""
    node.file("/proc/self/cgroup", _UNMARKED)
    node.file("/proc/self/status", _ROOT_USER)
    node.file("/proc/self/mounts", mounts)
    node.file("/dev/null")
    node.nodes(*missing, answer="missing")
    return node


@breaks("container-without-gpus")
def containerd_that_leaves_no_file(root: Path) -> Node:
    return shown_by_mounts(nvidia(root), _LAYERS + _OWN_DEV, *nodes.NVIDIA_NODES)


@breaks("pod-without-gpu")
def pod_over_ssh(root: Path) -> Node:
    token = "tmpfs /run/secrets/kubernetes.io/serviceaccount tmpfs ro,relatime 0 0\n"
    return shown_by_mounts(nvidia(root), _LAYERS + _OWN_DEV + token, *nodes.NVIDIA_NODES)


@breaks("lxc-device-missing")
def lxc_without_systemd(root: Path) -> Node:
    mounts = (
        "/dev/mapper/pve-vm--101--disk--0 / ext4 rw,relatime 0 0\n"
        "none /dev tmpfs rw,relatime,size=492k,mode=755 0 0\n"
        "lxcfs /proc/meminfo fuse.lxcfs rw,nosuid,nodev,allow_other 0 0\n"
    )
    return shown_by_mounts(nvidia(root), mounts, "/dev/nvidia-uvm")


@healthy
def containerd_with_its_nodes(root: Path) -> Node:
    return shown_by_mounts(nvidia(root), _LAYERS + _OWN_DEV)


@healthy
def live_system_of_root(root: Path) -> Node:
    """Its root is of layers too; its /dev is the kernel's, and root makes nodes by using them."""
    mounts = (
        "LiveOS_rootfs / overlay rw,relatime,lowerdir=/run/rootfsbase 0 0\n"
        "devtmpfs /dev devtmpfs rw,nosuid,size=4096k 0 0\n"
    )
    return shown_by_mounts(nvidia(root), mounts, *nodes.NVIDIA_NODES)


@breaks("uvm-missing")
def docker_without_uvm(root: Path) -> Node:
    node = nvidia(root)
    node.container()
    node.nodes("/dev/nvidia-uvm", answer="missing")
    return node


@breaks("uvm-missing")
def uvm_without_module(root: Path) -> Node:
    node = nvidia(root)
    node.modules("nvidia", "nvidia_modeset")
    return node


SERVICE = "0::/system.slice/ollama.service\n"


@breaks("service-without-devices")
def service_with_private_devices(root: Path) -> Node:
    node = nvidia(root)
    node.nodes(*nodes.NVIDIA_NODES, answer="missing")
    node.file("/proc/self/cgroup", SERVICE)
    node.file("/proc/self/mounts", "tmpfs /dev tmpfs ro,nosuid,noexec,size=4096k 0 0\n")
    return node


@healthy
def service(root: Path) -> Node:
    node = nvidia(root)
    node.file("/proc/self/cgroup", SERVICE)
    node.file("/proc/self/mounts", "devtmpfs /dev devtmpfs rw,nosuid 0 0\n")
    return node


@healthy
def uvm_comes_with_the_first_use(root: Path) -> Node:
    node = nvidia(root)
    node.nodes("/dev/nvidia-uvm", answer="missing")
    node.modules("nvidia", "nvidia_modeset")
    node.file("/usr/bin/nvidia-modprobe")
    return node


@healthy
def no_drm_node_of_nvidia(root: Path) -> Node:
    node = nvidia(root)
    node.nodes("/dev/dri/renderD128", "/dev/dri/card0", answer="EACCES")
    return node


@breaks("node-missing")
def no_nodes_on_a_host(root: Path) -> Node:
    node = intel(root)
    node.nodes(*nodes.INTEL_NODES, answer="missing")
    return node


@breaks("node-without-driver")
def node_with_the_number_of_no_driver(root: Path) -> Node:
    node = intel(root)
    node.nodes(*nodes.INTEL_NODES, answer="ENXIO")
    return node


@breaks("kfd-missing")
def kernel_without_kfd(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(nodes.PCI, "1002:744c", driver="amdgpu", drm=(0, 128))
    node.nodes("/dev/dri/renderD128")
    node.nodes("/dev/kfd", answer="missing")
    return node


def recording_without_dev(root: Path) -> Node:
    node = nvidia(root)
    for path in nodes.NVIDIA_NODES:
        node.remove(path)
    node.remove("/dev")
    node.access.clear()
    return node


# --- permission


@breaks("no-permission")
def nvidia_nodes_of_a_group(root: Path) -> Node:
    node = nvidia(root)
    node.nodes(*nodes.NVIDIA_NODES, answer="EACCES")
    node.file("/proc/driver/nvidia/params", "DeviceFileUID: 0\nDeviceFileGID: 44\n")
    return node


def people(node: Node, members: str = "", groups: str = "1000") -> Node:
    node.file("/etc/passwd", "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n")
    node.file("/etc/group", f"root:x:0:\nvideo:x:44:\nrender:x:105:{members}\nada:x:1000:\n")
    text = f"Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t{groups} \n"
    node.file("/proc/self/status", text)
    node.file("/proc/self/uid_map", "         0          0 4294967295\n")
    return node


@breaks("not-in-group")
def not_in_render(root: Path) -> Node:
    node = people(amd(root))
    node.nodes(*nodes.AMD_NODES, answer="EACCES")
    return node


@breaks("group-not-active")
def usermod_without_a_new_login(root: Path) -> Node:
    node = people(amd(root), members="ada")
    node.nodes(*nodes.AMD_NODES, answer="EACCES")
    return node


@healthy
def in_no_group_and_allowed_by_a_list(root: Path) -> Node:
    return people(amd(root))


@breaks("userns-group-lost")
def rootless_podman(root: Path) -> Node:
    node = people(amd(root), groups="0 65534")
    node.file("/proc/self/uid_map", "0 1000 1\n1 100000 65536\n")
    node.container("/run/.containerenv")
    node.nodes(*nodes.AMD_NODES, answer="EACCES")
    return node


@healthy
def rootless_podman_that_keeps_groups(root: Path) -> Node:
    node = people(amd(root), groups="0 65534")
    node.file("/proc/self/uid_map", "0 1000 1\n1 100000 65536\n")
    node.container("/run/.containerenv")
    return node


@breaks("selinux-denies")
def selinux(root: Path) -> Node:
    node = amd(root)
    node.nodes(*nodes.AMD_NODES, answer="EACCES")
    node.container("/run/.containerenv")
    node.file("/sys/fs/selinux/enforce", "1")
    node.file("/proc/self/attr/current", "system_u:system_r:container_t:s0:c1,c2\0")
    return node


@healthy
def selinux_that_allows(root: Path) -> Node:
    node = amd(root)
    node.file("/sys/fs/selinux/enforce", "1")
    return node


# --- library


@breaks("library-missing")
def container_without_libraries(root: Path) -> Node:
    node = nvidia(root)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        node.remove(f"{LIBRARIES}/{name}.1")
        node.remove(f"{LIBRARIES}/{name}.{nodes.VERSION}")
    node.file(f"{LIBRARIES}/libc.so.6")
    return node


@breaks("library-missing")
def nixos_without_its_drivers(root: Path) -> Node:
    node = recording_without_libraries(root)
    node.file("/etc/NIXOS")
    node.file("/run/current-system/nixos-version", "25.05")
    return node


@breaks("nvml-missing")
def cuda_without_nvml(root: Path) -> Node:
    node = nvidia(root)
    node.remove(f"{LIBRARIES}/libnvidia-ml.so.1")
    return node


@healthy
def recording_without_libraries(root: Path) -> Node:
    node = container_without_libraries(root)
    node.remove(f"{LIBRARIES}/libc.so.6")
    return node


@healthy
def libraries_in_a_configured_folder(root: Path) -> Node:
    node = container_without_libraries(root)
    node.file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    node.file("/etc/ld.so.conf.d/nvidia.conf", "# driver\n/opt/nvidia/lib\n")
    node.file("/opt/nvidia/lib/libcuda.so.1")
    node.file("/opt/nvidia/lib/libnvidia-ml.so.1")
    return node


@healthy
def libraries_of_a_configuration_that_is_named(root: Path) -> Node:
    node = libraries_in_a_configured_folder(root)
    node.file("/etc/ld.so.conf", "include ld.so.conf.d/nvidia.conf\n")
    return node


@breaks("version-mismatch")
def upgraded_without_a_restart(root: Path) -> Node:
    node = nvidia(root)
    text = nodes.VERSION_TEXT.replace(nodes.VERSION, "570.86.10")
    node.file("/proc/driver/nvidia/version", text)
    return node


@breaks("nvml-broken")
def empty_nvml(root: Path) -> Node:
    node = nvidia(root)
    node.file(f"{LIBRARIES}/libnvidia-ml.so.{nodes.VERSION}", b"")
    return node


@breaks("nvml-broken")
def nvml_of_the_image(root: Path) -> Node:
    node = nvidia(root)
    node.container()
    node.remove(f"{LIBRARIES}/libnvidia-ml.so.1")
    node.file(f"{LIBRARIES}/libnvidia-ml.so.570.86.10", b"\x7fELF\x02\x01")
    node.tree.link(f"{LIBRARIES}/libnvidia-ml.so.1", f"{LIBRARIES}/libnvidia-ml.so.570.86.10")
    return node


@breaks("library-broken")
def libraries_of_32_bits(root: Path) -> Node:
    node = nvidia(root)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        node.file(f"{LIBRARIES}/{name}.{nodes.VERSION}", b"\x7fELF\x01\x01")
    return node


@breaks("library-broken")
def libraries_of_no_word_size(root: Path) -> Node:
    node = nvidia(root)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        node.file(f"{LIBRARIES}/{name}.{nodes.VERSION}", b"\x7fELF\x00\x01")
    return node


@healthy
def desktop_with_libraries_for_games(root: Path) -> Node:
    """Debian's file for 32-bit libraries sorts before its own, and the loader passes them over."""
    node = nvidia(root)
    node.file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    for triplet, head in (("i386", b"\x7fELF\x01\x01"), ("x86_64", b"\x7fELF\x02\x01")):
        folder = f"/usr/lib/{triplet}-linux-gnu"
        node.file(f"/etc/ld.so.conf.d/{triplet}-linux-gnu.conf", f"{folder}\n")
        for name in ("libcuda.so", "libnvidia-ml.so"):
            node.file(f"{folder}/{name}.{nodes.VERSION}", head)
            node.tree.link(f"{folder}/{name}.1", f"{folder}/{name}.{nodes.VERSION}")
    return node


@breaks("nvml-broken")
def stubs_of_the_toolkit(root: Path) -> Node:
    node = nvidia(root)
    node.environ["LD_LIBRARY_PATH"] = "/usr/local/cuda/lib64/stubs"
    node.file("/usr/local/cuda/lib64/stubs/libnvidia-ml.so.1", b"\x7fELF\x02")
    return node


# --- granted


@breaks("cgroup-denied")
def after_daemon_reload(root: Path) -> Node:
    node = nvidia(root)
    node.container()
    node.nodes(*nodes.NVIDIA_NODES, answer="EPERM")
    return node


@breaks("slurm-slice")
def outside_the_job(root: Path) -> Node:
    node = nvidia(root)
    node.nodes("/dev/nvidia0", answer="EPERM")
    node.environ["SLURM_JOB_ID"] = "4711"
    return node


def version_1(root: Path, rules: str) -> Node:
    node = nvidia(root)
    node.access.clear()
    node.file("/proc/self/cgroup", "9:devices:/docker/abc\n8:memory:/docker/abc\n")
    node.file("/proc/devices", "Character devices:\n195 nvidia\n507 nvidia-uvm\n\nBlock devices:\n")
    node.file("/sys/fs/cgroup/devices/devices.list", rules)
    return node


@breaks("cgroup-denied")
def rules_of_version_1(root: Path) -> Node:
    return version_1(root, "c 1:3 rwm\nc 136:* rwm\nc 195:255 rwm\nc 507:0 rwm\n")


@healthy
def rules_of_version_1_that_allow(root: Path) -> Node:
    return version_1(root, "c 1:3 rwm\nc 195:* rwm\nc 507:* rwm\n")


@healthy
def rules_of_version_1_with_exceptions(root: Path) -> Node:
    return version_1(root, "a *:* rwm\n")


@breaks("gpu-excluded")
def excluded(root: Path) -> Node:
    node = nvidia(root)
    node.file(INFORMATION, "Device Minor: \t 0\nGPU Excluded:\t Yes\n")
    return node


@breaks("mps-daemon-gone")
def dead_mps_daemon(root: Path) -> Node:
    node = nvidia(root)
    node.environ["CUDA_MPS_PIPE_DIRECTORY"] = "/tmp/mps"
    node.file("/tmp/mps/control")
    node.file("/tmp/mps/nvidia-cuda-mps-control.pid", "4242\n")
    node.file("/proc/self/status")
    return node


@healthy
def mps_daemon(root: Path) -> Node:
    node = dead_mps_daemon(root)
    node.file("/proc/4242/stat")
    return node


@healthy
def mps_folder_without_daemon(root: Path) -> Node:
    """Return what nvidia-cuda-mps-control(1) says of: a program then runs without MPS."""
    node = nvidia(root)
    node.environ["CUDA_MPS_PIPE_DIRECTORY"] = "/tmp/mps"
    node.file("/tmp/mps/log")
    return node


# --- runtime


@breaks("libcuda-missing")
def utility_without_compute(root: Path) -> Node:
    node = nvidia(root)
    node.container()
    node.remove(f"{LIBRARIES}/libcuda.so.1")
    return node


@healthy
def a_copy_of_nvml_alone(root: Path) -> Node:
    """The variable leads to a copy of one library, which says nothing of where CUDA's is."""
    node = nvidia(root)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        node.remove(f"{LIBRARIES}/{name}")
    node.file("/home/user/lib/libnvidia-ml.so.1", b"\x7fELF\x02")
    node.environ["LD_LIBRARY_PATH"] = "/home/user/lib"
    return node


def linked_libcuda(root: Path, target: str) -> Node:
    """Return a container whose libcuda.so.1 is a link."""
    node = nvidia(root)
    node.container()
    for name in ("libcuda.so.1", f"libcuda.so.{nodes.VERSION}"):
        node.remove(f"{LIBRARIES}/{name}")
    node.file(target, b"\x7fELF\x02")
    node.tree.link(f"{LIBRARIES}/libcuda.so.1", target)
    return node


@breaks("libcuda-missing")
def stub_under_the_soname(root: Path) -> Node:
    """Return an image in which somebody linked the stub, to have programs linked in the build."""
    stubs = "/usr/local/cuda-12.4/targets/x86_64-linux/lib/stubs"
    return linked_libcuda(root, f"{stubs}/libcuda.so")


@healthy
def libcuda_through_debians_alternatives(root: Path) -> Node:
    return linked_libcuda(root, f"{LIBRARIES}/nvidia/current/libcuda.so.{nodes.VERSION}")


@breaks("driver-older-than-cuda")
def image_of_a_newer_cuda(root: Path) -> Node:
    node = nvidia(root)
    node.container()
    node.environ["CUDA_VERSION"] = "13.0.1"
    text = nodes.VERSION_TEXT.replace(nodes.VERSION, "550.54.14")
    node.file("/proc/driver/nvidia/version", text)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        node.remove(f"{LIBRARIES}/{name}.1")
        node.file(f"{LIBRARIES}/{name}.550.54.14", b"\x7fELF\x02")
        node.tree.link(f"{LIBRARIES}/{name}.1", f"{LIBRARIES}/{name}.550.54.14")
    return node


@healthy
def image_of_a_newer_cuda_with_compat(root: Path) -> Node:
    node = image_of_a_newer_cuda(root)
    node.file(f"{FOLDER}/device", "0x2330\n")  # H100: forward compatibility is for data centres
    node.file("/usr/local/cuda/compat/libcuda.so.1")
    return node


@breaks("driver-older-than-cuda")
def compat_that_a_geforce_cannot_use(root: Path) -> Node:
    node = image_of_a_newer_cuda(root)
    node.file("/usr/local/cuda/compat/libcuda.so.1")
    return node


def compat(root: Path, device: str, driver: str, library: str) -> Node:
    """Return a container whose loader takes the libcuda of the package cuda-compat."""
    node = nvidia(root)
    node.container()
    node.file(f"{FOLDER}/device", f"0x{device}\n")
    text = nodes.VERSION_TEXT.replace(nodes.VERSION, driver)
    node.file("/proc/driver/nvidia/version", text)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        node.remove(f"{LIBRARIES}/{name}.1")
        node.file(f"{LIBRARIES}/{name}.{driver}", b"\x7fELF\x02")
        node.tree.link(f"{LIBRARIES}/{name}.1", f"{LIBRARIES}/{name}.{driver}")
    folder = "/usr/local/cuda/compat"
    node.file(f"{folder}/libcuda.so.{library}", b"\x7fELF\x02")
    node.tree.link(f"{folder}/libcuda.so.1", f"{folder}/libcuda.so.{library}")
    node.environ |= {"LD_LIBRARY_PATH": folder, "CUDA_VERSION": "13.0.1"}
    return node


@breaks("cuda-compat-unsupported")
def newer_libcuda_on_a_geforce(root: Path) -> Node:
    return compat(root, "2684", "550.54.14", "580.65.06")


@healthy
def newer_libcuda_on_an_h100(root: Path) -> Node:
    return compat(root, "2330", "550.54.14", "580.65.06")


@breaks("cuda-library-mismatch")
def older_libcuda_on_an_h100(root: Path) -> Node:
    return compat(root, "2330", "580.95.05", "535.104.05")


@breaks("kfd-no-gpu")
def kfd_left_it_out(root: Path) -> Node:
    node = amd(root)
    node.file("/sys/class/kfd/kfd/topology/nodes/1/properties", "location_id 768\ndomain 0\n")
    return node


@breaks("kfd-unsupported")
def kfd_and_a_generation_before_it(root: Path) -> Node:
    """R9 270 (ROCm/legacy-rocm-build#2232)."""
    node = kfd_left_it_out(root)
    node.file(f"{FOLDER}/device", "0x6811\n")
    return node


@healthy
def kfd_nodes_that_cannot_be_read(root: Path) -> Node:
    node = amd(root)
    node.remove("/sys/class/kfd/kfd/topology/nodes/1/properties")
    node.file("/sys/class/kfd/kfd/topology/nodes/1/caches/x")
    return node


@healthy
def override_that_is_empty(root: Path) -> Node:
    node = amd(root)
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = ""
    return node


@breaks("hsa-override-bad")
def bad_override(root: Path) -> Node:
    node = amd(root)
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "gfx1030"
    return node


@breaks("hsa-override-foreign")
def override_of_another_generation(root: Path) -> Node:
    node = amd(root)
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "10.3.0"
    return node


@healthy
def good_override(root: Path) -> Node:
    node = amd(root)
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "11.0.0"
    return node


@breaks("hsa-override-foreign")
def override_of_an_earlier_line_of_gfx9(root: Path) -> Node:
    """gfx90a and later divide one register file, which code for gfx900 knows nothing of."""
    node = amd(root, ids="1002:74a1", pci_class="120000")  # Instinct MI300X
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "9.0.0"
    return node


@breaks("hsa-override-foreign")
def override_with_matrix_instructions(root: Path) -> Node:
    node = amd(root, ids="1002:66af")  # Radeon VII: gfx906 has none (ROCm/TheRock#1844)
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "9.0.8"
    return node


@healthy
def override_within_a_line_of_gfx9(root: Path) -> Node:
    node = amd(root, ids="1002:66af")
    node.environ["HSA_OVERRIDE_GFX_VERSION"] = "9.0.6"
    return node


@breaks("rocm-missing")
def no_rocm(root: Path) -> Node:
    node = amd(root)
    node.remove("/opt/rocm/lib/libhsa-runtime64.so.1")
    return node


@healthy
def rocm_of_a_wheel(root: Path) -> Node:
    node = no_rocm(root)
    node.environ["VIRTUAL_ENV"] = "/srv/env"
    node.file("/srv/env/lib/python3.12/site-packages/torch/lib/libamdhip64.so")
    return node


@breaks("level-zero-missing")
def no_level_zero(root: Path) -> Node:
    node = intel(root)
    node.remove(f"{LIBRARIES}/libze_intel_gpu.so.1")
    node.file(f"{LIBRARIES}/libze_loader.so.1")
    return node


def npu(root: Path, ids: str, pci_class: str, driver: str, *libraries: str) -> Node:
    node = Node(root)
    node.tree.pci(nodes.PCI, ids, pci_class=pci_class, driver=driver, accel=0)
    node.nodes("/dev/accel/accel0")
    node.modules(driver)
    for path in (f"{LIBRARIES}/libc.so.6", *libraries):
        node.file(path, b"\x7fELF\x02")
    return node


@breaks("level-zero-npu-missing")
def npu_of_intel_without_its_user_driver(root: Path) -> Node:
    return npu(root, "8086:7d1d", "120000", "intel_vpu", f"{LIBRARIES}/libze_loader.so.1")


@healthy
def npu_of_intel(root: Path) -> Node:
    return npu(root, "8086:7d1d", "120000", "intel_vpu", f"{LIBRARIES}/libze_intel_npu.so.1")


@healthy
def npu_of_intel_with_the_older_name(root: Path) -> Node:
    return npu(root, "8086:7d1d", "120000", "intel_vpu", f"{LIBRARIES}/libze_intel_vpu.so.1")


@breaks("xrt-missing")
def npu_of_amd_without_xrt(root: Path) -> Node:
    return npu(root, "1022:17f0", "118000", "amdxdna")


@healthy
def npu_of_amd(root: Path) -> Node:
    library = "/opt/xilinx/xrt/lib/libxrt_driver_xdna.so.2"
    return npu(root, "1022:17f0", "118000", "amdxdna", library)


@breaks("npu-without-iommu")
def npu_of_amd_and_a_parameter(root: Path) -> Node:
    """It is advised for the GPU beside it (antirez/ds4#871)."""
    node = npu_of_amd(root)
    node.file("/proc/cmdline", "ro amd_iommu=off ttm.pages_limit=32505856\n")
    return node


@healthy
def npu_of_amd_with_memory_set_aside(root: Path) -> Node:
    """It needs no IOMMU (amd/xdna-driver#492)."""
    node = npu_of_amd_and_a_parameter(root)
    node.file("/sys/module/amdxdna/parameters/carvedout_size", "4294967296\n")
    return node


@breaks("npu-without-iommu")
def npu_of_amd_with_a_driver_that_could_set_memory_aside(root: Path) -> Node:
    node = npu_of_amd_and_a_parameter(root)
    node.file("/sys/module/amdxdna/parameters/carveout_size", "0\n")
    return node


@healthy
def legacy_runtime_of_an_older_gpu(root: Path) -> Node:
    node = intel(root, driver="i915", ids="8086:9b41")
    node.remove(f"{LIBRARIES}/libze_intel_gpu.so.1")
    node.file(f"{LIBRARIES}/libze_intel_gpu_legacy1.so.1", b"\x7fELF\x02")
    return node


@breaks("level-zero-missing")
def legacy_runtime_of_a_new_gpu(root: Path) -> Node:
    node = intel(root)
    node.remove(f"{LIBRARIES}/libze_intel_gpu.so.1")
    node.file(f"{LIBRARIES}/libze_intel_gpu_legacy1.so.1", b"\x7fELF\x02")
    return node


# --- healthy machines with nothing special about them


@healthy
def plain_nvidia(root: Path) -> Node:
    return nvidia(root)


@healthy
def plain_amd(root: Path) -> Node:
    return amd(root)


@healthy
def plain_intel(root: Path) -> Node:
    return intel(root)


@healthy
def sleeping(root: Path) -> Node:
    return nvidia(root, power="suspended")


@pytest.mark.parametrize("name", BROKEN)
def test_each_cause_is_told_with_its_step(name: str, tmp_path: Path) -> None:
    code, make = BROKEN[name]
    report = make(tmp_path).report()
    device = report["devices"][0]
    cause = CAUSES[code]
    assert verdict(device) == (cause.state, cause.step, code)
    primary = DEVICE if cause.limits else "cpu:0"
    assert device["id"].startswith("dt:") or report["primary"] == primary
    degraded = None if cause.limits else "no-accelerator" if cause.intended else "degraded"
    assert report["fallback"] == degraded
    found = next(f for f in report["findings"] if f["step"] == cause.step)
    assert found["code"] == ("no-driver" if code == "reserved-for-vm" else code)
    assert found["severity"] == cause.severity
    assert found["device"] == device["id"]
    assert found["evidence"] == next(
        s["evidence"] for s in device["readiness"]["steps"] if s["step"] == cause.step
    )
    assert "{" not in found["fix"].replace("{nvidia.com", "")


def test_a_recording_without_nodes_proves_none_and_accuses_nobody(tmp_path: Path) -> None:
    """Its GPU was called ready for its driver alone."""
    report = recording_without_dev(tmp_path).report()
    device = report["devices"][0]
    assert verdict(device) == ("unknown", None, None)
    assert nodes.step_of(device, "node")["evidence"] == "the recording has no device nodes"
    assert report["primary"] == device["id"]
    assert {f["code"] for f in report["findings"]} & set(CAUSES) == set()


@pytest.mark.parametrize("name", HEALTHY)
def test_no_look_alike_is_broken(name: str, tmp_path: Path) -> None:
    report = HEALTHY[name](tmp_path).report()
    device = report["devices"][0]
    assert verdict(device) == READY
    assert report["primary"] == device["id"]
    assert report["fallback"] is None
    told = {f["code"] for f in report["findings"]} & set(CAUSES)
    assert told == set()


def test_every_step_is_judged_in_its_order_and_has_a_reason(tmp_path: Path) -> None:
    steps = nvidia(tmp_path).device()["readiness"]["steps"]
    assert [step["step"] for step in steps] == [
        "hardware",
        "driver",
        "node",
        "permission",
        "library",
        "responding",
        "granted",
        "visible",
        "runtime",
    ]
    assert [step["step"] for step in steps if step["status"] == "ok"] == [
        "hardware",
        "driver",
        "node",
        "permission",
        "library",
        "granted",
        "visible",
        "runtime",
    ]
    assert all(step["evidence"] for step in steps)


def test_what_is_behind_a_break_is_not_judged(tmp_path: Path) -> None:
    steps = not_in_render(tmp_path).device()["readiness"]["steps"]
    behind = {s["step"]: (s["status"], s["evidence"]) for s in steps[4:] if s["step"] != "visible"}
    assert set(behind.values()) == {("unknown", "not judged: permission is broken")}
