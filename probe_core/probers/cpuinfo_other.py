"""Read what /proc/cpuinfo says on other architectures than x86: Arm, s390, Itanium."""

from __future__ import annotations

from probe_core.probers.cpu_files import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.probers.cpu_types import CpuFacts, Midr

    Block = dict[str, str]


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
