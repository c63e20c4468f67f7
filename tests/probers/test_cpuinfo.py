"""/proc/cpuinfo of each architecture, in its own dialect."""

from __future__ import annotations

from typing import Any

import pytest
from trees import Tree

from probe_core.api import Request
from probe_core.probers import cpu
from probe_core.probers.cpu_files import cores_at, facts, packages_of, parse, places

X86 = """processor\t: 0
vendor_id\t: {vendor}
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC  9124   16-Core Processor
stepping\t: 1
cpu MHz\t\t: 1500.000
flags\t\t: fpu sse2 avx avx2 fma avx512f avx512_bf16 hypervisor unheard_of

"""
ARM_BLOCK = """processor\t: {number}
BogoMIPS\t: 48.00
Features\t: fp asimd asimdhp asimddp sve bf16 i8mm
CPU implementer\t: {implementer}
CPU architecture: 8
CPU part\t: {part}

"""


def arm(*kinds: tuple[str, str]) -> str:
    return "".join(
        ARM_BLOCK.format(number=n, implementer=implementer, part=part)
        for n, (implementer, part) in enumerate(kinds)
    )


def test_places_of_processors(tree: Tree) -> None:
    blocks = ["0\nphysical id: 1\ncore id: 4", "1\nphysical id: 1\ncore id: 4", "2\ncore id: 0",
              "3", "-1\ncore id: 1", "x\ncore id: 1"]  # fmt: skip
    tree.file("/proc/cpuinfo", "\n\n".join(f"processor: {block}" for block in blocks))
    listed = places(tree.machine())
    assert listed == {0: (1, 4), 1: (1, 4), 2: (0, 0), 3: (0, None)}
    assert packages_of(listed) == [[0, 1], [2, 3]]
    assert cores_at(listed, [0, 1, 2]) == [[0, 1], [2]]
    assert cores_at(listed, [2, 3]) is None
    assert cores_at(listed, [0, 4]) is None


def test_x86() -> None:
    assert parse(X86.format(vendor="AuthenticAMD")) == {
        "name": "AMD EPYC 9124 16-Core Processor",
        "vendor_id": "AuthenticAMD",
        "vendor": "amd",
        "family": 25,
        "model": 17,
        "stepping": 1,
        "flags": ["avx", "avx2", "avx512_bf16", "avx512f", "fma", "hypervisor", "sse2"],
        "mhz": 1500.0,
    }


@pytest.mark.parametrize(
    ("vendor_id", "vendor"),
    [
        ("GenuineIntel", "intel"),
        ("HygonGenuine", "hygon"),
        ("CentaurHauls", "zhaoxin"),
        ("  Shanghai  ", "zhaoxin"),
        ("NewVendor", "newvendor"),
    ],
)
def test_x86_vendors(vendor_id: str, vendor: str) -> None:
    assert parse(X86.format(vendor=vendor_id))["vendor"] == vendor


def test_number_that_is_none_is_left_out() -> None:
    text = f"vendor_id : GenuineIntel\ncpu family : 0x{'f' * 5000}\nmodel : {'9' * 5000}\n"
    assert parse(text) == {"vendor_id": "GenuineIntel", "vendor": "intel", "flags": []}


# Arm assigns each implementer a letter (Arm Architecture Reference Manual, MIDR_EL1).
LETTERS = {
    "A": "arm", "B": "broadcom", "C": "cavium", "F": "fujitsu", "H": "hisilicon", "N": "nvidia",
    "P": "apm", "Q": "qualcomm", "S": "samsung", "V": "marvell", "a": "apple", "m": "microsoft",
    "\xc0": "ampere", "W": None,
}  # fmt: skip


@pytest.mark.parametrize(("letter", "vendor"), LETTERS.items())
def test_the_vendor_of_an_arm_core_is_its_implementers(letter: str, vendor: str | None) -> None:
    assert parse(arm((f"{ord(letter):#x}", "0x001"))).get("vendor") == vendor


def test_x86_reads_the_first_block_alone(tree: Tree) -> None:
    text = X86.format(vendor="AuthenticAMD")
    tree.file("/proc/cpuinfo", text + "x" * 50_000 + "\n\n" + text.replace("9124", "9999"))
    assert facts(tree.machine())["name"] == "AMD EPYC 9124 16-Core Processor"


def test_big_little_counts_each_kind_of_core(tree: Tree) -> None:
    text = arm(*[("0x41", "0xd05")] * 4, *[("0x41", "0xd0b")] * 3, ("0x41", "0xd0b"))
    small, large = {"implementer": 0x41, "part": 0xD05}, {"implementer": 0x41, "part": 0xD0B}
    assert parse(text)["cpus"] == {n: small if n < 4 else large for n in range(8)}
    assert parse(text)["vendor"] == "arm"
    assert parse(text)["flags"] == ["asimd", "asimddp", "asimdhp", "bf16", "i8mm", "sve"]


def test_three_kinds_of_cores_of_two_makers() -> None:
    kinds = [("0x51", "0x001"), ("0x41", "0xd4f"), ("0x51", "0x001"), ("0x41", "0xd05")]
    cpus = parse(arm(*kinds))["cpus"]
    expected = {0: (0x51, 0x001), 1: (0x41, 0xD4F), 2: (0x51, 0x001), 3: (0x41, 0xD05)}
    assert {n: (midr["implementer"], midr["part"]) for n, midr in cpus.items()} == expected


def test_one_kind_of_core_is_no_cluster() -> None:
    found = parse(arm(("0x41", "0xd0c"), ("0x41", "0xd0c")))
    assert found["cpus"][0] == found["cpus"][1]
    assert (found["implementer"], found["part"]) == (0x41, 0xD0C)
    assert "name" not in found


@pytest.mark.parametrize(
    ("implementer", "vendor"),
    [("0xc0", "ampere"), ("0x4e", "nvidia"), ("0x61", "apple"), ("0x99", None)],
)
def test_arm_implementers(implementer: str, vendor: str | None) -> None:
    assert parse(arm((implementer, "0x001"))).get("vendor") == vendor


def test_model_line_of_arm_is_the_board_not_the_processor() -> None:
    text = arm(("0x41", "0xd0b")) + "Revision\t: d04170\nModel\t\t: Raspberry Pi 5 Model B\n"
    assert "name" not in parse(text)


@pytest.mark.parametrize(
    ("text", "name", "mhz"),
    [
        (
            "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3783.000000MHz\n",
            "POWER9, altivec supported",
            3783.0,
        ),
        (
            "processor\t: 0\nhart\t: 1\nisa\t: rv64imafdc\nuarch\t: sifive,u74-mc\n",
            "sifive,u74-mc",
            None,
        ),
        ("system type\t: generic-loongson-machine\n\nprocessor\t: 0\n", None, None),
        (
            "processor\t: 0\nModel Name\t: Loongson-3A5000\nCPU MHz\t: 2500.00\n",
            "Loongson-3A5000",
            None,
        ),
        ("system type\t: MT7621\ncpu model\t: MIPS 1004Kc V2.15\n", "MIPS 1004Kc V2.15", None),
    ],
)
def test_other_architectures(text: str, name: str | None, mhz: float | None) -> None:
    found = parse(text)
    assert (found.get("name"), found.get("mhz")) == (name, mhz)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "no colon",
        ":",
        "processor",
        "CPU implementer\t: x\nCPU part\t: y\n",
        "cpu MHz : -1",
    ],
)
def test_nonsense_says_nothing(text: str) -> None:
    found = parse(text)
    assert found.pop("flags") == []
    assert found == {}


@pytest.mark.parametrize("mhz", ["0", "nan", "inf", "1e9", "-5", "fast"])
def test_absurd_clocks_are_left_out(mhz: str) -> None:
    assert "mhz" not in parse(X86.format(vendor="x").replace("1500.000", mhz))


def devices(tree: Tree) -> Any:
    return cpu.probe_devices(Request(tree.machine()))


def test_without_any_file_there_is_nothing_to_say(tree: Tree) -> None:
    said = devices(tree)
    assert said.reason == "neither /proc/cpuinfo nor /sys/devices/system/cpu can be read"


def test_cpuinfo_alone(tree: Tree) -> None:
    tree.file("/proc/cpuinfo", X86.format(vendor="AuthenticAMD"))
    (device,) = devices(tree)
    assert (device["name"], device["vendor"]) == ("AMD EPYC 9124 16-Core Processor", "amd")
    assert device["clocks"] == {"current_mhz": 1500.0}
    assert "units" not in device
    assert device["unknown"]["units"] == "the kernel's files do not show which threads share a core"
    assert device["unknown"]["threads"] == "/sys/devices/system/cpu/online cannot be read"


def test_topology_alone(tree: Tree) -> None:
    tree.file("/sys/devices/system/cpu/online", "0-3")
    for number in range(4):
        topology = f"/sys/devices/system/cpu/cpu{number}/topology"
        tree.file(f"{topology}/core_cpus_list", f"{number // 2 * 2}-{number // 2 * 2 + 1}")
    (device,) = devices(tree)
    assert (device["units"], device["threads"]) == (2, 4)
    assert device["unknown"]["name"] == "/proc/cpuinfo has no model name"
    assert device["unknown"]["clocks"] == "neither cpufreq nor /proc/cpuinfo gives a frequency"


def test_each_kind_of_arm_core_has_its_clock(tree: Tree) -> None:
    tree.arch = "aarch64"
    tree.file("/proc/cpuinfo", arm(("0x41", "0xd05"), ("0x41", "0xd0b")))
    tree.file("/sys/devices/system/cpu/online", "0-1")
    for number, khz in ((0, 1_800_000), (1, 2_304_000)):
        tree.file(f"/sys/devices/system/cpu/cpu{number}/cpufreq/cpuinfo_max_freq", str(khz))
    (device,) = devices(tree)
    assert [kind["max_mhz"] for kind in device["cpu"]["clusters"]] == [1800.0, 2304.0]


def test_recorded_machine_of_another_system(tree: Tree) -> None:
    from probe_core import Machine

    said: Any = cpu.probe_devices(Request(Machine(str(tree.root), os="darwin", arch="arm64")))
    assert said.reason == "a recorded darwin machine holds no processor files"
