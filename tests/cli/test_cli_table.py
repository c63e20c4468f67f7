"""The table for people: what it shows, how wide it is, and when it is coloured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import recorded
from fake_probers import Probers, gpu
from reports import report_of
from trees import Tree

from probe_core.cli import main
from probe_core.commands import text
from probe_core.model.readiness import state_word

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


DESKTOP = """\
MS-7D25 · linux 6.12.10-arch1-1 · x86_64 · 62.8 GiB memory, 56.0 GiB available

   DEVICE                                           {head}    MEMORY  FP32   FP16   INT8  BANDWIDTH  ID
   Intel UHD Graphics 770                           {intel}         –  0.84   1.69   3.38    90 GB/s  pci:0000:00:02.0
*  NVIDIA GeForce RTX 4090                          {nvidia}  24.0 GiB  82.6  165.2  660.6  1008 GB/s  pci:0000:01:00.0
   13th Gen Intel(R) Core(TM) i9-13900K (24 cores)  {cpu}    shared  2.51      –      –          –  cpu:0

* primary · TFLOPS and TOPS are dense theoretical peaks · probe explain shows more
"""  # noqa: E501 - as wide as the terminal it is made for


@pytest.mark.parametrize(
    "machine", ["desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770"], indirect=True
)
def test_desktop(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    out = shown(capsys, monkeypatch, machine, width=130)
    report = json.loads(shown(capsys, monkeypatch, machine, "--json"))
    words = {device["vendor"]: state_word(device) for device in report["devices"][:2]}
    words |= {"head": "STATE", "cpu": "ready"}
    width = max(map(len, words.values()))
    table, _, findings = out.partition("\ninfo: ")
    assert table == DESKTOP.format(**{name: word.ljust(width) for name, word in words.items()})
    assert findings.count("why: ") == 2


@pytest.mark.parametrize("machine", ["dgx-h100--8x-nvidia-h100-80gb-hbm3"], indirect=True)
def test_like_findings_are_told_once(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    out = shown(capsys, monkeypatch, machine)
    assert (
        out.count("8 × NVIDIA H100 80GB HBM3 were detected on the bus only; no plugin for it ran\n")
        == 1
    )
    assert out.count("pip install 'probe-core[nvidia]'") == 1
    assert "nothing to do" not in out
    assert "   aspeed display adapter, cannot compute  " in out


@pytest.mark.parametrize("machine", ["desktop--intel-arc-a770-of-unknown-memory"], indirect=True)
def test_device_of_several_possible_chips(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    out = shown(capsys, monkeypatch, machine)
    assert "*  arc-a770-graphics-16gb or arc-a770-graphics-8gb  " in out


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("vm-without-accelerator--cpu", "No accelerator was found: the CPU is primary."),
        (
            "desktop--nvidia-geforce-rtx-3060-without-driver",
            "Degraded: something failed, so an accelerator may be missing; see below.",
        ),
        ("raspberry-pi-5--videocore-vii", None),
    ],
)
def test_fallback_is_said(
    name: str, sentence: str | None, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    out = shown(capsys, monkeypatch, recorded.unpack(recorded.read(name), tmp_path))
    said = [line for line in out.splitlines() if line.startswith(("No acc", "Degraded"))]
    assert said == ([sentence] if sentence else [])


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


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("machine", ["server--8x-amd-instinct-mi300x"], indirect=True)
def test_columns_are_aligned(width: int, machine: Path, capsys: Any, monkeypatch: Any) -> None:
    lines = shown(capsys, monkeypatch, machine, width=width).splitlines()
    head = next(index for index, line in enumerate(lines) if "DEVICE" in line)
    rows = lines[head + 1 : head + 12]
    end = lines[head].index("MEMORY") + len("MEMORY")
    assert [row[0] for row in rows] == ["*", *" " * 10]
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
    first, second, cpu = (line.split() for line in lines[3:6])
    assert first[:5] == ["*", "NVIDIA", "GeForce", "RTX", "4090"]
    assert first[6:11] == ["24.0", "GiB", "23.5", "GiB", "82.6"]
    assert second[:9] == [
        "NVIDIA",
        "GeForce",
        "RTX",
        "4090",
        "hidden",
        "24.0",
        "GiB",
        "23.5",
        "GiB",
    ]
    assert cpu[:4] == ["unknown", "cpu", "ready", "shared"]
    assert any(line.startswith("info: ") and "hidden" in line for line in lines)


def test_a_sleeping_device_is_asleep(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1, power_state="suspended"), priority=500)
    assert " asleep " in table(tree, probers)[3]


@pytest.mark.parametrize("width", range(40, 200))
def test_the_state_takes_nothing_from_the_names(width: int) -> None:
    from probe_core.cli import table as module

    name = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"
    row = (
        "",
        name,
        "no permission",
        "95.6 GiB",
        "94.1 GiB",
        "110.1",
        "440.4",
        "880.8",
        "1792 GB/s",
    )
    rows = [module._HEAD, (*row, "pci:0000:01:00.0")]
    before = [(*cells[:2], *cells[3:]) for cells in rows]
    width_before = text.column_widths(before, width, flexible=1)[1]
    fitted = module._fitting(rows, width)
    widths = text.column_widths(fitted, width, flexible=1)
    assert widths[1] >= width_before
    assert fitted[0][:3] == ("", "DEVICE", "STATE")
    assert sum(widths) + 2 * (len(widths) - 1) <= width


def test_part_stands_below_its_parent(tree: Tree, probers: Probers) -> None:
    part = gpu(1, ids=["uuid:MIG-1"], parent="pci:0000:01:00.0", name="Part", pci={})
    probers.reports("a", part, gpu(1), gpu(2))
    lines = table(tree, probers)
    assert [line[3:9] for line in lines[3:6]] == ["NVIDIA", "└ Part", "NVIDIA"]


def test_names_in_wide_characters_are_aligned(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1, name="显卡 九零"), gpu(2))
    lines = table(tree, probers)
    places = {text.width_of(line[: line.index("pci:")]) for line in lines[3:5]}
    assert len(places) == 1


@pytest.mark.parametrize(
    ("columns", "width"), [("140", 140), ("3", 40), ("0", 100), ("x", 100), ("9" * 5000, 100)]
)
def test_columns_that_somebody_sets(columns: str, width: int) -> None:
    from probe_core.commands.context import terminal_width

    assert terminal_width({"COLUMNS": columns}, None) == width


def test_terminal_without_the_characters_gets_question_marks(tmp_path: Path) -> None:
    import io

    from probe_core.commands.context import Context

    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    Context(environ={}, stdout=out).out("a · b – ✓")
    out.flush()
    assert raw.getvalue() == b"a ? b ? ?\n"


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
    ("tera", "shown_as"), [(None, "–"), (0.0768, "0.08"), (82.575, "82.6"), (1978.9, "1979")]
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
    assert "shared  ≥ 2.69     –  ≥ 10.8  cpu:0" in out
    assert "; ≥: a lower bound · " in out


@pytest.mark.parametrize(
    "machine", ["batch-job--6-of-32-cpus-and-6-of-8-memory-nodes"], indirect=True
)
def test_the_allowed_part_is_beside_the_whole(machine: Path, capsys: Any, monkeypatch: Any) -> None:
    out = shown(capsys, monkeypatch, machine, width=140)
    assert "(8 cores, 6 allowed, 4.5 CPUs of time)" in out
    assert "(8 cores, 0 allowed)" in out
    assert "126.2 GiB memory, limited to 94.6 GiB" in out
