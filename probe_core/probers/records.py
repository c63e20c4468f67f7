"""The files that the core's own probers read, in the form of a plugin's manifest (`records`).

`probe record` keeps them of every machine, with those that the installed plugins declare.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.registry.document import Records

__all__ = ["RECORDS"]

_CPU = "/sys/devices/system/cpu"
_TREE = "/sys/firmware/devicetree/base"

RECORDS: dict[str, Records] = {
    "node": {
        "files": [
            "/proc/meminfo",
            "/proc/sys/kernel/osrelease",
            "/proc/sys/kernel/arch",
            "/sys/class/dmi/id/product_name",
            "/sys/class/dmi/id/sys_vendor",
            "/sys/class/dmi/id/board_vendor",
            "/sys/class/dmi/id/bios_vendor",
            "/sys/hypervisor/type",
            f"{_TREE}/compatible",
            f"{_TREE}/model",
            "/proc/device-tree/compatible",
            "/proc/device-tree/model",
            "/sys/devices/system/node/online",
            "/sys/devices/system/node/node#/meminfo",
            "/proc/driver/nvidia/gpus/*/numa_status",
            # By way of its hardware: the names of bridges and tunnels are their owner's business.
            "/sys/class/net/*/device/net/*/type",
            "/sys/class/net/*/device/net/*/operstate",
            "/sys/class/net/*/device/net/*/mtu",
            "/sys/class/net/*/device/net/*/speed",
            "/sys/class/net/*/device/net/*/phy80211",
            "/sys/class/net/*/device/driver",
            "/sys/class/net/*/device/numa_node",
            "/sys/class/net/*/device/physfn",
            "/sys/class/net/*/device/power/runtime_status",
            "/sys/class/infiniband/*/device",
            "/sys/class/infiniband/*/device/driver",
            "/sys/class/infiniband/*/device/numa_node",
            "/sys/class/infiniband/*/device/physfn",
            "/sys/class/infiniband/*/device/power/runtime_status",
            "/sys/class/infiniband/*/ports/#/link_layer",
            "/sys/class/infiniband/*/ports/#/state",
            "/sys/class/infiniband/*/ports/#/rate",
            "/sys/bus/thunderbolt/devices/#-*/tx_speed",
            "/sys/bus/thunderbolt/devices/#-*/tx_lanes",
            "/sys/bus/thunderbolt/devices/#-*/unique_id",
            "/sys/bus/thunderbolt/devices/*.#/key",
        ],
        "masks": {"/sys/bus/thunderbolt/devices/#-*/unique_id": "uuid"},
        "cgroup": [
            "memory.max",
            "memory.current",
            "memory.stat",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "cpuset.mems.effective",
            "cpuset.mems",
        ],
    },
    "readiness": {
        "files": [
            "/proc/modules",
            "/proc/devices",
            "/proc/driver/nvidia/params",
            "/proc/driver/nvidia/version",
            "/sys/fs/selinux/enforce",
        ],
        "masks": {"/proc/modules": "addresses"},
        "pci": [
            # The regions and the counts of errors are kept by the kernel: no device is read.
            {
                "asleep": True,
                "pci_class": ["03", "12"],
                "files": ["resource", "aer_dev_fatal"],
            },
            # The possible sizes are read from the device (pci_rebar_get_possible_sizes).
            {"pci_class": ["03", "12"], "files": ["resource0_resize", "resource1_resize"]},
            # The names of nodes of drivers outside DRM and accel; see `readiness.needs`.
            {
                "asleep": True,
                "pci_class": ["12", "08", "0b", "ff"],
                "files": [
                    "hailo_chardev/*/dev",
                    "apex/*/dev",
                    "tenstorrent/*/dev",
                    "neuron_device/*/dev",
                ],
            },
        ],
        "cgroup": ["devices.list"],
        "nodes": [
            "/dev/apex_#",
            "/dev/hailo#",
            "/dev/neuron#",
            "/dev/nvidia-caps/nvidia-cap#",
            "/dev/tenstorrent/#",
            "/dev/nvidia#",
            "/dev/nvidiactl",
            "/dev/nvidia-uvm",
            "/dev/kfd",
            "/dev/mali#",
        ],
    },
    "cpu": {
        "files": [
            "/proc/cpuinfo",
            f"{_CPU}/online",
            f"{_CPU}/present",
            f"{_CPU}/modalias",
            "/sys/devices/system/node/node#/cpulist",
            f"{_CPU}/cpu#/node#",
            f"{_CPU}/cpu#/topology/package_cpus_list",
            f"{_CPU}/cpu#/topology/core_siblings_list",
            f"{_CPU}/cpu#/topology/core_cpus_list",
            f"{_CPU}/cpu#/topology/thread_siblings_list",
            f"{_CPU}/cpu#/topology/cluster_cpus_list",
            f"{_CPU}/cpu#/regs/identification/midr_el1",
            f"{_CPU}/cpu#/cpufreq/related_cpus",
            f"{_CPU}/cpu#/cpufreq/cpuinfo_max_freq",
            f"{_CPU}/cpu#/cpufreq/base_frequency",
            "/sys/devices/cpu_core/cpus",
            "/sys/devices/cpu_atom/cpus",
            "/sys/devices/cpu_lowpower/cpus",
        ],
        "cgroup": [
            "cpuset.cpus.effective",
            "cpuset.cpus",
            "cpu.max",
            "cpu.cfs_quota_us",
            "cpu.cfs_period_us",
        ],
        "masks": {"/proc/cpuinfo": "cpuinfo"},
    },
    "bus": {
        "files": [
            "/sys/class/drm/card#/dev",
            "/sys/class/drm/card#/device",
            "/sys/class/drm/renderD#/dev",
            "/sys/class/drm/renderD#/device",
            "/sys/class/accel/accel#/dev",
            "/sys/class/accel/accel#/device",
        ],
        "pci": [
            {
                # What the kernel read when it found the device: pci-sysfs.c answers from memory.
                "asleep": True,
                "files": [
                    "class",
                    "vendor",
                    "device",
                    "subsystem_vendor",
                    "subsystem_device",
                    "revision",
                    "numa_node",
                    "local_cpulist",
                    "power/runtime_status",
                    "driver",
                    "physfn",
                ],
            },
            {
                # These resume a sleeping device: since Linux 6.18, and stable releases such as
                # 6.6.114, the kernel powers it up first ("PCI/sysfs: Ensure devices are powered
                # for config reads").
                "files": [
                    "current_link_speed",
                    "current_link_width",
                    "max_link_speed",
                    "max_link_width",
                ],
            },
        ],
        "platform": [
            {
                "asleep": True,
                "files": [
                    "of_node/compatible",
                    "of_node/status",
                    # Names the node where a container masks /sys/firmware.
                    "uevent",
                    "driver",
                    "power/runtime_status",
                    "kgsl/kgsl-3d0/gpu_model",
                ],
            }
        ],
        "nodes": ["/dev/dri/renderD#", "/dev/accel/accel#"],
    },
}
"""Name of a built-in prober, or of a part of the core (node, readiness), to what it reads."""
