"""Older and rarer cores: told apart by stepping and variant, and never as more than they are."""

import pytest

from probe_chipdb.database import Database

FP32, FP64 = "fp32.vector.fp32", "fp64.vector.fp64"
SKX = {"vendor": "GenuineIntel", "family": 6, "model": 0x55}
AVX512 = ("sse2", "avx", "avx2", "fma", "avx512f")
ARMV7 = ("half", "thumb", "vfp", "neon", "vfpv3")


@pytest.mark.parametrize(
    ("stepping", "flags", "name", "uarch"),
    [
        (4, AVX512, "Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz", "Skylake-SP"),
        (7, AVX512, "Intel(R) Xeon(R) Platinum 8260M CPU @ 2.40GHz", "Cascade Lake"),
        (7, (*AVX512, "avx512_vnni"), "Intel(R) Xeon(R) Silver 4210", "Cascade Lake (one FMA)"),
        (4, AVX512, "Intel(R) Xeon(R) Silver 4108 CPU @ 1.80GHz", "Skylake-SP (one FMA)"),
        (11, (*AVX512, "avx512_vnni", "avx512_bf16"), "Intel(R) Xeon(R) X", "Cooper Lake"),
        # A hypervisor hides the stepping, or gives one that Intel never sold: the flags decide.
        (None, AVX512, "Intel Xeon Processor (Skylake, IBRS)", "Skylake-SP"),
        (None, (*AVX512, "avx512_vnni"), "Intel Xeon Processor (Cascadelake)", "Cascade Lake"),
        (15, (*AVX512, "avx512_vnni", "avx512_bf16"), "Intel Xeon Processor", "Cooper Lake"),
    ],
)
def test_skylake_and_its_successors_share_a_model(
    real: Database, stepping: int | None, flags: tuple[str, ...], name: str, uarch: str
) -> None:
    match = real.cpu(**SKX, stepping=stepping, flags=flags, name=name)  # type: ignore[arg-type]
    assert match.uarch == uarch


@pytest.mark.parametrize(
    ("implementer", "part", "variant", "uarch"),
    [
        (0x53, 0x001, 1, "Exynos M1"),
        (0x53, 0x001, 4, "Exynos M2"),
        (0x53, 0x001, None, "Exynos M1 or M2"),
        (0x51, 0x06F, 0, "Krait 200"),
        (0x51, 0x06F, 2, "Krait 400"),
        (0x51, 0x06F, 9, "Krait"),
        (0x51, 0x201, 2, "Kryo Silver (Snapdragon 821)"),
        (0x51, 0x800, 10, "Kryo 2xx Gold (Cortex-A73)"),
        (0x4E, 0x000, 0, "Denver"),
        (0x43, 0x0A1, 1, "ThunderX CN88xx"),
        (0x41, 0xB76, 0, "ARM1176"),
        (0x41, 0xC0F, 2, "Cortex-A15"),
    ],
)
def test_cores_that_share_a_part_number(
    real: Database, implementer: int, part: int, variant: int | None, uarch: str
) -> None:
    match = real.cpu(implementer=implementer, part=part, variant=variant)
    assert match.uarch == uarch


@pytest.mark.parametrize(
    ("part", "flags", "rates"),
    [
        (0xC07, ARMV7, {FP32: 2}),
        (0xC09, ARMV7, {FP32: 4}),
        (0xC09, ("half", "thumb", "vfp", "vfpv3"), {}),
        (0xC0F, ARMV7, {FP32: 8}),
        # A 32-bit kernel on Cortex-A53: no fp64 vector unit for its programs either.
        (0xD03, ARMV7, {FP32: 8}),
        (0xD03, ("fp", "asimd"), {FP32: 8, FP64: 4}),
        # A 64-bit kernel for 32-bit programs lists both.
        (0xD03, ("fp", "asimd", *ARMV7), {FP32: 8, FP64: 4}),
    ],
)
def test_32_bit_arm_has_no_fp64_vector_unit(
    real: Database, part: int, flags: tuple[str, ...], rates: dict[str, float]
) -> None:
    assert real.cpu(implementer=0x41, part=part, flags=flags).rates == rates


@pytest.mark.parametrize(
    ("facts", "name", "family"),
    [
        ({"implementer": 0x99, "part": 1, "flags": ("asimd",)}, "unknown Armv8 core", "armv8"),
        ({"implementer": 0x99, "part": 1, "flags": ARMV7}, "unknown 32-bit Arm core", "armv7"),
        ({"implementer": 0x99, "part": 1, "architecture": 7}, "unknown 32-bit Arm core", "armv7"),
        ({"implementer": 0x99, "part": 1, "architecture": 8}, "unknown Armv8 core", "armv8"),
        ({"flags": ("sse2",)}, "unknown x86-64 core", "x86-64"),
    ],
)
def test_unknown_cores_in_plain_words(
    real: Database, facts: dict[str, object], name: str, family: str
) -> None:
    match = real.cpu(**facts)  # type: ignore[arg-type]
    assert match.arch is not None
    assert (match.uarch, match.arch.family, match.arch.at_least) == (name, family, True)


@pytest.mark.parametrize(
    ("name", "uarch"),
    [
        ("POWER7 (architected), altivec supported", "POWER7"),
        ("POWER8NVL (raw), altivec supported", "POWER8"),
        ("POWER9, altivec supported", "POWER9"),
        ("POWER10 (architected), altivec supported", "Power10"),
        ("POWER99, altivec supported", None),
        ("sifive,u74-mc", "U74"),
        ("sifive,bullet0", "U74"),
        ("thead,c906", "C906"),
        ("spacemit,x60", "X60"),
        ("Spacemit(R) X60", "X60"),
        ("Cell Broadband Engine, altivec supported", "Cell PPE"),
        ("IBM z15", "z15"),
        ("IBM z14 ZR1", "z14 ZR1"),
        ("IBM Z of machine type 9999", None),
    ],
)
def test_names_as_kernels_spell_them(real: Database, name: str, uarch: str | None) -> None:
    assert real.cpu(name=name).uarch == uarch


def test_a_virtual_processor_of_an_old_family_is_no_old_processor(real: Database) -> None:
    facts = {"vendor": "AuthenticAMD", "family": 15, "model": 107, "flags": ("sse2",)}
    opteron = real.cpu(**facts, name="Dual Core AMD Opteron(tm) Processor 865")  # type: ignore[arg-type]
    virtual = real.cpu(**facts, name="QEMU Virtual CPU version 2.5+")  # type: ignore[arg-type]
    assert (opteron.uarch, virtual.uarch) == ("K8", "unknown x86-64 core")


def test_x925_has_fp16_and_int8(real: Database) -> None:
    match = real.cpu(implementer=0x41, part=0xD85, flags=("asimd", "asimdhp", "asimddp"))
    assert match.rates["fp16.vector.fp16"] == 96
    assert match.rates["int8.vector.int32"] == 128
    # Which of its six pipes compute dot products is in no text that was read: four are certain.
    assert match.at_least == {"int8.vector.int32"}


def test_all_rates_of_an_entry_that_is_a_lower_bound_are_one(real: Database) -> None:
    match = real.cpu(implementer=0x4E, part=0x004, flags=("asimd", "asimdhp"))
    assert match.at_least == {FP32, FP64, "fp16.vector.fp16"}
