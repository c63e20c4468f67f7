"""`probe explain`: all that it says of a made-up report and of each kind of value, whole."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from probe_core.cli import main
from probe_core.cli.explain import device_lines, matching, readable, run_lines
from probe_core.commands import CommandError, Context


def context(width: int = 120, *, terminal: bool = False) -> Context:
    class Output(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return terminal

    environ = {"COLUMNS": str(width), "NO_COLOR": "1"}
    return Context(environ=environ, stdout=Output())


def peak(dtype: str, tflops: float, sparsity: str = "dense", **facts: Any) -> dict[str, Any]:
    derived = {"accumulate": "fp32", "clock": "boost", "confidence": "high", "source": "units"}
    return {"dtype": dtype, "path": "alu", "sparsity": sparsity, "tflops": tflops} | derived | facts


def device(number: int, name: str = "Acme One", **facts: Any) -> dict[str, Any]:
    id = f"pci:0000:0{number}:00.0"
    empty = {"id": id, "ids": [id], "kind": "gpu", "vendor": "acme", "name": name, "parent": None}
    parts = {"unknown": {}, "sources": {}, "others": {}, "peaks": [], "profile": None}
    chip = {"id": None, "by": None, "confidence": None, "candidates": []}
    return {**empty, **parts, "readiness": None, "chip": chip, **facts}


def report(*devices: dict[str, Any], **parts: Any) -> Any:
    empty = {"primary": None, "outcomes": [], "decisions": [], "findings": [], "fallback": None}
    return {"schema": 1, "devices": [*devices], "timings_ms": {}, **empty, **parts}


WHOLE = """
pci:0000:01:00.0  Acme One
  state: unready
    present: ok  it is on the bus
    driver: not applicable
    granted: broken  no node [node-denied]
  FIELD         VALUE     SOURCE
  memory.total  24.0 GiB  acme
  name          Acme One  acme
  memory.total: other reports 1.0 GiB
  chip acme/one by pci (high confidence)
  conflict: it has 7 units, not 8
  8 × P at 5200 MHz: 1.25 TFLOPS fp32
  4 × little
  2 × unknown core
  unknown arch: not known
  unknown power_state: no file

  PEAK      ACCUMULATE  SPARSITY         FIGURE  CLOCK  CONFIDENCE  HOW
  fp32 alu  fp32        dense       9.99 TFLOPS  boost  high        units
  fp16 alu  fp32        dense     ≥ 20.0 TFLOPS  boost  high        units; a lower bound; 30.0 if all are its fastest
                                                                    cores
  1 peak with sparsity not listed

  MEASURED         BEST       MEDIAN  OF PEAK  COUNTS                      BY
  fp32 alu  12.0 TFLOPS  11.0 TFLOPS  –        yes                         acme 1, 2026-11-28
  fp32 alu  12.0 TFLOPS  11.0 TFLOPS  –        no: disturbed (heat, load)  acme 1, 2026-11-28
  fp32 alu  12.0 TFLOPS  11.0 TFLOPS  –        no: driver                  acme 1, 2026-11-28"""  # noqa: E501


def test_one_device() -> None:
    steps = [
        {"step": "present", "status": "ok", "evidence": "it is on the bus", "code": None},
        {"step": "driver", "status": "not_applicable", "evidence": None, "code": None},
        {"step": "granted", "status": "broken", "evidence": "no node", "code": "node-denied"},
    ]
    figure = {"figure": "compute", "kind": "alu", "dtype": "fp32", "unit": "TFLOPS"}
    figure |= {"best": 12.0, "median": 11.0, "by": "acme 1", "date": "2026-11-28T10:11:12Z"}
    figure |= {"stale": None, "disturbed": []}
    whole = device(
        1,
        readiness={"steps": steps, "state": "unready"},
        memory={"total": 24 << 30},
        sources={"name": "acme", "memory.total": "acme", "peaks": "chipdb"},
        others={"memory.total": [{"prober": "other", "value": 1 << 30}]},
        chip={
            "id": "acme/one",
            "by": "pci",
            "confidence": "high",
            "candidates": ["acme/two"],
            "conflicts": ["it has 7 units, not 8"],
        },
        unknown={"power_state": "no file", "arch": "not known"},
        peaks=[
            peak("fp32", 9.994),
            peak("int8", 100.0, "2:4", variant="v"),
            peak("fp16", 20.0, bound="lower", high=30.0),
        ],
        measured=[figure, figure | {"disturbed": ["heat", "load"]}, figure | {"stale": "driver"}],
        cpu={
            "clusters": [
                {"name": "P", "cores": 8, "max_mhz": 5200.0, "fp32": 1.25},
                {"kind": "little", "cores": 4},
                {"cores": 2},
                "odd",
            ]
        },
    )
    shown = list(device_lines(whole, context(), sparse=False))
    assert "\n".join(shown) == WHOLE


def test_each_peak_where_it_is_asked_for() -> None:
    peaks = [peak("fp32", 1.0), peak("int8", 2.0, "2:4", variant="v"), peak("int4", 2.0, "2:4")]

    def rows(peaks: list[Any], *, sparse: bool, **options: Any) -> list[str]:
        shown = list(device_lines(device(1, peaks=peaks), context(**options), sparse=sparse))
        assert (
            shown[1:5]
            == [
                "pci:0000:01:00.0  Acme One",
                "  state: unknown",
                "  FIELD  VALUE  SOURCE",
                "",
            ][: len(shown) - 1]
        )
        return shown[6:]

    dense = "  fp32 alu  fp32        dense     1.00 TFLOPS  boost  high        units"
    hint = "  2 peaks with sparsity not listed"
    assert rows(peaks, sparse=False) == [dense, hint]
    assert rows(peaks, sparse=False, terminal=True) == [dense, f"{hint}: --all"]
    assert rows(peaks, sparse=True) == [
        "  fp32 alu     fp32        dense     1.00 TFLOPS  boost  high        units",
        "  int8 alu, v  fp32        2:4         2.00 TOPS  boost  high        units",
        "  int4 alu     fp32        2:4         2.00 TOPS  boost  high        units",
    ]
    only = "  int4 alu  fp32        2:4       2.00 TOPS  boost  high        units"
    assert rows(peaks[2:], sparse=False) == [only]
    assert rows([], sparse=True) == []
    ambiguous = device(1, chip=device(1)["chip"] | {"candidates": ["a/1", "a/2"]})
    assert (
        list(device_lines(ambiguous, context(), sparse=True))[-1] == "  chip: ambiguous: a/1 or a/2"
    )


RUN = """\
Primary: 01:00.0 Acme One
  the first of the accelerators that can be used, by kind, priority of the plugin, dedicated memory, fp16 peak, memory
  and address

Devices
  2 × Acme One: unknown
    01:00.0 02:00.0
  Acme Two: unknown
    03:00.0

Plugins
PLUGIN  PACKAGE  STATUS               TIME  DEVICES  REASON
a       d 1      ok                 1.2 ms        2
b       d 1      timeout (partial)  1.2 ms        2  r
  b| a line
c       d 1      skipped                             off

Time
find 1.2 ms · merge 0.5 ms

Differences
  name: other reports Acme I (01:00.0, 02:00.0)

Unknown
  unknown arch, units: no file (01:00.0, 02:00.0)
  unknown pci: odd 0 (01:00.0)
  unknown pci: odd 1 (02:00.0)

Findings
none
fallback: no"""  # noqa: E501


def test_a_whole_run() -> None:
    devices = [device(1), device(2), device(3, "Acme Two")]
    for at, own in enumerate(devices[:2]):
        own["others"] = {"name": [{"prober": "other", "value": "Acme I"}]}
        own["unknown"] = {"arch": "no file", "units": "no file", "pci": f"odd {at}"}
    ended: dict[str, Any] = {"distribution": "d 1", "elapsed_ms": 1.25, "devices": 2}
    ended |= {"reason": None, "partial": False}
    outcomes = [
        {**ended, "prober": "a", "status": "ok"},
        {**ended, "prober": "b", "status": "timeout", "partial": True, "reason": "r"},
        {**ended, "prober": "c", "status": "skipped", "reason": "off", "devices": 0},
    ]
    outcomes[1]["stderr"] = ["a line"]
    whole = report(*devices, primary=devices[0]["id"], timings_ms={"find": 1.25, "merge": 0.5})
    whole["outcomes"] = outcomes
    assert "\n".join(run_lines(whole, context())) == RUN


@pytest.mark.parametrize(
    ("kinds", "primary", "words"),
    [
        ([], None, ["Primary: none"]),
        (["gpu"], 1, ["Primary: 01:00.0 Acme One", "  it is the only accelerator"]),
        (["gpu", "cpu"], 2, ["Primary: 02:00.0 Acme One", "  no accelerator can be used"]),
        (["cpu"], 1, ["Primary: 01:00.0 Acme One", "  no accelerator was detected"]),
    ],
)
def test_why_a_device_is_primary(kinds: list[str], primary: int | None, words: list[str]) -> None:
    devices = [device(number, kind=kind) for number, kind in enumerate(kinds, 1)]
    whole = report(*devices, primary=primary and f"pci:0000:0{primary}:00.0")
    assert list(run_lines(whole, context()))[: len(words)] == words


def test_five_devices_are_counted() -> None:
    devices = [device(number, unknown={"arch": "no file"}) for number in range(1, 6)]
    for count, named in ((4, "01:00.0, 02:00.0, 03:00.0, 04:00.0"), (5, "5 devices")):
        shown = list(run_lines(report(*devices[:count]), context()))
        assert f"  unknown arch: no file ({named})" in shown


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("acme t", [2]),
        ("ACME", [0, 1, 2]),
        ("02:00.0", [1]),
        ("0000:03", [2]),
        ("cpu:0-1", [3, 4]),
        ("cpu:", [3, 4]),
    ],
)
def test_devices_that_a_text_names(words: str, places: list[int]) -> None:
    devices: Any = [device(1), device(2), device(3, "Acme Two")]
    devices += [device(9, "", id=f"cpu:{n}", ids=[f"cpu:{n}"]) for n in (0, 1)]
    assert matching(devices, words) == [devices[place] for place in places]
    for text, sentence in (
        ("pci", "'pci' names several devices; write one of pci:0000:01:00.0, "),
        ("zork", "no device has an id with 'zork' in it; there are: pci:0000:01:00.0, "),
    ):
        with pytest.raises(CommandError) as raised:
            matching(devices, text)
        assert str(raised.value).startswith(sentence)


def test_what_each_option_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report(device(1), device(2, "Acme Two"))))

    def heads(*words: str) -> list[str]:
        assert main(["explain", *words, "--static", str(path)]) == 0
        shown = capsys.readouterr().out.splitlines()
        return [line.split(":")[0] for line in shown if line.startswith(("Primary", "pci:"))]

    assert heads() == ["Primary"]
    assert heads("two") == ["pci"]
    assert heads("--all") == ["Primary", "pci", "pci"]
    assert heads("acme", "--all") == ["pci", "pci"]


PEER = {"kind": "nvlink", "peer": "43:00.0", "bandwidth": 50e9}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("memory.total", 24 << 30, "24.0 GiB"),
        ("memory", {"total": 1 << 30, "kind": "shared"}, "total 1.0 GiB, kind shared"),
        ("bandwidth", 1.008e12, "1008 GB/s"),
        ("fp32", 82.6, "82.6 TFLOPS"),
        ("int8", 660.6, "661 TOPS"),
        ("units", 128, "128"),
        ("backends", ["cuda", "vulkan"], "cuda, vulkan"),
        ("integrated", True, "yes"),
        ("integrated", False, "no"),
        ("power_state", None, "unknown"),
        ("extra", {"load": 0.5}, "load 0.5"),
        ("links", [PEER], "nvlink to 43:00.0, 50 GB/s"),
        ("links", [{"kind": "x", "to": "a:1", "count": 2}, "odd"], "2 × x to a:1; odd"),
        (
            "links",
            [{"kind": "pcie", "generation": 5, "width": 16, "max_width": 8, "max_gts": 2.5}],
            "PCIe gen 5 x16 (at most x8 at 2.5 GT/s)",
        ),
        ("links", [{"kind": "pcie", "generation": 5, "max_width": 8, "count": 1}], "PCIe"),
    ],
)
def test_values_as_people_read_them(path: str, value: object, words: str) -> None:
    assert readable(path, value) == words
