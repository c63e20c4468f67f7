"""Peaks of processors: which clock they rest on, kinds of cores, and the part that is allowed."""

from __future__ import annotations

from typing import Any

import pytest

import probe_chipdb
from probe_core.resolve import _clock_in_name as clock_in_name
from probe_core.resolve import resolve_processor

DATABASE = probe_chipdb.load()
AVX2 = ["sse2", "avx", "avx2", "fma"]
RAPTOR = {"vendor_id": "GenuineIntel", "family": 6, "model": 0xB7, "flags": AVX2}


def device(**fields: Any) -> Any:
    made = {
        "id": "cpu:0",
        "kind": "cpu",
        "chip": {},
        "peaks": [],
        "unknown": {},
        "sources": {},
        "others": {},
        **fields,
    }
    resolve_processor(made, DATABASE)  # type: ignore[arg-type]
    return made


def peak(made: Any, dtype: str = "fp32") -> Any:
    return next((p for p in made["peaks"] if p["dtype"] == dtype), None)


@pytest.mark.parametrize(
    ("name", "mhz"),
    [
        ("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", 2100.0),
        ("Intel(R) Xeon(TM) CPU 2.60GHz", 2600.0),
        ("Intel(R) Atom(TM) CPU @ 800MHz", 800.0),
        ("AMD EPYC 9124 16-Core Processor", None),
        ("x GHz", None),
        ("1.2.3GHz", None),
        ("99999999GHz", None),
        ("0.0GHz", None),
        ("", None),
    ],
)
def test_clock_of_the_name(name: str, mhz: float | None) -> None:
    assert clock_in_name(name) == mhz


@pytest.mark.parametrize(
    ("clocks", "name", "clock", "mhz", "bound"),
    [
        ({"max_mhz": 3900.0, "base_mhz": 2100.0}, "X CPU @ 2.10GHz", "max", 3900.0, None),
        ({"base_mhz": 2100.0}, "X CPU @ 2.00GHz", "base", 2100.0, "lower"),
        ({"current_mhz": 800.0}, "X CPU @ 2.10GHz", "base", 2100.0, "lower"),
        ({"current_mhz": 800.0}, "X", "current", 800.0, "lower"),
    ],
)
def test_what_a_peak_rests_on(
    clocks: dict[str, float], name: str, clock: str, mhz: float, bound: str | None
) -> None:
    cpu = {"vendor_id": "GenuineIntel", "family": 6, "model": 0x3F, "flags": AVX2}
    found = peak(device(name=name, units=10, cpu=cpu, clocks=clocks))
    assert (found["clock"], found["mhz"], found.get("bound")) == (clock, mhz, bound)
    assert found["tflops"] == pytest.approx(10 * 32 * mhz / 1e6)


def test_an_unknown_core_gives_a_lower_bound_in_plain_words() -> None:
    cpu = {"implementer": 0x99, "part": 1, "architecture": 8, "flags": ["asimd"]}
    made = device(units=4, cpu=cpu, clocks={"max_mhz": 2000.0})
    assert (made["name"], made["arch"]) == ("unknown Armv8 core", "armv8")
    assert peak(made)["bound"] == "lower"


def test_names_that_are_no_word_give_the_family() -> None:
    made = device(name="Intel(R) Core(TM) i7-5600U CPU", cpu={"flags": AVX2}, units=2)
    assert made["arch"] == "haswell"  # "Haswell or Broadwell"


def test_a_hybrid_of_unknown_kinds_is_a_range() -> None:
    made = device(units=8, cpu=RAPTOR, clocks={"max_mhz": 5000.0})
    found = peak(made)
    assert (found["tflops"], found["high"], found["bound"]) == (0.64, 1.28, "lower")
    assert peak(made, "int8") is None


def test_kinds_show_their_part_of_the_peak() -> None:
    kinds = [
        {"kind": "performance", "guessed": True, "cores": 8, "max_mhz": 5000.0},
        {"kind": "efficiency", "guessed": True, "cores": 8, "max_mhz": 4000.0},
    ]
    made = device(units=16, cpu={**RAPTOR, "clusters": kinds}, clocks={"max_mhz": 5000.0})
    assert peak(made)["tflops"] == 1.792
    assert "bound" not in peak(made)
    assert [(k["name"], k["fp32"]) for k in made["cpu"]["clusters"]] == [
        ("Raptor Lake", 1.28),
        ("gracemont", 0.512),
    ]
    assert "guessed" not in made["cpu"]["clusters"][0]


def test_a_sum_names_no_clock_that_only_some_of_its_cores_have() -> None:
    kinds = [
        {"implementer": 0x41, "part": 0xD05, "cores": 4, "first": 0, "max_mhz": 1800.0},
        {"implementer": 0x41, "part": 0xD0B, "cores": 4, "first": 4, "max_mhz": 2304.0},
    ]
    made = device(units=8, cpu={"flags": ["asimd"], "clusters": kinds})
    assert (peak(made)["clock"], peak(made)["mhz"]) == ("max", None)
    same = [{**kind, "max_mhz": 2000.0} for kind in kinds]
    made = device(units=8, cpu={"flags": ["asimd"], "clusters": same})
    assert (peak(made)["clock"], peak(made)["mhz"]) == ("max", 2000.0)


def test_a_sum_rests_on_the_weakest_clock() -> None:
    kinds = [
        {"implementer": 0x41, "part": 0xD05, "cores": 4, "first": 0, "max_mhz": 1800.0},
        {"implementer": 0x41, "part": 0xD0B, "cores": 4, "first": 4, "base_mhz": 1000.0},
    ]
    made = device(units=8, cpu={"flags": ["asimd"], "clusters": kinds})
    assert (peak(made)["clock"], peak(made)["bound"]) == ("base", "lower")


def test_cores_of_gb10() -> None:
    """fp16 of all pipes; int8 of Cortex-X925 is a lower bound, and so is the sum."""
    flags = ["asimd", "asimdhp", "asimddp"]
    kinds = [
        {"implementer": 0x41, "part": 0xD87, "cores": 10, "first": 0, "max_mhz": 2808.0},
        {"implementer": 0x41, "part": 0xD85, "cores": 10, "first": 5, "max_mhz": 3900.0},
    ]
    made = device(units=20, cpu={"flags": flags, "clusters": kinds})
    figures = {name: (peak(made, name)["tflops"], peak(made, name).get("bound"))
               for name in ("fp32", "fp16", "int8")}  # fmt: skip
    assert figures == {
        "fp32": (2.3213, None),  # 10 * 2.808 * 16 + 10 * 3.9 * 48 GFLOPS
        "fp16": (4.6426, None),
        "int8": (6.7891, "lower"),  # 10 * 2.808 * 64 + 10 * 3.9 * 128
    }
    without = [{**kinds[0]}, {**kinds[1]}]
    made = device(units=20, cpu={"flags": ["asimd"], "clusters": without})
    assert (peak(made, "fp16"), peak(made, "int8")) == (None, None)


def test_kinds_that_were_inferred_go_where_chipdb_knows_no_hybrid() -> None:
    """A Xeon one of whose threads is offline has cores of one and of two threads."""
    kinds = [
        {"kind": "performance", "guessed": True, "cores": 9},
        {"kind": "efficiency", "guessed": True, "cores": 1},
    ]
    cpu = {"vendor_id": "GenuineIntel", "family": 6, "model": 0x3F, "flags": AVX2}
    made = device(units=10, cpu={**cpu, "clusters": kinds}, clocks={"max_mhz": 3000.0})
    assert peak(made)["tflops"] == 0.96
    assert "clusters" not in made["cpu"]
    assert made["arch"] == "haswell"


def test_a_cluster_without_a_clock_of_its_own_gives_a_lower_bound() -> None:
    kinds = [
        {"implementer": 0x41, "part": 0xD05, "cores": 4, "first": 0, "max_mhz": 1800.0},
        {"implementer": 0x41, "part": 0xD0B, "cores": 4, "first": 4},
    ]
    made = device(units=8, cpu={"flags": ["asimd"], "clusters": kinds}, clocks={"max_mhz": 1800.0})
    assert peak(made)["bound"] == "lower"


HASWELL = {"vendor_id": "GenuineIntel", "family": 6, "model": 0x3F, "flags": AVX2}


@pytest.mark.parametrize(
    ("allowed", "units", "threads", "fp32"),
    [
        ({"threads": 8, "cores": 4}, 4, 8, 0.384),
        ({"threads": 20, "cores": 10, "quota": 2.5}, 3, 3, 0.24),  # a count is rounded up
        ({"threads": 8, "cores": 4, "quota": 6.0}, 4, 6, 0.384),
        ({"threads": 5}, 10, 5, 0.96),  # which threads share a core is not known
    ],
)
def test_a_limited_processor_counts_as_what_it_gives(
    allowed: dict[str, Any], units: int, threads: int, fp32: float
) -> None:
    made = device(
        units=10, threads=20, cpu=HASWELL, clocks={"max_mhz": 3000.0}, allowed=dict(allowed)
    )
    assert (made["units"], made["threads"], peak(made)["tflops"]) == (units, threads, fp32)
    nominal = made["chip"]["nominal"]
    assert (nominal["units"], nominal["threads"], nominal["fp32"]) == (10, 20, 0.96)
    assert "allowed" in peak(made)["source"]


def test_a_processor_that_gives_nothing_says_so() -> None:
    nothing = {"threads": 0, "cores": 0}
    made = device(units=10, cpu=HASWELL, clocks={"max_mhz": 3000.0}, allowed=nothing)
    assert (made["units"], made["peaks"], made["chip"]["nominal"]["fp32"]) == (None, [], 0.96)
    reason = "this process may use none of its cores"
    assert (made["unknown"]["units"], made["unknown"]["peaks"]) == (reason, reason)


def test_a_limited_processor_without_known_peaks_counts_its_cores() -> None:
    made = device(units=8, cpu={}, clocks={}, allowed={"threads": 2, "cores": 2})
    assert (made["units"], made["chip"]["nominal"]) == (2, {"units": 8})


def test_a_quota_counts_for_the_fastest_cores() -> None:
    kinds = [
        {"kind": "cpu_core", "cores": 8, "max_mhz": 5000.0, "allowed": 1},
        {"kind": "cpu_atom", "cores": 8, "max_mhz": 4000.0, "allowed": 8},
    ]
    allowed = {"threads": 10, "cores": 9, "quota": 3.0}
    made = device(units=16, cpu={**RAPTOR, "clusters": kinds}, allowed=allowed)
    assert made["units"] == 3
    assert peak(made)["tflops"] == pytest.approx(0.16 + 2 * 0.064)


def test_an_older_chipdb_is_not_asked_for_what_it_does_not_know() -> None:
    class Older:
        def cpu(
            self,
            *,
            vendor: Any = None,
            family: Any = None,
            model: Any = None,
            implementer: Any = None,
            part: Any = None,
            name: Any = None,
            flags: Any = (),
        ) -> Any:
            return DATABASE.cpu(vendor=vendor, family=family, model=model, name=name, flags=flags)

    made: Any = {"unknown": {}, "sources": {}, "cpu": {**RAPTOR, "stepping": 1}, "units": 8}
    resolve_processor(made, Older())  # type: ignore[arg-type]
    assert made["arch"] == "raptorlake"


def test_nothing_known_has_a_reason() -> None:
    reason = "neither cpuid, MIDR, brand nor flags name a known core"
    assert device(units=1, cpu={}, clocks={})["unknown"]["peaks"] == reason


def test_a_core_without_rates_has_a_reason() -> None:
    made = device(name="MIPS 24Kc V7.4", units=1, clocks={"max_mhz": 680.0})
    assert (made["arch"], made["peaks"]) == ("mips", [])
    assert made["unknown"]["peaks"] == "the rates of its cores are not known"
