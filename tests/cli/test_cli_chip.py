"""`probe chip`: exact answers, candidates, near names, never likeness."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from probe_core.cli import main
from probe_core.cli.chip import _facts, _kind_of, _measured, _peaks, _units, parse_size
from probe_core.commands.context import CommandError, Context

LSPCI = "01:00.0 VGA compatible controller [0300]: AD102 [GeForce RTX 4090] [10de:2684] (rev a1)"
SHAPE = {"query", "match", "by", "confidence", "candidates", "conflicts", "near", "reason"}


def ask(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[Any]:
    assert main(["chip", "--json", *arguments]) == status
    answers: list[Any] = json.loads(capsys.readouterr().out)
    assert all(set(answer) >= SHAPE for answer in answers)
    return answers


@pytest.mark.parametrize(
    ("arguments", "chip", "by"),
    [
        (["10de:2684"], "nvidia/geforce-rtx-4090", "pci"),
        (["0x10de:0x2684"], "nvidia/geforce-rtx-4090", "pci"),
        (["10de:2684/1043:889a"], "nvidia/geforce-rtx-4090", "pci"),
        (["1002:744c@c8"], "amd/radeon-rx-7900-xtx", "pci-revision"),
        (["NVIDIA GeForce RTX 4090"], "nvidia/geforce-rtx-4090", "name"),
        (["NVIDIA GeForce RTX 4090", "--kind", "nvml"], "nvidia/geforce-rtx-4090", "name"),
        (["NVIDIA H100 80GB HBM3", "--kind", "nvml"], "nvidia/h100-sxm5-80gb", "name"),
        (["rockchip,rk3588-mali"], "arm/rk3588-mali-g610mp4", "dt"),
        (["8086:56a0", "--memory", "16GiB"], "intel/arc-a770-graphics-16gb", "pci"),
        (["8086:56a0", "--memory", "8GiB"], "intel/arc-a770-graphics-8gb", "pci"),
        ([LSPCI, "--kind", "lspci"], "nvidia/geforce-rtx-4090", "pci"),
    ],
)
def test_known(arguments: list[str], chip: str, by: str, capsys: Any) -> None:
    (answer,) = ask(capsys, *arguments)
    assert (answer["match"]["id"], answer["by"]) == (chip, by)
    assert answer["reason"] is None
    assert answer["query"] == arguments[0]
    assert {"name", "vendor", "arch", "peaks", "units", "bandwidth"} <= set(answer["match"])


def test_peaks_have_sources(capsys: Any) -> None:
    (answer,) = ask(capsys, "10de:2684")
    peak = next(
        p
        for p in answer["match"]["peaks"]
        if (p["dtype"], p["path"], p["accumulate"], p["sparsity"])
        == ("fp16", "matrix", "fp32", "dense")
    )
    assert round(peak["tflops"], 1) == 165.2
    assert peak["source"]


def test_live_units_change_the_peaks(capsys: Any) -> None:
    whole, half = (
        max(p["tflops"] for p in ask(capsys, "10de:2684", *more)[0]["match"]["peaks"])
        for more in ([], ["--units", "64"])
    )
    assert half == pytest.approx(whole / 2)


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("compatible = nvidia", "dt"),
        ("of:NgpuT", "dt"),
        ("OF_COMPATIBLE_0=nvidia", "dt"),
        ("nvidia\0gk20a", "dt"),
        ("nvidia,gv11b", "dt"),
        ("RTX 4090, 24 GB", "name"),
        ("RTX", "name"),
    ],
)
def test_the_kind_of_a_query_by_its_form(query: str, kind: str) -> None:
    assert _kind_of(query) == kind


@pytest.mark.parametrize(
    "query", ["GeForce RTX 4091", "RTX 40900", "llvmpipe", "Tesla", "10de:ffff", "zork", "🦆"]
)
def test_unknown_is_unknown(query: str, capsys: Any) -> None:
    (answer,) = ask(capsys, query)
    assert answer["match"] is None
    assert answer["reason"]


def test_ambiguous_has_candidates(capsys: Any) -> None:
    (answer,) = ask(capsys, "8086:56a0")
    assert answer["match"] is None
    assert answer["candidates"] == ["intel/arc-a770-graphics-16gb", "intel/arc-a770-graphics-8gb"]
    assert answer["near"] == []


def test_candidates_are_told_apart_by_what_a_card_shows(capsys: Any) -> None:
    assert main(["chip", "NVIDIA GeForce RTX 3060"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("  CHIP"))
    assert [line.split() for line in lines[head : head + 4]] == [
        ["CHIP", "UNITS", "MEMORY", "BANDWIDTH", "POWER", "YEAR"],
        "nvidia/geforce-rtx-3060 28 SMs 12.0 GiB 360 GB/s 170 W 2021".split(),
        "nvidia/geforce-rtx-3060-8gb 28 SMs 8.0 GiB 240 GB/s 170 W 2022".split(),
        ["whichever", "it", "is:"],
    ]


def test_no_more_candidates_than_a_person_reads(capsys: Any) -> None:
    (answer,) = ask(capsys, "Intel Graphics")
    assert main(["chip", "Intel Graphics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [line for line in lines if line.startswith("  intel/")]
    assert len(shown) == 16
    assert lines[lines.index(shown[-1]) + 1] == f"  and {len(answer['candidates']) - 16} more"


def test_near_names_are_offered_to_people_alone(capsys: Any) -> None:
    (answer,) = ask(capsys, "NVIDIA GeForce RTX 4091")
    assert answer["match"] is None
    assert "nvidia/geforce-rtx-4090" in answer["near"]
    assert main(["chip", "NVIDIA GeForce RTX 4091"]) == 0
    assert "  close matches: " in capsys.readouterr().out


def test_processor_by_its_brand(capsys: Any) -> None:
    (answer,) = ask(capsys, "AMD EPYC 9654 96-Core Processor", "--kind", "cpuinfo")
    assert answer["match"]["kind"] == "cpu"
    assert answer["match"]["arch"] == "zen4"


def test_one_answer_per_query(capsys: Any) -> None:
    answers = ask(capsys, "10de:2684", "zork", "10de:2330")
    assert [a["match"] and a["match"]["id"] for a in answers] == [
        "nvidia/geforce-rtx-4090",
        None,
        "nvidia/h100-sxm5-80gb",
    ]


def test_strict_fails_when_one_is_unknown(capsys: Any) -> None:
    ask(capsys, "10de:2684", "--strict")
    ask(capsys, "10de:2684", "zork", "--strict", status=1)


@pytest.mark.parametrize("queries", [[""], ["   "], ["10de:2684", ""]])
def test_empty_query_is_refused(queries: list[str], capsys: Any) -> None:
    assert main(["chip", "--json", *queries]) == 2
    assert capsys.readouterr() == (
        "", "probe chip: a query is empty; give the name or id of a chip\n"
    )  # fmt: skip


def test_a_computer_sold_with_several_chips_is_all_of_them(capsys: Any) -> None:
    (answer,) = ask(capsys, "Steam Deck")
    assert answer["candidates"] == ["amd/custom-gpu-0405", "amd/custom-gpu-0932"]
    (answer,) = ask(capsys, "Steam Deck OLED")
    assert answer["match"]["id"] == "amd/custom-gpu-0932"


def test_text_for_people(capsys: Any) -> None:
    assert main(["chip", "10de:2684"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("NVIDIA GeForce RTX 4090  nvidia/geforce-rtx-4090\n  matched by pci")
    assert "128 SMs" in out
    assert "1008 GB/s" in out
    assert "  fp16   matrix  fp32        dense      165.2  boost" in out


def test_control_characters_do_not_reach_the_terminal(capsys: Any) -> None:
    assert main(["chip", "\x1b]0;owned\x07"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_sites_file(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "site.toml"
    file.write_text("= no toml")
    assert main(["chip", "10de:2684", "--chipdb", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"probe chip: --chipdb {file}: ")
    assert err.count("\n") == 1


def test_sites_file_of_a_variable_keeps_no_chip_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = tmp_path / "site.toml"
    file.write_text("= no toml")
    monkeypatch.setenv("PROBE_CHIPDB", str(file))
    assert main(["chip", "10de:2684"]) == 0
    out, err = capsys.readouterr()
    assert "nvidia/geforce-rtx-4090" in out
    assert err.startswith("probe: ")
    assert "site.toml" in err


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("24GiB", 24 << 30),
        ("24G", 24 << 30),
        ("24 gib", 24 << 30),
        ("24GB", 24 * 10**9),
        ("24576MiB", 24 << 30),
        ("1.5TiB", 3 << 39),
        ("25769803776", 24 << 30),
        ("512B", 512),
        ("8k", 8192),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GiB", "ib", "24QiB", "-1G", "0", "1e400G", "nan", "inf", "1 2G"]
)
def test_no_sizes(text: str) -> None:
    with pytest.raises(CommandError, match="is no memory size"):
        parse_size(text)


def test_a_range_says_what_decides(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    main(["chip", "NVIDIA GeForce RTX 4090 Laptop GPU"])
    lines = capsys.readouterr().out.splitlines()
    assert any("28.31–39.69" in line for line in lines)
    sentence = "  range: the maker of the laptop sets clock and power within the vendor's range"
    assert lines.count(sentence) == 1


def test_number_formats_in_lines() -> None:
    from probe_core.cli.chip import format_lines, formats_of

    cells = formats_of("apple/m3-max-40c")
    (mlx,) = [line for line in format_lines(cells) if line.startswith("formats, mlx")]
    assert mlx == (
        "formats, mlx: fp32, fp16, bf16 (in 0.32.1), mxfp8, nvfp4 emulated (since 0.30.3), "
        "mxfp4 emulated (since 0.29.0); not fp64 (in 0.32.1)"
    )
    assert any(cell["by"] == "vllm" and "reason" in cell for cell in cells)
    assert formats_of("no/such-chip") == []


MATCH: dict[str, Any] = {
    "name": "Acme One",
    "id": "acme/one",
    "vendor": "acme",
    "kind": "gpu",
    "arch": None,
    "year": 2024,
    "units": 2,
    "unit": None,
    "cores": 1,
    "clock": {"boost": 1500.0, "base": None},
    "power": 300.0,
    "memory": {"bytes": 24 << 30, "type": "GDDR7"},
    "bandwidth": 1e12,
    "sources": ["a", "b"],
    "note": "a note",
    "formats": [],
}


def peak(**facts: Any) -> dict[str, Any]:
    kind = {"dtype": "fp16", "path": "matrix", "accumulate": "fp32", "sparsity": "dense"}
    return {**kind, "tflops": 100.0, "clock": "boost", "confidence": "derived", **facts}


def test_facts_of_a_chip() -> None:
    row = {"rate": "fp16.matrix.fp32", "tflops": 50.0, "source": "a"}
    more = {"low": 40.0, "watts": 250.0, "runs": 3, "software": "s 1"}
    peaks = [peak(sparsity="2:4", tflops=200.0), peak()]
    beside = {"power_limits": (100, 200), "power_limits_at": {"board": "b"}, "ecc": 0.0625}
    beside |= {"interconnect": ("nvlink", 900.0), "sram": 50.0}
    read = {"url": "u", "date": "2026-11-28"}
    match = MATCH | {"sustained": [row, row | more], "peaks": peaks, "reads": [read, read]}
    facts = list(_facts({**match, **beside}))
    assert facts[0] == ["acme", "gpu", None, 2024]
    assert [fact for fact in facts[1] if fact] == [
        *("2 units", "1 core", "boost 1500 MHz", "300 W", "24.0 GiB", "GDDR7", "1000 GB/s")
    ]
    assert facts[2] == [
        "power limit 100 to 200 W on board b",
        "nvlink 900 GB/s both ways",
        "50 MiB on the chip",
        "ECC takes 6.2% of the memory",
    ]
    empty = dict.fromkeys(("power_limits", "interconnect", "sram", "ecc"))
    assert list(_facts({**match, **empty}))[2] == []
    assert facts[3:] == [
        ["measured: fp16 50 TFLOPS, 50% of the peak [a]"],
        ["measured: fp16 40 to 50 TFLOPS at 250 W, 50% of the peak, 3 runs, s 1 [a]"],
        ["sources: a, b"],
        ["read on 2026-11-28: u"],
        ["note: a note"],
    ]
    other = row | {"rate": "fp8.matrix.fp32"}
    assert _measured(other, peaks) == "measured: fp8 50 TFLOPS [a]"


def test_a_table_of_peaks() -> None:
    context = Context(environ={"COLUMNS": "120"}, stdout=io.StringIO())
    peaks = [peak(), peak(variant="v", low=28.31, condition="by the maker", confirmed_by="vendor")]
    assert _peaks(peaks, context) == [
        "  DTYPE     PATH    ACCUMULATE  SPARSITY     TFLOPS  CLOCK  CONFIDENCE",
        "  fp16      matrix  fp32        dense           100  boost  derived",
        "  fp16 (v)  matrix  fp32        dense     28.31–100  boost  derived (vendor)",
        "  range: by the maker",
    ]
    (line,) = _peaks([], context)
    assert line == "  no theoretical peaks: units, clock or rates of this chip are unknown"


@pytest.mark.parametrize(("text", "count"), [(None, None), ("1", 1), ("1000000", 1_000_000)])
def test_counts_of_units(text: str | None, count: int | None) -> None:
    assert _units(text) == count


@pytest.mark.parametrize("text", ["", "0", "1000001", "00000001", "-1", "1.5", "x"])
def test_no_counts_of_units(text: str) -> None:
    with pytest.raises(CommandError, match="not a whole number from 1 to 1000000"):
        _units(text)


def test_an_answer_that_is_none_has_every_key(capsys: Any) -> None:
    (answer,) = ask(capsys, " zork ", status=0)
    empty: dict[str, Any] = {"candidates": [], "conflicts": [], "near": [], "shared_peaks": []}
    empty |= {"parents": [], "profile": None, "virtual": False, "match": None, "by": None}
    assert answer == {**empty, "query": "zork", "confidence": None, "reason": answer["reason"]}
    assert answer["reason"]
