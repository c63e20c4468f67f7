"""Read /proc/cpuinfo, whose lines differ by architecture."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.machine import Machine

__all__ = ["IDENTITY", "PEAK_FLAGS", "facts", "parse"]

IDENTITY = ("vendor_id", "family", "model", "stepping", "implementer", "part")
"""Keys that name a microarchitecture: x86's family and model, Arm's implementer and part."""

PEAK_FLAGS = frozenset(
    """
    sse2 sse4_2 avx avx2 fma fma4 f16c avx512f avx512_bf16 avx512_fp16 avx512_vnni avx_vnni
    avx_vnni_int8 amx_tile amx_bf16 amx_int8 amx_fp16 avx10_1 avx10_2
    asimd asimdhp asimddp asimdfhm bf16 i8mm sve sve2 svebf16 svei8mm sme sme2
    neon vfpv4 altivec vsx mma zve64d zvfh v lsx lasx hypervisor
    """.split()
)
"""Flags that decide peaks, as Linux spells them."""

_X86_VENDORS = {
    "GenuineIntel": "intel",
    "AuthenticAMD": "amd",
    "HygonGenuine": "hygon",
    "CentaurHauls": "zhaoxin",
    "Shanghai": "zhaoxin",  # two spaces on either side, which are stripped
}
# MIDR implementer codes, from the Arm architecture reference manual.
_ARM_VENDORS = {
    0x41: "arm",
    0x42: "broadcom",
    0x43: "cavium",
    0x46: "fujitsu",
    0x48: "hisilicon",
    0x4E: "nvidia",
    0x50: "apm",
    0x51: "qualcomm",
    0x53: "samsung",
    0x56: "marvell",
    0x61: "apple",
    0x6D: "microsoft",
    0xC0: "ampere",
}
_FIRST_BLOCK = 16 << 10
"""Bytes of /proc/cpuinfo for one processor: eleven times an AMD EPYC's block of 1,436 bytes."""


def facts(machine: Machine) -> dict[str, Any]:
    """Return what the file says of the processor; empty when it cannot be read.

    x86 blocks are alike, and 256 of them take the kernel milliseconds to print: the first is
    enough, with the count of the others left to /sys. Arm's differ on big.LITTLE: all are read.
    """
    limit = _FIRST_BLOCK if machine.arch in ("x86_64", "i686", "i386") else 1 << 20
    text = machine.read("/proc/cpuinfo", limit)
    return parse(text) if text else {}


def parse(text: str) -> dict[str, Any]:
    """Return name, vendor, identity and flags from the text of a /proc/cpuinfo."""
    blocks = [_fields(block) for block in text.split("\n\n")]
    first = blocks[0] if blocks else {}
    processor: dict[str, Any] = {}
    # x86; LoongArch; MIPS; POWER; RISC-V. Arm's kernels name no processor, and their line
    # "Model" is the board's.
    keys = ("model name", "Model Name", "cpu model", "cpu", "uarch")
    name = next(filter(None, map(first.get, keys)), None)
    if name:
        processor["name"] = " ".join(name.split())
    if "vendor_id" in first or "cpu family" in first:
        processor |= _x86(first)
    elif "CPU implementer" in first:
        processor |= _arm(blocks)
    flags = (first.get("flags") or first.get("Features") or first.get("isa") or "").split()
    processor["flags"] = sorted(PEAK_FLAGS.intersection(flag.lower() for flag in flags))
    mhz = _float(first.get("cpu MHz") or first.get("clock", "").removesuffix("MHz"))
    if mhz:
        processor["mhz"] = mhz
    return processor


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _x86(first: dict[str, str]) -> dict[str, Any]:
    identity: dict[str, Any] = {}
    vendor = first.get("vendor_id", "")
    if vendor:
        identity |= {"vendor_id": vendor, "vendor": _X86_VENDORS.get(vendor, vendor.lower())}
    for key, name in (("family", "cpu family"), ("model", "model"), ("stepping", "stepping")):
        number = _int(first.get(name))
        if number is not None:
            identity[key] = number
    return identity


def _arm(blocks: list[dict[str, str]]) -> dict[str, Any]:
    """Return implementer and part of the first core, and the kinds of cores where they differ.

    `first` is the number of a CPU of each kind, for its clock.
    """
    kinds: dict[tuple[int, int], dict[str, Any]] = {}
    for block in blocks:
        implementer, part = _int(block.get("CPU implementer")), _int(block.get("CPU part"))
        if implementer is None or part is None:
            continue
        kind = kinds.setdefault(
            (implementer, part),
            {"implementer": implementer, "part": part, "cores": 0},
        )
        kind["cores"] += 1
        kind.setdefault("first", _int(block.get("processor")) or 0)
    if not kinds:
        return {}
    first, *more_kinds = kinds.values()
    identity: dict[str, Any] = {"implementer": first["implementer"], "part": first["part"]}
    if more_kinds:
        identity["clusters"] = [first, *more_kinds]
    if first["implementer"] in _ARM_VENDORS:
        identity["vendor"] = _ARM_VENDORS[first["implementer"]]
    return identity


def _int(text: str | None) -> int | None:
    try:
        return int(text, 0) if text and len(text) <= 20 else None
    except ValueError:
        return None


def _float(text: str | None) -> float | None:
    try:
        value = float(text) if text else 0.0
    except ValueError:
        return None
    return value if 1 <= value <= 20_000 else None
