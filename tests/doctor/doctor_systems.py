"""More machines that combine facts: GPUs by distribution, batch systems, spare graphics.

Invented, each after a situation that people report; they are added to those of `doctor_machines`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import readiness_nodes as nodes
from doctor_machines import ARCH, BROKEN, DEBIAN, FEDORA, RHEL10, ROCKY, broken, on, sound
from readiness_nodes import LIBRARIES, NVIDIA_NODES, PCI, RELEASE, VERSION, Node, amd, nvidia

MODULES = f"/lib/modules/{RELEASE}"
SUSE = 'ID="opensuse-leap"\nVERSION_ID="15.6"\nID_LIKE="suse opensuse"\n'
UHD = "0000:00:02.0"


def bare(root: Path, device: str, *, dep: str = "", driver: str | None = None) -> Node:
    """Return a machine on which nothing of NVIDIA's driver is installed."""
    node = Node(root)
    node.tree.pci(PCI, f"10de:{device}", driver=driver)
    node.modules(driver or "ext4")
    node.file(f"{MODULES}/modules.dep", f"kernel/fs/ext4/ext4.ko:\n{dep}")
    return node


# --- the driver that fits the GPU and the distribution


# Name to a part of the fix, the distribution, and the GPU.
WITHOUT_DRIVER = {
    "v100_on_rocky": ("nvidia-driver:580-dkms", ROCKY, "1db6"),
    "l4_on_rocky": ("nvidia-driver:open-dkms", ROCKY, "27b8"),
    "kepler_on_fedora": ("akmod-nvidia-470xx", FEDORA, "1004"),
    "k80_on_debian": ("nvidia-tesla-470-driver", DEBIAN, "102d"),
    "rtx_5090_on_debian": ("apt install nvidia-open", DEBIAN, "2b85"),
    "pascal_on_arch": ("install nvidia-580xx-dkms (AUR)", ARCH, "1b80"),
    "p40_on_suse": ("nvidia-driver-G06-kmp-meta", SUSE, "1b38"),
    "k80_on_suse": ("x11-video-nvidiaG05 nvidia-computeG05", SUSE, "102d"),
    "fermi_on_fedora": ("akmod-nvidia-390xx", FEDORA, "1080"),
    "fermi_on_debian": ("install NVIDIA's driver of branch 390", DEBIAN, "1080"),
    "k80_on_rhel_10": ("install NVIDIA's driver of branch 470", RHEL10, "102d"),
}
for _name, (_fix, _release, _device) in WITHOUT_DRIVER.items():
    _make = partial(bare, device=_device)
    BROKEN[_name] = ("driver-not-installed", _fix, on(_release, _make))


@broken("nouveau-bound", "nvidia-driver:580-dkms", ROCKY)
def v100_with_nouveau_on_rocky(root: Path) -> Node:
    return bare(root, "1db6", driver="nouveau")


ORACLE = 'ID="ol"\nVERSION_ID="{}"\nID_LIKE="fedora"\n'


def without_module(root: Path, release: str) -> Node:
    """Return a machine whose DKMS built NVIDIA's module for another kernel than this one."""
    node = bare(root, "2684")
    node.tree.release(release)
    node.file(f"/lib/modules/{release}/modules.dep", "kernel/fs/ext4/ext4.ko:\n")
    node.file("/var/lib/dkms/nvidia/580.95.05/source/dkms.conf")
    return node


# Oracle Linux starts Oracle's kernel (UEK), or the one of RHEL: each has headers of its own.
_KERNELS = {
    "oracles_kernel": ("kernel-uek-devel", "9.6", "6.12.0-100.28.2.el9uek.x86_64"),
    "oracles_kernel_of_10": ("kernel-uek-devel", "10.0", "6.12.0-104.43.4.el10uek.x86_64"),
    "rhels_kernel_on_oracle": ("kernel-devel", "9.6", "5.14.0-570.12.1.el9_6.x86_64"),
}
for _name, (_fix, _version, _device) in _KERNELS.items():
    BROKEN[_name] = (
        "module-missing-for-kernel",
        f"`sudo dnf install {_fix}-{_device} && sudo dkms autoinstall`, then reboot",
        on(ORACLE.format(_version), partial(without_module, release=_device)),
    )


@broken("module-missing-for-kernel", f"linux-modules-nvidia-580-{RELEASE}`")
def ubuntus_signed_modules_of_another_kernel(root: Path) -> Node:
    node = bare(root, "2684")
    node.file("/lib/modules/6.8.0-58-generic/kernel/nvidia-580/nvidia.ko")
    return node


@broken("module-missing-for-kernel", "linux-modules-nvidia-570-server-open-6.8.0-1020-aws`")
def signed_modules_of_a_cloud(root: Path) -> Node:
    node = bare(root, "2330")
    node.tree.release("6.8.0-1020-aws")
    node.file("/lib/modules/6.8.0-1020-aws/modules.dep", "kernel/fs/ext4/ext4.ko:\n")
    node.file("/lib/modules/6.8.0-1019-aws/kernel/nvidia-570srv-open/nvidia.ko.zst")
    return node


@broken("module-blacklisted", "remove the line `alias nvidia off`")
def laptop_that_was_switched_to_integrated_graphics(root: Path) -> Node:
    node = bare(root, "2684", dep="updates/dkms/nvidia.ko.zst:\n")
    node.file("/etc/modprobe.d/optimus.conf", "# integrated\nalias nvidia off\n")
    return node


@broken("kernel-too-old", "install Linux 6.10 or later")
def strix_halo_on_linux_6_5(root: Path) -> Node:
    return refused(root, "1002:1586", "6.5.0-44-generic", "gc_11_5_1_pfp.bin")


@broken("kernel-too-old", "install Linux 6.0 or later")
def rx_7900_on_linux_5_15(root: Path) -> Node:
    return refused(root, "1002:744c", "5.15.0-100-generic", "gc_11_0_0_pfp.bin")


def refused(root: Path, ids: str, release: str, firmware: str) -> Node:
    node = amd(root, driver=None, ids=ids)
    node.tree.release(release)
    node.file(f"/lib/firmware/amdgpu/{firmware}")
    return node


# --- who keeps the device


@broken("cgroup-denied", "PBS: `qsub -l select=1:ngpus=1`")
def pbs_job_without_gpus(root: Path) -> Node:
    return job(root, "PBS_JOBID", "0::/pbs_jobs.service/jobid/123.server\n")


@broken("cgroup-denied", "LSF: `bsub -gpu num=1`")
def lsf_job_without_gpus(root: Path) -> Node:
    return job(root, "LSB_JOBID", "0::/lsf/cluster/job.4711\n")


@broken("cgroup-denied", "ask whoever started this session or job")
def cgroup_of_nobody_that_is_known(root: Path) -> Node:
    return job(root, "UNKNOWN_JOB", "0::/farm/4711\n")


def job(root: Path, variable: str, cgroup: str) -> Node:
    node = nvidia(root)
    node.nodes("/dev/nvidia0", answer="EPERM")
    node.environ[variable] = "123"
    node.file("/proc/self/cgroup", cgroup)
    return node


@broken("not-in-group", "usermod -aG render")
def member_of_video_alone(root: Path) -> Node:
    node = amd(root)
    node.nodes("/dev/kfd", answer="EACCES")
    node.file("/etc/group", "root:x:0:\nvideo:x:44:ada\nrender:x:105:\n")
    node.file("/etc/passwd", "ada:x:1000:1000::/home/ada:/bin/sh\n")
    node.file("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nGroups:\t44 1000 \n")
    return node


@broken("library-missing", "libraries in /run/nvidia/driver")
def host_of_the_gpu_operator(root: Path) -> Node:
    node = nvidia(root)
    for name in ("libcuda.so", "libnvidia-ml.so"):
        node.remove(f"{LIBRARIES}/{name}.1")
        node.remove(f"{LIBRARIES}/{name}.{VERSION}")
        node.file(f"/run/nvidia/driver{LIBRARIES}/{name}.{VERSION}", b"\x7fELF\x02")
    node.file(f"{LIBRARIES}/libc.so.6", b"\x7fELF\x02")
    return node


# The host has the module loaded: what lacks is the container's.
@broken("uvm-missing", "start the container anew with `docker run --gpus all`, or CDI")
def container_with_a_part_of_the_nodes_beside_a_radeon(root: Path) -> Node:
    node = beside(root, "0000:03:00.0", "1002:744c", "amdgpu")
    node.file("/opt/rocm/lib/libhsa-runtime64.so.1", b"\x7fELF\x02")
    node.nodes("/dev/nvidia-uvm", answer="missing")
    node.container()
    return node


@broken("container-without-gpus", "docker run --gpus all")
def container_with_the_processors_graphics_alone(root: Path) -> Node:
    node = beside(root, UHD, "8086:a780", "i915")
    node.nodes(*NVIDIA_NODES, answer="missing")
    node.file(f"{LIBRARIES}/libze_intel_gpu.so.1", b"\x7fELF\x02")
    node.container()
    return node


@broken("nouveau-bound", "on the host: install NVIDIA's driver, blacklist nouveau")
def container_on_a_host_with_nouveau(root: Path) -> Node:
    node = nvidia(root, driver="nouveau")
    node.modules("nouveau")
    node.container()
    return node


# --- devices that nobody misses


def beside(root: Path, address: str, ids: str, driver: str | None, answer: str = "ok") -> Node:
    """Return a machine with an RTX 4090 that works, and another GPU."""
    node = nvidia(root)
    node.tree.pci(address, ids, driver=driver, drm=(1, 129) if driver else None)
    if driver:
        own = nodes.AMD_NODES[:1] if driver == "amdgpu" else ()
        node.nodes("/dev/dri/renderD129", *own, answer=answer)
    return node


@sound
def card_beside_graphics_that_are_blacklisted(root: Path) -> Node:
    node = beside(root, "0000:0f:00.0", "1002:164e", None)
    node.file("/etc/modprobe.d/no-igpu.conf", "blacklist amdgpu\n")
    node.file(f"{MODULES}/modules.dep", "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst:\n")
    return node


@sound
def server_with_nomodeset(root: Path) -> Node:
    node = beside(root, UHD, "8086:4680", None)
    node.file("/proc/cmdline", "root=/dev/sda1 nomodeset\n")
    node.modules("nvidia", "nvidia_uvm", "i915")
    return node


@sound
def container_with_the_card_alone(root: Path) -> Node:
    node = beside(root, UHD, "8086:a780", "i915", "missing")
    node.container()
    return node


@sound
def container_with_cards_of_one_vendor(root: Path) -> Node:
    node = beside(root, "0000:03:00.0", "1002:744c", "amdgpu", "missing")
    node.container()
    return node


@sound
def radeon_that_amdgpu_never_drove(root: Path) -> Node:
    node = amd(root, driver="radeon", ids="1002:68f9")  # Cedar, before GCN
    node.modules("radeon")
    return node


@sound
def pod_with_the_card_alone(root: Path) -> Node:
    node = beside(root, "0000:0f:00.0", "1002:164e", "amdgpu", "missing")
    node.environ["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    return node
