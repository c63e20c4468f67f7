"""For every cause a machine that has it, and a look-alike that has not.

Machines are trees below the code that is tested. What only a vendor's library can report comes from
a prober in a child, in the words that the vendor's own plugin uses; its tests hold those to a fake
of the library.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import doctor_absences
import pytest
import readiness_nodes as nodes
import test_readiness_causes as readiness
from fake_probers import Probers
from readiness_nodes import FOLDER, LIBRARIES, PCI, RELEASE, Node, amd, intel, nvidia
from reports import report_of

from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine

Make = Callable[[Path], Node]
Patch = Callable[[dict[str, Any]], None]


class Case:
    """A machine, what a prober reports of its device, and what a report has that no tree can."""

    def __init__(
        self,
        make: Make,
        *facts: Mapping[str, Any],
        patch: Patch | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self.make = make
        self.facts = facts
        self.patch = patch
        self.fields = dict(fields or {})

    def document(self, root: Path, probers: Probers) -> dict[str, Any]:
        """Return the doctor's document of the machine."""
        return self.examined(root, probers)[1]

    def examined(self, root: Path, probers: Probers) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the machine's report, and the doctor's document."""
        node = self.make(root)
        complete(node)
        arguments: dict[str, Any] = {}
        if self.facts or self.fields:
            probers.reports("vendor", self._sighting(node))
            arguments = probers.arguments
        report = report_of(node.machine(), **arguments)
        if self.patch is not None:
            self.patch(report)
        return report, dict(examine(Request(node.machine(), report)))  # type: ignore[arg-type]

    def _sighting(self, node: Node) -> dict[str, Any]:
        folder = node.tree.root / FOLDER.lstrip("/")
        vendor = (folder / "vendor").read_text().strip() if folder.exists() else "0x10de"
        name = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}[vendor]
        sighting: dict[str, Any] = {"ids": [f"pci:{PCI}"], "kind": "gpu", "vendor": name}
        return {**sighting, "step_facts": list(self.facts), **self.fields}


def complete(node: Node) -> None:
    """Add what every machine has, so that no finding is about the machine itself."""
    root = node.tree.root
    if not (root / "proc/meminfo").exists():
        node.tree.memory(65536 << 10, 60000 << 10)
    if not (root / "proc/cpuinfo").exists():
        node.file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD Ryzen 9 7950X\n")
    if not (root / "etc/os-release").exists():
        node.file("/etc/os-release", 'ID=ubuntu\nVERSION_ID="24.04"\n')


def fact(step: str, code: str, evidence: str) -> dict[str, Any]:
    return {"step": step, "status": "broken", "evidence": evidence, "code": code}


def ok(step: str, evidence: str) -> dict[str, Any]:
    return {"step": step, "status": "ok", "evidence": evidence, "code": None}


ANSWERS = ok("responding", "NVML answered 31 queries")
LISTED = ok("granted", "NVML lists it as index 0")
PLAIN = {"nvidia": nvidia, "amd": amd, "intel": intel}


def of_prober(step: str, code: str, evidence: str, make: Make = nvidia) -> tuple[Case, Case]:
    """Return a pair for a cause that only a plugin's library can tell."""
    return Case(make, fact(step, code, evidence)), Case(make, ANSWERS, LISTED)


# --- machines that the tests of readiness do not have


def busy_link(speed: float, load: int | None) -> Make:
    def make(root: Path) -> Node:
        node = amd(root, link=(16, speed), max_link=(16, 16.0))
        if load is not None:
            node.file(f"{FOLDER}/gpu_busy_percent", f"{load}\n")
        return node

    return make


def assigned_regions(root: Path) -> Node:
    node = nvidia(root)
    node.file(f"{FOLDER}/resource", readiness.regions(0xFA000000, 0xE0000000, 0, 0, 0, 0))
    return node


def second_kernel(root: Path) -> Node:
    node = nvidia(root)
    node.file("/lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko.zst")
    return node


def kernel_log(*lines: str, make: Make = nvidia) -> Make:
    def maker(root: Path) -> Node:
        node = make(root)
        head = "[    0.000000] Linux version 6.8.0-60-generic (buildd@host)"
        node.file("/var/log/dmesg", "\n".join([head, *lines]) + "\n")
        return node

    return maker


def unloaded(root: Path) -> Node:
    """Return a machine whose driver is installed, and not loaded."""
    node = nvidia(root, driver=None)
    node.modules("ext4")
    module, folder = "updates/dkms/nvidia.ko.zst", f"/lib/modules/{RELEASE}"
    node.file(f"{folder}/{module}")
    node.file(f"{folder}/modules.dep", f"{module}:\n")
    return node


MAGIC = "version magic '6.8.0-50-generic SMP' should be '6.8.0-60-generic SMP'"


def earlier_boot(root: Path) -> Node:
    node = nvidia(root)
    text = f"NVRM: Xid (PCI:{PCI[:-2]}): 79, pid=1\nLinux version 6.8.0-60-generic\nhello\n"
    node.file("/var/log/kern.log", text)
    return node


def cdi(version: str) -> Make:
    def make(root: Path) -> Node:
        node = nvidia(root)
        path = f"/usr/lib/x86_64-linux-gnu/libcuda.so.{version}"
        mount = f"    - hostPath: {path}\n      containerPath: {path}\n"
        node.file("/etc/cdi/nvidia.yaml", f"kind: nvidia.com/gpu\n  mounts:\n{mount}")
        return node

    return make


def guest_processor(flags: str, name: str = "QEMU Virtual CPU") -> Make:
    def make(root: Path) -> Node:
        node = nvidia(root)
        text = f"processor\t: 0\nmodel name\t: {name}\nflags\t\t: fpu sse2 {flags}\n"
        node.file("/proc/cpuinfo", text)
        return node

    return make


def toolkit_root(*files: str) -> Make:
    def make(root: Path) -> Node:
        node = nvidia(root)
        text = '[nvidia-container-cli]\nroot = "/run/nvidia/driver"\n'
        node.file("/etc/nvidia-container-runtime/config.toml", text)
        for path in files:
            node.file(path)
        return node

    return make


def shared_memory(kib: int) -> Make:
    def make(root: Path) -> Node:
        node = nvidia(root)
        node.container()
        line = f"shm /dev/shm tmpfs rw,nosuid,nodev,noexec,relatime,size={kib}k 0 0\n"
        node.file("/proc/self/mounts", line)
        return node

    return make


def wsl(*names: str) -> Make:
    def make(root: Path) -> Node:
        node = Node(root)
        node.tree.release("5.15.153.1-microsoft-standard-WSL2")
        node.nodes("/dev/dxg")
        for name in names:
            node.file(f"/usr/lib/wsl/lib/{name}", b"\x7fELF\x02")
        return node

    return make


def linux_driver_in_wsl(root: Path) -> Node:
    node = wsl("libcuda.so.1", "libnvidia-ml.so.1")(root)
    node.file(f"{LIBRARIES}/libcuda.so.580.95.05", b"\x7fELF\x02")
    node.tree.link(f"{LIBRARIES}/libcuda.so.1", f"{LIBRARIES}/libcuda.so.580.95.05")
    return node


def hailort(version: str) -> Make:
    """Return a machine with a Hailo-8, its driver 4.21.0, and a library of that version."""

    def make(root: Path) -> Node:
        node = readiness.hailo_with_firmware(root)
        node.file("/sys/module/hailo_pci/version", "4.21.0\n")
        node.file(f"/usr/lib/libhailort.so.{version}", b"\x7fELF\x02")
        return node

    return make


def set_aside(offered: float) -> Make:
    """Return a Ryzen AI Max whose firmware set 96 GiB aside (ROCm/legacy-rocm-build#5444)."""

    def make(root: Path) -> Node:
        node = amd(root, ids="1002:1586")
        text = f"heap_type 1\nsize_in_bytes {int(offered * (1 << 30))}\n"
        node.file("/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties", text)
        return node

    return make


SET_ASIDE = {
    "memory": {
        "kind": "unified",
        "total": 111 << 30,
        "free": 99 << 30,
        "parts": {"vram": 96 << 30},
    },
}


class Mac(Node):
    """A recorded Mac: its values of sysctl(8)."""

    def __init__(self, root: Path, **values: int) -> None:
        super().__init__(root)
        lines = {name.replace("__", "."): value for name, value in values.items()}
        text = "".join(f"{name}: {value}\n" for name, value in lines.items())
        self.file("/recorded/sysctl.txt", text)

    def machine(self) -> Any:
        import probe_core

        return probe_core.Machine(str(self.tree.root), {}, os="darwin", arch="aarch64")


def mac(guest: int, limit: int = 0) -> Make:
    return lambda root: Mac(
        root, kern__hv_vmm_present=guest, iogpu__wired_limit_mb=limit, hw__memsize=64 << 30
    )


MAC_GPU = {"ids": ["apple:gpu"], "vendor": "apple", "name": "Apple M4 Max"}


def suspended_before(root: Path) -> Node:
    node = nvidia(root)
    node.file("/sys/power/suspend_stats/success", "3\n")
    node.file("/proc/driver/nvidia/params", "PreserveVideoMemoryAllocations: 0\n")
    return node


def cuda_answer(code: str | None) -> Patch:
    def patch(report: dict[str, Any]) -> None:
        answer = {"devices": None, "expected": [], "agrees": None, "status": "unavailable"}
        report["asked"] = {"cuda": {**answer, "reason": "", **({"code": code} if code else {})}}

    return patch


def query_took(milliseconds: float) -> Patch:
    def patch(report: dict[str, Any]) -> None:
        outcome = next(o for o in report["outcomes"] if o["prober"] == "nvidia")
        outcome |= {"status": "ok", "reason": None, "elapsed_ms": milliseconds}

    return patch


def vgpu(*files: str) -> Make:
    def make(root: Path) -> Node:
        node = nvidia(root)
        node.file("/etc/nvidia/gridd.conf", "# ServerAddress=\nFeatureType=0\n")
        for path in files:
            node.file(path, "token")
        return node

    return make


VIRTUAL = {"extra": {"virtualization": "vgpu"}}


def rocm(release: str, driver: str) -> Make:
    def make(root: Path) -> Node:
        node = amd(root)
        node.file("/opt/rocm/.info/version", f"{release}\n")
        node.file("/sys/module/amdgpu/version", f"{driver}\n")
        return node

    return make


def rocblas(gfx: str) -> Make:
    def make(root: Path) -> Node:
        node = amd(root)
        node.file(f"/opt/rocm/lib/rocblas/library/TensileLibrary_lazy_{gfx}.dat")
        return node

    return make


GFX = {"gfx": "gfx1100"}


def compute_runtime(build: int, driver: str = "xe", ids: str = "8086:e20b") -> Make:
    def make(root: Path) -> Node:
        node = intel(root, driver=driver, ids=ids)
        node.remove(f"{LIBRARIES}/libze_intel_gpu.so.1")
        real = f"{LIBRARIES}/libze_intel_gpu.so.1.6.{build}"
        node.file(real, b"\x7fELF\x02")
        node.tree.link(f"{LIBRARIES}/libze_intel_gpu.so.1", real)
        return node

    return make


def board(status: str) -> Make:
    def make(root: Path) -> Node:
        node = Node(root)
        node.tree.arch = "aarch64"
        node.tree.node("/npu@fdab0000", "rockchip,rk3588-rknpu", status=status)
        return node

    return make


def mig_node(answer: str) -> Make:
    def make(root: Path) -> Node:
        node = nvidia(root)
        node.nodes("/dev/nvidia-caps/nvidia-cap21", answer=answer)
        return node

    return make


MIG_NODES = {
    "nodes": [*nodes.NVIDIA_NODES, "/dev/nvidia-caps/nvidia-cap21"],
}


def character_node(node: Node, path: str, major: int, mode: int, group: int) -> str:
    place = node.tree.root / path.lstrip("/")
    place.unlink(missing_ok=True)
    try:
        os.mknod(place, stat.S_IFCHR | mode, os.makedev(major, 0))
    except PermissionError:
        pytest.skip("making a device node needs root")
    os.chmod(place, mode)
    os.chown(place, 0, group)
    return str(place)


def node_number(path: str, major: int) -> Make:
    def make(root: Path) -> Node:
        node = nvidia(root)
        node.file("/proc/devices", "Character devices:\n195 nvidia\n507 nvidia-uvm\n")
        character_node(node, path, major, 0o666, 0)
        return node

    return make


def address_space(soft: str) -> Make:
    def make(root: Path) -> Node:
        node = nvidia(root)
        head = "Limit                     Soft Limit           Hard Limit           Units     \n"
        line = f"Max address space         {soft:<20} unlimited            bytes     \n"
        node.file("/proc/self/limits", head + line)
        return node

    return make


# An access list of version 2 with an entry for user 1000 (linux/posix_acl_xattr.h).
_LIST = bytes.fromhex(
    "0200000001000600ffffffff02000600e803000004000600ffffffff10000600ffffffff20000000ffffffff"
)


def over_ssh(answer: str) -> Make:
    def make(root: Path) -> Node:
        node = readiness.people(amd(root))
        for path in nodes.AMD_NODES:
            place = character_node(node, path, 1, 0o660, 105)
            try:
                os.setxattr(place, "system.posix_acl_access", _LIST)
            except OSError:
                pytest.skip("the file system has no access lists")
            node.access[path] = answer
        node.environ["SSH_CONNECTION"] = "192.0.2.1 50000 192.0.2.2 22"
        return node

    return make


class Windows(Node):
    """A machine with Windows, of which nothing is in files."""

    def machine(self) -> Any:
        import probe_core

        return probe_core.Machine(str(self.tree.root), {}, os="windows", arch="x86_64")


def events(*entries: tuple[str, int]) -> Make:
    """Return a recorded Windows with its event log, as PowerShell's Format-List prints it."""

    def make(root: Path) -> Node:
        node = Windows(root)
        form = "TimeCreated  : 11/{}/2026 9:12:01 AM\nProviderName : {}\nId           : {}\n"
        blocks = [form.format(day, *entry) for day, entry in enumerate(entries, 2)]
        node.file("/recorded/events.txt", "\n" + "\n".join(blocks))
        return node

    return make


WINDOWS_GPU = {"name": "NVIDIA GeForce RTX 4090", "pci": {"id": "10de:2684"}}


def three_cards(width: int) -> Make:
    """Return a machine with three RTX 4090, the last with so many lanes in its slot."""

    def make(root: Path) -> Node:
        node = nvidia(root, link=(16, 16.0), max_link=(16, 16.0))
        for number, lanes in ((1, 16), (2, width)):
            address, link = f"0000:{number + 1:02x}:00.0", (lanes, 16.0)
            drm = (number, 128 + number)
            node.tree.pci(address, "10de:2684", driver="nvidia", drm=drm, link=link, max_link=link)
            node.nodes(f"/dev/nvidia{number}")
            text = f"Device Minor: {number}\n"
            node.file(f"/proc/driver/nvidia/gpus/{address}/information", text)
        return node

    return make


def on_aws(type_: str) -> Make:
    """Return a machine of AWS with one GPU, of a type that may have more."""

    def make(root: Path) -> Node:
        node = nvidia(root)
        node.file("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n")
        node.file("/sys/class/dmi/id/product_name", f"{type_}\n")
        return node

    return make


def with_links(active: int) -> dict[str, Any]:
    return {"extra": {"nvlink": {"links": 18, "active": active}}}


def used(free: float) -> dict[str, Any]:
    """Return the fields of a GPU with so many GiB free of 24, and one process."""
    memory = {"kind": "dedicated", "total": 24 << 30, "free": int(free * (1 << 30))}
    return {"memory": memory, "processes": 1}


def exclusive(processes: int) -> dict[str, Any]:
    return {"compute_mode": "exclusive-process", "processes": processes}


# --- the pairs


def _of_readiness(code: str) -> Case:
    return next(Case(make) for name, (own, make) in readiness.BROKEN.items() if own == code)


# Look-alikes that are more than a plain machine of the vendor.
_LOOK_ALIKES: dict[str, Make] = {
    "off-the-bus": readiness.odd_width_of_a_function_that_answers,
    "bar-unassigned": assigned_regions,
    "link-narrow": readiness.idle_link,
    "aer-errors": readiness.no_fatal_errors,
    "rebar-off": readiness.small_window_by_design,
    "module-missing-for-kernel": second_kernel,
    "secure-boot": readiness.secure_boot_with_a_loaded_module,
    "module-unsigned": readiness.secure_boot_with_a_loaded_module,
    "module-blacklisted": readiness.nouveau_blacklisted,
    "nouveau-bound": readiness.nouveau_blacklisted,
    "reserved-for-vm": readiness.tpu_through_vfio,
    "gsp-firmware-missing": readiness.container_without_firmware,
    "open-module-unsupported": readiness.gsp_firmware,
    "closed-module-unsupported": readiness.blackwell_and_the_open_module,
    "service-without-devices": readiness.service,
    "cuda-compat-unsupported": readiness.newer_libcuda_on_an_h100,
    "cuda-library-mismatch": readiness.newer_libcuda_on_an_h100,
    "nomodeset": readiness.nomodeset_does_not_concern_nvidia,
    "npu-no-module": readiness.hailo,
    "jetson-no-nvgpu": readiness.jetson,
    "hidden-by-container": readiness.void_of_cdi_with_nodes,
    "snap": readiness.child_of_a_snap,
    "uvm-missing": readiness.uvm_comes_with_the_first_use,
    "node-missing": readiness.no_drm_node_of_nvidia,
    "container-without-gpus": readiness.recording_without_dev,
    "not-in-group": readiness.in_no_group_and_allowed_by_a_list,
    "userns-group-lost": readiness.rootless_podman_that_keeps_groups,
    "selinux-denies": readiness.selinux_that_allows,
    "library-missing": readiness.recording_without_libraries,
    "nvml-missing": readiness.libraries_in_a_configured_folder,
    "cgroup-denied": readiness.rules_of_version_1_with_exceptions,
    "mps-daemon-gone": readiness.mps_folder_without_daemon,
    "libcuda-missing": readiness.a_copy_of_nvml_alone,
    "driver-older-than-cuda": readiness.image_of_a_newer_cuda_with_compat,
    "kfd-no-gpu": readiness.kfd_nodes_that_cannot_be_read,
    "hsa-override-bad": readiness.good_override,
    "hsa-override-foreign": readiness.good_override,
    "rocm-missing": readiness.rocm_of_a_wheel,
    "level-zero-npu-missing": readiness.npu_of_intel,
    "xrt-missing": readiness.npu_of_amd,
    "npu-without-iommu": readiness.npu_of_amd,
}
_AMD = frozenset(
    "amdgpu-refused firmware-missing radeon-bound kfd-missing kfd-unsupported"
    " group-not-active".split()
)
_INTEL = frozenset("kernel-too-old level-zero-missing".split())


def _look_alike(code: str) -> Case:
    plain: Make = amd if code in _AMD else intel if code in _INTEL else nvidia
    return Case(_LOOK_ALIKES.get(code, plain))


CASES: dict[str, tuple[Case, Case]] = {
    code: (_of_readiness(code), _look_alike(code))
    for code in dict.fromkeys(code for code, _ in readiness.BROKEN.values())
}
CASES |= {code: (Case(bad), Case(good)) for code, (bad, good) in doctor_absences.PAIRS.items()}
ADAPTER = f"NVRM: GPU {PCI}: RmInitAdapter failed! (0x24:0x65:1423)"
ATOMICS = "[    7.02] kfd kfd: amdgpu: skipped device {}, PCI rejects atomics 730<0"
LOADING = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64"
YOUNG = "[    4.1] kfd kfd: amdgpu: GC IP 0b0004  not supported in kfd"
XID = f"[  812.1] NVRM: Xid (PCI:{PCI[:-2]}): {{}}, pid=4242, name=python"
CASES |= {
    "module-refused": (
        Case(kernel_log(f"nvidia: {MAGIC}", make=unloaded)),
        Case(kernel_log(f"vboxdrv: {MAGIC}")),
    ),
    "kfd-too-old": (
        Case(kernel_log(YOUNG, make=readiness.kfd_left_it_out)),
        Case(kernel_log(YOUNG, make=amd)),
    ),
    "kfd-no-atomics": (
        Case(kernel_log(ATOMICS.format("1002:744c"), make=readiness.kfd_left_it_out)),
        Case(kernel_log(ATOMICS.format("1002:67df"), make=amd)),
    ),
    "unlike-siblings": (Case(three_cards(8)), Case(three_cards(16))),
    "fewer-than-type": (Case(on_aws("g5.12xlarge")), Case(on_aws("g5.4xlarge"))),
    "memory-taken": (Case(nvidia, fields=used(0.4)), Case(nvidia, fields=used(12.0))),
    "address-space-limited": (
        Case(address_space("8192000000")),
        Case(address_space("16384000000")),
    ),
    "exclusive-taken": (Case(nvidia, fields=exclusive(1)), Case(nvidia, fields=exclusive(0))),
    "nvlink-inactive": (
        Case(nvidia, fields=with_links(16)),
        Case(nvidia, fields=with_links(18)),
    ),
    "link-slow": (Case(busy_link(2.5, 97)), Case(busy_link(2.5, 3))),
    "guest-without-avx": (
        Case(guest_processor("aes hypervisor")),
        Case(guest_processor("aes avx hypervisor")),
    ),
    "mac-guest": (Case(mac(1)), Case(mac(0))),
    "basic-display": (
        Case(
            Windows,
            fact("driver", "basic-display", "Enum\\PCI\\VEN_10DE: Service=BasicDisplay"),
            fields=WINDOWS_GPU,
        ),
        Case(Windows, ok("driver", "nvlddmkm"), fields=WINDOWS_GPU),
    ),
    "tdr": (
        Case(
            events(("Display", 4101), ("nvlddmkm", 153)),
            ok("driver", "nvlddmkm"),
            fields=WINDOWS_GPU,
        ),
        Case(
            events(("Display", 4101), ("disk", 153), ("disk", 153)),
            ok("driver", "nvlddmkm"),
            fields=WINDOWS_GPU,
        ),
    ),
    "device-tree-disabled": (Case(board("disabled")), Case(board("okay"))),
    "node-number-stale": (
        Case(node_number("/dev/nvidia-uvm", 511)),
        Case(node_number("/dev/nvidia-uvm", 507)),
    ),
    "cdi-spec-stale": (Case(cdi("570.86.10")), Case(cdi(nodes.VERSION))),
    "toolkit-root-gone": (
        Case(toolkit_root()),
        Case(toolkit_root("/run/nvidia/driver/usr/bin/nvidia-smi")),
    ),
    "ssh-no-seat": (Case(over_ssh("EACCES")), Case(over_ssh("ok"))),
    "wsl-no-library": (Case(wsl("libnvidia-ml.so.1")), Case(wsl("libcuda.so.1"))),
    "wsl-linux-driver": (Case(linux_driver_in_wsl), Case(wsl("libcuda.so.1"))),
    "not-responding": of_prober("responding", "not-responding", "NVML answered no query"),
    "query-fails": of_prober("responding", "query-fails", "nvmlDeviceGetMemoryInfo: UNKNOWN"),
    "driver-crashes": of_prober("responding", "driver-crashes", "it was killed by SIGSEGV"),
    "driver-hangs": of_prober("responding", "driver-hangs", "nvmlInit took longer than 3 s"),
    "gpu-lost": of_prober("responding", "gpu-lost", "NVML_ERROR_GPU_IS_LOST"),
    "gpu-reset-required": of_prober(
        "responding", "gpu-reset-required", "NVML_ERROR_RESET_REQUIRED"
    ),
    "row-remap-pending": of_prober(
        "responding", "row-remap-pending", "nvmlDeviceGetRemappedRows: rows wait for a reset"
    ),
    "row-remap-failed": of_prober(
        "responding", "row-remap-failed", "nvmlDeviceGetRemappedRows: a row could not be remapped"
    ),
    "uvm-stale": (
        Case(suspended_before, patch=cuda_answer("cuda-error-999")),
        Case(suspended_before, patch=cuda_answer(None)),
    ),
    "xid-seen": (Case(kernel_log(XID.format(79))), Case(kernel_log(XID.format(31)))),
    "gpu-init-failed": (
        Case(kernel_log(f"[ 9.1] {ADAPTER}")),
        # What the driver said before it was loaded anew is of an earlier attempt.
        Case(kernel_log(f"[ 9.1] {ADAPTER}", f"[ 60.1] {LOADING}  580.95.05")),
    ),
    "amdgpu-reset-seen": (
        Case(kernel_log(f"[ 9.1] amdgpu {PCI}: amdgpu: GPU reset begin!", make=amd)),
        Case(kernel_log(f"[ 9.1] amdgpu {PCI}: amdgpu: SMU is initialized", make=amd)),
    ),
    "slow-init": (
        Case(nvidia, patch=query_took(7300.0), fields={"persistence": False}),
        Case(nvidia, patch=query_took(35.0), fields={"persistence": False}),
    ),
    "power-capped": of_prober(
        "responding", "power-capped", "NVML's power limit is 200 W, the default 450 W"
    ),
    "thermal-slowdown": of_prober(
        "responding", "thermal-slowdown", "nvmlDeviceGetCurrentClocksEventReasons: hw-thermal"
    ),
    "vgpu-unlicensed": (
        Case(vgpu(), fields=VIRTUAL),
        Case(vgpu("/etc/nvidia/ClientConfigToken/client_configuration.tok"), fields=VIRTUAL),
    ),
    "iommu-faults": (
        Case(
            kernel_log(
                f"AMD-Vi: Event logged [IO_PAGE_FAULT device={PCI} domain=0x1 address=0x0]",
                make=amd,
            )
        ),
        Case(
            kernel_log(
                "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:07:00.3 domain=0x1 address=0x0]",
                make=amd,
            )
        ),
    ),
    "guc-failed": (
        Case(kernel_log(f"xe {PCI}: [drm] *ERROR* GT0: GuC: load failed: -110", make=intel)),
        Case(kernel_log(f"xe {PCI}: [drm] GT0: GuC firmware xe/bmg_guc_70.bin", make=intel)),
    ),
    "gaudi-not-operational": of_prober(
        "responding", "gaudi-not-operational", "/sys/class/accel/accel0/device/status: malfunction"
    ),
    "wired-limit": (
        Case(mac(0, 8192), ok("responding", "Metal lists it"), fields=MAC_GPU),
        Case(mac(0, 0), ok("responding", "Metal lists it"), fields=MAC_GPU),
    ),
    "not-granted": of_prober("granted", "not-granted", "NVML lists 1 of 2 GPUs, not this one"),
    "kfd-node-closed": of_prober(
        "granted", "kfd-node-closed", "reading gpu_id: Operation not permitted", amd
    ),
    "compute-prohibited": of_prober(
        "granted", "compute-prohibited", "nvmlDeviceGetComputeMode: 2, prohibited"
    ),
    "mig-without-instances": of_prober(
        "granted", "mig-without-instances", "nvmlDeviceGetMigMode: enabled; no instance is listed"
    ),
    "mig-cap-denied": (
        Case(mig_node("EPERM"), fields=MIG_NODES),
        Case(mig_node("ok"), fields=MIG_NODES),
    ),
    "partition-mode": of_prober("granted", "partition-mode", "current_compute_partition: CPX", amd),
    "fabric-not-ready": of_prober(
        "runtime", "fabric-not-ready", "nvmlDeviceGetGpuFabricInfo: state 2, in progress"
    ),
    "shm-small": (Case(shared_memory(65536)), Case(shared_memory(65540))),
    # intel/compute-runtime#773; blakeblackshear/frigate-hass-addons#241.
    "compute-runtime-too-new": (
        Case(compute_runtime(31294, "i915", "8086:9b41")),
        Case(compute_runtime(30872, "i915", "8086:9b41")),
    ),
    "apu-memory-unused": (
        Case(set_aside(15.5), ok("responding", "asked"), fields=SET_ASIDE),
        Case(set_aside(96), ok("responding", "asked"), fields=SET_ASIDE),
    ),
    "hailort-mismatch": (Case(hailort("4.19.0")), Case(hailort("4.21.0"))),
    "compute-runtime-too-old": (Case(compute_runtime(27642)), Case(compute_runtime(35563))),
    "gfx-not-supported": (
        Case(rocblas("gfx90a"), ok("responding", "asked"), fields=GFX),
        Case(rocblas("gfx1100"), ok("responding", "asked"), fields=GFX),
    ),
    "rocm-kernel-skew": (Case(rocm("7.1.1-43", "6.8.5")), Case(rocm("6.4.1-83", "6.12.12"))),
}
