"""The table's rules one by one: which column leaves, what each state looks like, what is joined."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest
from fake_probers import Probers, gpu
from reports import report_of
from trees import Tree

import probe_core
from probe_core.cli.table import _memory_note, lines
from probe_core.commands.context import Context
from probe_core.commands.tables import grid
from probe_core.model.naming import short_name, title

NPU = gpu(9, kind="npu", vendor="acme", name="Acme NPU", pci={"id": "1ac0:0001"}, backends=[])


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def shown(report: Any, width: int = 120, *, terminal: bool = False, **environ: str) -> list[str]:
    stdout = Terminal() if terminal else io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    return lines(report, Context(environ={"COLUMNS": str(width), **environ}, stdout=stdout))


def heads(report: Any, width: int) -> list[str]:
    return shown(report, width)[2].split()


@pytest.fixture
def report(tree: Tree, probers: Probers) -> dict[str, Any]:
    probers.reports("a", gpu(1), gpu(2, power_state="suspended"), NPU, priority=500)
    document = report_of(probe_core.Machine(str(tree.root)), **probers.arguments)
    for device in document["devices"]:
        device["readiness"] = None
    return document


def test_columns_leave_in_their_order(report: Any) -> None:
    every = ["DEVICE", "STATE", "MEMORY", "FREE", "FP32", "FP16", "INT8", "BANDW.", "ID"]
    orders = [heads(report, width) for width in range(120, 71, -1)]
    seen = list(dict.fromkeys(map(tuple, orders)))
    assert [[name for name in every if name not in order] for order in seen] == [
        [],
        ["BANDW."],
        ["INT8", "BANDW."],
        ["FP32", "INT8", "BANDW."],
    ][: len(seen)]
    assert len(seen) >= 2
    assert len(shown(report, 71)[2].split()) > 2
    assert "DEVICE" not in " ".join(shown(report, 71))


def test_an_accelerator_keeps_its_only_figure(report: Any) -> None:
    npu = next(device for device in report["devices"] if device["kind"] == "npu")
    npu["int8"] = 50.0
    for width in range(72, 120):
        output = " ".join(shown(report, width))
        assert "50.0" in output, width


STYLES = {
    "no-driver": ("driver", "no driver", "31"),
    "not-in-group": ("permission", "no permission", "31"),
    "gpu-not-granted": ("granted", "not granted", "33"),
    "reserved-for-vm": ("driver", "passthrough", "33"),
    "query-fails": ("library", "driver error", "31"),
    "gpu-lost": ("responding", "lost", "31"),
    "mig-mode": ("granted", "MIG mode", "2"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("code", STYLES)
@pytest.mark.parametrize("width", [60, 100])
def test_each_state_has_its_word_and_colour(code: str, width: int, report: Any) -> None:
    step, word, style = STYLES[code]
    broken = {"step": step, "status": "broken", "evidence": None, "code": code}
    device = report["devices"][0]
    device["readiness"] = {"state": "blocked", "broken": step, "steps": [broken]}
    report["primary"] = report["devices"][1]["id"]
    output = shown(report, width, FORCE_COLOR="1")
    assert any(f"\x1b[{style}m{word}\x1b[0m" in line for line in output)
    assert any("\x1b[36masleep\x1b[0m" in line for line in output)
    primary = [line for line in output if line.startswith("\x1b[1m* NVIDIA GeForce RTX 4090")]
    assert len(primary) == 1


def test_a_hidden_device_is_a_dim_row(tree: Tree, probers: Probers) -> None:
    probers.reports("a", gpu(1), gpu(2))
    environ = {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    machine = probe_core.Machine(str(tree.root), environ)
    output = shown(report_of(machine, **probers.arguments), FORCE_COLOR="1")
    row = next(line for line in output if " hidden " in line)
    assert row.startswith("\x1b[2m  NVIDIA")
    assert row.endswith("02:00.0\x1b[0m")


@pytest.mark.parametrize(
    ("choice", "environ", "coloured"),
    [
        (None, {}, True),
        (None, {"NO_COLOR": "1"}, False),
        (None, {"TERM": "dumb"}, False),
        (None, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": "1"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_who_decides_about_colours(
    choice: str | None, environ: dict[str, str], coloured: bool
) -> None:
    import argparse

    args = argparse.Namespace(color=choice)
    assert Context(args, environ=environ, stdout=Terminal()).colour is coloured
    piped = Context(args, environ=environ, stdout=io.StringIO()).colour
    assert piped is (choice == "always")


def test_only_a_terminal_is_told_other_commands(report: Any) -> None:
    report["findings"] = [finding("a", "x is odd"), finding("b", "y is broken", "error")]
    output = shown(report, terminal=True, NO_COLOR="1")
    assert output[-4:] == [
        "",
        "error    y is broken [b]",
        "info     x is odd [a]",
        "         `probe doctor` tells cause and fix",
    ]
    assert any(line.endswith(" · sources: probe explain") for line in output)
    assert not any("probe " in line for line in shown(report))


def finding(code: str, what: str, severity: str = "info", **facts: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("device", "prober", "setting", "variable", "step", "evidence"))
    return {
        "code": code,
        "severity": severity,
        "what": what,
        "why": "",
        "fix": "",
        **empty,
        **facts,
    }


def test_findings_that_differ_in_their_device_are_one_line(report: Any) -> None:
    ids = [f"pci:0000:{number:02x}:00.0" for number in range(1, 9)]
    for name in ids[2:]:
        report["devices"].append(report["devices"][0] | {"id": name, "ids": [name]})
    report["findings"] = [finding("odd", f"the fan of {name} stands", device=name) for name in ids]
    report["findings"] += [finding("off", f"{name} is off", device=name) for name in ids[:2]]
    report["findings"] += [finding("hot", f"{name} is hot", device=name) for name in ids[:4]]
    report["findings"] += [finding("old", f"{ids[0]} is old", device=ids[0])]
    report["findings"] += [finding("same", "twice the same")] * 2
    assert shown(report)[-5:] == [
        "info     the fan of 01:00.0, 02:00.0, 03:00.0, 04:00.0 and 4 more stands [odd]",
        "info     01:00.0 and 02:00.0 are off [off]",
        "info     01:00.0, 02:00.0, 03:00.0 and 04:00.0 are hot [hot]",
        "info     01:00.0 is old [old]",
        "info     twice the same (2 times) [same]",
    ]


def test_a_code_is_left_out_where_the_line_would_wrap(report: Any) -> None:
    sentence = "x" * 60
    report["findings"] = [finding("some-code", sentence)]
    assert shown(report, 81)[-1] == f"info     {sentence} [some-code]"
    assert shown(report, 80)[-1] == f"info     {sentence}"


def named(name: str, kind: str = "cpu") -> Any:
    return {"name": name, "kind": kind, "id": "x", "chip": {"candidates": []}}


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("13th Gen Intel(R) Core(TM) i9-13900K", "Intel Core i9-13900K"),
        ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "Intel Xeon E5-2680 v4"),
        ("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", "Intel Xeon Gold 6248"),
        ("AMD Ryzen 9 3900X 12-Core Processor", "AMD Ryzen 9 3900X"),
        ("AMD Ryzen 7 7840U w/ Radeon 780M Graphics", "AMD Ryzen 7 7840U"),
        ("AMD Ryzen 5 3400G with Radeon Vega Graphics", "AMD Ryzen 5 3400G"),
        ("AMD EPYC 7R13 Processor", "AMD EPYC 7R13 Processor"),
        ("Processor", "Processor"),
        ("(R)", "(R)"),
        ("Cortex-A76", "Cortex-A76"),
    ],
)
def test_names_of_processors(name: str, short: str) -> None:
    assert short_name(named(name)) == short


def test_names_of_accelerators_keep_their_words() -> None:
    assert short_name(named("Intel(R) Arc(TM) A770 Graphics", "gpu")) == "Intel Arc A770 Graphics"
    card = named("NVIDIA A100-SXM4-80GB", "gpu")
    part = named("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "gpu")
    assert title(part, card) == "MIG 1g.10gb"
    assert title(named(card["name"], "gpu") | {"id": "amd:0000:05:00.0/xcp3"}, card) == (
        "partition xcp3"
    )


ROWS = [
    ("NAME", "COUNT", "WHY"),
    ("alpha", "1", "a reason of several words"),
    ("beta", "12", ""),
]


@pytest.mark.parametrize(
    ("total", "limit", "available", "shown"),
    [
        (None, None, None, "RAM unknown"),
        ((1 << 40) - 1, None, None, "RAM 1024.0 GiB"),
        (1 << 40, None, 1 << 39, "RAM 1.00 TiB, 0.50 free"),
        (1 << 30, None, None, "RAM 1.0 GiB"),
        ((1 << 30) - 1, None, 1 << 20, "RAM 1024 MiB, 1 free"),
        (4 << 30, 1 << 30, 0, "RAM limit 1.0 GiB of 4.0, 0.0 free"),
        (None, 1 << 30, None, "RAM limit 1.0 GiB"),
    ],
)
def test_the_memory_of_the_system_is_in_one_unit(
    total: int | None, limit: int | None, available: int | None, shown: str
) -> None:
    assert _memory_note({"total": total, "limit": limit, "available": available}) == shown


def test_grid_wraps_then_puts_below_then_stacks() -> None:
    assert grid(ROWS, 50, right=("COUNT",), wrap="WHY") == [
        "NAME   COUNT  WHY",
        "alpha      1  a reason of several words",
        "beta      12",
    ]
    assert grid(ROWS, 38, right=("COUNT",), wrap="WHY")[1:3] == [
        "alpha      1  a reason of several",
        "              words",
    ]
    assert grid(ROWS, 30, right=("COUNT",), wrap="WHY") == [
        "NAME   COUNT",
        "alpha      1",
        "    a reason of several words",
        "beta      12",
    ]
    assert (
        grid(ROWS, 38, wrap="WHY", leaving=("COUNT",), right=("COUNT",))[0] == "NAME   COUNT  WHY"
    )
    assert grid(ROWS, 33, wrap="WHY", leaving=("COUNT",))[:2] == [
        "NAME   WHY",
        "alpha  a reason of several words",
    ]
    for wrap in (None, "WHY"):  # also where no row has a value in its column
        assert grid([("LONG NAME", "N"), ("a name of many words", "1")], 12, wrap=wrap) == [
            "a name",
            "    of many",
            "    words",
            "    1",
        ]
    assert grid([("A", "EMPTY"), ("x", "")], 80) == ["A", "x"]


def test_json_needs_no_table() -> None:
    script = (
        "import sys; from probe_core.cli import main; main(['--json', '--only', 'cpu']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    path = [entry for entry in sys.path if entry]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stderr.split())
    assert "probe_core.cli.devices" in loaded
    for module in ("cli.table", "commands.text", "commands.waiting"):
        assert f"probe_core.{module}" not in loaded
