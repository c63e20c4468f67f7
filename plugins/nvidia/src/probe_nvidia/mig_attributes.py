"""The structure in which NVML says what a MIG instance has: needed on few machines."""

from __future__ import annotations

from probe_nvidia.c_types import Structure, c_uint, c_ulonglong

__all__ = ["Attributes"]


class Attributes(Structure):
    """nvmlDeviceAttributes_t."""

    _fields_ = (
        ("multiprocessorCount", c_uint),
        ("sharedCopyEngineCount", c_uint),
        ("sharedDecoderCount", c_uint),
        ("sharedEncoderCount", c_uint),
        ("sharedJpegCount", c_uint),
        ("sharedOfaCount", c_uint),
        ("gpuInstanceSliceCount", c_uint),
        ("computeInstanceSliceCount", c_uint),
        ("memorySizeMB", c_ulonglong),
    )
