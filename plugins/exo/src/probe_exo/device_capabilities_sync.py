"""Old exo's device_capabilities.py as it was before December 2024: the same names, not awaited.

`from probe_exo.device_capabilities_sync import *` in place of that file's content. Each call blocks
for the first probe, by a deadline, and may be made inside or outside an event loop. All of it is in
`probe_exo.device_capabilities`.
"""

from __future__ import annotations

from probe_exo.device_capabilities import CHIP_FLOPS as CHIP_FLOPS
from probe_exo.device_capabilities import TFLOPS as TFLOPS
from probe_exo.device_capabilities import UNKNOWN_DEVICE_CAPABILITIES as UNKNOWN_DEVICE_CAPABILITIES
from probe_exo.device_capabilities import DeviceCapabilities as DeviceCapabilities
from probe_exo.device_capabilities import DeviceFlops as DeviceFlops
from probe_exo.device_capabilities import DeviceMemory as DeviceMemory
from probe_exo.device_capabilities import device_memory as device_memory
from probe_exo.device_capabilities import sync_device_capabilities as device_capabilities
from probe_exo.device_capabilities import (
    sync_linux_device_capabilities as linux_device_capabilities,
)
from probe_exo.device_capabilities import sync_mac_device_capabilities as mac_device_capabilities
from probe_exo.device_capabilities import (
    sync_windows_device_capabilities as windows_device_capabilities,
)

__all__ = [
    "CHIP_FLOPS",
    "TFLOPS",
    "UNKNOWN_DEVICE_CAPABILITIES",
    "DeviceCapabilities",
    "DeviceFlops",
    "DeviceMemory",
    "device_capabilities",
    "device_memory",
    "linux_device_capabilities",
    "mac_device_capabilities",
    "windows_device_capabilities",
]
