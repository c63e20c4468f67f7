"""The table for people: what it shows, how wide it is, and when it is coloured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import recorded
from fake_probers import Probers, gpu
from reports import report_of
from trees import Tree

from probe_core.cli import main
from probe_core.cli.table import _group_lines, lines
from probe_core.commands import text
from probe_core.model.verdict import state_word

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def shown(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    root: Path,
    *options: str,
    width: int = 100,
    **environ: str,
) -> str:
    """Return what `probe` prints of a recorded machine."""
    monkeypatch.setenv("COLUMNS", str(width))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main(["--machine", str(root), "--only", "cpu", *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return recorded.unpack(recorded.read(request.param), tmp_path)


PLAIN = {"terminal": True, "colour": False, "encodable": str}

DESKTOP = """\
MS-7D25 · Linux 6.12.10-arch1-1 · x86_64 · RAM 62.8 GiB, 56.0 free

  DEVICE                           {head}  MEMORY    FP32    FP16  INT8  BANDW.  ID
                                   {empty}     GiB  TFLOPS  TFLOPS  TOPS    GB/s
* NVIDIA GeForce RTX 4090          {nvidia}    24.0    82.6     165   661    1008  01:00.0
  Intel UHD Graphics 770           {intel}       –    0.84    1.69  3.38      90  00:02.0
  Intel Core i9-13900K (24 cores)  {cpu}  shared    2.51       –     –       –  cpu:0

* primary · peaks are dense, fp16 with fp32 accumulate
MEMORY of 1 device comes from the chip table, not from the driver.
"""


@pytest.mark.parametrize(
    "machine", ["desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770"], indirect=True
)
def test_desktop(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    out = shown(capsys, monkeypatch, machine, width=130)
    report = json.loads(shown(capsys, monkeypatch, machine, "--json"))
    words = {device["vendor"]: state_word(device) for device in report["devices"][:2]}
    words |= {"head": "STATE", "empty": "", "cpu": "ready"}
    width = max(map(len, words.values()))
    table, _, findings = out.partition("\ninfo ")
    assert table == DESKTOP.format(**{name: word.ljust(width) for name, word in words.items()})
    assert "why: " not in findings  # cause and fix are in `probe doctor`


@pytest.mark.heavy
@pytest.mark.parametrize("machine", ["dgx-h100--8x-nvidia-h100-80gb-hbm3"], indirect=True)
def test_like_findings_are_told_once(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    out = shown(capsys, monkeypatch, machine)
    assert (
        out.count("8 × NVIDIA H100 80GB HBM3 were detected on the bus only; no plugin for it ran\n")
        == 1
    )
    assert "nothing to do" not in out
    assert "\n1 display adapter (aspeed) is not listed: it cannot compute.\n" in out
    listed = shown(capsys, monkeypatch, machine, "--all")
    assert "\n  aspeed display adapter, cannot compute  " in listed
    assert "not listed" not in listed


@pytest.mark.parametrize("machine", ["desktop--intel-arc-a770-of-unknown-memory"], indirect=True)
def test_device_of_several_possible_chips(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    out = shown(capsys, monkeypatch, machine)
    assert "* arc-a770-graphics-16gb or arc-a770-graphics-8gb  " in out


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("vm-without-accelerator--cpu", "No accelerator was found: the CPU is primary."),
        (
            "desktop--nvidia-geforce-rtx-3060-without-driver",
            "DEGRADED: 1 GPU was found and it cannot be used; the CPU is primary.",
        ),
        (
            "hypervisor--nvidia-geforce-rtx-3090-lent-to-a-guest",
            "No accelerator can be used: the CPU is primary.",
        ),
        ("raspberry-pi-5--videocore-vii", None),
    ],
)
def test_fallback_is_said(
    name: str, sentence: str | None, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    out = shown(capsys, monkeypatch, recorded.unpack(recorded.read(name), tmp_path))
    said = [line for line in out.splitlines() if line.startswith(("No acc", "DEGRADED"))]
    assert said == ([sentence] if sentence else [])


@pytest.mark.heavy
@pytest.mark.parametrize("width", [1, 40, 60, 80, 120, 200])
@pytest.mark.parametrize(
    "machine",
    ["dgx-h100--8x-nvidia-h100-80gb-hbm3", "raspberry-pi-5-ai-hat--hailo-8-or-8l"],
    indirect=True,
)
def test_no_line_is_wider_than_the_terminal(
    width: int, machine: Path, capsys: Any, monkeypatch: Any
) -> None:
    out = shown(capsys, monkeypatch, machine, width=width)
    words = max(len(word) for word in re.sub(r"dt:\S+|pci:\S+", "", out).split())
    assert words < 40
    assert max(map(text.width_of, out.splitlines())) <= max(40, width)


@pytest.mark.heavy
@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("machine", ["server--8x-amd-instinct-mi300x"], indirect=True)
def test_columns_are_aligned(width: int, machine: Path, capsys: Any, monkeypatch: Any) -> None:
    lines = shown(capsys, monkeypatch, machine, width=width).splitlines()
    head = next(index for index, line in enumerate(lines) if "DEVICE" in line)
    rows = lines[head + 2 : head + 11]
    end = lines[head].index("MEMORY") + len("MEMORY")
    assert lines[head + 1][:end].endswith("   GiB")
    assert [row[0] for row in rows] == ["*", *" " * 8]
    assert all(row[end - 1] != " " and row[end : end + 1] in ("", " ") for row in rows)


@pytest.mark.parametrize(
    "machine", ["hypervisor--nvidia-geforce-rtx-3090-lent-to-a-guest"], indirect=True
)
def test_colours_only_where_wanted(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    plain = shown(capsys, monkeypatch, machine)
    assert "\x1b" not in plain
    coloured = shown(capsys, monkeypatch, machine, FORCE_COLOR="1")
    assert "\x1b[1m*" in coloured
    assert ESCAPE.sub("", coloured) == plain
    assert shown(capsys, monkeypatch, machine, FORCE_COLOR="1", NO_COLOR="1") == plain


def table(tree: Tree, probers: Probers, environ: dict[str, str] | None = None) -> list[str]:
    """Return the table of made-up devices, in plain text."""
    import io

    import probe_core
    from probe_core.cli.table import lines
    from probe_core.commands.context import Context

    machine = probe_core.Machine(str(tree.root), environ)
    document = report_of(machine, **probers.arguments)
    return lines(document, Context(environ={"COLUMNS": "140"}, stdout=io.StringIO()))


def test_sizes_hidden_and_sleeping_devices(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1), gpu(2, power_state="suspended"), priority=500)
    lines = table(tree, probers, {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    first, second, cpu = (line.split() for line in lines[4:7])
    assert first[:8] == ["*", "NVIDIA", "GeForce", "RTX", "4090", "ready", "24.0", "23.5"]
    assert second[:7] == ["NVIDIA", "GeForce", "RTX", "4090", "hidden", "24.0", "23.5"]
    assert cpu[:4] == ["unknown", "cpu", "ready", "shared"]
    assert any(line.startswith("info     ") and "hid" in line for line in lines)


def test_a_sleeping_device_is_asleep(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1, power_state="suspended"), priority=500)
    assert " asleep " in table(tree, probers)[4]


def test_part_stands_below_its_parent(tree: Tree, probers: Probers) -> None:
    part = gpu(1, ids=["uuid:MIG-1"], parent="pci:0000:01:00.0", pci={})
    part["name"] = f"{gpu(1)['name']} Part"  # what the part has of its parent's name is left out
    probers.reports("a", part, gpu(1), gpu(2))
    lines = table(tree, probers)
    assert [line[:8] for line in lines[4:7]] == ["* NVIDIA", "  NVIDIA", "  └ Part"]
    assert [line.split()[-1] for line in lines[4:7]] == ["02:00.0", "01:00.0", "MIG-1"]


def test_names_in_wide_characters_are_aligned(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1, name="显卡 九零"), gpu(2))
    lines = table(tree, probers)
    places = {text.width_of(line[: line.index(":00.0") - 2]) for line in lines[4:6]}
    assert len(places) == 1


@pytest.mark.parametrize(
    ("columns", "width"),
    [("140", 140), ("1", 40), ("99999", 99999), ("0", 120), ("x", 120), ("100000", 120)],
)
def test_columns_that_somebody_sets(columns: str, width: int) -> None:
    from probe_core.commands.context import terminal_width

    assert terminal_width({"COLUMNS": columns}, None) == width


def test_terminal_without_the_characters_gets_those_that_it_has(tmp_path: Path) -> None:
    import io

    from probe_core.commands.context import Context

    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    Context(environ={}, stdout=out).out("a · b – ✓ 显")
    out.flush()
    assert raw.getvalue() == b"a | b - + ?\n"


def test_what_a_command_writes_is_there_when_it_flushes(tmp_path: Path) -> None:
    from probe_core.commands.context import Context

    with (tmp_path / "out").open("w") as out:
        context = Context(environ={}, stdout=out)
        context.out("a line")
        context.flush()
        assert (tmp_path / "out").read_text() == "a line\n"
        assert context.output_error is None


@pytest.mark.parametrize(
    ("count", "shown_as"),
    [
        (None, "–"),
        (0, "0 B"),
        (1 << 20, "1.0 MiB"),
        (25757220864, "24.0 GiB"),
        (1 << 41, "2.00 TiB"),
    ],
)
def test_sizes(count: int | None, shown_as: str) -> None:
    assert text.size(count) == shown_as


@pytest.mark.parametrize(
    ("tera", "shown_as"),
    [
        (None, "–"),
        (0.0768, "0.08"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (82.575, "82.6"),
        (99.96, "100"),
        (165.15, "165"),
        (1978.9, "1979"),
    ],
)
def test_rates(tera: float | None, shown_as: str) -> None:
    assert text.rate(tera) == shown_as


@pytest.mark.parametrize(
    ("count", "shown_as"), [(None, "–"), (1.008e12, "1008 GB/s"), (5.12e9, "5.1 GB/s")]
)
def test_bandwidths(count: float | None, shown_as: str) -> None:
    assert text.bandwidth(count) == shown_as


def test_columns_cut_the_flexible_one_and_then_drop_from_the_right() -> None:
    rows = [("A", "LONG", "N"), ("x", "a very long name indeed", "12")]
    assert text.columns(rows, 80, right=(2,), flexible=1) == [
        "A  LONG                      N",
        "x  a very long name indeed  12",
    ]
    assert text.columns(rows, 20, right=(2,), flexible=1)[1] == "x  a very long …  12"
    assert text.columns(rows, 16, right=(2,), flexible=1)[1] == "x  a very long…"


def test_wrapping_keeps_every_word() -> None:
    sentence = "one two three four five"
    assert text.wrapped(sentence, 9, indent="  ") == ["  one two", "  three", "  four", "  five"]
    assert text.wrapped("", 10) == []
    assert text.wrapped("x" * 50, 10) == ["x" * 50]


@pytest.mark.parametrize("machine", ["xeon-gold-6230--idle-at-800-mhz"], indirect=True)
def test_a_figure_of_an_idle_clock_is_a_lower_bound(
    machine: Path, capsys: Any, monkeypatch: Any
) -> None:
    out = shown(capsys, monkeypatch, machine)
    assert "shared  ≥ 2.69  ≥ 10.8  cpu:0" in out
    assert " · ≥: a lower bound\n" in out


@pytest.mark.parametrize("machine", ["dual-socket-epyc-9124--cpu"], indirect=True)
def test_peaks_of_equal_processors_are_those_of_each(
    machine: Path, capsys: Any, monkeypatch: Any
) -> None:
    out = shown(capsys, monkeypatch, machine, width=140)
    assert "\n* 2 × AMD EPYC 9124 (16 cores each)  " in out
    assert "\nPeaks of a row with × are those of each processor.\n" in out


@pytest.mark.parametrize(
    "machine", ["batch-job--6-of-32-cpus-and-6-of-8-memory-nodes"], indirect=True
)
def test_the_allowed_part_is_beside_the_whole(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    out = shown(capsys, monkeypatch, machine, width=140)
    assert "(8 cores, 6 allowed, 4.5 CPUs of time)" in out
    assert "\n  3 × AMD Opteron Processor 6134 (8 cores each, 0 allowed)  " in out
    assert "RAM limit 94.6 GiB of 126.2, 91.6 free\n" in out


@pytest.mark.parametrize(
    ("drivers", "fallback", "sentence"),
    [
        (("ve",), "no-accelerator", "No accelerator is known to be usable: the CPU is primary."),
        (
            ("ve",),
            "degraded",
            "DEGRADED: 1 accelerator was found and {0} can be used; the CPU is primary.",
        ),
        (
            ("ve", "ve"),
            "degraded",
            "DEGRADED: 2 accelerators were found and none surely can be used; the CPU is primary.",
        ),
    ],
)
def test_an_accelerator_of_which_nothing_is_known_is_not_called_unusable(
    drivers: tuple[str, ...], fallback: str, sentence: str, tree: Tree
) -> None:
    for number, driver in enumerate(drivers):
        folder = f"/sys/bus/pci/devices/0000:0{number + 1}:00.0"
        # NEC's Vector Engine: its driver is in no table of nodes.
        for name, value in (("vendor", "0x1bcf"), ("device", "0x001c"), ("class", "0x0b4000")):
            tree.file(f"{folder}/{name}", value)
        tree.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{driver}")
    report: Any = report_of(tree.machine())
    report["fallback"] = fallback
    printed = lines(report, SimpleNamespace(args=None, width=400, **PLAIN))  # type: ignore[arg-type]
    assert sentence.format("it is not known whether it") in printed


@pytest.mark.parametrize(
    ("sentences", "fix", "expected"),
    [
        (["a"], "do it", ["", "error: a", "  why: y", "  fix: do it"]),
        (["a", "a"], "do it", ["", "error: a (2 times)", "  why: y", "  fix: do it"]),
        (["a", "b"], "nothing to do", ["", "error: a", "error: b", "  why: y"]),
    ],
)
def test_findings_with_the_same_reason_have_it_once(
    sentences: list[str], fix: str, expected: list[str]
) -> None:
    group: Any = [
        {"severity": "error", "what": sentence, "why": "y", "fix": fix} for sentence in sentences
    ]
    context: Any = SimpleNamespace(width=80, **PLAIN)
    assert _group_lines(group, context) == expected
