"""Causes on the machine side: the device on its bus, and its kernel driver."""

from __future__ import annotations

from probe_core.model.cause import blocks, intended, limits

__all__ = ["DRIVER", "HARDWARE"]

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
