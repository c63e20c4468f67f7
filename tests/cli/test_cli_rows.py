"""Rows, notes and head of the table of `probe`, from reports of a few facts."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.cli.table import has_own_memory, head_lines, lines, notes, rows_of
from probe_core.commands import Context

GIB = 1 << 30


def device(number: int = 1, **fields: Any) -> Any:
    name = f"pci:0000:0{number}:00.0"
    known = {
        **{"id": name, "ids": [name], "kind": "gpu", "vendor": "nvidia", "name": "Card"},
        **{"parent": None, "visibility": {}, "readiness": None, "power_state": None, "links": []},
        **{"memory": {"kind": "dedicated", "total": 8 * GIB, "free": None, "usable": None,
                      "parts": {}}},
        **{"bandwidth": None, "fp32": None, "fp16": None, "int8": None, "peaks": [], "unknown": {}},
        **{"driver": None, "chip": {"id": None, "candidates": []}, "seen_by": ["bus"]},
        **{"node_index": {}, "backends": {}, "sources": {}, "units": None, "allowed": None},
    }  # fmt: skip
    return {**known, **fields}


def cpu(number: int = 0, **fields: Any) -> Any:
    own = {"id": f"cpu:{number}", "ids": [f"cpu:{number}"], "kind": "cpu", "vendor": "amd"}
    return device(**{**own, "name": "EPYC 9", "units": 4, **shared(None), **fields})


def shared(total: int | None, **fields: Any) -> dict[str, Any]:
    known = {"kind": "shared", "total": total, "free": None, "usable": None, "parts": {}}
    return {"memory": {**known, **fields}}


def report(*devices: Any, primary: str | None = None, **fields: Any) -> Any:
    memory = {"total": 32 * GIB, "limit": None, "available": None}
    node = {"os": "linux", "kernel": "6.8", "arch": "x86_64", "model": "Box", "memory": memory}
    known = {"devices": list(devices), "primary": primary, "node": node, "fallback": None}
    return {**known, "findings": [], **fields}


def rows(*devices: Any, primary: str | None = None, every: bool = False) -> Any:
    return rows_of(report(*devices, primary=primary), all_devices=every)


def said(*devices: Any, primary: str | None = None, terminal: bool = True, narrow: bool = False,
         every: bool = False, **fields: Any) -> list[str]:  # fmt: skip
    document = report(*devices, primary=primary, **fields)
    context: Any = SimpleNamespace(terminal=terminal, colour=False, encodable=str, width=400)
    listed = rows_of(document, all_devices=every)
    return notes(document, listed, context, narrow=narrow)


def test_rows_are_in_the_order_of_kinds_and_families() -> None:
    part, orphan = device(3, parent="pci:0000:01:00.0", name="1g"), device(4, parent="gone")
    devices = [cpu(), part, orphan, device(2), device(1), device(5, kind="display")]
    found = rows(*devices, primary="pci:0000:01:00.0")
    assert [(row.cells["ID"], row.mark, row.is_primary) for row in found] == [
        ("01:00.0", "* ", True), ("03:00.0", "  └ ", False), ("04:00.0", "  └ ", False),
        ("02:00.0", "  ", False), ("cpu:0", "  ", False),
    ]  # fmt: skip
    assert [row.cells["ID"] for row in rows(*devices, every=True)][-1] == "05:00.0"
    only = rows(device(2), part, device(1), primary=part["id"])
    assert [row.cells["ID"] for row in only] == ["01:00.0", "03:00.0", "02:00.0"]
    assert [row.is_primary for row in only] == [False, True, False]


def test_equal_processors_share_a_row() -> None:
    two = rows(cpu(0), cpu(1))
    assert [(row.cells["DEVICE"], row.cells["ID"]) for row in two] == [
        ("  2 × EPYC 9 (4 cores each)", "cpu:0-1")
    ]
    assert rows(cpu(0), cpu(2), cpu(1))[0].cells["ID"] == "cpu:0,2,1"
    assert rows(cpu(0), cpu(2))[0].cells["ID"] == "cpu:0,2"
    assert rows(cpu(0), cpu(1), primary="cpu:1")[0].mark == "* "
    for field, value in (
        ("name", "Other"), ("units", 5), ("allowed", {"cores": 2}), ("fp32", 1.0), ("fp16", 1.0),
        ("int8", 1.0), ("bandwidth", 1e9),
    ):  # fmt: skip
        assert len(rows(cpu(0), cpu(1, **{field: value}))) == 2, field
    assert len(rows(device(1), device(2))) == 2


def cell(column: str, **fields: Any) -> str:
    return str(rows(device(**fields), every=True)[0].cells[column])


@pytest.mark.parametrize(
    ("column", "fields", "text"),
    [
        ("MEMORY", {}, "8.0"),
        ("MEMORY", {"memory": {"kind": None, "total": None, "parts": {}}}, "–"),
        ("MEMORY", shared(32 * GIB), "shared"),
        ("MEMORY", shared(None), "shared"),
        ("MEMORY", shared(4 * GIB), "4.0"),
        ("MEMORY", {"kind": "display"}, ""),
        ("FREE", {}, "–"),
        ("FREE", {"memory": {"kind": None, "total": GIB, "free": 0, "usable": GIB}}, "0.0"),
        ("FREE", {"memory": {"kind": None, "total": GIB, "free": None, "usable": GIB}}, "1.0"),
        ("FREE", {"memory": {"kind": None, "total": GIB}}, "–"),
        ("FREE", shared(32 * GIB, free=GIB), ""),
        ("FREE", {"kind": "display"}, ""),
        ("FP32", {}, "–"),
        ("FP32", {"fp32": 82.6}, "82.6"),
        ("FP16", {"fp16": 1.0, "peaks": [{"bound": "lower", "clock": "x"}]}, "≥ 1.00"),
        ("FP16", {"fp16": 1.0, "peaks": [{"bound": "upper", "clock": "x"}]}, "1.00"),
        ("FP16", {"peaks": [{"bound": "lower", "clock": "x"}]}, "–"),
        ("INT8", {"kind": "display", "int8": 1.0}, ""),
        ("BANDW.", {}, "–"),
        ("BANDW.", {"bandwidth": 1008e9}, "1008"),
    ],
)
def test_a_cell(column: str, fields: dict[str, Any], text: str) -> None:
    assert cell(column, **fields) == text


@pytest.mark.parametrize(
    ("kind", "total", "own"),
    [
        ("dedicated", None, True),
        (None, 32 * GIB, True),
        ("unified", 32 * GIB, False),
        ("unified", 31 * GIB, True),
        ("shared", None, False),
    ],
)
def test_whose_memory_it_is(kind: str | None, total: int | None, own: bool) -> None:
    memory = {"kind": kind, "total": total}
    assert has_own_memory(device(memory=memory), report()) is own


def test_what_is_dim() -> None:
    assert not rows(device())[0].is_dim
    assert rows(device(kind="display"), every=True)[0].is_dim
    assert rows(device(kind="coprocessor"))[0].is_dim


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        ((None, None, None), "RAM unknown"),
        ((64 * GIB, None, None), "RAM 64.0 GiB"),
        ((64 * GIB, None, 5 * GIB), "RAM 64.0 GiB, 5.0 free"),
        ((64 * GIB, 8 * GIB, 5 * GIB), "RAM limit 8.0 GiB of 64.0, 5.0 free"),
        ((None, 8 * GIB, None), "RAM limit 8.0 GiB"),
        ((64 * GIB, 40 << 20, 30 << 20), "RAM limit 40 MiB of 65536, 30 free"),
        ((1 << 40, None, 512 * GIB), "RAM 1.00 TiB, 0.50 free"),
        (((1 << 40) - 1, None, None), "RAM 1024.0 GiB"),
        ((GIB - 1, None, 0), "RAM 1024 MiB, 0 free"),
        ((GIB, None, None), "RAM 1.0 GiB"),
    ],
)
def test_the_memory_of_the_computer(memory: tuple[Any, Any, Any], text: str) -> None:
    document = report()
    document["node"]["memory"] = dict(zip(("total", "limit", "available"), memory, strict=True))
    context: Any = SimpleNamespace(colour=False, encodable=str, width=400)
    assert head_lines(document, context) == [f"Box · Linux 6.8 · x86_64 · {text}"]


def test_the_place_of_a_computer_without_a_model() -> None:
    document = report()
    context: Any = SimpleNamespace(colour=False, encodable=str, width=400)
    node = document["node"] | {"model": None, "kernel": None, "os": "plan9"}
    for container, place in (
        (None, ""),
        ("docker", "docker container · "),
        ("container", "container · "),
    ):
        document["node"] = {**node, "container": container}
        assert head_lines(document, context) == [f"{place}plan9 · x86_64 · RAM 32.0 GiB"]


PEAK = {"clock": "boost"}


def test_the_legend() -> None:
    one = device(peaks=[PEAK], fp32=1.0)
    assert said() == ["sources: probe explain"]
    assert said(terminal=False) == []
    assert said(one, primary=one["id"])[0] == (
        "* primary · peaks are dense, fp16 with fp32 accumulate · sources: probe explain"
    )
    assert said(one, narrow=True)[0] == "dense peaks · sources: probe explain"
    upper = "peaks at the driver's maximum clock are upper bounds"
    assert upper in said(device(peaks=[{"clock": "max"}]))[0]
    assert upper not in said(cpu(peaks=[{"clock": "max"}]))[0]
    assert "≥: a lower bound" in said(device(peaks=[{**PEAK, "bound": "lower"}]))[0]


def sentences(*devices: Any, **fields: Any) -> list[str]:
    return said(*devices, terminal=False, **fields)


def test_where_the_memory_comes_from() -> None:
    table = {"sources": {"memory.total": "chipdb"}}
    asleep = {**table, "power_state": "suspended"}
    tail = "comes from the chip table, not from the driver."
    assert sentences(device(**table)) == [f"MEMORY of 1 device {tail}"]
    assert sentences(device(1, **table), device(2, **table)) == [f"MEMORY of 2 devices {tail}"]
    assert sentences(device(1, **asleep), device(2, **asleep)) == [
        f"MEMORY of a sleeping GPU {tail}"
    ]
    assert sentences(device(1, **asleep), device(2, **table)) == [f"MEMORY of 2 devices {tail}"]


def test_how_much_of_shared_memory_a_device_may_take() -> None:
    some = {"parts": {"limit": 16 * GIB}}
    assert sentences(device(**shared(None, **some))) == [
        "The GPU may use up to 16.0 GiB of the shared memory."
    ]
    assert sentences(cpu(**shared(None, **some))) == []
    assert sentences(device(**shared(4 * GIB, **some))) == []
    assert sentences(device(**shared(None, parts={"limit": 0}))) == []


def test_peaks_of_several_processors() -> None:
    text = ["Peaks of a row with × are those of each processor."]
    assert sentences(cpu(0, fp32=1.0), cpu(1, fp32=1.0)) == text
    assert sentences(cpu(0, fp32=1.0)) == []
    assert sentences(cpu(0), cpu(1)) == []


def test_display_adapters_that_are_not_listed() -> None:
    one, two = device(1, kind="display", vendor="aspeed"), device(2, kind="display", vendor=None)
    assert sentences(one) == ["1 display adapter (aspeed) is not listed: it cannot compute."]
    assert sentences(one, two) == [
        "2 display adapters (aspeed and unknown vendor) are not listed: they cannot compute."
    ]
    assert sentences(one, every=True) == []
    assert said(one)[1].endswith("it cannot compute. `probe --all` lists it.")
    assert said(one, two)[1].endswith("they cannot compute. `probe --all` lists them.")


def broken(number: int = 1, **fields: Any) -> Any:
    step = {"step": "driver", "status": "broken", "evidence": "", "code": "nomodeset"}
    readiness = {"state": "blocked", "broken": "driver", "steps": [step]}
    return device(number, readiness=readiness, **fields)


REFUSED = [{"code": "prober-refused"}]


@pytest.mark.parametrize(
    ("devices", "fallback", "findings", "verdict"),
    [
        ([], "no-accelerator", [], "No accelerator was found: the CPU is primary."),
        ([broken()], "unusable", [], "No accelerator can be used: the CPU is primary."),
        ([], None, [], None),
        ([], "degraded", [],
         "DEGRADED: a plugin failed, so an accelerator may be missing; the CPU is primary."),
        ([], "degraded", REFUSED,
         "DEGRADED: a plugin did not run, so an accelerator may be missing; the CPU is primary."),
        ([broken()], "degraded", [],
         "DEGRADED: 1 GPU was found and it cannot be used; the CPU is primary."),
        ([broken(1), broken(2)], "degraded", [],
         "DEGRADED: 2 GPUs were found and none can be used; the CPU is primary."),
        ([broken(1), broken(2, kind="npu")], "degraded", [],
         "DEGRADED: 2 accelerators were found and none can be used; the CPU is primary."),
    ],
)  # fmt: skip
def test_what_the_cpu_as_primary_device_means(
    devices: Any, fallback: str | None, findings: Any, verdict: str | None
) -> None:
    found = sentences(*devices, fallback=fallback, findings=findings)
    assert found == ([verdict] if verdict else [])


NARROW = """\
Box · Linux 6.8 · x86_64 · RAM 32.0 GiB

* Acme Accelerator of Nine Words     unknown
    That Wraps Here
    8.0 GiB, 6.0 free · fp32 10.5 TFLOPS
    01:00.0
  Card                               unknown
    shared memory · 02:00.0

* primary"""
WIDER = """\
Box · Linux 6.8 · x86_64 · RAM 32.0 GiB

* Acme Accelerator of Nine Words That Wraps Here     unknown
    8.0 GiB, 6.0 free · fp32 10.5 TFLOPS · 01:00.0
  Card                                               unknown
    shared memory · 02:00.0

* primary"""


@pytest.mark.parametrize(("width", "table"), [(44, NARROW), (60, WIDER)])
def test_a_narrow_terminal_shows_two_lines_of_a_device(width: int, table: str) -> None:
    memory = {"kind": "dedicated", "total": 8 * GIB, "free": 6 * GIB, "usable": None, "parts": {}}
    name = "Acme Accelerator of Nine Words That Wraps Here"
    one = device(name=name, memory=memory, fp32=10.5)
    document = report(one, device(2, **shared(None)), primary=one["id"])
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    context = Context(environ={"COLUMNS": str(width)}, stdout=stdout)
    assert "\n".join(lines(document, context)) == table


def test_a_narrow_terminal_has_colours_too() -> None:
    one = device(name="Acme One of Many Words That Wrap Here", readiness=None)
    environ = {"COLUMNS": "40", "FORCE_COLOR": "1", "TERM": "xterm"}
    shown = lines(report(one, primary=one["id"]), Context(environ=environ, stdout=io.StringIO()))
    bold, end = "\x1b[1m", "\x1b[0m"
    assert shown[2:4] == [
        f"{bold}* Acme One of Many Words That{end}    unknown",
        f"{bold}    Wrap Here{end}",
    ]
