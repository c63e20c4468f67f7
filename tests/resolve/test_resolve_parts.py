"""Peaks of parts and of allowed cores, and the three shorthands, worked by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import probe_chipdb
from probe_core.resolve import add_shorthands, shorthand, uncertain
from probe_core.resolve.accelerators import resolve_partition
from probe_core.resolve.cores import count_allowed, summed
from probe_core.resolve.uncertain import chip_finding


def peak(tflops: float = 8.0, dtype: str = "fp32", path: str = "vector", **fields: Any) -> Any:
    known = {"dtype": dtype, "path": path, "accumulate": dtype, "sparsity": "dense", "clock": "max"}
    return {**known, "tflops": tflops, "source": "s", "confidence": "high", **fields}


@pytest.mark.parametrize(
    ("name", "peaks", "expected"),
    [
        ("fp32", [peak(1.0), peak(2.0)], 2.0),
        ("fp32", [peak(1.0), peak(2.0, variant="dual")], 1.0),
        ("fp32", [peak(9.0, path="matrix")], None),
        ("fp32", [peak(9.0, sparsity="2:4")], None),
        ("fp32", [peak(9.0, "fp16")], None),
        ("fp16", [peak(1.0, "fp16"), peak(9.0, "fp16", "matrix")], 1.0),
        ("fp16", [peak(9.0, "fp16"), peak(5.0, "fp16", "matrix", accumulate="fp32")], 5.0),
        ("fp16", [peak(9.0, "fp16", "matrix")], None),
        ("int8", [peak(1.0, "int8"), peak(9.0, "int8", "matrix")], 9.0),
        ("int8", [], None),
    ],
)
def test_the_convention_of_each_shorthand(name: str, peaks: Any, expected: float | None) -> None:
    assert shorthand(name, peaks) == expected


def test_a_shorthand_is_there_or_says_why_not() -> None:
    device: Any = {"peaks": [peak()], "fp16": 7.0, "unknown": {}}
    add_shorthands(device)
    assert (device["fp32"], device["fp16"], device["int8"]) == (8.0, 7.0, None)
    assert device["unknown"] == {"int8": "no dense int8 path of this chip is known"}
    for unknown, reason in (({}, "its peaks are unknown"), ({"peaks": "no clock"}, "no clock")):
        device = {"peaks": None, "unknown": {**unknown}}
        add_shorthands(device)
        assert {device["unknown"][name] for name in ("fp32", "fp16", "int8")} == {reason}


def test_kinds_of_cores_add_up_where_all_have_a_rate() -> None:
    fast = [peak(1.00004, mhz=5000), peak(3.0, "fp16")]
    slow = [peak(0.5, mhz=4000, clock="base", bound="lower", source="t")]
    (total,) = summed([fast, slow])
    assert (total["tflops"], total["source"], total["bound"]) == (1.5, "s + t", "lower")
    assert (total["mhz"], total["clock"]) == (None, "base")
    (alone, half) = summed([fast])
    assert (alone["tflops"], alone["mhz"], alone["clock"], "bound" in alone) == (
        1.0,
        5000,
        "max",
        False,
    )
    assert half["tflops"] == 3.0
    (equal,) = summed([[peak(1.0, mhz=5000)], [peak(2.0, mhz=5000)]])
    assert (equal["tflops"], equal["mhz"], equal["clock"]) == (3.0, 5000, "max")
    for other in ({"variant": "dual"}, {"sparsity": "2:4"}, {"accumulate": "fp16"}, {"path": "m"}):
        assert summed([[peak()], [peak(**other)]]) == []
    assert fast[0]["tflops"] == 1.00004  # the parts stay as they are


def group(tflops: float, cores: float | None, allowed: float | None = None) -> Any:
    return SimpleNamespace(peaks=[peak(tflops)], cluster={"cores": cores, "allowed": allowed})


def counted(allowed: Any, *groups: Any, units: int | None = 8, threads: int | None = 16) -> Any:
    listed = list(groups or [group(8.0, 8)])
    peaks = listed[0].peaks if len(listed) == 1 else summed([one.peaks for one in listed])
    device: Any = {"allowed": allowed, "units": units, "threads": threads, "peaks": peaks,
                   "chip": {}, "unknown": {}}  # fmt: skip
    count_allowed(device, listed)
    return device


@pytest.mark.parametrize(
    ("allowed", "units", "threads", "tflops", "note"),
    [
        ({"cores": 2, "threads": 4}, 2, 4, 2.0, "; 2 of 8 cores are allowed"),
        ({"cores": 9, "threads": 99}, 8, 16, 8.0, "; 8 of 8 cores are allowed"),
        ({"quota": 1.5}, 2, 2, 1.5, "; 1.5 of 8 cores are allowed"),
        ({"quota": 2.0}, 2, 2, 2.0, "; 2 of 8 cores are allowed"),
        ({"cores": 4, "threads": 8, "quota": 6}, 4, 6, 4.0, "; 4 of 8 cores are allowed"),
        ({}, 8, 16, 8.0, "; 8 of 8 cores are allowed"),
    ],
)
def test_what_this_process_may_use_counts(
    allowed: Any, units: int, threads: int, tflops: float, note: str
) -> None:
    device = counted(allowed)
    assert (device["units"], device["threads"]) == (units, threads)
    assert [(p["tflops"], p["source"]) for p in device["peaks"]] == [(tflops, f"s{note}")]
    assert device["chip"]["nominal"] == {
        "units": 8, "threads": 16, "fp32": 8.0, "fp16": None, "int8": None
    }  # fmt: skip
    assert device["unknown"] == {}


def test_of_no_core_there_is_no_peak() -> None:
    device = counted({"cores": 0, "threads": 0})
    reason = "this process may use none of its cores"
    assert (device["units"], device["threads"], device["peaks"]) == (None, None, [])
    assert device["unknown"] == dict.fromkeys(("units", "threads", "peaks"), reason)


def test_counts_that_are_not_known_stay_so() -> None:
    device = counted({"cores": 2}, group(8.0, None), units=None, threads=None)
    assert (device["units"], device["threads"]) == (None, None)
    assert [p["tflops"] for p in device["peaks"]] == [8.0]


def test_a_quota_is_for_the_fastest_of_the_allowed_cores() -> None:
    slow, fast = group(2.0, 4), group(8.0, 4)  # 0.5 and 2 of each core
    assert [p["tflops"] for p in counted({"quota": 5}, slow, fast)["peaks"]] == [8.5]
    assert [p["tflops"] for p in counted({"quota": 3}, slow, fast)["peaks"]] == [6.0]
    some = [group(2.0, 4, 1), group(8.0, 4, 2)]
    assert [p["tflops"] for p in counted({"cores": 3}, *some)["peaks"]] == [4.5]
    bounded: Any = SimpleNamespace(peaks=[peak(8.0, high=16.0)], cluster={"cores": 8})
    assert counted({"cores": 2}, bounded)["peaks"][0]["high"] == 4.0


def device(**fields: Any) -> Any:
    known: Any = {
        **{"id": "pci:0000:01:00.0", "name": "A100", "vendor": "nvidia", "arch": "ampere"},
        **{"pci": {"id": "10de:20b0"}, "units": 108, "peaks": [], "unknown": {}, "sources": {}},
        **{"chip": {"id": "nvidia/a100", "by": "pci", "nominal": {"units": 108}}, "memory": {}},
    }
    return {**known, **fields}


def part(**fields: Any) -> Any:
    bare = dict.fromkeys(("arch", "vendor", "pci", "units", "name"))
    return device(**{**bare, "id": "uuid:MIG-1", "chip": {}, **fields})


def test_a_part_has_its_share_of_the_parents_peaks() -> None:
    whole = device(peaks=[peak(10.8, low=5.4, published=11.0)])
    found = part(share={"units": 14, "of": None})
    resolve_partition(found, whole)
    assert found["chip"] == {"id": "nvidia/a100", "by": "parent"}
    assert (found["arch"], found["vendor"], found["pci"]) == ("ampere", "nvidia", whole["pci"])
    assert found["sources"]["pci"] == found["sources"]["peaks"] == "chipdb"
    assert (found["share"]["of"], found["units"]) == (108, 14)
    (own,) = found["peaks"]
    assert (own["tflops"], own["low"], "published" in own) == (1.4, 0.7, False)
    assert (own["source"], own["confidence"]) == ("14 of 108 units of: s", "derived")
    assert found["unknown"] == {"bandwidth": "no driver reports a part's share of the bandwidth"}
    assert whole["chip"]["nominal"] == {"units": 108}


def test_figures_of_a_part_have_four_places() -> None:
    found = part(share={"units": 14, "of": None})
    resolve_partition(found, device(peaks=[peak(1.0, low=2.0)]))
    assert [(p["tflops"], p["low"]) for p in found["peaks"]] == [(0.1296, 0.2593)]


def test_what_a_part_says_itself_stays() -> None:
    found = part(units=27, share={"units": 14, "of": 98}, pci={"id": "10de:1"}, vendor="acme")
    resolve_partition(found, device(peaks=[peak(10.8)]))
    assert (found["pci"], found["vendor"], found["share"]["of"]) == ({"id": "10de:1"}, "acme", 98)
    assert found["peaks"][0]["tflops"] == 2.7


@pytest.mark.parametrize(
    ("own", "whole"),
    [({}, {"peaks": [peak()]}), ({"units": 14}, {"units": None, "peaks": [peak()]}),
     ({"units": 14}, {"peaks": []})],
)  # fmt: skip
def test_a_part_of_unknown_size_has_no_peak(own: Any, whole: Any) -> None:
    found = part(**own)
    resolve_partition(found, device(**whole))
    assert found["peaks"] == []
    reason = "how many of the parent's units this part has is not known"
    assert found["unknown"]["peaks"] == reason
    known = part(**own, peaks=[peak(3.0)])
    resolve_partition(known, device(**whole))
    assert known["peaks"] == [peak(3.0)]
    nameless = part(**own)
    resolve_partition(nameless, device(**whole, chip={"id": None, "by": "pci"}))
    assert nameless["chip"]["by"] is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("Acme X,Acme X 2", "Acme, X or X 2"),
        ("Acme X n1,Acme X n3", "Acme X, n1 or n3"),
        ("X,X 2", "X or X 2"),
        ("X 1,Y 1", "X 1 or Y 1"),
        ("A B 1,A B 2,A B 3,A B 4", "A B, 1, 2, 3 or 4"),
        ("A B 1,A B 2,A B 3,A B 4,A B 5", "A B, one of 5"),
        ("A B-1,A B-2,A B-3,A B-4,A B-5", "A B, one of 5"),
        ("A1,A2,A3,A4,A5", None),
        ("A B,C,D,E,F", None),
    ],
)
def test_what_names_of_several_products_say(names: str, expected: str | None) -> None:
    assert uncertain._one_of(names.split(",")) == expected


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [(["gpu"], "gpu"), (["npu"], "npu"), (["accelerator", "accelerator"], "accelerator"),
     (["tpu"], "accelerator"), (["gpu", "npu"], None), ([], None)],
)  # fmt: skip
def test_a_coprocessor_has_the_kind_of_all_chips_that_it_may_be(
    kinds: list[str], kind: str | None
) -> None:
    found = device(kind="coprocessor", name=None)
    match = SimpleNamespace(chip=None, candidates=[SimpleNamespace(kind=kind) for kind in kinds])
    database: Any = SimpleNamespace(match=lambda **_: match)
    assert uncertain.is_known(found, database) is (kind is not None)
    assert found["kind"] == (kind or "coprocessor")
    assert found["name"] == (None if kind else "unknown coprocessor")
    assert set(found["unknown"]) == (set() if kind else {"chip", "peaks"})


def test_findings_about_a_chip_that_is_not_certain() -> None:
    database = probe_chipdb.load(packages=False)
    unknown = device(pci={"id": "10de:ffff"}, name="Odd", memory={"kind": "dedicated", "total": 5})
    found = chip_finding(unknown, database.match(pci="10de:ffff", name="Odd"))
    assert (found["code"], found["severity"]) == ("chip-unknown", "info")
    assert found["what"] == "the chip of Odd is unknown"
    assert found["evidence"] == "pci=10de:ffff, units=108, memory=5, name=Odd"
    shared = {**unknown, "memory": {"kind": "shared", "total": 5}, "name": None}
    found = chip_finding(shared, database.match(pci="10de:ffff"))
    assert found["what"] == "the chip of pci:0000:01:00.0 is unknown"
    assert found["evidence"] == "pci=10de:ffff, units=108"
    many = chip_finding(device(), database.match(name="Intel Graphics", vendor="intel"))
    assert (many["code"], many["why"].count(",")) == ("chip-ambiguous", 7)
    vgpu = chip_finding(device(), database.match(name="NVIDIA A40-8Q"))
    assert (vgpu["code"], vgpu["what"]) == ("chip-unknown", "A100 is a share of a card")
