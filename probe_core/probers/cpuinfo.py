"""Read /proc/cpuinfo, whose lines differ by architecture."""

from __future__ import annotations

from probe_core.machine.files import named_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.machine import Machine
    from probe_core.probers.cpu_types import CpuFacts, Midr, Place

    Block = dict[str, str]


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
        is_ibm_z = "vendor_id" in first
        processor |= ibm_z(text) if is_ibm_z else identity(first, blocks, text)
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


# Read what /proc/cpuinfo says on other architectures than x86: Arm, s390, Itanium.

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
# Machine types of arch/s390 in Linux, and the names under which IBM sells them.
_IBM_Z = {
    "2097": "z10",
    "2098": "z10",
    "2817": "z196",
    "2818": "z114",
    "2827": "zEC12",
    "2828": "zBC12",
    "2964": "z13",
    "2965": "z13s",
    "3906": "z14",
    "3907": "z14 ZR1",
    "8561": "z15",
    "8562": "z15 T02",
    "3931": "z16",
    "3932": "z16 A02",
    "9175": "z17",
}


def identity(first: Block, blocks: list[Block], text: str) -> CpuFacts:
    """Return name, vendor and the processors that the file lists.

    `by_cluster` says that these kernels number packages by the device tree's clusters.
    """
    facts: CpuFacts = {}
    numbers = _numbers(text)
    if numbers:
        facts["numbers"] = numbers
    if first.get("isa", "").startswith("rv"):
        facts["by_cluster"] = True
    if whole(first.get("CPU implementer")) is not None:
        facts |= {"by_cluster": True, **_architecture(first)}
        return facts | _arm(blocks, numbers)
    if first.get("arch") == "IA-64":
        facts["vendor"] = "intel"
        facts["name"] = first.get("model name") or _itanium(first.get("family", ""))
    return facts


def ibm_z(text: str) -> CpuFacts:
    """Return name and processors of an IBM Z, whose lines end with ``machine = 8561``."""
    machine = text.rpartition("machine = ")[2][:4]
    if not (len(machine) == 4 and machine.isdecimal()):
        return {"vendor": "ibm"}
    name = f"IBM {_IBM_Z[machine]}" if machine in _IBM_Z else f"IBM Z of machine type {machine}"
    return {"vendor": "ibm", "name": name}


def _itanium(family: str) -> str:
    # Kernels before 2.6.18 name the family, newer ones give its number.
    return "Itanium" if family.isdecimal() or not family else family


def _numbers(text: str) -> list[int]:
    """Return the numbers of the lines ``processor : 3``; old Arm kernels put all in one block."""
    numbers = []
    for line in text.splitlines():
        if line[:9] == "processor":
            number = whole(line.partition(":")[2].strip())
            if number is not None and number >= 0:
                numbers.append(number)
    return list(dict.fromkeys(numbers))


def _architecture(first: Block) -> CpuFacts:
    text = first.get("CPU architecture")
    number = 8 if text == "AArch64" else whole(text)
    return {} if number is None else {"architecture": number}


def _arm(blocks: list[Block], numbers: list[int]) -> CpuFacts:
    """Return the MIDR of each core, and that of the first one.

    Kernels before 3.19 describe one core alone, that which reads the file: `one_midr` is then true.
    """
    described = [block for block in blocks if _midr(block)]
    if not described:
        return {}
    first = _midr(described[0])
    facts: CpuFacts = {"implementer": first["implementer"], "part": first["part"], "cpus": {}}
    if "variant" in first:
        facts["variant"] = first["variant"]
    if len(described) == 1 and len(numbers) > 1:
        facts["cpus"] = dict.fromkeys(numbers, first)
        facts["one_midr"] = True
    else:
        for block in described:
            facts["cpus"][whole(block.get("processor")) or 0] = _midr(block)
    if facts["implementer"] in _ARM_VENDORS:
        facts["vendor"] = _ARM_VENDORS[facts["implementer"]]
    return facts


def _midr(block: Block) -> Midr:
    """Return implementer, part and variant of a block; empty when it does not tell them.

    Huawei's kernels print those of two kinds of cores in one line: ``0xc07 & 0xc0f``.
    """
    implementer, part = whole(block.get("CPU implementer")), whole(block.get("CPU part"))
    if implementer is None or part is None:
        return {}
    midr: Midr = {"implementer": implementer, "part": part}
    variant = whole(block.get("CPU variant"))
    if variant is not None:
        midr["variant"] = variant
    return midr


# Where x86's /proc/cpuinfo puts each processor: read where /sys does not show it.

_LONGEST = 8 << 20
"""Bytes of the file: 4,096 processors of 1.5 KiB each print six million."""


def places(machine: Machine) -> dict[int, Place]:
    """Return the place of each processor that the file lists."""
    listed: dict[int, Place] = {}
    for block in (machine.read("/proc/cpuinfo", _LONGEST) or "").split("\n\n"):
        lines = named_lines(block)
        number = whole(lines.get("processor"))
        if number is not None and number >= 0:
            listed[number] = whole(lines.get("physical id")) or 0, whole(lines.get("core id"))
    return listed


def packages(listed: Mapping[int, Place]) -> list[list[int]]:
    """Return the processors of each package."""
    groups: dict[int, list[int]] = {}
    for cpu, (package, _) in listed.items():
        groups.setdefault(package, []).append(cpu)
    return list(groups.values())


def cores_of(listed: Mapping[int, Place], members: Sequence[int]) -> list[list[int]] | None:
    """Return the processors of each core of a package; None where one has no core's number."""
    cores: dict[Place, list[int]] = {}
    for cpu in members:
        place = listed.get(cpu)
        if place is None or place[1] is None:
            return None
        cores.setdefault(place, []).append(cpu)
    return list(cores.values())
