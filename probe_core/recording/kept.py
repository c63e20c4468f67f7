"""What `probe record` keeps of a machine: the files that probers read, and no others.

In a pattern ``*`` stands for any name or part of one and ``#`` for a number. Nothing here wakes a
sleeping device: what could, is in the lists of awake ones.
"""

from __future__ import annotations

__all__ = [
    "ALWAYS",
    "AWAKE_GPU",
    "AWAKE_PCI",
    "DESCRIBED",
    "GPU",
    "MARKS",
    "OPERATIONAL",
    "PCI",
    "PLATFORM",
    "VARIABLES",
]

PCI, PLATFORM = "/sys/bus/pci/devices", "/sys/bus/platform/devices"

ALWAYS = """
/proc/cpuinfo
/proc/meminfo
/proc/sys/kernel/osrelease
/proc/sys/kernel/arch
/proc/driver/nvidia/version
/proc/driver/nvidia/gpus/*/information
/opt/rocm/.info/version
/sys/class/dmi/id/product_name
/sys/firmware/devicetree/base/compatible
/sys/firmware/devicetree/base/model
/proc/device-tree/compatible
/proc/device-tree/model
/sys/devices/system/cpu/online
/sys/devices/system/cpu/cpu#/node#
/sys/devices/system/cpu/cpu#/topology/package_cpus_list
/sys/devices/system/cpu/cpu#/topology/core_siblings_list
/sys/devices/system/cpu/cpu#/topology/core_cpus_list
/sys/devices/system/cpu/cpu#/topology/thread_siblings_list
/sys/devices/system/cpu/cpu#/cpufreq/cpuinfo_max_freq
/sys/devices/system/cpu/cpu#/cpufreq/base_frequency
/sys/devices/cpu_core/cpus
/sys/devices/cpu_atom/cpus
/sys/devices/cpu_lowpower/cpus
/sys/fs/cgroup/dmem.capacity
/sys/bus/pci/devices/*/class
/sys/bus/pci/devices/*/vendor
/sys/bus/pci/devices/*/device
/sys/bus/pci/devices/*/subsystem_vendor
/sys/bus/pci/devices/*/subsystem_device
/sys/bus/pci/devices/*/revision
/sys/bus/pci/devices/*/numa_node
/sys/bus/pci/devices/*/power/runtime_status
/sys/bus/pci/devices/*/driver
/sys/bus/pci/devices/*/physfn
/sys/class/drm/card#/dev
/sys/class/drm/card#/device
/sys/class/drm/renderD#/dev
/sys/class/drm/renderD#/device
/sys/class/accel/accel#/dev
/sys/class/accel/accel#/device
/sys/class/misc/mali#/dev
/sys/class/misc/mali#/device
/sys/class/devfreq/*/available_frequencies
/sys/class/devfreq/*/max_freq
/sys/class/kfd/kfd/topology/nodes/#/gpu_id
/sys/class/kfd/kfd/topology/nodes/#/properties
/sys/class/kfd/kfd/topology/nodes/#/mem_banks/#/properties
/sys/class/kfd/kfd/topology/nodes/#/io_links/#/properties
/sys/bus/platform/drivers/mali/*/driver
/sys/bus/platform/drivers/panfrost/*/driver
/sys/bus/platform/drivers/panthor/*/driver
/sys/bus/platform/drivers/lima/*/driver
/sys/module/amdgpu/version
/sys/module/nvidia/version
/sys/module/nvgpu/initstate
/sys/module/i915/version
/sys/module/xe/version
/sys/module/intel_vpu/version
/sys/module/habanalabs/version
/sys/module/mali_kbase/version
/sys/module/bifrost_kbase/version
/sys/module/midgard_kbase/version
/sys/module/mali/version
/sys/module/panfrost/version
/sys/module/panthor/version
/sys/module/lima/version
""".split()
"""Files, and links to folders, of every machine; reading them touches no device."""

DESCRIBED = """
of_node/compatible
of_node/status
driver
power/runtime_status
gpuinfo
devfreq/*/available_frequencies
devfreq/*/max_freq
""".split()
"""Below each platform device that the device tree describes."""

GPU = """
resource
physical_vram_size_bytes
tile#/physical_vram_size_bytes
drm/card#/gt_RP0_freq_mhz
drm/card#/gt_max_freq_mhz
drm/card#/gt/gt0/rps_RP0_freq_mhz
drm/card#/gt/gt0/rps_max_freq_mhz
npu_max_frequency_mhz
npu_memory_utilization
freq/hw_max_freq
""".split()
"""Below each PCI device that computes or displays: the driver answers from memory."""

AWAKE_PCI = "current_link_speed current_link_width max_link_speed max_link_width".split()
"""Below each PCI device that is awake: since Linux 6.12 these files resume a sleeping one."""

AWAKE_GPU = """
product_name
unique_id
mem_info_vram_total
mem_info_vram_used
mem_info_vram_vendor
mem_info_gtt_total
mem_info_gtt_used
current_compute_partition
current_memory_partition
ip_discovery/die/0/GC/0/major
ip_discovery/die/0/GC/0/minor
ip_discovery/die/0/GC/0/revision
drm/card#/lmem_total_bytes
drm/card#/gt/gt0/mem_RP0_freq_mhz
tile#/gt#/freq0/rp0_freq
tile#/gt#/freq0/max_freq
tile#/memory/freq0/max_freq
status
device_type
fw_os_ver
accel/*/status
accel/*/device_type
accel/*/fw_os_ver
habanalabs/*/status
habanalabs/*/device_type
habanalabs/*/fw_os_ver
""".split()
"""Below each PCI device that computes or displays, when it is awake."""

OPERATIONAL = "clk_max_freq_mhz accel/*/clk_max_freq_mhz habanalabs/*/clk_max_freq_mhz".split()
"""The same when its `status` is operational: a Gaudi's firmware is asked for these."""

MARKS = """
/dev/kfd
/dev/dxg
/dev/nvidiactl
/dev/nvidia0
/dev/nvgpu
/dev/nvhost-gpu
/dev/nvhost-ctrl-gpu
/dev/mali0
/dev/dri/renderD#
/dev/accel/accel#
""".split()
"""Device nodes, never opened: an empty file says that one is there."""

VARIABLES = """
CUDA_DEVICE_ORDER CUDA_VERSION CUDA_VISIBLE_DEVICES DEV GGML_VK_VISIBLE_DEVICES GPU_DEVICE_ORDINAL
HCQ_VISIBLE_DEVICES HIP_VISIBLE_DEVICES MESA_VK_DEVICE_SELECT NODEVICE_SELECT
NVIDIA_REQUIRE_CUDA NVIDIA_VISIBLE_DEVICES ONEAPI_DEVICE_SELECTOR ROCR_VISIBLE_DEVICES
VISIBLE_DEVICES VK_DRIVER_FILES VK_ICD_FILENAMES VK_LOADER_DEVICE_ID_FILTER
VK_LOADER_DEVICE_SELECT VK_LOADER_DRIVERS_DISABLE VK_LOADER_DRIVERS_SELECT
VK_LOADER_DRIVER_ID_FILTER VK_LOADER_VENDOR_ID_FILTER ZE_AFFINITY_MASK
ZE_ENABLE_PCI_ID_DEVICE_ORDER ZE_FLAT_DEVICE_HIERARCHY
""".split()
"""What of the environment: the variables that decide which devices a program sees."""
