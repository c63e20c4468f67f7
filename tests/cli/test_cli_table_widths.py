"""At every width the table keeps it, shows every word of every model, and no row twice."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
import recorded
from fake_probers import Probers, gpu
from reports import report_of, report_of_recording
from trees import Tree
from weights import mostly_heavy

import probe_core
from probe_core.cli.table import lines
from probe_core.commands import text
from probe_core.commands.context import Context
from probe_core.model import naming

WIDTHS = range(40, 201)
LONG = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition with 96 GB of GDDR7 Mem."
WIDE = "显卡 九零 工作站 加速器 专业版"
assert len(LONG) == 80


def printed(report: Any, width: int, encoding: str = "utf-8") -> list[str]:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return lines(report, Context(environ={"COLUMNS": str(width)}, stdout=stdout))


def blocks(output: list[str]) -> list[str]:
    """Return what the table shows of each device: a row, or a name with its details."""
    start = output.index("") + 1
    table = output[start : output.index("", start)]
    found: list[str] = []
    for line in table[2:] if "DEVICE" in table[0] else table:
        if line.startswith("    ") and found:
            found[-1] += "\n" + line
        else:
            found.append(line)
    return found


def check(report: Any, encoding: str = "utf-8", widths: range = WIDTHS) -> None:
    shown = [device for device in report["devices"] if device["kind"] != "display"]
    words = {word for device in shown for word in naming.short_name(device).split()}
    for width in widths:
        output = printed(report, width, encoding)
        for line in output:
            assert text.width_of(line) <= width, (width, line)
        rows = blocks(output)
        assert len(set(rows)) == len(rows), (width, rows)
        assert sum(row.startswith("*") for row in rows) == 1
        if encoding == "utf-8":
            assert words <= {word for row in rows for word in row.split()}, width


def devices(count: int, name: str) -> Iterator[dict[str, Any]]:
    for number in range(1, count + 1):
        uuid = f"GPU-{number:08x}-0000-4000-8000-000000000000"
        yield gpu(number, name=name, ids=[f"pci:0000:{number:02x}:00.0", f"uuid:{uuid}"])


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 4090", LONG, WIDE])
@pytest.mark.parametrize("count", mostly_heavy([8, 0, 1, 16], 4))
def test_invented_devices(
    count: int, name: str, encoding: str, tree: Tree, probers: Probers
) -> None:
    probers.reports("a", *devices(count, name))
    check(report_of(probe_core.Machine(str(tree.root)), **probers.arguments), encoding)


@pytest.mark.heavy
def test_parts_of_one_card_are_distinct(tree: Tree, probers: Probers) -> None:
    parts = [
        gpu(
            1,
            ids=[f"uuid:MIG-{number:08x}-0000-5000-8000-000000000000"],
            parent="pci:0000:01:00.0",
            name="NVIDIA A100-SXM4-80GB MIG 1g.10gb",
            pci={},
        )
        for number in range(7)
    ]
    probers.reports("a", gpu(1, name="NVIDIA A100-SXM4-80GB"), *parts)
    report = report_of(probe_core.Machine(str(tree.root)), **probers.arguments)
    for width in WIDTHS:
        rows = blocks(printed(report, width))
        assert sum("└ MIG 1g.10gb " in row for row in rows) == 7
        assert len(set(rows)) == len(rows) == 9


@pytest.mark.parametrize("name", mostly_heavy(recorded.names(), 8))
def test_recorded_machines(name: str) -> None:
    check(report_of_recording(name), widths=range(40, 201, 4))


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


LAPTOP = {
    60: """\
82WM · Linux 6.11.0-29-generic · x86_64
RAM 31.0 GiB, 23.9 free

* NVIDIA GeForce RTX 4060 Laptop GPU                  asleep
    8.0 GiB · fp16 29.1 TFLOPS · 01:00.0
  Intel Iris Xe Graphics (Raptor Lake-P)               ready
    shared memory · 00:02.0
  Intel Core i7-13700H (14 cores)                      ready
    shared memory · fp32 1.43 TFLOPS · cpu:0

* primary · dense peaks · sources: probe explain
MEMORY of a sleeping GPU comes from the chip table, not from
the driver.""",
    80: """\
82WM · Linux 6.11.0-29-generic · x86_64 · RAM 31.0 GiB, 23.9 free

  DEVICE                                  STATE   MEMORY    FP16  ID
                                                     GiB  TFLOPS
* NVIDIA GeForce RTX 4060 Laptop GPU      asleep     8.0    29.1  01:00.0
  Intel Iris Xe Graphics (Raptor Lake-P)  ready   shared       –  00:02.0
  Intel Core i7-13700H (14 cores)         ready   shared       –  cpu:0

* primary · peaks are dense, fp16 with fp32 accumulate · sources: probe explain
MEMORY of a sleeping GPU comes from the chip table, not from the driver.""",
    120: """\
82WM · Linux 6.11.0-29-generic · x86_64 · RAM 31.0 GiB, 23.9 free

  DEVICE                                  STATE   MEMORY    FP32    FP16  INT8  BANDW.  ID
                                                     GiB  TFLOPS  TFLOPS  TOPS    GB/s
* NVIDIA GeForce RTX 4060 Laptop GPU      asleep     8.0    14.6    29.1   116     256  01:00.0
  Intel Iris Xe Graphics (Raptor Lake-P)  ready   shared       –       –     –     102  00:02.0
  Intel Core i7-13700H (14 cores)         ready   shared    1.43       –     –       –  cpu:0

* primary · peaks are dense, fp16 with fp32 accumulate · sources: probe explain
MEMORY of a sleeping GPU comes from the chip table, not from the driver.""",
}


PI = {
    60: """\
Raspberry Pi 5 Model B Rev 1.0 · Linux 6.12.34+rpt-rpi-2712
aarch64 · RAM 7.9 GiB, 7.2 free

* VideoCore VII                                       asleep
    shared memory · fp32 0.08 TFLOPS · dt:/axi/v3d@2000000
  Cortex-A76 (4 cores)                                 ready
    shared memory · fp16 0.31 TFLOPS · cpu:0

* primary · dense peaks · sources: probe explain

info     VideoCore VII was detected on the bus only; no
         plugin for it ran
         `probe doctor` tells cause and fix""",
    80: """\
Raspberry Pi 5 Model B Rev 1.0 · Linux 6.12.34+rpt-rpi-2712 · aarch64
RAM 7.9 GiB, 7.2 free

  DEVICE                STATE   MEMORY    FP32    FP16  ID
                                   GiB  TFLOPS  TFLOPS
* VideoCore VII         asleep  shared    0.08       –  dt:/axi/v3d@2000000
  Cortex-A76 (4 cores)  ready   shared    0.15    0.31  cpu:0

* primary · peaks are dense, fp16 with fp32 accumulate · sources: probe explain

info     VideoCore VII was detected on the bus only; no plugin for it ran
         `probe doctor` tells cause and fix""",
    120: """\
Raspberry Pi 5 Model B Rev 1.0 · Linux 6.12.34+rpt-rpi-2712 · aarch64 · RAM 7.9 GiB, 7.2 free

  DEVICE                STATE   MEMORY    FP32    FP16  INT8  BANDW.  ID
                                   GiB  TFLOPS  TFLOPS  TOPS    GB/s
* VideoCore VII         asleep  shared    0.08       –     –      17  dt:/axi/v3d@2000000
  Cortex-A76 (4 cores)  ready   shared    0.15    0.31  0.61       –  cpu:0

* primary · peaks are dense, fp16 with fp32 accumulate · sources: probe explain

info     VideoCore VII was detected on the bus only; no plugin for it ran [prober-missing]
         `probe doctor` tells cause and fix""",
}


@pytest.mark.parametrize("width", PI)
def test_the_raspberry_pi_of_the_design(width: int) -> None:
    report = report_of_recording("raspberry-pi-5--videocore-vii")
    terminal = Context(environ={"COLUMNS": str(width), "NO_COLOR": "1"}, stdout=Terminal())
    assert "\n".join(lines(report, terminal)) == PI[width]


@pytest.mark.heavy
@pytest.mark.parametrize("width", LAPTOP)
def test_the_laptop_of_the_design(width: int) -> None:
    name = "laptop--sleeping-nvidia-geforce-rtx-4060-laptop-gpu"
    report = report_of_recording(name, "nvidia", "intel")
    terminal = Context(environ={"COLUMNS": str(width), "NO_COLOR": "1"}, stdout=Terminal())
    assert "\n".join(lines(report, terminal)) == LAPTOP[width]
    piped = printed(report, width)
    assert not any("probe " in line for line in piped)
