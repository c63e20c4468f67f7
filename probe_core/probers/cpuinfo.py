"""Read /proc/cpuinfo, whose lines differ by architecture."""

from __future__ import annotations

from probe_core.machine.files import named_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.probers.cpu_types import CpuFacts

__all__ = ["IDENTITY", "PEAK_FLAGS", "facts", "parse", "whole"]

IDENTITY = (
    "vendor_id",
    "family",
    "model",
    "stepping",
    "implementer",
    "part",
    "variant",
    "architecture",
)
"""Keys that name a microarchitecture: x86's family and model, Arm's implementer and part."""

PEAK_FLAGS = frozenset(
    """
    sse2 sse4_2 avx avx2 fma fma4 f16c avx512f avx512_bf16 avx512_fp16 avx512_vnni avx_vnni
    avx_vnni_int8 amx_tile amx_bf16 amx_int8 amx_fp16 avx10_1 avx10_2
    asimd asimdhp asimddp asimdfhm bf16 i8mm sve sve2 svebf16 svei8mm sme sme2
    thumb vfp neon vfpv4 altivec vsx mma zve64d zvfh v lsx lasx hypervisor
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
_FIRST_BLOCK = 16 << 10
"""Bytes of /proc/cpuinfo read at first: eleven times an AMD EPYC's block of 1,436 bytes."""


def facts(machine: Machine) -> CpuFacts:
    """Return what the file says of the processor; empty when it cannot be read.

    x86 blocks are alike, and 256 of them take the kernel milliseconds to print: the first ones are
    enough, with the count of the others left to /sys. Arm's differ on big.LITTLE: all are read.
    """
    text = machine.read("/proc/cpuinfo", _FIRST_BLOCK)
    if text is None:
        return {}
    if len(text) > _FIRST_BLOCK // 2:
        if "vendor_id" in text[:_FIRST_BLOCK] and "cpu family" in text:
            # The last block may be cut off in the middle of its flags.
            text = text.rpartition("\n\n")[0] or text
        else:
            text = machine.read("/proc/cpuinfo") or text
    return parse(text)


def parse(text: str) -> CpuFacts:
    """Return name, vendor, identity and flags from the text of a /proc/cpuinfo.

    `cpus` maps the processors that Arm's kernels describe to their MIDR; `cores` and `threads` are
    those of one x86 package; `numbers` lists the processors of all other kernels.
    """
    # LoongArch and s390 begin with a block of the system, Arm and MIPS end with the board's.
    blocks = [block for block in map(named_lines, text.split("\n\n")) if block]
    first = _first(blocks)
    processor: CpuFacts = {}
    if ("vendor_id" in first or "cpu family" in first) and first.get("vendor_id") != "IBM/S390":
        processor |= _x86(first)
    elif blocks:
        from probe_core.probers import cpuinfo_other

        is_ibm_z = "vendor_id" in first
        processor |= (
            cpuinfo_other.ibm_z(text) if is_ibm_z else cpuinfo_other.identity(first, blocks, text)
        )
    # x86; LoongArch; MIPS; POWER; RISC-V. Arm's line "Model" is the board's.
    keys = ("model name", "Model Name", "cpu model", "cpu", "uarch")
    name = next(filter(None, map(first.get, keys)), None)
    if name and "implementer" not in processor:
        processor.setdefault("name", " ".join(name.split()))
    processor["flags"] = sorted(_flags(blocks))
    mhz = _float(first.get("cpu MHz") or first.get("clock", "").removesuffix("MHz"))
    if mhz:
        processor["mhz"] = mhz
    return processor


def _first(blocks: list[dict[str, str]]) -> dict[str, str]:
    """Return the first processor's lines, and what only later blocks hold."""
    if not blocks or "vendor_id" in blocks[0]:
        return blocks[0] if blocks else {}
    first: dict[str, str] = {}
    for block in reversed(blocks):
        first |= block
    return first


def _flags(blocks: list[dict[str, str]]) -> frozenset[str]:
    """Return the flags that all cores have: a peak counts every core."""
    texts = {
        block.get("flags") or block.get("Features") or block.get("hart isa") or block.get("isa")
        for block in blocks
    }
    sets = [_flags_of(text.lower()) for text in texts if text]
    return PEAK_FLAGS.intersection(*sets) if sets else frozenset()


def _flags_of(text: str) -> set[str]:
    if not text.startswith("rv"):
        return set(text.split())
    # RISC-V: "rv64imafdcv_zicbom_zvfh": letters behind the width, then longer names.
    base, *extensions = text.split("_")
    return {*base[4:], *extensions}


def _x86(first: dict[str, str]) -> CpuFacts:
    identity: CpuFacts = {}
    vendor = first.get("vendor_id", "")
    if vendor:
        identity |= {"vendor_id": vendor, "vendor": _X86_VENDORS.get(vendor, vendor.lower())}
    if (family := whole(first.get("cpu family"))) is not None:
        identity["family"] = family
    if (model := whole(first.get("model"))) is not None:
        identity["model"] = model
    if (stepping := whole(first.get("stepping"))) is not None:
        identity["stepping"] = stepping
    if cores := whole(first.get("cpu cores")):
        identity["cores"] = cores
    if threads := whole(first.get("siblings")):
        identity["threads"] = threads
    return identity


def whole(text: str | None) -> int | None:
    """Return a number as kernels print it, decimal or with 0x; None where there is none."""
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
