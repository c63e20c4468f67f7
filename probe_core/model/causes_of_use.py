"""Causes in the use of the device: its answers, rules, variables and runtimes."""

from __future__ import annotations

from probe_core.model.cause import blocks, intended, limits

__all__ = ["GRANTED", "RESPONDING", "RUNTIME", "VISIBLE"]

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
