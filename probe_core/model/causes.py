"""One cause that breaks a step of readiness, and the three kinds of causes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Severity


class Cause:
    """One cause.

    `step` is the link of the chain that it breaks. `limits` says that the device stays usable, with
    less than it has. `intended` says that somebody set it on purpose, so that it is a notice and no
    failure. `meaning` completes the sentence "DEVICE: …", `check` is how to see it by hand, `fix`
    what helps in general; names in braces are filled in for the device.
    """

    __slots__ = ("check", "code", "fix", "intended", "limits", "meaning", "step")

    def __init__(
        self, code: str, meaning: str, check: str, fix: str, *, limits: bool, intended: bool
    ) -> None:
        self.step = ""
        self.code = code
        self.meaning = meaning
        self.check = check
        self.fix = fix
        self.limits = limits
        self.intended = intended

    @property
    def severity(self) -> Severity:
        """The severity of its finding: a notice where somebody wanted it so, or it can wait."""
        return "info" if self.intended or self.limits else "error"

    @property
    def state(self) -> str:
        """The state of a device with it."""
        return "limited" if self.limits else "blocked"


def blocks(code: str, meaning: str, check: str, fix: str) -> Cause:
    return Cause(code, meaning, check, fix, limits=False, intended=False)


def limits(code: str, meaning: str, check: str, fix: str) -> Cause:
    return Cause(code, meaning, check, fix, limits=True, intended=False)


def intended(code: str, meaning: str, check: str, fix: str, limits: bool = False) -> Cause:
    return Cause(code, meaning, check, fix, limits=limits, intended=True)


# Causes on the machine side: the device on its bus, and its kernel driver.

HARDWARE = (
    blocks(
        "off-the-bus",
        "the device is lost: it does not answer on the PCI bus",
        "`lspci -xs {address}` prints ff; the kernel log has Xid 79 or `fallen off the bus`",
        "power the machine off and on; check seating, power cables and riser",
    ),
    blocks(
        "bar-unassigned",
        "firmware assigned no address to the device's memory",
        "`lspci -vs {address}` prints `Memory at <unassigned>` or none for the large region",
        "switch on Above 4G Decoding in the firmware setup, or boot with `pci=realloc`",
    ),
    limits(
        "link-narrow",
        "the PCIe link uses fewer lanes than the device has",
        "`cat {folder}/current_link_width {folder}/max_link_width`",
        "check slot, riser and bifurcation; a slot may have fewer lanes by design",
    ),
    limits(
        "link-slow",
        "the PCIe link is slower than device and slot allow, while the device works",
        "`cat {folder}/current_link_speed {folder}/max_link_speed` under load",
        "set the slot's PCIe generation in the firmware setup; check riser and cable",
    ),
    limits(
        "aer-errors",
        "the PCIe link had fatal errors since the machine started",
        "`cat {folder}/aer_dev_fatal`",
        "reseat the card, or set a lower PCIe generation in the firmware setup",
    ),
    limits(
        "rebar-off",
        "programs reach 256 MiB of the device's memory at a time",
        "`lspci -vvs {address}` prints `BAR 1: current size: 256MB` below `Resizable BAR`",
        "switch on Resizable BAR in the firmware setup",
    ),
    intended(
        "mac-guest",
        "this macOS is a virtual machine, which has no GPU or a paravirtual one",
        "`sysctl kern.hv_vmm_present` prints 1",
        "run on the host",
    ),
)

DRIVER = (
    blocks(
        "no-driver",
        "no kernel driver is bound",
        "`ls {folder}/driver`",
        "{load}",
    ),
    blocks(
        "driver-not-installed",
        "its kernel driver {module} is not installed",
        "`modinfo {module}` finds no module",
        "install {package}, then reboot",
    ),
    blocks(
        "module-missing-for-kernel",
        "the driver {module} is installed for another kernel, not for the running one",
        "`dkms status`; `find /lib/modules -name '{module}.ko*'`",
        "install linux-headers-{release}, then `dkms autoinstall` (`akmods --force` on Fedora)",
    ),
    blocks(
        "secure-boot",
        "Secure Boot is on, and the driver {module} is not loaded",
        "`mokutil --sb-state`; `modprobe {module}` prints `Key was rejected by service`",
        "enrol the key of the module (`mokutil --import`), or install a signed package",
    ),
    blocks(
        "module-blacklisted",
        "the driver {module} is kept from loading by the configuration",
        "`modprobe --showconfig | grep {module}`; `cat /proc/cmdline`",
        "remove that line, rebuild the initramfs, then reboot",
    ),
    blocks(
        "module-not-loaded",
        "the driver {module} is installed and not loaded",
        "`lsmod | grep {module}`",
        "`modprobe {module}`, then read the kernel log",
    ),
    blocks(
        "nouveau-bound",
        "nouveau is bound, which CUDA cannot use",
        "`readlink {folder}/driver`",
        "install NVIDIA's driver, blacklist nouveau, rebuild the initramfs, then reboot",
    ),
    blocks(
        "nova-bound",
        "nova is bound, which CUDA cannot use",
        "`readlink {folder}/driver`",
        "install NVIDIA's driver, blacklist nova_core, rebuild the initramfs, then reboot",
    ),
    blocks(
        "radeon-bound",
        "radeon is bound, which has no compute interface",
        "`readlink {folder}/driver`",
        "boot with `amdgpu.si_support=1 radeon.si_support=0` (GCN 2: cik_support)",
    ),
    intended(
        "reserved-for-vm",
        "the device is reserved for a virtual machine (passthrough)",
        "`readlink {folder}/driver`",
        "nothing, if that is intended; else take it out of vfio-pci.ids, then reboot",
    ),
    intended(
        "vgpu-host-driver",
        "the driver is NVIDIA's for virtual GPUs, which has no CUDA on the host",
        "`lsmod | grep nvidia_vgpu_vfio`",
        "use the GPU in a guest, or install the ordinary driver",
    ),
    blocks(
        "open-module-unsupported",
        "NVIDIA's open kernel module does not support this architecture",
        "`cat /proc/driver/nvidia/version` prints Open Kernel Module",
        "install the proprietary kernel module of the same driver branch",
    ),
    blocks(
        "closed-module-unsupported",
        "NVIDIA's closed kernel module does not support this architecture",
        "`cat /proc/driver/nvidia/version` prints no Open Kernel Module",
        "install the open kernel module of the same driver branch",
    ),
    blocks(
        "legacy-branch",
        "the installed driver branch no longer supports this architecture",
        "the kernel log has `ignoring the legacy GPU`",
        "install the driver branch {branch}",
    ),
    blocks(
        "driver-too-old-for-gpu",
        "the installed driver does not support this GPU yet",
        "the kernel log has `not supported by the NVIDIA … driver release`",
        "install a newer driver: {branch} or later",
    ),
    blocks(
        "gsp-firmware-missing",
        "the firmware of the installed NVIDIA driver is not there",
        "`ls /lib/firmware/nvidia/{version}`",
        "install the driver's firmware package, then rebuild the initramfs",
    ),
    blocks(
        "amdgpu-refused",
        "amdgpu is loaded and did not take the device",
        "the kernel log has `amdgpu` with `Fatal error during GPU init`",
        "`sudo dmesg | grep amdgpu` has the reason; check firmware files, kernel and BIOS setup",
    ),
    blocks(
        "firmware-missing",
        "the driver {module} is loaded, and its firmware is not installed",
        "the kernel log has `Direct firmware load … failed with error -2`",
        "install {package}, then rebuild the initramfs",
    ),
    blocks(
        "nomodeset",
        "the kernel command line has nomodeset, with which {module} does not start",
        "`cat /proc/cmdline`",
        "remove nomodeset from the boot loader's configuration",
    ),
    blocks(
        "kernel-too-old",
        "the kernel's driver {module} does not know the device",
        "the kernel log has `not officially supported by {module}`",
        "install a newer kernel, or boot with `{module}.force_probe` and the device's id",
    ),
    blocks(
        "npu-no-module",
        "the driver {module} of this NPU is not loaded",
        "`lsmod | grep {module}`",
        "install and load {package}",
    ),
    intended(
        "device-tree-disabled",
        "the board's device tree has an accelerator that is switched off",
        "`cat /proc/device-tree/…/status` prints disabled",
        "enable its device-tree overlay (armbianEnv.txt, extlinux.conf or config.txt), then reboot",
    ),
    blocks(
        "jetson-no-nvgpu",
        "the driver nvgpu of the Jetson module is not loaded",
        "`lsmod | grep nvgpu`",
        "`modprobe nvgpu`, then read the kernel log",
    ),
    blocks(
        "basic-display",
        "Windows uses its basic display driver",
        "Device Manager, Driver tab: Microsoft Basic Display Adapter",
        "install the driver of {vendor}",
    ),
)


# Causes on the way to the device: its nodes, their permissions, the driver's library.

NODE = (
    blocks(
        "node-missing",
        "a device node is missing",
        "`ls -l {node}`",
        "`nvidia-modprobe -c 0 -u` creates NVIDIA's nodes; udev creates all others",
    ),
    blocks(
        "uvm-missing",
        "CUDA needs /dev/nvidia-uvm, which is missing or has no driver",
        "`ls -l /dev/nvidia-uvm; lsmod | grep nvidia_uvm`",
        "on the host: `nvidia-modprobe -u -c 0`; pass /dev/nvidia-uvm to the container",
    ),
    blocks(
        "service-without-devices",
        "{service} runs with a /dev of its own, without its device nodes",
        "`systemctl show {service} -p PrivateDevices -p DevicePolicy -p DeviceAllow`",
        "`sudo systemctl edit {service}`: `[Service]`, `PrivateDevices=no`; then restart it",
    ),
    blocks(
        "node-number-stale",
        "a device node has the number of another driver",
        "`ls -l {node}; cat /proc/devices`",
        "create the node again; the numbers of nvidia-uvm and nvidia-caps change at each start",
    ),
    blocks(
        "container-without-gpus",
        "the container has no device node for it",
        "`ls /dev`",
        "start the container with {option}",
    ),
    intended(
        "hidden-by-container",
        "the container was started without GPUs (NVIDIA_VISIBLE_DEVICES)",
        "`echo $NVIDIA_VISIBLE_DEVICES; ls /dev/nvidia*`",
        "start the container with NVIDIA_VISIBLE_DEVICES=all",
    ),
    blocks(
        "pod-without-gpu",
        "the pod has no device node for it",
        "`kubectl get pod -o yaml`: resources.limits",
        "request it: `resources.limits: {{{resource}: 1}}`",
    ),
    blocks(
        "lxc-device-missing",
        "the LXC container lacks a device node",
        "`ls -l {node}`",
        "add `lxc.mount.entry` and `lxc.cgroup2.devices.allow` for {node} (Incus: a gpu device)",
    ),
    blocks(
        "flatpak",
        "the Flatpak sandbox has no device node for it",
        "`flatpak info --show-permissions APP`",
        "`flatpak override --user --device=all APP`",
    ),
    blocks(
        "snap",
        "the snap has no device node for it",
        "`snap connections {app}`",
        "`snap connect {app}:opengl` (or its gpu interface)",
    ),
    blocks(
        "cdi-spec-stale",
        "the container's CDI specification is of another driver version",
        "`head /etc/cdi/nvidia.yaml /var/run/cdi/nvidia.yaml`",
        "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
    ),
    limits(
        "kfd-missing",
        "ROCm needs /dev/kfd, which is missing; Vulkan can use the device",
        "`ls -l /dev/kfd /sys/class/kfd`",
        "{kfd_fix}",
    ),
)

LOG_IN = "then log in again"

PERMISSION = (
    blocks(
        "no-permission",
        "this user may not open {node}",
        "`ls -l {node}; id`",
        f"add the user to the group that owns {{node}}, {LOG_IN}",
    ),
    blocks(
        "not-in-group",
        "this user may not open {node}",
        "`ls -l {node}; id`",
        f"`sudo usermod -aG {{group}} $USER`, {LOG_IN}",
    ),
    blocks(
        "group-not-active",
        "the user is in the group of {node}, and this process is not",
        "`id; getent group {group}`",
        "log in again, or start the program with `sg {group}`",
    ),
    blocks(
        "userns-group-lost",
        "the user namespace drops the group that may open {node}",
        "`cat /proc/self/uid_map; ls -ln {node}` prints 65534",
        "podman with crun: `--group-add keep-groups`; Docker: run as a user of that group",
    ),
    blocks(
        "selinux-denies",
        "mode and groups allow {node}; SELinux refuses it",
        "`cat /sys/fs/selinux/enforce /proc/self/attr/current`; `ausearch -m avc`",
        "`sudo setsebool -P {selinux_boolean} on`, or `--security-opt label=disable`",
    ),
    blocks(
        "ssh-no-seat",
        "only the user at the screen may open {node}",
        "`getfacl {node}`",
        f"`sudo usermod -aG {{group}} $USER`, {LOG_IN}",
    ),
)

LIBRARY = (
    blocks(
        "library-missing",
        "the libraries of NVIDIA's driver are not installed",
        "`ldconfig -p | grep -e libcuda -e libnvidia-ml`",
        "install the libraries of the driver's version ({package})",
    ),
    limits(
        "nvml-missing",
        "libnvidia-ml.so.1 is not installed; CUDA is",
        "`ldconfig -p | grep libnvidia-ml`",
        "install it in the driver's version (Debian: libnvidia-ml1)",
    ),
    blocks(
        "library-broken",
        "a library of the driver cannot be loaded",
        "`ls -lL {library}`; `file -L {library}`",
        "install it again; take CUDA's `stubs` folder out of LD_LIBRARY_PATH",
    ),
    blocks(
        "version-mismatch",
        "kernel driver and libraries differ in version",
        "`cat /proc/driver/nvidia/version; ls -l {library}`",
        "reboot, or unload and load the nvidia modules; in a container: no driver in the image",
    ),
    blocks(
        "wsl-no-library",
        "WSL has no CUDA library of the Windows driver",
        "`ls /usr/lib/wsl/lib`",
        "install the driver in Windows, `wsl --update`; remove a Linux driver from WSL",
    ),
    blocks(
        "wsl-linux-driver",
        "a Linux driver inside WSL hides the CUDA library of the Windows driver",
        "`ldconfig -p | grep libcuda.so.1` lists another folder before /usr/lib/wsl/lib",
        "`sudo apt purge '^nvidia-.*' '^libnvidia-.*'` inside WSL; the driver is Windows's",
    ),
)


# Causes in the use of the device: its answers, rules, variables and runtimes.

_RESET = "drain the node, then reset the GPU or reboot"

RESPONDING = (
    blocks(
        "not-responding",
        "its plugin reads neither memory nor runtimes from it",
        "the vendor's tool (nvidia-smi, amd-smi)",
        _RESET,
    ),
    blocks(
        "query-fails",
        "its plugin cannot query it",
        "`probe plugins why-not NAME`",
        "see the finding about that plugin",
    ),
    blocks(
        "driver-crashes",
        "a query of its driver's library ends the process",
        "`probe plugins why-not NAME`",
        "read the kernel log; install the driver again",
    ),
    blocks(
        "driver-hangs",
        "the driver does not answer",
        "the process is in state D; the kernel log has Xid 45, 79 or 119",
        "reboot; read the kernel log",
    ),
    blocks(
        "gpu-lost",
        "the GPU is lost: the driver cannot reach it",
        "`nvidia-smi` prints `GPU is lost`; the kernel log has Xid 79",
        _RESET,
    ),
    blocks(
        "gpu-reset-required",
        "the GPU must be reset",
        "the kernel log has Xid 46, 62, 64, 95, 109, 119, 120, 140 or 143",
        "`nvidia-smi -r -i N` when it is idle",
    ),
    limits(
        "row-remap-pending",
        "faulty memory rows are replaced at the next reset",
        "`nvidia-smi -q -d ROW_REMAPPER`",
        "reset the GPU when convenient",
    ),
    blocks(
        "row-remap-failed",
        "faulty memory rows cannot be replaced",
        "`nvidia-smi -q -d ROW_REMAPPER`",
        "drain the node and have the card replaced",
    ),
    blocks(
        "uvm-stale",
        "CUDA does not start after the machine slept (error 999)",
        "all nodes are well, and cuInit returns 999",
        "`rmmod nvidia_uvm; modprobe nvidia_uvm`; NVreg_PreserveVideoMemoryAllocations=1",
    ),
    limits(
        "xid-seen",
        "NVIDIA's driver logged an error of the GPU (Xid) since the machine started",
        "`sudo dmesg | grep Xid`",
        "look the number up in NVIDIA's Xid catalogue; reset the GPU if it needs one",
    ),
    limits(
        "amdgpu-reset-seen",
        "amdgpu had to reset the GPU since the machine started",
        "`sudo dmesg | grep -e 'GPU reset' -e 'ring .* timeout'`",
        "update kernel and firmware; lower clocks if it comes back",
    ),
    limits(
        "slow-init",
        "the first query takes seconds",
        "`nvidia-smi -q | grep Persistence`",
        "run nvidia-persistenced",
    ),
    limits(
        "power-capped",
        "the power limit is below the default",
        "`nvidia-smi -q -d POWER`",
        "`nvidia-smi -pl WATTS`",
    ),
    limits(
        "thermal-slowdown",
        "the GPU is slowed down by heat or by its power supply",
        "`nvidia-smi -q -d PERFORMANCE`",
        "check cooling and power cables",
    ),
    limits(
        "vgpu-unlicensed",
        "the virtual GPU has no licence, so its speed is limited",
        "`nvidia-smi -q | grep -i licen`",
        "put a token into /etc/nvidia/ClientConfigToken; start nvidia-gridd",
    ),
    limits(
        "iommu-faults",
        "the IOMMU reports faults of the device",
        "the kernel log has `AMD-Vi: IO_PAGE_FAULT`",
        "boot with `iommu=pt`",
    ),
    blocks(
        "guc-failed",
        "the GPU's scheduler firmware failed",
        "the kernel log has GuC or `wedged`",
        "update firmware and kernel",
    ),
    blocks(
        "gaudi-not-operational",
        "the driver reports that the device does not operate",
        "`cat /sys/class/accel/accel*/device/status`; `hl-smi`",
        "reset the device",
    ),
    limits(
        "tdr",
        "Windows resets the driver again and again",
        "Event Viewer, System: Display 4101, or nvlddmkm 153",
        "update the driver; lower the clocks; raise TdrDelay if programs run long kernels",
    ),
    limits(
        "wired-limit",
        "macOS lets GPU programs use a part of the memory",
        "`sysctl iogpu.wired_limit_mb`",
        "`sudo sysctl iogpu.wired_limit_mb=…`",
    ),
)

GRANTED = (
    blocks(
        "cgroup-denied",
        "a cgroup's device rule refuses {node}",
        "`head -c0 {node}` prints `Operation not permitted`",
        "restart the container; use CDI, or `nvidia-ctk system create-dev-char-symlinks`",
    ),
    intended(
        "slurm-slice",
        "the Slurm job was not given this device",
        "`scontrol show job -d $SLURM_JOB_ID`",
        "ask for more devices (--gres), if the job needs them",
    ),
    intended(
        "not-granted",
        "this process was not given the device",
        "`nvidia-smi -L` lists other GPUs only",
        "nothing, if that is intended; else give more devices to the job or container",
    ),
    intended(
        "kfd-node-closed",
        "the compute interface of AMD does not give the device to this process",
        "`cat /sys/class/kfd/kfd/topology/nodes/*/gpu_id` prints `Operation not permitted`",
        "nothing, if that is intended; else give more devices to the job or container",
    ),
    intended(
        "gpu-excluded",
        "the driver is told to leave the GPU out",
        "`grep Excluded /proc/driver/nvidia/gpus/*/information`",
        "remove NVreg_ExcludedGpus from /etc/modprobe.d, then load the driver again",
    ),
    intended(
        "compute-prohibited",
        "the compute mode prohibits all programs",
        "`nvidia-smi -q -d COMPUTE`",
        "as root: `nvidia-smi -c 0`",
    ),
    blocks(
        "mps-daemon-gone",
        "CUDA is to use the MPS daemon, which does not run",
        "`ls $CUDA_MPS_PIPE_DIRECTORY`",
        "start `nvidia-cuda-mps-control -d`, or unset CUDA_MPS_PIPE_DIRECTORY",
    ),
    intended(
        "mig-without-instances",
        "MIG mode is on, and no instance exists",
        "`nvidia-smi mig -lgi`",
        "create instances: `nvidia-smi mig -cgi PROFILE -C`; or `nvidia-smi -mig 0`",
        limits=True,
    ),
    blocks(
        "mig-cap-denied",
        "this process may not open the MIG instance's node {node}",
        "`ls -l /dev/nvidia-caps`",
        "pass the nodes in /dev/nvidia-caps to the container",
    ),
    intended(
        "partition-mode",
        "the card is partitioned; its partitions are devices of their own",
        "`cat {folder}/current_compute_partition`",
        "nothing, if that is intended; else `amd-smi set -C SPX`",
    ),
)

VISIBLE = (
    intended(
        "hidden-by-variable",
        "an environment variable hides it",
        "`env | grep -e VISIBLE_DEVICES -e AFFINITY_MASK -e DEVICE_SELECTOR`",
        "change the variable, if the process may use the device",
    ),
    intended(
        "mig-mode",
        "MIG is on: programs use the instances, not the whole GPU",
        "`nvidia-smi -L`",
        "use the instances; for the whole GPU, as root: `nvidia-smi -mig 0`",
    ),
    intended(
        "hidden-by-runtime",
        "its own runtime does not show it",
        "`probe visible`",
        "`probe visible` prints the reason",
    ),
)

RUNTIME = (
    blocks(
        "libcuda-missing",
        "libcuda.so.1 is not installed",
        "`ldconfig -p | grep libcuda.so.1`",
        "{libcuda_fix}",
    ),
    blocks(
        "driver-older-than-cuda",
        "the driver is older than the CUDA version of this environment",
        "`nvidia-smi` prints the driver's CUDA version; `nvcc --version` the toolkit's",
        "install a newer driver; on data centre GPUs: the package cuda-compat",
    ),
    blocks(
        "cuda-compat-unsupported",
        "libcuda.so.1 is newer than the kernel driver, which no GeForce runs with (CUDA error 804)",
        "`cat /proc/driver/nvidia/version; ls -l {cuda_library}`",
        "install driver {cuda_branch} or later on the host; or take an image for the driver's CUDA"
        " version, without {cuda_folder}",
    ),
    blocks(
        "cuda-library-mismatch",
        "libcuda.so.1 is older than the kernel driver (CUDA error 803)",
        "`cat /proc/driver/nvidia/version; ls -l {cuda_library}`",
        "{cuda_fix}",
    ),
    blocks(
        "fabric-not-ready",
        "CUDA does not start before the NVSwitch fabric is set up (error 802)",
        "`nvidia-smi -q | grep -A3 Fabric`; `systemctl status nvidia-fabricmanager`",
        "start nvidia-fabricmanager of the driver's exact version",
    ),
    limits(
        "shm-small",
        "the container shares 64 MiB of memory among processes; NCCL and data loaders need more",
        "`df -h /dev/shm`",
        "start the container with `--shm-size=8g`, or `--ipc=host`",
    ),
    limits(
        "compute-runtime-too-old",
        "Intel's compute runtime is older than the GPU; Vulkan can use the device",
        "`ls -l /usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1` leads to the build's number",
        "install a newer libze-intel-gpu1 (or intel-level-zero-gpu) and intel-opencl-icd",
    ),
    limits(
        "kfd-no-gpu",
        "the compute interface of AMD does not list the GPU; Vulkan can use it",
        "`grep -l location_id /sys/class/kfd/kfd/topology/nodes/*/properties`",
        "`sudo dmesg | grep -i kfd` has the reason; without PCIe atomics use a slot of the CPU",
    ),
    limits(
        "gfx-not-supported",
        "the installed ROCm has no code for {gfx}; Vulkan can use it",
        "`ls {folder_of_rocblas} | grep {gfx}`",
        "{gfx_fix}",
    ),
    blocks(
        "hsa-override-bad",
        "ROCm does not start with this HSA_OVERRIDE_GFX_VERSION",
        "`echo $HSA_OVERRIDE_GFX_VERSION`",
        "correct it (major.minor.step, as 10.3.0), or `unset HSA_OVERRIDE_GFX_VERSION`",
    ),
    blocks(
        "hsa-override-foreign",
        "HSA_OVERRIDE_GFX_VERSION names a generation whose code this GPU cannot run",
        "`echo $HSA_OVERRIDE_GFX_VERSION; rocminfo | grep gfx`",
        "`unset HSA_OVERRIDE_GFX_VERSION`",
    ),
    limits(
        "rocm-missing",
        "ROCm's runtime is not installed; Vulkan can use the device",
        "`ldconfig -p | grep -e libhsa-runtime64 -e libamdhip64`",
        "install ROCm's packages; wheels of PyTorch bring their own",
    ),
    limits(
        "rocm-kernel-skew",
        "ROCm and the kernel driver are too far apart",
        "`cat /opt/rocm/.info/version; modinfo -F version amdgpu`",
        "install the amdgpu driver of the same release",
    ),
    limits(
        "level-zero-missing",
        "Intel's compute runtime is not installed; Vulkan can use the device",
        "`ldconfig -p | grep libze_intel_gpu`",
        "install libze-intel-gpu1 (or intel-level-zero-gpu) and intel-opencl-icd",
    ),
)


# The causes that break a step of readiness, each declared once: step, effect, meaning, check, fix.
#
# `readiness` writes the codes, findings take their severity and sentences from here, and the page
# docs/explanation/readiness.md shows the table. Imported when a device is broken, not before.

_BY_STEP: dict[str, tuple[Cause, ...]] = {
    "hardware": HARDWARE,
    "driver": DRIVER,
    "node": NODE,
    "permission": PERMISSION,
    "library": LIBRARY,
    "responding": RESPONDING,
    "granted": GRANTED,
    "visible": VISIBLE,
    "runtime": RUNTIME,
}


def _table() -> dict[str, Cause]:
    table = {}
    for step, causes in _BY_STEP.items():
        for cause in causes:
            cause.step = step
            table[cause.code] = cause
    return table


CAUSES = _table()
"""Code to cause, in the order of the chain."""


def limiting(code: str | None) -> bool:
    """Return whether a device with this cause can be used; False for codes of others."""
    cause = CAUSES.get(code or "")
    return cause is not None and cause.limits


def on_purpose(code: str | None) -> bool:
    """Return whether somebody set the cause on purpose; False for codes of others."""
    cause = CAUSES.get(code or "")
    return cause is not None and cause.intended
