"""Microarchitectures of the real table: flags decide, hybrids say so, unknown cores get a bound."""

import pytest

from probe_chipdb.database import Database
from probe_chipdb.entry.pack import to_table
from probe_chipdb.entry.validate import Data

AVX2 = frozenset(("sse2", "avx", "avx2", "fma"))
FP32 = "fp32.vector.fp32"
BF16 = "bf16.vector.fp32"


@pytest.mark.parametrize(
    ("facts", "arch", "fp32"),
    [
        ({"vendor": "AuthenticAMD", "family": 25, "model": 0x61, "flags": AVX2}, "cpu-zen4", 32),
        ({"vendor": "AuthenticAMD", "family": "25", "model": "97", "flags": AVX2}, "cpu-zen4", 32),
        ({"vendor": "AuthenticAMD", "family": 25, "model": 0x21, "flags": AVX2}, "cpu-zen2", 32),
        ({"vendor": "AuthenticAMD", "family": 23, "model": 1, "flags": AVX2}, "cpu-zen1", 16),
        ({"vendor": "GenuineIntel", "family": 6, "model": 0x3C, "flags": AVX2}, "cpu-hsw", 32),
        ({"vendor": "GenuineIntel", "family": 6, "model": 0x2A, "flags": ("avx",)}, "cpu-snb", 16),
        ({"implementer": "0x41", "part": "0xd0c", "flags": ("asimd",)}, "cpu-a76", 16),
        ({"implementer": 0x41, "part": 0xD4F}, "cpu-x1", 32),
        ({"implementer": "0x46", "part": "0x001", "flags": ("sve",)}, "cpu-a64fx", 64),
        ({"implementer": "0x46", "part": "0x001"}, "cpu-a64fx", 16),
        ({"name": "Apple M1 Ultra"}, "cpu-apple-p", 32),
    ],
)
def test_known(real: Database, facts: dict[str, object], arch: str, fp32: float) -> None:
    match = real.cpu(**facts)  # type: ignore[arg-type]
    assert match.arch is not None
    assert (match.arch.id, match.rates[FP32]) == (arch, fp32)


def test_equal_sockets_are_looked_up_once(real: Database) -> None:
    facts = {"vendor": "AuthenticAMD", "family": 25, "model": 0x61, "name": "AMD EPYC"}
    first = real.cpu(**facts, flags=iter(("avx2", "fma")))  # type: ignore[arg-type]
    assert real.cpu(**facts, flags=["fma", "avx2"]) is first  # type: ignore[arg-type]
    assert real.cpu(**facts, flags=["avx2"]) is not first  # type: ignore[arg-type]


def test_a_program_learns_when_a_brand_must_be_read(real: Database) -> None:
    """Reading one imports more, for which a core has a place of its own."""
    known = {"vendor": "AuthenticAMD", "family": 25, "model": 0x61, "name": "AMD Ryzen 9 7950X"}
    calls: list[str] = []
    for facts in (known, {**known, "model": 0xFF}, {"flags": AVX2}):
        real.cpu(**facts, before_name=lambda: calls.append("called"))  # type: ignore[arg-type]
        calls.append("answered")
    assert calls == ["answered", "called", "answered", "answered"]


def test_a_hypervisor_that_hides_avx512_lowers_the_figure(real: Database) -> None:
    facts = {"vendor": "GenuineIntel", "family": 6, "model": 0x6A}
    full = real.cpu(**facts, flags=AVX2 | {"avx512f", "avx512_vnni"})  # type: ignore[arg-type]
    hidden = real.cpu(**facts, flags=AVX2)  # type: ignore[arg-type]
    assert (full.rates[FP32], full.rates["int8.vector.int32"]) == (64, 256)
    assert hidden.rates == {"fp64.vector.fp64": 16, FP32: 32}


def test_no_flags_count_only_what_needs_none(real: Database) -> None:
    match = real.cpu(vendor="GenuineIntel", family=6, model=0x6A)
    assert match.rates[FP32] == 8
    assert "flags not given" in match.reason


def test_amx(real: Database) -> None:
    flags = AVX2 | {"avx512f", "avx512_bf16", "amx_bf16", "amx_int8"}
    match = real.cpu(vendor="GenuineIntel", family=6, model=0x8F, flags=flags)
    assert (match.rates["bf16.matrix.fp32"], match.rates["int8.matrix.int32"]) == (1024, 2048)
    assert match.rates[BF16] == 128


def test_one_fma_by_brand_and_the_lower_without(real: Database) -> None:
    facts = {"vendor": "GenuineIntel", "family": 6, "model": 0x55, "flags": AVX2 | {"avx512f"}}
    silver = real.cpu(**facts, name="Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz")  # type: ignore[arg-type]
    gold = real.cpu(**facts, name="Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz")  # type: ignore[arg-type]
    unsure = real.cpu(**facts)  # type: ignore[arg-type]
    assert (silver.rates[FP32], gold.rates[FP32], unsure.rates[FP32]) == (32, 64, 32)
    assert "brand not given: the lower of several" in unsure.reason


def test_hybrid(real: Database) -> None:
    match = real.cpu(vendor="GenuineIntel", family=6, model=0x97, flags=AVX2)
    assert match.efficient is not None
    assert (match.rates[FP32], match.efficient_rates[FP32]) == (32, 16)
    (small, *_) = match.peaks(8, 3900, efficient=True, source="cpufreq")
    assert small.rate == "fp64.vector.fp64"
    assert small.tflops == pytest.approx(8 * 8 * 3900 / 1e6)


def test_peaks(real: Database) -> None:
    match = real.cpu(vendor="AuthenticAMD", family=25, model=0x61, flags=AVX2 | {"avx512_bf16"})
    peaks = {peak.rate: peak for peak in match.peaks(16, 4500, clock="max", source="cpufreq")}
    assert peaks[FP32].tflops == pytest.approx(2.304)
    assert peaks[BF16].tflops == pytest.approx(4.608)
    assert peaks[FP32].clock == "max"
    assert peaks[FP32].confidence == "derived"
    assert "cores and clock [cpufreq]" in peaks[FP32].source
    assert match.peaks(0, 4500) == ()
    assert match.peaks(16, 4500, efficient=True) == ()


@pytest.mark.parametrize(
    ("facts", "arch", "fp32"),
    [
        (
            {"vendor": "GenuineIntel", "family": 6, "model": 0xFE, "flags": AVX2},
            "cpu-x86-generic",
            16,
        ),
        (
            {"vendor": "CentaurHauls", "family": 7, "model": 1, "flags": ("sse2",)},
            "cpu-x86-generic",
            4,
        ),
        (
            {"implementer": "0x99", "part": "0x1", "flags": ("asimd", "asimdhp")},
            "cpu-arm-generic",
            8,
        ),
        ({"flags": ("asimd",)}, "cpu-arm-generic", 8),
    ],
)
def test_unknown_cores_get_a_labelled_bound(
    real: Database, facts: dict[str, object], arch: str, fp32: float
) -> None:
    match = real.cpu(**facts)  # type: ignore[arg-type]
    assert match.arch is not None
    assert (match.arch.id, match.by, match.rates[FP32]) == (arch, "generic", fp32)
    assert "a lower bound" in match.reason
    assert match.arch.confidence == "derived"


@pytest.mark.parametrize(
    "facts", [{}, {"name": "Apple M10"}, {"vendor": "x", "family": "y", "model": "z"}]
)
def test_nothing_known(real: Database, facts: dict[str, str]) -> None:
    match = real.cpu(**facts)
    assert (match.arch, match.rates, match.peaks(8, 1000)) == (None, {}, ())
    assert match.reason == "neither cpuid, MIDR, brand nor flags name a known core"


def test_at_least_forty_microarchitectures(real: Database) -> None:
    from probe_chipdb.table import parts

    names = {row[0] for arch in real.archs() for rule in ("cpuid", "midr", "brand")
             for row in parts(arch.column(rule))}  # fmt: skip
    assert len(names) >= 40


def test_rules_that_all_want_another_brand_give_no_core() -> None:
    data = Data()
    data.archs["gold"] = {
        "name": "Gold", "family": "gold", "vendor": "acme", "unit": "core", "source": ["book"],
        "confidence": "vendor", "rates": {"fp32.vector.fp32": 32},
        "match": {
            "cpuid": [
                {"name": "G", "vendor": "Acme", "family": 6, "models": ["0x1"], "brand": ["Gold"]}
            ]
        },
    }  # fmt: skip
    db = Database(to_table(data, "built", "1"))
    assert db.cpu(vendor="Acme", family=6, model=1, name="Acme Gold 1").uarch == "G"
    assert db.cpu(vendor="Acme", family=6, model=1, name="Acme Silver 1").arch is None
