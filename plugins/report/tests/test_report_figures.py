"""Figures, names and rows of the page at the bounds of what is shown."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.commands import CommandError, bandwidth, rate
from probe_core.model.findings import NO_FIX
from probe_report.cluster import _counts, _split, _stem
from probe_report.devices import best_of, devices_of, measured_of
from probe_report.fabric import fabrics_of
from probe_report.figures import (
    UNKNOWN,
    Names,
    alike,
    cut,
    has_own_memory,
    percent,
    short,
    spaced,
    style_of,
    summed,
    word_of,
)
from probe_report.page import only
from probe_report.picture import _Drawing, _package, picture_of
from probe_report.readiness import Chain, Step, _finding, _reasons, _view, chains_of
from probe_report.sources import _source, raw_of, runs_of, sources_of
from probe_report.summary import (
    _SHOWN_MODELS,
    Entry,
    _host_memory,
    _memory,
    _meta,
    _processors,
    _title,
)
from probe_report.terminal import _bar, page_lines

GIB = 1 << 30


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (0, 1, 0.0),
        (1, 1, 100.0),
        (3, 2, 100.0),
        (1, 3, 33.3),
        (-1, 2, None),
        (1, 0, None),
        (1, -1, None),
        (None, 1, None),
        (1, None, None),
    ],
)
def test_the_length_of_a_bar(part: float | None, whole: float | None, expected: Any) -> None:
    assert percent(part, whole) == expected


def test_rates_have_three_digits() -> None:
    figures = [None, 0.004, 9.994, 9.995, 99.94, 99.95, 9999, 10_000, 1_234_567]
    assert [rate(figure) for figure in figures] == [
        UNKNOWN, "0.00", "9.99", "10.0", "99.9", "100", "9999", "10000", "1234567"
    ]  # fmt: skip
    assert [spaced(figure) for figure in figures[-4:]] == [
        "100", "9999", "10\u2009000", "1\u2009234\u2009567"
    ]  # fmt: skip
    assert (spaced(None), spaced(9.994)) == (UNKNOWN, "9.99")
    rates = [None, 9.94e9, 9.999e9, 10e9, 1008.4e9]
    assert [bandwidth(figure) for figure in rates] == [
        UNKNOWN, "9.9 GB/s", "10.0 GB/s", "10 GB/s", "1008 GB/s"
    ]  # fmt: skip


def test_sums_lists_and_cuts() -> None:
    assert [summed(values) for values in ([], [None], [1, None, 2], [0])] == [
        (None, 0), (None, 1), (3, 1), (0, 0)
    ]  # fmt: skip
    assert [short("abc", limit) for limit in (2, 3, 4)] == ["a b and 1 more", "a b c", "a b c"]
    assert short([str(number) for number in range(9)]).endswith("6 7 and 1 more")
    assert (cut(None), cut(""), cut("a" * 160), cut("a" * 161)) == (
        "", "", "a" * 160, "a" * 159 + "…"
    )  # fmt: skip
    assert alike([1, 12, 2, 13], lambda number: number > 9) == [[1, 2], [12, 13]]  # type: ignore[list-item, arg-type, operator, comparison-overlap]
    words = ["ready", "limited", "passthrough", "asleep", "hidden", "MIG mode", "unknown", ""]
    assert [style_of(word) for word in [*words, "no driver"]] == [
        "good", "warn", "warn", "asleep", "none", "none", "none", "none", "bad"
    ]  # fmt: skip


def device(number: int = 1, **fields: Any) -> Any:
    name = f"pci:0000:0{number}:00.0"
    known = {
        **{"id": name, "ids": [name], "kind": "gpu", "vendor": "nvidia", "name": "Card"},
        **{"parent": None, "visibility": {}, "readiness": None, "power_state": None, "links": []},
        **{"memory": {"kind": "dedicated", "total": 8 * GIB, "free": None, "used": None}},
        **{"bandwidth": 1e12, "fp32": 10.0, "fp16": 20.0, "int8": None, "peaks": [], "unknown": {}},
        **{"driver": None, "chip": {"id": None, "candidates": []}, "seen_by": ["bus", "nvidia"]},
        **{"node_index": {}, "backends": {}, "sources": {}},
    }
    return {**known, **fields}


def report(*devices: Any) -> Any:
    return {"devices": list(devices), "primary": None}


def sight(index: int | None, runtime: str = "cuda") -> dict[str, Any]:
    return {"visibility": {runtime: {"visible": True, "index": index, "reason": None}}}


def test_gpus_have_the_numbers_of_their_runtime_where_all_have_one() -> None:
    swapped = [device(1, **sight(1)), device(2, **sight(0)), device(3, kind="npu")]
    names = Names(report(*swapped))
    assert [names.label(one) for one in swapped] == ["GPU 1", "GPU 0", "NPU 0"]
    assert names.runtime == "cuda"
    for others in (
        [device(1, **sight(1)), device(2, **sight(1))],
        [device(1, **sight(1)), device(2, **sight(None))],
        [device(1, **sight(1)), device(2, vendor="amd", **sight(0, "hip"))],
    ):
        names = Names(report(*others))
        assert [names.label(one) for one in others] == ["GPU 0", "GPU 1"]
        assert names.runtime == ""
    part = device(2, parent="pci:0000:01:00.0")
    names = Names(report(device(1), part, device(3, kind="display")))
    assert [names.of(place) for place in (None, "pci:0000:01:00.0", part["id"], "x:1")] == [
        "", "GPU 0", "02:00.0", "x:1"
    ]  # fmt: skip


def test_whose_memory_it_is() -> None:
    kinds = [("dedicated", "npu"), (None, "gpu"), (None, "npu"), ("shared", "gpu")]
    found = [has_own_memory(device(memory={"kind": m}, kind=kind)) for m, kind in kinds]
    assert found == [True, True, False, False]
    assert word_of(device(kind="display")) == "display only"


def rows(*devices: Any) -> Any:
    document = report(*devices)
    return devices_of(document, Names(document))


def test_equal_devices_share_a_row_and_accelerators_come_first() -> None:
    found = rows(device(1, kind="cpu"), device(2, kind="display"), device(3), device(4))
    assert [(row.number, row.ids) for row in found.rows] == [
        (2, "03:00.0 04:00.0"), (1, "01:00.0"), (1, "02:00.0")
    ]  # fmt: skip
    display = found.rows[2]
    assert (display.figures, display.memory, display.style) == ((), "", "none")
    for field, value in (
        ("name", "Other"), ("vendor", "amd"), ("profile", "1g"), ("bandwidth", 2e12), ("fp16", 1.0),
        ("driver", {"name": "x"}), ("memory", {"kind": "dedicated", "total": 9 * GIB}),
        ("memory", {"kind": None, "total": 8 * GIB}),
        ("links", [{"kind": "pcie", "width": 8, "generation": 4}]),
        ("measured", [{"best": 5.0, "dtype": "fp32"}]),
    ):  # fmt: skip
        assert len(rows(device(1), device(2, **{field: value})).rows) == 2, field


def test_so_many_rows_at_most() -> None:
    many = [device(1, name=f"Card {number}") for number in range(66)]
    found = rows(*many[:64])
    assert (len(found.rows), found.hidden) == (64, 0)
    found = rows(*many, many[65])
    assert (len(found.rows), found.hidden) == (64, 3)


def test_what_a_row_says() -> None:
    links = [{"kind": "nvlink"}, {"kind": "pcie", "width": 0, "generation": 4},
             {"kind": "pcie", "width": 16, "generation": 5}]  # fmt: skip
    card = device(links=links, power={"limit_watts": 450.0}, driver={"name": "nvidia"}, parent="x")
    row = rows(card).rows[0]
    assert (row.link, row.power, row.driver, row.source, row.is_part) == (
        "PCIe 5 ×16", "limit 450 W", "nvidia", "bus, nvidia", True
    )  # fmt: skip
    assert (row.memory, row.memory_kind) == ("8.0 GiB", "dedicated")
    bare = rows(device(power={"limit_watts": 0}, seen_by=None)).rows[0]
    assert (bare.link, bare.power, bare.driver, bare.source, bare.is_part) == (
        "",
        "",
        "",
        "",
        False,
    )
    for kind in ("shared", "unified"):
        assert rows(device(memory={"kind": kind, "total": None})).rows[0].memory_kind == "shared"
    assert rows(device(memory={"kind": None, "total": None})).rows[0].memory_kind == ""


def test_figures_and_why_there_are_none() -> None:
    card = device(unknown={"peaks": "no clock", "chip": "unknown chip", "bandwidth": "no bus"},
                  fp32=None, bandwidth=None, peaks=[{"bound": "lower"}])  # fmt: skip
    figures = {figure.label: figure for figure in rows(card).rows[0].figures}
    assert list(figures) == ["fp32", "fp16", "int8", "bandwidth"]
    assert [(f.derived, f.reason) for f in figures.values()] == [
        (UNKNOWN, "no clock"), ("≥ 20.0", ""), (UNKNOWN, "no clock"), (UNKNOWN, "no bus")
    ]  # fmt: skip
    known = {figure.label: figure for figure in rows(device()).rows[0].figures}
    assert [(f.derived, f.reason) for f in known.values()] == [
        ("10.0", ""), ("20.0", ""), (UNKNOWN, "not known"), ("1000", "")
    ]  # fmt: skip
    only_chip = rows(device(unknown={"chip": "unknown chip"})).rows[0].figures[2]
    assert only_chip.reason == "unknown chip"


def entry(best: object = 8.0, **fields: Any) -> dict[str, Any]:
    return {"best": best, "dtype": "fp32", "kind": "dense", "unit": "TFLOPS", **fields}


@pytest.mark.parametrize(
    ("fields", "measured", "share", "doubt"),
    [
        ({}, "8.00 measured · 80\u00a0%", 80.0, ""),
        ({"best": 12.0}, "12.0 measured · 120\u00a0%", 100.0, ""),
        ({"fraction": 0.8}, "8.00 measured · 80\u00a0%", 80.0, ""),
        ({"fraction": 0.785}, "8.00 measured · 80\u00a0%", 80.0, ""),
        ({"fraction": 0.78}, "8.00 measured", None, ""),
        ({"fraction": 0.4}, "8.00 measured", None, ""),
        ({"stale": "another driver"}, "8.00 measured · 80\u00a0%", 80.0, "stale: another driver"),
        ({"disturbed": ["a", "b"]}, "8.00 measured · 80\u00a0%", 80.0, "disturbed: a, b"),
        ({"disturbed": []}, "8.00 measured · 80\u00a0%", 80.0, ""),
    ],
)
def test_what_was_measured_stands_beneath(
    fields: dict[str, Any], measured: str, share: float | None, doubt: str
) -> None:
    figure = rows(device(measured=[entry(**fields)])).rows[0].figures[0]
    assert (figure.measured, figure.share, figure.doubt) == (measured, share, doubt)


@pytest.mark.parametrize(
    ("best", "is_taken"),
    [(1, True), (0.5, True), (0, False), (-1, False), (9.9e17, True), (1e18, False), (True, False)],
)
def test_which_figures_count(best: object, is_taken: bool) -> None:
    assert len(measured_of(device(measured=[entry(best)]))) == is_taken


def test_so_many_measurements_at_most() -> None:
    assert len(measured_of(device(measured=[entry()] * 25))) == 24
    assert measured_of(device(measured={"best": 1})) == []
    assert measured_of(device(measured=["x", {"dtype": "fp32"}])) == []


def test_the_best_is_one_that_nothing_speaks_against() -> None:
    card = device(measured=[entry(9.0, stale="old"), entry(5.0), entry(6.0), entry(7.0, dtype="x")])
    assert best_of(card, "fp32").value == 6.0  # type: ignore[union-attr]
    assert best_of(card, "int8") is None
    assert best_of(device(measured=[entry(9.0, stale="old")]), "fp32").value == 9.0  # type: ignore[union-attr]


def test_sentences_about_what_was_measured() -> None:
    memory = entry(5e11, unit="B/s", figure="copy", by="probe bench", date="2026-01-02T03:04")
    found = rows(device(1, measured=[memory]), device(2, measured=[memory]))
    text = "memory copy 500 GB/s, achieved by probe bench on 2026-01-02"
    assert found.measured == (f"GPU 0, GPU 1: {text}",)
    found = rows(*(device(number, measured=[memory]) for number in range(1, 6)))
    assert found.measured == (f"5 devices: {text}",)
    found = rows(*(device(number, measured=[memory]) for number in range(1, 5)))
    assert found.measured == (f"GPU 0, GPU 1, GPU 2, GPU 3: {text}",)
    bare = rows(device(measured=[entry(stale="old")]))
    assert bare.measured == (
        "GPU 0: fp32 dense 8.00 TFLOPS, achieved by an unknown program (stale: old)",
    )


def test_so_many_sentences_at_most() -> None:
    def found(count: int) -> tuple[str, ...]:
        entries = [entry(float(number + 1)) for number in range(count)]
        parts = [entries[at : at + 24] for at in range(0, count, 24)]
        devices = [device(at, measured=part) for at, part in enumerate(parts)]
        sentences: tuple[str, ...] = rows(*devices).measured
        return sentences

    assert len(found(64)) == 64
    assert found(66)[63:] == (found(66)[63], "and 2 more")


def linked(name: str, *links: dict[str, Any]) -> Any:
    return {
        "id": name, "ids": [name], "kind": "gpu", "vendor": "nvidia", "parent": None,
        "visibility": {}, "links": [{"kind": "nvlink", **link} for link in links],
    }  # fmt: skip


def to(*peers: str, count: int | None = 2, rate: float | None = 50e9) -> list[dict[str, Any]]:
    return [{"peer": peer, "count": count, "bandwidth": rate} for peer in peers]


PCIE = {"kind": "pcie", "peer": "b"}


@pytest.mark.parametrize(
    ("devices", "title", "note", "ids"),
    [
        ([linked("a", *to("b")), linked("b", *to("a")), linked("c", PCIE)],
         "NVLink: GPU 0 ↔ GPU 1", "2 links each · 50 GB/s each way", "ab"),
        ([linked("a", *to("b", "c")), linked("b", *to("a", "c")), linked("c", *to("a", "b"))],
         "NVLink, all to all", "4 links each · 100 GB/s each way", "abc"),
        ([linked("a", *to("b")), linked("b", *to("a", "c")), linked("c", *to("b"))],
         "NVLink: GPU 0 ↔ GPU 1, GPU 1 ↔ GPU 2", "", "abc"),
        ([linked("a", *to("b", count=None, rate=None)), linked("b", *to("a", count=1, rate=None))],
         "NVLink: GPU 0 ↔ GPU 1", "1 link each", "ab"),
        ([linked("a", *to("b", count=0)), linked("b", *to("a", count=0))],
         "NVLink", "0 links each · 50 GB/s each way", "ab"),
        ([linked("a", *to("z")), linked("b", *to("z", count=3))],
         "NVLink", "50 GB/s each way", "ab"),
        ([linked("a", {"to": "switch", "count": 18, "bandwidth": 450e9}), linked("b", *to("a"))],
         "NVLink through a switch", "", "ab"),
        ([linked("a", {"kind": "xgmi", "peer": "b"}), linked("b", {"kind": "xgmi", "peer": "a"})],
         "xGMI: GPU 0 ↔ GPU 1", "1 link each", "ab"),
        ([linked("a", {"kind": "own", "peer": "b"}), linked("b")], "own", "1 link each", "a"),
    ],
)  # fmt: skip
def test_the_fabric_between_devices(devices: list[Any], title: str, note: str, ids: str) -> None:
    report: Any = {"devices": devices, "node": {"os": "linux"}}
    (fabric,) = fabrics_of(devices, Names(report))
    assert fabric == (title, note, frozenset(ids))


def test_so_many_pairs_and_kinds_are_shown() -> None:
    names = [f"{number:02}" for number in range(20)]
    devices = [linked(name, *to(*names[at + 1 : at + 2])) for at, name in enumerate(names)]
    report: Any = {"devices": devices, "node": {"os": "linux"}}
    (fabric,) = fabrics_of(devices, Names(report))
    assert fabric.title.startswith("NVLink: GPU 0 ↔ GPU 1, GPU 1 ↔ GPU 2, ")
    assert fabric.title.endswith(", GPU 7 ↔ GPU 8, and 10 more")
    nine = [*devices[:9], linked("z")]
    report = {"devices": nine, "node": {"os": "linux"}}
    assert fabrics_of(nine, Names(report))[0].title.endswith(", GPU 7 ↔ GPU 8")
    several = [linked("a", *({"kind": f"k{number}", "peer": "b"} for number in range(6)))]
    report = {"devices": several, "node": {"os": "linux"}}
    assert [fabric.title for fabric in fabrics_of(several, Names(report))] == [
        "k0", "k1", "k2", "k3"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected", "stem"),
    [
        ("desk=a.json", ("desk", "a.json"), "a"),
        ("a/b=c.json", ("", "a/b=c.json"), "b=c"),
        ("desk=", ("", "desk="), "desk="),
        ("a\\b.json", ("", "a\\b.json"), "b"),
        ("d/.json", ("", "d/.json"), "node"),
        ("n" * 70 + "=x", (cut("n" * 70, 64), "x"), "x"),
    ],
)
def test_names_of_files(text: str, expected: tuple[str, str], stem: str) -> None:
    assert _split(text) == expected
    assert _stem(expected[1]) == stem


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        ("", "none"), ("info", "none"), ("error info", "1 error"),
        ("warning error warning", "1 error, 2 warnings"),
    ],
)  # fmt: skip
def test_counts_of_findings(severities: str, expected: str) -> None:
    report: Any = {"findings": [{"severity": word} for word in severities.split()]}
    assert _counts(report) == expected


# What is said of readiness, numbers and sources, from the smallest devices that say it.


def small(number: int, **facts: Any) -> Any:
    id = f"pci:0000:0{number}:00.0"
    chip = {"id": None, "by": None, "confidence": None, "candidates": []}
    empty = {"id": id, "ids": [id], "kind": "gpu", "vendor": "acme", "name": "Acme", "chip": chip}
    empty |= {"parent": None, "visibility": {}, "peaks": [], "unknown": {}, "sources": {}}
    return {**empty, "readiness": None, **facts}


def named(*devices: Any) -> Names:
    return Names({"devices": [*devices]})  # type: ignore[typeddict-item]  # all that it reads


def seen(visible: bool | None, index: int | None = None, reason: str | None = None) -> Any:
    return {"visible": visible, "index": index, "reason": reason}


@pytest.mark.parametrize(
    ("sights", "mark", "text", "order"),
    [
        ([seen(True, 0), seen(True, 1)], "✓", "2 of 2 devices visible", "numbers 0–1"),
        ([seen(True, 0), seen(False)], "!", "1 of 2 devices visible", "number 0"),
        ([seen(True, 1), seen(True, 0)], "✓", "2 of 2 devices visible", "0 is GPU 1, 1 is GPU 0"),
        ([seen(False), seen(False)], "–", "0 of 2 devices visible", ""),
        (
            [seen(None), seen(False)],
            "?",
            "0 of 2 devices visible, 1 known to the driver alone",
            "",
        ),
        (
            [seen(True), seen(None)],
            "!",
            "1 of 2 devices visible, 1 known to the driver alone",
            "",
        ),
        ([seen(True, 0), seen(True)], "✓", "2 of 2 devices visible", "number 0"),
    ],
)
def test_what_a_runtime_sees(sights: list[Any], mark: str, text: str, order: str) -> None:
    devices = [small(1), small(2)]
    entries = [(d["id"], entry) for d, entry in zip(devices, sights, strict=True)]
    view = _view(entries, named(*devices))
    assert (view.mark, view.shown, view.order) == (mark, text, order)


def test_reasons_are_counted() -> None:
    entries = [seen(False, reason="a"), seen(False, reason="b"), seen(False, reason="a")]
    entries += [seen(True, reason="c"), seen(False), seen(None, reason="d")]
    assert _reasons(entries) == ("a (2 devices)", "b", "d")


def test_the_finding_of_a_broken_step() -> None:
    device = small(1)
    step: Any = {"step": "granted", "code": "node-denied", "status": "broken", "evidence": "e"}
    own = {"device": device["id"], "step": "granted", "code": "other", "why": "w", "fix": "f"}
    by_code = own | {"code": "node-denied", "step": None}
    other = by_code | {"device": "a:9"}
    findings: Any = [other, own, by_code]
    assert _finding(device, None, findings) is None
    assert _finding(device, step, findings) == by_code
    assert _finding(device, step, findings[:2]) == own
    assert _finding(device, step, findings[:1]) is None


def test_the_chain_of_equal_devices() -> None:
    def chained(number: int) -> Any:
        ok = {"step": "driver", "status": "ok", "code": None, "evidence": "nvidia 580"}
        absent = {"step": "library", "status": "not_applicable", "code": None, "evidence": None}
        step = {
            "step": "permission",
            "status": "broken",
            "code": "node-denied",
            "evidence": "EACCES",
        }
        steps = [ok, absent, step]
        return small(number, readiness={"state": "blocked", "broken": "permission", "steps": steps})

    devices = [chained(1), chained(2), small(3)]
    found = {"device": devices[0]["id"], "step": "permission", "code": "node-denied"}
    found |= {"why": "the node is closed", "fix": "join the group"}
    report: Any = {"devices": devices, "findings": [found]}
    chain = Chain(
        title="2 × Acme",
        ids="01:00.0 02:00.0",
        status="no permission",
        style="bad",
        steps=(
            Step("driver", "✓", "good", "ok", "nvidia 580"),
            Step("library", "–", "none", "not applicable", ""),
            Step("permission", "✕", "bad", "broken", "EACCES"),
        ),
        cause="permission is broken (node-denied)",
        reason="the node is closed",
        fix="join the group",
    )
    assert chains_of(report, named(*devices)) == ((chain,), 0)
    found |= {"why": None, "fix": NO_FIX}
    (unexplained,), _ = chains_of(report, named(*devices))
    assert unexplained == chain._replace(reason="EACCES", fix="")
    # So many chains at most: each device of another model has its own.
    many = [
        {**chained(1), "name": f"M{at}", "id": f"a:{at}", "ids": [f"a:{at}"]} for at in range(26)
    ]
    shown, hidden = chains_of({"devices": many, "findings": []}, named(*many))  # type: ignore[typeddict-item]
    assert (len(shown), hidden) == (24, 2)


@pytest.mark.parametrize(
    ("count", "title"),
    [(0, "a computer of which nothing is known"), (1, "M0"), (2, "M0 and M1"), (9, None)],
)
def test_the_title_names_models(count: int, title: str | None) -> None:
    devices = [device(number, name=f"M{number}") for number in range(count)]
    found = _title(report(*devices), devices)
    if title is None:
        shown = [f"M{number}" for number in range(_SHOWN_MODELS)]
        assert found == f"{', '.join(shown)} and {9 - _SHOWN_MODELS} more"
        whole = devices[:_SHOWN_MODELS]
        assert "more" not in _title(report(*whole), whole)
    else:
        assert found == title


@pytest.mark.parametrize(
    ("fields", "title", "note"),
    [
        ({"units": 64, "threads": 128, "numa_nodes": [0, 1]}, "package 1 · NUMA 0–1",
         "64 cores, 128 threads"),
        ({"units": 1, "threads": 1, "numa_node": 3}, "package 1 · NUMA 3", "1 core, 1 thread"),
        ({"units": None, "threads": 4}, "package 1", "4 threads"),
        ({"units": 0, "threads": None}, "package 1", ""),
    ],
    ids=range(4),
)  # fmt: skip
def test_a_package_says_what_it_has(fields: dict[str, Any], title: str, note: str) -> None:
    cpu = device(1, kind="cpu", name="EPYC", **fields)
    drawing = _Drawing(report(cpu), Names(report(cpu)), ())
    own = _package(drawing, 1, cpu, [], [])
    assert (own.title, own.cpu, own.note, own.displays) == (title, "EPYC", note, "")


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({}, (True, False, False)),
        ({"free": 4 * GIB, "used": 4 * GIB}, (False, False, True)),
        ({"power_state": "suspended"}, (True, True, False)),
    ],
    ids=range(3),
)
def test_a_picture_says_what_its_marks_mean(
    changes: dict[str, Any], flags: tuple[bool, bool, bool]
) -> None:
    power = {"power_state": changes.pop("power_state", None)}
    one = device(1, arch=None, **power)
    one["memory"] |= changes
    node = {"memory": {"total": 512 * GIB}}
    whole: Any = {**report(one), "node": node, "findings": []}
    found = picture_of(whole, Names(whole))
    assert (found.has_unknown, found.has_asleep, found.has_memory) == flags
    assert (found.memory, found.beyond) == ("512.0 GiB", "")


def test_sources_of_a_device() -> None:
    peak = {"dtype": "fp16", "path": "matrix", "tflops": 9.0, "sparsity": "dense"}
    peak |= {"source": "units", "confidence": "high"}
    whole = small(
        1,
        peaks=[
            peak,
            {**peak, "dtype": "int8", "variant": "v", "sparsity": "2:4", "bound": "lower"},
        ],
        unknown={"arch": "no file"},
        sources={"name": "amdgpu", "peaks": "chipdb", "memory.total": "amdgpu", "units": "kfd"},
        chip={"id": "acme/one", "by": "pci", "confidence": "high", "candidates": ["x"]},
    )
    devices = [whole, {**whole, "id": "pci:0000:02:00.0"}, small(3)]
    found = sources_of({"devices": devices}, named(*devices))  # type: ignore[typeddict-item]
    (first, second), hidden = found.groups, found.hidden
    assert (first.title, first.ids, hidden) == ("2 × Acme", "01:00.0 02:00.0", 0)
    assert first.chip == "chip acme/one by pci, high confidence"
    assert [(line.name, line.value, line.how, line.confidence) for line in first.lines] == [
        ("fp16 matrix", "9.00 TFLOPS", "units", "high"),
        ("int8 matrix, v, 2:4", "≥ 9.00 TOPS", "units", "high"),
        ("arch", "–", "no file", "unknown"),
        ("fields", "", "memory.total, name", "amdgpu"),
        ("fields", "", "units", "kfd"),
    ]
    assert (first.hidden, second.lines, second.chip) == (0, (), "")
    cut_off = _source([whole], named(whole), 3)
    assert (cut_off.title, len(cut_off.lines), cut_off.hidden) == ("Acme", 3, 2)
    ambiguous = small(1, chip=small(1)["chip"] | {"candidates": ["a", "b"]})
    assert _source([ambiguous], named(ambiguous), 3).chip.startswith("ambiguous: a")


def test_runs_of_probers() -> None:
    def run(number: int, status: str, ms: float, **facts: Any) -> Any:
        named = {"prober": f"p{number}", "distribution": "d 1", "status": status, "reason": None}
        return {**named, "elapsed_ms": ms, "devices": 1, "partial": False, **facts}

    outcomes = [run(1, "ok", 40), run(2, "call_error", 10, partial=True, reason="odd")]
    outcomes += [run(3, "skipped", 0), run(4, "not_applicable", 1, stderr=["a"] * 9)]
    ran, skipped, hidden = runs_of({"outcomes": outcomes})  # type: ignore[typeddict-item]
    assert [(r.name, r.status, r.style, r.spent, r.share, len(r.output)) for r in ran] == [
        ("p1", "ok", "good", "40.0 ms", 100.0, 0),
        ("p2", "call error (partial)", "bad", "10.0 ms", 25.0, 0),
        ("p4", "not applicable", "none", "1.0 ms", 2.5, 8),
    ]
    assert ([r.name for r in skipped], hidden) == (["p3"], 0)
    many: Any = {"outcomes": [run(n, "ok", 1) for n in range(49)]}
    assert (len(runs_of(many)[0]), runs_of(many)[2]) == (48, 1)


def test_half_of_the_raw_text_may_be_findings() -> None:
    report: Any = {"a": 1, "devices": ["d" * 10] * 9, "findings": ["f" * 10] * 9}
    frame = len('{\n "a": 1,\n "devices": [],\n "findings": []\n}')
    entry = len('  "dddddddddd",\n')
    for room, devices, findings in ((0, 0, 0), (2 * entry, 1, 1), (20 * entry, 9, 9)):
        raw = raw_of(report, frame + room)
        assert (raw.shown, raw.shown_findings) == (devices, findings)
        assert (raw.devices, raw.findings, bool(raw.text)) == (9, 9, bool(room))
        if room:
            shown = {"a": 1, "devices": ["d" * 10] * devices, "findings": ["f" * 10] * findings}
            assert json.loads(raw.text) == shown
    assert raw_of(report, frame + 2 * entry - 1).shown_findings == 0


def test_tiles() -> None:
    own = {"kind": "dedicated", "total": 24 << 30, "free": 20 << 30}
    devices = [small(1, memory=own), small(2, memory=own | {"free": None})]
    assert _memory(devices[:1])[1:] == ("24.0", "GiB", "20.0 GiB free")
    assert _memory(devices)[1:] == ("48.0", "GiB", "what is free is not known")
    unknown = small(3, memory={"kind": "dedicated", "total": None, "free": None})
    assert _memory([devices[0], unknown])[1:] == ("≥ 24.0", "GiB", "at least: 1 device not known")
    shared = [small(4, memory={"kind": "unified", "total": total}) for total in (None, 8 << 30)]
    assert _memory(shared)[1:] == ("8.0", "GiB", "shared with the system")
    assert _memory([])[1:] == ("–", "", "not known")
    report: Any = {"node": {"memory": {"total": 1 << 40, "available": 1 << 30, "limit": 2 << 30}}}
    assert _host_memory(report)[1:] == (*("1.00", "TiB", "1.0 GiB available, limited to 2.0 GiB"),)
    report["node"]["memory"]["limit"] = None
    assert _host_memory(report).note == "1.0 GiB available"


def test_processors() -> None:
    def cpus(*counts: tuple[int | None, int | None]) -> Any:
        devices = [small(n, kind="cpu", units=u, threads=t) for n, (u, t) in enumerate(counts)]
        return _processors({"devices": devices})[1:]  # type: ignore[typeddict-item]

    assert cpus((8, 16)) == ("8", "", "1 package, 16 threads")
    assert cpus((8, 16), (8, 16)) == ("16", "", "2 packages, 32 threads")
    assert cpus((8, None)) == ("8", "", "1 package, threads not known")
    assert cpus((8, 16), (None, 16)) == ("–", "", "32 threads")


def test_when_a_report_was_made() -> None:
    report: Any = {"probe_core": "1.0", "chipdb": None, "timings_ms": {}, "node": {"time": None}}
    assert _meta(report) == "probe-core 1.0 · a recorded machine"
    report |= {"chipdb": "2026.11", "timings_ms": {"total": 12.4}}
    report["node"]["time"] = "2026-11-22T09:30:00.000Z"
    expected = "probe-core 1.0 · chipdb 2026.11 · 2026-11-22 09:30 UTC · probed in 12 ms"
    assert _meta(report) == expected


def test_devices_and_findings_that_are_chosen() -> None:
    devices = [small(1), small(2, name="Beta"), small(3, parent="pci:0000:02:00.0", name="Part")]
    findings = [{"device": device} for device in (None, devices[0]["id"], devices[1]["id"])]
    report: Any = {"devices": devices, "findings": findings, "node": {"network": ["x"]}}
    for text in ("beta", "02:00.0"):
        chosen = only(report, text)
        assert chosen["devices"] == devices[1:]
        assert chosen["findings"] == [findings[0], findings[2]]
        assert chosen["node"]["network"] == []
    with pytest.raises(CommandError, match="no device has this id or name; there are: pci:0000:01"):
        only(report, "gamma")


def test_bars() -> None:
    assert [_bar(share) for share in (None, 0, 14.9, 15.1, 100)] == [
        "[??????????]",
        "[..........]",
        "[#.........]",
        "[##........]",
        "[##########]",
    ]


def of(**facts: Any) -> Any:
    """A part of a page: what its text reads, and nothing else."""
    return SimpleNamespace(**facts)


def card(label: str, **facts: Any) -> Any:
    plain = {
        **{"name": "H100", "status": "ready", "memory": "40 of 80 GiB", "has_bar": True},
        **{"used": 50.0, "link": "PCIe 5 ×16", "address": "01:00.0", "parts": []},
    }
    return of(label=label, **plain | facts)


ERROR = Entry("error", "✗", ("it is lost", "it is gone"), 2, "a cause", "a fix", "a-code", "a log")
NOTICE = Entry("info", "i", ("a notice",), 0, "", "", "", "")
INNER = of(
    title="PCIe switch", address="18:00.0", boxes=[], cards=[card("GPU 0", parts=["a part"])]
)
BOX = of(
    title="root port",
    address="",
    boxes=[INNER],
    cards=[card("GPU 1", used=None, link="", memory=""), card("NPU 0", has_bar=False)],
)
ROWS = [
    of(number=2, name="H100", status="ready", memory="80 GiB", driver="nvidia 580",
       figures=[of(derived=text) for text in ("67", "989", "1979", "3350")]),
    of(number=1, name="NPU", status="unknown", memory="", driver="", figures=[]),
]  # fmt: skip
PAGE = of(
    head=of(
        **{"title": "2 × H100", "state": of(mark="✗", text="1 is lost"), "eyebrow": "box · linux"},
        **{"meta": "made today", "tiles": [of(label="Memory", value="160", unit="GiB", note="2")]},
    ),
    findings=of(open=[ERROR], folded=[NOTICE], hidden=7),
    picture=of(
        **{"memory": "512 GiB", "numbers": "Numbers are CUDA's", "beyond": ""},
        packages=[of(title="CPU 0", cpu="EPYC", note="64 cores", box=BOX, displays="a display")],
        fabrics=[of(title="NVLink", note="18 links each")],
    ),
    devices=of(rows=ROWS, measured=["H100: 3000 GB/s read"], hidden=3),
    chains=[
        of(title="H100", ids="01:00.0", status="blocked", cause="no node", reason=None, fix="do it",
           steps=[of(mark="✓", name="driver"), of(mark="✗", name="node")]),
        of(title="NPU", ids="02:00.0", status="ready", cause="", reason="", fix="", steps=[]),
    ],
    chains_hidden=4,
    views=[of(mark="✓", runtime="cuda", shown="both", order="1, 0", reasons=["a reason"]),
           of(mark="?", runtime="hip", shown="none", order="", reasons=[])],
    distances=of(labels=["GPU 0"], heads=["GPU 0"], rows=[["X"]], meanings="X: itself", hidden=5),
    sources=of(
        groups=[
            of(title="H100", ids="01:00.0", chip="nvidia/h100", hidden=6, lines=[
                of(name="fp16", value="989", confidence="verified", how="a datasheet"),
                of(name="int8", value="", confidence="unknown", how="not said"),
            ]),
        ],
        hidden=8,
    ),
    runs=[of(name="nvidia", status="ok", spent="31 ms", devices="2", reason="")],
    skipped=[of(name="amd", reason="no AMD device")],
    runs_hidden=9,
    notes=["a note"],
)  # fmt: skip
TEXT = """
2 × H100: ✗ 1 is lost
=====================
box · linux
made today

Memory:              160 GiB (2)

Findings
--------
✗ error: it is lost
✗ error: it is gone
  and 2 more like it
  why: a cause
  seen: a log
  fix: a fix
i info: a notice
7 more are not shown: `probe --json` has all.

The node
--------
512 GiB of system memory
  CPU 0 · EPYC · 64 cores
    PCIe switch 18:00.0
      GPU 0 H100 · ready · [#####.....] 40 of 80 GiB · PCIe 5 ×16 · 01:00.0
          a part
    GPU 1 H100 · ready · [??????????] · 01:00.0
    NPU 0 H100 · ready · 40 of 80 GiB · PCIe 5 ×16 · 01:00.0
    a display
NVLink · 18 links each
Numbers are CUDA's.

Devices
-------
DEVICE    STATE    MEMORY  FP32  FP16  INT8  GB/S  DRIVER
2 × H100  ready    80 GiB    67   989  1979  3350  nvidia 580
NPU       unknown
Each device, not together: TFLOPS, TOPS and GB/s, derived.
Measured here by `probe bench`:
  H100: 3000 GB/s read
3 more devices are not shown.

Readiness
---------
H100 (01:00.0): blocked
  ✓ driver · ✗ node
  no node: –
  fix: do it
NPU (02:00.0): ready
4 more kinds of devices are not shown.

Visibility by runtime
---------------------
✓ cuda: both (1, 0)
    a reason
? hip: none

Distances
---------
       GPU 0
GPU 0  X
X: itself
5 more devices are not in the table.

Sources of every figure
-----------------------
H100 (01:00.0) · nvidia/h100
  fp16: 989 [verified] a datasheet
  int8: [unknown] not said
  6 more lines are not shown.
8 more kinds of devices are not shown.

Probers
-------
PROBER  STATUS   TIME  DEVICES
nvidia  ok      31 ms        2
amd, not run: no AMD device
9 more are not shown.

a note
"""


def test_each_line_of_the_text_of_a_page() -> None:
    assert "\n".join(page_lines(PAGE)) == TEXT.strip()
