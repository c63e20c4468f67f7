"""Sightings that were checked while their prober still ran are not checked again."""

from __future__ import annotations

import math
from typing import Any

import pytest

from probe_core.pipeline import validate
from probe_core.pipeline.failures import check_finding
from probe_core.pipeline.validate import Checking, check_sighting, checked
from probe_core.wording import INVALID


def gpu(bus: int, **fields: object) -> dict[str, Any]:
    return {"ids": [f"pci:0000:{bus:02x}:00.0"], "kind": "gpu", **fields}


SIGHTINGS = [
    gpu(1, name="One"),
    gpu(2, units=-1),
    gpu(1, name="Another of that id"),
    "no mapping",
    gpu(3, name="Three"),
]


def early(sightings: list[Any]) -> Checking:
    checking = Checking()
    for sighting in sightings:
        checking.take(sighting)
    return checking


@pytest.mark.parametrize("count", range(len(SIGHTINGS) + 1))
def test_what_came_early_and_late_are_one_list(count: int) -> None:
    good, problems = checked(SIGHTINGS)
    assert [sighting["ids"] for sighting in good] == [gpu(n)["ids"] for n in (1, 2, 3)]
    assert len(problems) == 3
    assert checked(SIGHTINGS, early(SIGHTINGS[:count])) == (good, problems)


def test_only_what_is_left_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    first = early(SIGHTINGS[:3])
    calls: list[object] = []
    check = validate.check_sighting

    def counted(raw: object, *rest: Any) -> Any:
        calls.append(raw)
        return check(raw, *rest)

    monkeypatch.setattr(validate, "check_sighting", counted)
    checked(SIGHTINGS, first)
    assert calls == SIGHTINGS[3:]


@pytest.mark.parametrize(
    "other",
    [SIGHTINGS[::-1], [gpu(1, name="One"), gpu(9)], SIGHTINGS[1:], [*SIGHTINGS, gpu(7)]],
    ids=["another order", "equal, and not the same", "without the first", "more than there are"],
)
def test_what_was_sorted_since_is_checked_anew(other: list[Any]) -> None:
    assert checked(SIGHTINGS, early(other)) == checked(SIGHTINGS)


def test_a_clock_that_no_chip_has_is_left_out() -> None:
    peak = {"dtype": "fp32", "tflops": 1.0, "mhz": 100_001}
    sighting, problems = check_sighting({**gpu(1), "peaks": [peak]})
    assert sighting is not None
    assert "mhz" in str(problems)


REFUSED: list[tuple[object, list[str]]] = [
    ([], ["a device must be a mapping, found list"]),
    ({INVALID: "a set"}, ["a device must be a mapping, found a set"]),
    ({"kind": "gpu"}, ["a device has no usable 'ids', so it was left out"]),
    (gpu(1, colour="red"), ["the field 'colour' is not one of a device's"]),
    (gpu(1, others=[]), ["the field 'others' is not one of a device's"]),
    (gpu(1, **{"c" * 61: 1}), [f"the field '{'c' * 59}…' is not one of a device's"]),
    (gpu(1, memory=5), ["memory: expected a table, found int 5"]),
    (gpu(1, memory={INVALID: "a set"}), ["memory: expected a table, found a set"]),
    (gpu(1, memory={"colour": "red"}), ["memory.colour: is not a field of it"]),
    (gpu(1, memory={"c" * 41: 1}), [f"memory.{'c' * 39}…: is not a field of it"]),
    (
        gpu(1, pci={f"n{number}": 0 for number in range(65)}),
        ["pci: only the first 64 names were kept"]
        + [f"pci.n{number}: is not a field of it" for number in range(64)],
    ),
    (gpu(1, links=[{}]), ["links: a link needs a kind"]),
    (gpu(1, links=5), ["links: expected a list, found int 5"]),
    (
        {"ids": ["pci:0000:01:00.0", "cpu:0"], "kind": "gpu"},
        ["ids: cpu:0 is no id of a gpu"],
    ),
]


@pytest.mark.parametrize(("raw", "problems"), REFUSED)
def test_what_is_refused_is_named_with_its_reason(raw: object, problems: list[str]) -> None:
    assert check_sighting(raw)[1] == problems


COUNT, MOST, TERA, BYTES, WATTS = (1, 10**6), (0, 1 << 63), (1e-6, 1e7), (0, 64 << 40), (1, 1e5)
BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("units", "cores", "threads", "bus_width_bits"), COUNT),
    "clocks.sm": (1, 1e5),
    "memory.total": (1 << 20, 64 << 40),
    **{f"memory.{name}": BYTES for name in ("free", "usable", "used", "parts.visible")},
    **{f"peaks.0.{name}": TERA for name in ("tflops", "low", "published", "high")},
    "peaks.0.mhz": (0, 1e5),
    "bandwidth": (1e6, 1e15),
    **{f"power.{name}_watts": WATTS for name in ("limit", "default", "max")},
    "ecc.remapped": (0, 10**6),
    "numa_node": (0, 4096),
    "numa_nodes.0": (0, 4096),
    **{f"share.{name}": COUNT for name in ("units", "of")},
    "share.slices": (0, 1e12),
    **{f"links.0.{name}": MOST for name in ("count", "width", "max_width", "generation")},
    **{f"links.0.local_{name}": MOST for name in ("width", "max_width", "generation")},
    "processes": (0, 10**6),
}
"""What figures are believed, both ends; whole numbers where the last end is one."""
PEAK = {"dtype": "fp32", "path": "vector", "accumulate": "fp32", "sparsity": "dense"}
PEAK |= {"tflops": 1.0, "clock": "boost", "source": "a test", "confidence": "spec"}  # type: ignore[dict-item]


def with_figure(path: str, value: Any) -> dict[str, Any]:
    name, *inner = path.split(".")
    for key in reversed(inner):
        value = [value] if key == "0" else {key: value}
    if name in ("peaks", "links"):
        value = [{**(PEAK if name == "peaks" else {"kind": "pcie"}), **value[0]}]
    return gpu(1, **{name: value})


def test_each_figure_is_believed_up_to_its_bounds() -> None:
    for path, (low, high) in BOUNDS.items():
        is_whole = isinstance(high, int)
        below, above = (low - 1, high + 1) if is_whole else (
            math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        )  # fmt: skip
        beyond = [below, above, low + 0.5] if is_whole else [below, above]
        found = [check_sighting(with_figure(path, value))[1] for value in (low, high)]
        assert found == [[], []], path
        for value in beyond:
            (problem,) = check_sighting(with_figure(path, value))[1]
            is_bound = "whole number" if value == low + 0.5 else " is not between "
            assert problem.startswith(path.partition(".")[0]), value
            assert is_bound in problem, value


def test_a_memory_may_be_written_short() -> None:
    """The table's own figure counts before the shorthand's."""
    kept = [
        ({"memory_bytes": 8 << 30}, {"total": 8 << 30}),
        ({"memory_bytes": 8 << 30, "memory": {"free": 1}}, {"total": 8 << 30, "free": 1}),
        ({"memory_bytes": 8 << 30, "memory": {"total": 4 << 30}}, {"total": 4 << 30}),
        ({"memory_bytes": 8 << 30, "memory": "much"}, {"total": 8 << 30}),
    ]
    for fields, memory in kept:
        sighting, problems = check_sighting(gpu(1, **fields))
        assert sighting is not None
        assert (sighting["memory"], problems) == (memory, [])


def test_reasons_of_a_prober_are_cut_and_counted() -> None:
    unknown = {f"n{number}": "why" for number in range(65)} | {"n0": "r" * 401, "n1": 7}
    sighting, problems = check_sighting(gpu(1, unknown={"k" * 81: "long", **unknown}))
    assert sighting is not None
    assert problems == []
    kept = sighting["unknown"]
    assert (kept["n0"], kept["k" * 79 + "…"]) == ("r" * 399 + "…", "long")
    assert [*kept][-1] == "n62"
    assert "n1" not in kept


SENTENCES = {"code": "hot", "what": "it is hot", "why": "no air", "fix": "a fan"}


@pytest.mark.parametrize(
    "raw",
    [
        "hot",
        {**SENTENCES, INVALID: "a set"},
        *({**SENTENCES, name: ""} for name in SENTENCES),
        *({**SENTENCES, name: 7} for name in SENTENCES),
    ],
)
def test_a_finding_without_a_code_or_a_sentence_is_none(raw: object) -> None:
    assert check_finding(raw, "acme") is None


@pytest.mark.parametrize(
    ("name", "most"),
    [
        *(("code", 60), ("what", 600), ("why", 600), ("fix", 600)),
        *(("device", 256), ("variable", 80), ("step", 80), ("evidence", 600)),
    ],
)
def test_the_text_of_a_finding_is_cut(name: str, most: int) -> None:
    for length, kept in ((most, "t" * most), (most + 1, "t" * (most - 1) + "…")):
        found = check_finding({**SENTENCES, name: "t" * length}, "acme")
        assert found is not None
        assert found[name] == kept  # type: ignore[literal-required]


@pytest.mark.parametrize(
    ("severity", "kept"),
    [("info", "info"), ("error", "error"), (None, "warning"), ("fatal", "warning")],
)
def test_a_finding_is_a_warning_unless_it_says_otherwise(severity: object, kept: str) -> None:
    found = check_finding({**SENTENCES, "severity": severity, "prober": "other"}, "acme")
    assert found == {
        **SENTENCES,
        "severity": kept,
        "device": None,
        "prober": "acme",
        "setting": None,
        "variable": None,
        "step": None,
        "evidence": None,
    }
