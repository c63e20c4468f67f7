"""Each core that the kernel names by number, suffix or word has its name and peak in the report."""

from __future__ import annotations

from typing import Any

import pytest
from reports import report_of
from trees import Tree

CPUS = "/sys/devices/system/cpu"
V6 = "half thumb fastmult vfp edsp java tls"
V7 = "half thumb fastmult vfp edsp neon vfpv3 tls vfpv4"
V8 = "fp asimd evtstrm aes crc32"
V82 = f"{V8} atomics fphp asimdhp asimddp"
AVX512 = "sse sse2 avx avx2 fma avx512f avx512dq"


def processor(tree: Tree, *lines: str, cores: int = 4, khz: int = 2_000_000) -> Any:
    """Return the device of a processor of cores of one thread, at one highest clock."""
    tree.file("/proc/cpuinfo", "\n\n".join("\n".join(block) for block in blocks(lines, cores)))
    tree.file(f"{CPUS}/online", f"0-{cores - 1}")
    for cpu in range(cores):
        folder = f"{CPUS}/cpu{cpu}"
        tree.file(f"{folder}/topology/core_siblings_list", f"0-{cores - 1}")
        tree.file(f"{folder}/topology/thread_siblings_list", str(cpu))
        if khz:
            tree.file(f"{folder}/cpufreq/cpuinfo_max_freq", str(khz))
    (device,) = report_of(tree.machine())["devices"]
    return device


def blocks(lines: tuple[str, ...], cores: int) -> list[list[str]]:
    return [[f"processor : {cpu}", *lines] for cpu in range(cores)]


def arm(midr: str, features: str, architecture: int = 8) -> tuple[str, ...]:
    """Return the lines of an Arm core: implementer, part and variant as "0x41/0xd03/0x0"."""
    implementer, part, variant = midr.split("/")
    return (
        "model name : ARMv7 Processor rev 3 (v7l)",
        f"Features : {features}",
        f"CPU implementer : {implementer}",
        f"CPU architecture: {architecture}",
        f"CPU variant : {variant}",
        f"CPU part : {part}",
    )


def figures_of(device: Any) -> tuple[Any, ...]:
    """Return name, architecture, GFLOPS of fp32 and fp64, and whether they are a lower bound."""
    peaks = {p["dtype"]: p for p in device["peaks"] if p["path"] == "vector"}
    fp32 = peaks.get("fp32")
    figures = [peaks[d]["tflops"] * 1000 if d in peaks else None for d in ("fp32", "fp64")]
    rounded = [None if f is None else round(f, 1) for f in figures]
    return device["name"], device["arch"], *rounded, (fp32 or {}).get("bound")


@pytest.mark.parametrize(
    ("midr", "features", "architecture", "expected"),
    [
        ("0x41/0xb76/0x0", V6, 7, ("ARM1176", "arm1176", 16.0, None, None)),
        ("0x41/0xc08/0x3", V7, 7, ("Cortex-A8", "cortex-a8", 32.0, None, None)),
        ("0x41/0xc09/0x3", V7, 7, ("Cortex-A9", "cortex-a9", 32.0, None, None)),
        ("0x41/0xc07/0x0", V7, 7, ("Cortex-A7", "cortex-a7", 16.0, None, "lower")),
        ("0x41/0xc0f/0x2", V7, 7, ("Cortex-A15", "cortex-a15", 64.0, None, None)),
        ("0x41/0xc0e/0x2", V7, 7, ("Cortex-A17", "cortex-a17", 32.0, None, "lower")),
        ("0x41/0xd03/0x0", V7, 8, ("Cortex-A53", "cortex-a53", 64.0, None, None)),
        ("0x51/0x06f/0x1", V7, 7, ("Krait 300", "krait300", 64.0, None, None)),
        ("0x51/0x06f/0x2", V7, 7, ("Krait 400", "krait400", 64.0, None, None)),
        ("0x51/0x04d/0x2", V7, 7, ("Krait 300", "krait300", 64.0, None, None)),
        ("0x41/0xd03/0x0", V8, 8, ("Cortex-A53", "cortex-a53", 64.0, 32.0, None)),
        ("0x41/0xd07/0x1", V8, 8, ("Cortex-A57", "cortex-a57", 64.0, 32.0, None)),
        ("0x41/0xd08/0x0", V8, 8, ("Cortex-A72", "cortex-a72", 64.0, 32.0, None)),
        (
            "0x51/0x201/0x2",
            V8,
            8,
            ("Kryo Silver (Snapdragon 821)", "kryosilver", 64.0, 32.0, "lower"),
        ),
        (
            "0x51/0x205/0x2",
            V8,
            8,
            ("Kryo Gold (Snapdragon 820, 821)", "kryogold", 64.0, 32.0, "lower"),
        ),
        (
            "0x51/0x211/0x1",
            V8,
            8,
            ("Kryo Silver (Snapdragon 820)", "kryosilver", 64.0, 32.0, "lower"),
        ),
        ("0x51/0x800/0xa", V8, 8, ("Kryo 2xx Gold (Cortex-A73)", "kryo2xxgold", 64.0, 32.0, None)),
        (
            "0x51/0x801/0xa",
            V8,
            8,
            ("Kryo 2xx Silver (Cortex-A53)", "kryo2xxsilver", 64.0, 32.0, None),
        ),
        (
            "0x51/0x802/0x7",
            V82,
            8,
            ("Kryo 3xx Gold (Cortex-A75)", "kryo3xxgold", 128.0, 64.0, None),
        ),
        (
            "0x51/0x803/0x7",
            V82,
            8,
            ("Kryo 3xx Silver (Cortex-A55)", "kryo3xxsilver", 64.0, 32.0, None),
        ),
        (
            "0x51/0x804/0xd",
            V82,
            8,
            ("Kryo 4xx Gold (Cortex-A76)", "kryo4xxgold", 128.0, 64.0, None),
        ),
        (
            "0x51/0x805/0xd",
            V82,
            8,
            ("Kryo 4xx Silver (Cortex-A55)", "kryo4xxsilver", 64.0, 32.0, None),
        ),
        ("0x51/0x001/0x1", V82, 8, ("Oryon", "oryon", 256.0, 128.0, None)),
        ("0x4e/0x000/0x0", V8, 8, ("Denver", "denver", 64.0, 32.0, "lower")),
        ("0x4e/0x003/0x0", V8, 8, ("Denver 2", "denver2", 64.0, 32.0, "lower")),
        ("0x4e/0x004/0x0", V82, 8, ("Carmel", "carmel", 64.0, 32.0, "lower")),
        ("0x43/0x0a1/0x1", V8, 8, ("ThunderX CN88xx", "thunderxcn88xx", 32.0, 16.0, "lower")),
        ("0x43/0x0a2/0x1", V8, 8, ("ThunderX CN81xx", "thunderxcn81xx", 32.0, 16.0, "lower")),
        ("0x43/0x0af/0x1", V8, 8, ("ThunderX2", "thunderx2", 128.0, 64.0, None)),
        ("0x53/0x001/0x1", V8, 8, ("Exynos M1", "exynosm1", 64.0, 32.0, None)),
        ("0x53/0x001/0x4", V8, 8, ("Exynos M2", "exynosm2", 64.0, 32.0, None)),
        ("0x53/0x002/0x1", V8, 8, ("Exynos M3", "exynosm3", 192.0, 96.0, None)),
        ("0x53/0x003/0x1", V82, 8, ("Exynos M4", "exynosm4", 192.0, 96.0, None)),
        ("0x53/0x004/0x1", V82, 8, ("Exynos M5", "exynosm5", 192.0, 96.0, None)),
        ("0x99/0x123/0x1", V8, 8, ("unknown Armv8 core", "armv8", 64.0, 32.0, "lower")),
        ("0x99/0x123/0x1", V7, 7, ("unknown 32-bit Arm core", "armv7", 16.0, None, "lower")),
        ("0x41/0xfff/0x1", V8, 8, ("unknown Armv8 core", "armv8", 64.0, 32.0, "lower")),
    ],
)
def test_arm(
    midr: str, features: str, architecture: int, expected: tuple[Any, ...], tree: Tree
) -> None:
    device = processor(tree, *arm(midr, features, architecture))
    assert figures_of(device) == expected
    # 32-bit programs have no fp64 vector unit, and older kernels' word for all is no name.
    assert (expected[3] is None) == ("asimd" not in features)
    assert device["fp16"] is None or "asimdhp" in features
    assert device["int8"] is None or "asimddp" in features


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("lines", "arch", "fp32", "bound"),
    [
        ("cpu : POWER8NVL (raw), altivec supported", "power8", 128.0, None),
        ("cpu : POWER8E (raw), altivec supported", "power8", 128.0, None),
        ("cpu : POWER9, altivec supported", "power9", 128.0, None),
        ("cpu : POWER9 (architected), altivec supported", "power9", 128.0, None),
        ("cpu : POWER10 (architected), altivec supported", "power10", 256.0, None),
        ("cpu : POWER11 (raw), altivec supported", None, None, None),
        ("Model Name : Loongson-3A5000-HV|Features : fpu lsx lasx", "la464", 256.0, None),
        ("Model Name : Loongson-3A5000-HV|Features : fpu lsx", "la464", 64.0, None),
        ("Model Name : Loongson-3A6000|Features : fpu lsx lasx", "la664", 384.0, None),
        ("uarch : sifive,u74-mc|isa : rv64imafdc", "u74", 16.0, None),
        ("uarch : sifive,bullet0|isa : rv64imafdc", "u74", 16.0, None),
        ("uarch : spacemit,x60|isa : rv64imafdcv_zvfh", "x60", 16.0, "lower"),
        ("model name : Spacemit(R) X60|isa : rv64imafdcv_zvfh", "x60", 16.0, "lower"),
        ("uarch : thead,c906|isa : rv64imafdc", "c906", 16.0, "lower"),
        ("uarch : acme,x1|isa : rv64imafdc", None, None, None),
    ],
)
def test_names_with_suffixes(
    lines: str, arch: str | None, fp32: float | None, bound: str | None, tree: Tree
) -> None:
    device = processor(tree, *lines.split("|"))
    name = lines.partition("|")[0].partition(" : ")[2]
    figures = figures_of(device)
    assert (figures[0], figures[1], figures[2], figures[4]) == (name, arch, fp32, bound)
    if arch is None:
        reason = "neither cpuid, MIDR, brand nor flags name a known core"
        assert device["unknown"]["peaks"] == reason


@pytest.mark.parametrize(
    ("name", "stepping", "flags", "arch", "int8"),
    [
        ("Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz", 4, "", "skylake-sp", None),
        ("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", 7, "avx512_vnni", "cascadelake", 2.048),
        ("Intel Xeon Processor (Skylake, IBRS)", 4, "hypervisor", "skylake-sp", None),
        # A hypervisor shows the name of Cascade Lake and hides its instructions.
        ("Intel Xeon Processor (Cascadelake)", 6, "hypervisor", "cascadelake", None),
        ("Intel Xeon Processor (Cascadelake)", 6, "avx512_vnni", "cascadelake", 2.048),
    ],
)
def test_skylake_sp_and_cascade_lake(
    name: str, stepping: int, flags: str, arch: str, int8: float | None, tree: Tree
) -> None:
    device = processor(
        tree,
        "vendor_id : GenuineIntel",
        "cpu family : 6",
        "model : 85",
        f"model name : {name}",
        f"stepping : {stepping}",
        f"flags : {AVX512} {flags}",
    )
    assert (device["arch"], device["fp32"], device["int8"]) == (arch, 0.512, int8)


def test_each_core_of_a_bulldozer_module_counts(tree: Tree) -> None:
    """The kernel lists a module's two cores as threads of one core; they share its FMA pipes."""
    lines = ["vendor_id : AuthenticAMD", "cpu family : 21", "model : 2"]
    lines += ["model name : AMD FX(tm)-8350 Eight-Core Processor", "flags : sse2 avx fma4"]
    tree.file("/proc/cpuinfo", "\n".join(["processor : 0", *lines]))
    tree.file(f"{CPUS}/online", "0-7")
    for cpu in range(8):
        folder = f"{CPUS}/cpu{cpu}"
        tree.file(f"{folder}/topology/core_siblings_list", "0-7")
        tree.file(f"{folder}/topology/thread_siblings_list", f"{cpu & 6}-{cpu | 1}")
        tree.file(f"{folder}/cpufreq/cpuinfo_max_freq", "4000000")
    (device,) = report_of(tree.machine())["devices"]
    assert (device["arch"], device["units"], device["threads"]) == ("piledriver", 8, 8)
    assert device["fp32"] == 8 * 8 * 4.0 / 1000
