"""What older kernels and rarer architectures print into /proc/cpuinfo."""

from __future__ import annotations

from typing import Any

import pytest
from trees import Tree

from probe_core.probers.cpu_files import facts, parse

OLD_ARM = """Processor\t: ARMv7 Processor rev 0 (v7l)
processor\t: 0
BogoMIPS\t: 13.53

processor\t: 1
BogoMIPS\t: 13.53

Features\t: swp half thumb fastmult vfp edsp neon vfpv3 tls vfpv4
CPU implementer\t: 0x51
CPU architecture: 7
CPU variant\t: 0x1
CPU part\t: 0x06f

Hardware\t: QCT APQ8064 MTP
"""


def test_old_arm_describes_one_core_for_all() -> None:
    found = parse(OLD_ARM)
    midr = {"implementer": 0x51, "part": 0x6F, "variant": 1}
    assert found == {
        **midr,
        "numbers": [0, 1],
        "by_cluster": True,
        "cpus": {0: midr, 1: midr},
        "one_midr": True,
        "architecture": 7,
        "vendor": "qualcomm",
        "flags": ["neon", "thumb", "vfp", "vfpv4"],
    }


@pytest.mark.parametrize(
    "line",
    [
        "model name : ARMv7 Processor rev 5 (v7l)",
        "model name : AArch64 Processor rev 2 (aarch64)",
        "Processor : AArch64 Processor rev 4 (aarch64)",
    ],
)
def test_what_arm_s_kernels_print_is_no_name(line: str) -> None:
    text = f"processor : 0\n{line}\nCPU implementer : 0x41\nCPU part : 0xd03\n"
    assert "name" not in parse(text)


@pytest.mark.parametrize(("text", "version"), [("AArch64", 8), ("7", 7), ("x", None)])
def test_version_of_the_architecture(text: str, version: int | None) -> None:
    found = parse(f"CPU implementer : 0x41\nCPU architecture: {text}\n")
    assert found.get("architecture") == version


def test_loongarch_begins_with_the_system() -> None:
    text = (
        "\nsystem type : generic-loongson-machine\n\nprocessor : 0\nModel Name : Loongson-3A6000\n"
    )
    text += "Features : cpucfg lsx lasx\n\nprocessor : 1\nFeatures : cpucfg lsx\n"
    found = parse(text)
    assert (found["name"], found["numbers"]) == ("Loongson-3A6000", [0, 1])
    assert found["flags"] == ["lsx"]  # what one core lacks counts for none


@pytest.mark.parametrize(
    ("isa", "flags"),
    [
        ("rv64imafdc", []),
        ("rv64imafdcv_zicbom_zvfh_zve64d", ["v", "zve64d", "zvfh"]),
        ("rv64imafdcvh_zba", ["v"]),
        ("rv32imac", []),
    ],
)
def test_letters_of_riscv(isa: str, flags: list[str]) -> None:
    found = parse(f"processor : 0\nhart : 0\nisa : {isa}\nuarch : sifive,u74-mc\n")
    assert (found["name"], found["flags"], found["by_cluster"]) == ("sifive,u74-mc", flags, True)


def test_harts_that_differ_have_what_all_have() -> None:
    blocks = "isa : rv64imafdc\nhart isa : rv64imafdcv\n\nisa : rv64imafdc\nhart isa : rv64imafdc\n"
    assert parse(blocks)["flags"] == []


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("8561", "IBM z15"),
        ("3931", "IBM z16"),
        ("9999", "IBM Z of machine type 9999"),
        ("x", None),
    ],
)
def test_ibm_z(machine: str, name: str | None) -> None:
    text = "vendor_id       : IBM/S390\n# processors    : 1\nfeatures\t: esan3 vx\n"
    text += f"processor 0: version = 00,  identification = 279F25,  machine = {machine}\n"
    found = parse(text)
    assert (found["vendor"], found.get("name")) == ("ibm", name)


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("family : Itanium 2\n", "Itanium 2"),
        ("family : 32\n", "Itanium"),
        ("family : 32\nmodel name : Madison up to 9M cache\n", "Madison up to 9M cache"),
    ],
)
def test_itanium(lines: str, name: str) -> None:
    found = parse(f"processor : 0\nvendor : GenuineIntel\narch : IA-64\n{lines}")
    assert (found["vendor"], found["name"]) == ("intel", name)


def test_x86_flags_of_one_core_alone_do_not_count() -> None:
    block = "processor : {}\nvendor_id : GenuineIntel\ncpu family : 6\nflags : sse2 avx2{}\n\n"
    found = parse(block.format(0, " avx512f") + block.format(1, ""))
    assert found["flags"] == ["avx2", "sse2"]


def test_a_block_that_was_cut_off_does_not_count(tree: Tree) -> None:
    block = "processor : {}\nvendor_id : GenuineIntel\ncpu family : 6\n" + "x : y\n" * 500
    text = "".join(block.format(n) + "flags : sse2 avx2\n\n" for n in range(20))
    tree.file("/proc/cpuinfo", text)
    assert facts(tree.machine())["flags"] == ["avx2", "sse2"]


def test_arm_of_a_hundred_cores_is_read_whole(tree: Tree) -> None:
    block = "processor : {}\nFeatures : fp asimd " + "x" * 200 + "\nCPU implementer : 0x41\n"
    block += "CPU part : 0xd0c\n\n"
    tree.file("/proc/cpuinfo", "".join(block.format(n) for n in range(128)))
    found: Any = facts(tree.machine())
    assert len(found["cpus"]) == 128


def test_one_package_of_x86_without_sys(tree: Tree) -> None:
    text = "vendor_id : GenuineIntel\ncpu family : 6\nsiblings : 28\ncpu cores : 14\n"
    assert (parse(text)["threads"], parse(text)["cores"]) == (28, 14)
