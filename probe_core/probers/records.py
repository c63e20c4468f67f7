"""The files that the core itself reads: its probers, readiness and the doctor's checks.

`probe record` keeps those of `RECORDS` of every machine, with those that the installed plugins
declare. Documentation and tests take what is recorded from here: what is read, and stands in none
of these tables, fails a test.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.registry.document import Records

_CPU = "/sys/devices/system/cpu"
_TREE = "/sys/firmware/devicetree/base"
_MINORS = ("drm/card#/dev", "drm/renderD#/dev", "accel/accel#/dev")
"""Found below the device as well as below its class; the kernel keeps device numbers in memory."""

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
            "/sys/module/amdxdna/parameters/carvedout_size",
            "/sys/module/amdxdna/parameters/carveout_size",
            "/proc/driver/nvidia/version",
            "/proc/driver/nvidia/gpus/*/information",
            "/sys/fs/selinux/enforce",
            "/sys/class/kfd/kfd/topology/nodes/#/properties",
        ],
        "masks": {
            "/proc/modules": "addresses",
            "/proc/driver/nvidia/gpus/*/information": "uuid",
            "/sys/class/kfd/kfd/topology/nodes/#/properties": "decimal64:unique_id",
        },
        "pci": [
            # The regions and the counts of errors are kept by the kernel: no device is read.
            {
                "asleep": True,
                "pci_class": ["03", "12"],
                "files": ["resource", "aer_dev_fatal"],
            },
            # The possible sizes are read from the device (pci_rebar_get_possible_sizes).
            {
                "pci_class": ["03", "12"],
                "files": ["resource0_resize", "resource1_resize", "resource2_resize"],
            },
            # The names of nodes of drivers outside DRM and accel; see `readiness.driver_nodes`.
            {
                "asleep": True,
                "pci_class": ["03", "12", "08", "0b", "ff"],
                "files": [
                    "hailo_chardev/*/dev",
                    "apex/*/dev",
                    "tenstorrent/*/dev",
                    "biren/*/dev",
                    "habanalabs/*/dev",
                    "hailo1x/*/dev",
                    "iommu_group",
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
            "/dev/biren-m",
            "/dev/biren/card_#",
            "/dev/cambricon_ctl",
            "/dev/cambricon_dev#",
            "/dev/davinci#",
            "/dev/davinci_manager",
            "/dev/devmm_svm",
            "/dev/dxg",
            "/dev/h1x-#",
            "/dev/hisi_hdc",
            "/dev/hl#",
            "/dev/iluvatar#",
            "/dev/mkfd",
            "/dev/mtgpu.#",
            "/dev/mxcd",
            "/dev/qaic_aic100_#",
            "/dev/rbln#",
            "/dev/rngd/npu#mgmt",
            "/dev/vfio/#",
            "/dev/vfio/vfio",
        ],
    },
    "doctor": {
        "files": [
            "/sys/power/suspend_stats/success",
            "/opt/rocm/.info/version",
            "/sys/module/amdgpu/version",
            "/sys/module/hailo_pci/version",
            "/sys/class/kfd/kfd/topology/nodes/#/mem_banks/#/properties",
            "/sys/devices/platform/asus-nb-wmi/dgpu_disable",
            "/sys/class/firmware-attributes/asus-armoury/attributes/dgpu_disable/current_value",
            "/sys/devices/platform/asus-nb-wmi/egpu_connected",
            "/sys/devices/platform/asus-nb-wmi/egpu_enable",
            "/sys/class/firmware-attributes/asus-armoury/attributes/egpu_connected/current_value",
            "/sys/class/firmware-attributes/asus-armoury/attributes/egpu_enable/current_value",
            "/sys/bus/thunderbolt/devices/#-*/authorized",
            "/sys/bus/thunderbolt/devices/#-*/device_name",
            "/sys/bus/thunderbolt/devices/#-*/vendor_name",
            "/sys/bus/thunderbolt/devices/domain#/security",
            *(
                f"{_TREE}{bus}/{name}@*/status"
                for bus in ("", "/soc*", "/bus*")
                for name in ("gpu", "npu", "rknpu", "vpu-npu")
            ),
        ],
        "pci": [{"pci_vendor": ["1002"], "pci_class": ["03", "12"], "files": ["gpu_busy_percent"]}],
        "nodes": ["/dev/dxg"],
    },
    "cpu": {
        "files": [
            "/proc/cpuinfo",
            f"{_CPU}/online",
            f"{_CPU}/present",
            f"{_CPU}/modalias",
            "/sys/devices/system/node/node#/cpulist",
            "/sys/devices/system/node/node#/cpumap",
            f"{_CPU}/cpu#/online",
            f"{_CPU}/cpu#/node#",
            f"{_CPU}/cpu#/topology/package_cpus_list",
            f"{_CPU}/cpu#/topology/package_cpus",
            f"{_CPU}/cpu#/topology/core_siblings_list",
            f"{_CPU}/cpu#/topology/core_siblings",
            f"{_CPU}/cpu#/topology/core_cpus_list",
            f"{_CPU}/cpu#/topology/core_cpus",
            f"{_CPU}/cpu#/topology/thread_siblings_list",
            f"{_CPU}/cpu#/topology/thread_siblings",
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
            "/sys/bus/usb/devices/#-*/idVendor",
            "/sys/bus/usb/devices/#-*/idProduct",
            "/sys/bus/usb/devices/#-*/busnum",
            "/sys/bus/usb/devices/#-*/devnum",
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
                    "local_cpus",
                    "power/runtime_status",
                    "driver",
                    "physfn",
                    *_MINORS,
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
                    "misc/mali0/dev",
                    *_MINORS,
                ],
            }
        ],
        "nodes": ["/dev/dri/renderD#", "/dev/accel/accel#", "/dev/bus/usb/#/#"],
    },
}
"""Name of a built-in prober, or of a part of the core (node, readiness), to what it reads."""

# Where the loader looks, and where ROCm, CUDA and the drivers of containers put their libraries.
_LIBRARIES = (
    *("/lib", "/lib64", "/lib/*", "/usr/lib", "/usr/lib64", "/usr/lib/*", "/usr/lib/*/*"),
    *("/usr/local/lib", "/usr/local/lib64", "/usr/local/lib/*", "/usr/local/*/lib*"),
    *("/usr/local/cuda/compat", "/usr/local/cuda/lib64/stubs"),
    *("/opt/*/lib*", "/opt/xilinx/xrt/lib", "/run/opengl-driver/lib"),
)
_EXISTS = "that it exists"
_DRIVERS = "names of the files of accelerators' drivers"
_LINES = "the lines about accelerators' drivers"
_RELEASE = "distribution and version"
_KEYS = "whether this machine's key is enrolled, without the key"
_MODE = "the mode, where it leaves the discrete GPU off"
_REMOVALS = "the lines that take displays off the bus"

IN_PART: dict[str, str] = {
    "/.dockerenv": _EXISTS,
    "/run/.containerenv": _EXISTS,
    "/.flatpak-info": _EXISTS,
    "/.singularity.d": _EXISTS,
    "/run/systemd/container": "the name of the engine",
    "/run/nvidia/driver/usr": _EXISTS,
    "/proc/self/cgroup": "the groups of the process, under other names",
    "/proc/self/mounts": "the lines of `/dev` and `/dev/shm`, and what shows a container's engine",
    "/proc/self/status": "user and groups, a person's as 1000",
    "/proc/self/limits": "the limit of address space",
    "/proc/self/uid_map": "the first line, without the user",
    "/proc/self/attr/current": "whether a sandbox confines the process",
    "/proc/cmdline": "the parameters about drivers",
    "/sys/kernel/security/lockdown": "all of it",
    "/sys/firmware/efi/efivars/SecureBoot-*": "whether it is on",
    "/sys/firmware/efi/efivars/MokListRT-*": _KEYS,
    "/var/lib/shim-signed/mok/MOK.der": _KEYS,
    "/var/lib/dkms/mok.pub": _KEYS,
    "/etc/pki/akmods/certs/public_key.der": _KEYS,
    "/sys/firmware/acpi/tables/PPTT": _EXISTS,
    "/sys/bus/pci/devices/*/config": "of a link of 63 lanes, whether the device answers",
    "/sys/module/firmware_class/parameters/path": "whether it names a folder",
    "/sys/module/*": "which drivers of accelerators are loaded",
    "/lib/modules/": _DRIVERS,
    "/usr/lib/modules/": _DRIVERS,
    "/var/lib/dkms/": _DRIVERS,
    "/boot/vmlinuz-*": "that it exists",
    "/lib/firmware/": _DRIVERS,
    "/etc/modprobe.d/": _LINES,
    "/run/modprobe.d/": _LINES,
    "/usr/lib/modprobe.d/": _LINES,
    "/lib/modprobe.d/": _LINES,
    "/usr/bin/nvidia-modprobe": _EXISTS,
    "/etc/OpenCL/vendors/intel_legacy1.icd": _EXISTS,
    "/tmp/nvidia-mps/": "whether the daemon of MPS lives",
    "/etc/prime-discrete": _MODE,
    "/etc/prime/current_type": _MODE,
    "/etc/supergfxd.conf": _MODE,
    "/etc/nvidia-container-runtime/config.toml": "the mode, and a root of NVIDIA's operator",
    "/etc/udev/rules.d/": _REMOVALS,
    "/run/udev/rules.d/": _REMOVALS,
    "/usr/lib/udev/rules.d/": _REMOVALS,
    "/lib/udev/rules.d/": _REMOVALS,
    "/etc/passwd": "this user, without the name",
    "/etc/group": "the groups of device nodes",
    "/etc/os-release": _RELEASE,
    "/usr/lib/os-release": _RELEASE,
    "/run/ostree-booted": _EXISTS,
    "/etc/NIXOS": _EXISTS,
    "/run/current-system/nixos-version": _EXISTS,
    "/etc/ld.so.conf": "the folders that belong to no person, those of its parts too",
    "/etc/ld.so.conf.d/": "in `/etc/ld.so.conf`",
    "/etc/ld.so.cache": "which libraries of drivers it has",
    "/usr/lib/wsl/drivers/": "the names of NVIDIA's",
    **dict.fromkeys(
        (f"{folder}/lib*.so*" for folder in _LIBRARIES),
        "of a driver's library name, version and word size",
    ),
}
"""What a recording has no more of than is said here: path, or folder with a slash, to what it has.

Another folder of libraries, a person's own, is recorded as `/opt/venv`.
"""

_OF_LOADER = "it names disks, and may hold the hash of a password"

LEFT_OUT: dict[str, str] = {
    "/etc/machine-id": "it identifies the machine",
    "/var/lib/dbus/machine-id": "it identifies the machine",
    "/proc/sys/kernel/random/boot_id": "it identifies a boot, and baselines are live",
    "/proc/self/cpuset": "`/proc/self/cgroup` has the groups",
    "/proc/self/mountinfo": "it names folders of people; control groups are recorded where they "
    "usually lie",
    "/proc/*/comm": "it names what other people run",
    "/etc/cdi/": "its files name paths of the host",
    "/run/cdi/": "its files name paths of the host",
    "/var/run/cdi/": "its files name paths of the host",
    "/etc/nvidia/": "its files name a licence server, and hold its tokens",
    "/run/cloud-init/instance-data.json": "it names a cloud's instance, its network and its owner",
    "/boot/grub/": _OF_LOADER,
    "/boot/grub2/": _OF_LOADER,
    "/boot/loader/": _OF_LOADER,
    "/efi/loader/": _OF_LOADER,
    "/etc/default/grub": _OF_LOADER,
    "/var/lib/dpkg/status": "it lists all that is installed",
    "/var/log/": "the kernel's log names programs and addresses",
}
"""What the core reads and no recording has, to the reason: a check that needs it is unknown there,
or not applicable."""
