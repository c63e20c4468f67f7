"""The processor that an AMD code object is for, by the flags in its header.

Measured: clang 19 compiled a kernel for each of these, and aiter 0.1.7 has files for gfx950. The
newest numbers are read in LLVM's AMDGPUUsage, ELF header, EF_AMDGPU_MACH.
"""

from __future__ import annotations

__all__ = ["processor_of"]

_MASK = 0xFF
_SIGNS = ("", "", "-", "+")

_NAMES = {
    0x2C: "gfx900", 0x2D: "gfx902", 0x2E: "gfx904", 0x2F: "gfx906", 0x30: "gfx908", 0x31: "gfx909",
    0x3F: "gfx90a", 0x32: "gfx90c", 0x40: "gfx940", 0x4B: "gfx941", 0x4C: "gfx942", 0x4F: "gfx950",
    0x33: "gfx1010", 0x34: "gfx1011", 0x35: "gfx1012", 0x42: "gfx1013", 0x36: "gfx1030",
    0x37: "gfx1031", 0x38: "gfx1032", 0x39: "gfx1033", 0x3E: "gfx1034", 0x3D: "gfx1035",
    0x45: "gfx1036", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103",
    0x43: "gfx1150", 0x4A: "gfx1151", 0x55: "gfx1152", 0x58: "gfx1153", 0x48: "gfx1200",
    0x4E: "gfx1201", 0x49: "gfx1250", 0x5A: "gfx1251", 0x51: "gfx9-generic",
    0x52: "gfx10-1-generic", 0x53: "gfx10-3-generic", 0x54: "gfx11-generic", 0x59: "gfx12-generic",
    0x5F: "gfx9-4-generic",
}  # fmt: skip


def processor_of(flags: int) -> str | None:
    """Return ``gfx942:sramecc+`` of e_flags; None for a processor that is not known here.

    Bits 8 and 9 say of xnack, 10 and 11 of sramecc: 1 any, 2 off, 3 on.
    """
    name = _NAMES.get(flags & _MASK)
    if name is None:
        return None
    sramecc, xnack = _SIGNS[flags >> 10 & 3], _SIGNS[flags >> 8 & 3]
    return name + (sramecc and f":sramecc{sramecc}") + (xnack and f":xnack{xnack}")
