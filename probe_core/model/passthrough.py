"""Kernel drivers that reserve a device for a virtual machine: one list for every step that asks.

Such a driver binds the device and leaves it to a guest (passthrough). No runtime of this system
can open the device then, so it is neither primary nor counted by CUDA, ROCm or Vulkan.
"""

from __future__ import annotations

__all__ = ["PASSTHROUGH_DRIVERS", "is_passthrough_driver"]

PASSTHROUGH_DRIVERS = (
    # "Simple stub driver to reserve a PCI device" (Linux, drivers/pci/pci-stub.c).
    "pci-stub",
    # Xen's driver registers as pciback: "The name should be xen_pciback, but until the tools are
    # updated we will keep it as pciback" (Linux, drivers/xen/xen-pciback/pci_stub.c).
    "pciback",
    # The module of that driver, as people and tools write it.
    "xen-pciback",
    # Generic passthrough (Linux, drivers/vfio/pci/vfio_pci.c).
    "vfio-pci",
)
"""Names in ``/sys/bus/pci/drivers``. Variants of vfio-pci: `is_passthrough_driver`."""

# The kernel's variants of vfio-pci (drivers/vfio/pci/*/main.c) are named after it, with hyphens
# (xe-vfio-pci for Intel GPUs) or underscores (nvgrace_gpu_vfio_pci for GH200, GB200 and GB300,
# which takes its name from KBUILD_MODNAME; qat_vfio_pci).
_VARIANT = "-vfio-pci"

# libtpu drives TPUs from v5e on through vfio-pci: no guest has them (Ray,
# python/ray/_private/accelerators/tpu.py, counts the entries of /dev/vfio as chips).
_DRIVEN_FROM_USER_SPACE = (("google", "vfio-pci"),)


def is_passthrough_driver(driver: str | None, vendor: str | None = None) -> bool:
    """Return whether a kernel driver keeps a device of `vendor` from this system's runtimes."""
    if driver is None or (vendor, driver) in _DRIVEN_FROM_USER_SPACE:
        return False
    return driver in PASSTHROUGH_DRIVERS or driver.replace("_", "-").endswith(_VARIANT)
