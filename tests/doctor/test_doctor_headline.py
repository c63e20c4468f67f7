"""The doctor's first line where no finding is more than a hint: "healthy" has to be true."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import recorded
from doctor_cases import complete
from readiness_nodes import Node, nvidia
from reports import machine_of, report_of
from test_readiness_causes import without_nodes

from probe_core import Machine
from probe_core.cli.doctor_text import lines
from probe_core.doctor.check import Request
from probe_core.doctor.document import DoctorDoc
from probe_core.doctor.examine import examine

TERMINAL: Any = SimpleNamespace(width=400, terminal=True, colour=False, encodable=str)


def examined(machine: Machine) -> DoctorDoc:
    report: Any = report_of(machine)
    return examine(Request(machine, report))


def headline(machine: Machine, **options: Any) -> str:
    document = examined(machine)
    first = next(lines(document, TERMINAL, **options)).strip()
    return first.partition(". ")[0]


def working(root: Path) -> Node:
    node = nvidia(root)
    complete(node)
    return node


def test_a_node_that_works_is_healthy(tmp_path: Path) -> None:
    assert headline(working(tmp_path / "root").machine()) == "probe doctor: healthy"


def test_a_variable_is_told_beside_the_health_of_the_node(tmp_path: Path) -> None:
    node = working(tmp_path / "root")
    node.environ["CUDA_VISIBLE_DEVICES"] = ""
    expected = "probe doctor: healthy; this process may use 0 of 1"
    assert headline(node.machine()) == expected


def test_without_an_accelerator_it_says_how_many_signs_it_looked_at(tmp_path: Path) -> None:
    node = Node(tmp_path / "root")
    complete(node)
    # The kernel's log is none of a recording's files: that sign of ten was not looked at.
    expected = "probe doctor: healthy, no accelerator found; 10 signs looked at"
    assert headline(node.machine()) == expected


def test_a_card_for_a_guest_is_not_missed(tmp_path: Path) -> None:
    data = recorded.read("hypervisor--nvidia-geforce-rtx-3090-lent-to-a-guest")
    machine = machine_of(data, tmp_path / "root")
    assert headline(machine) == "probe doctor: healthy, no accelerator for jobs"


def test_of_what_nothing_is_known_it_is_not_said(tmp_path: Path) -> None:
    data = recorded.read("dgx-h100--8x-nvidia-h100-80gb-hbm3")
    machine = machine_of(data, tmp_path / "root")
    expected = "probe doctor: nothing wrong found, and nothing known to be well"
    assert headline(machine) == expected
    assert headline(machine, chosen=True) == "probe doctor: nothing found"
    assert examined(machine)["healthy"] is None


def test_an_error_has_another_line(tmp_path: Path) -> None:
    node = without_nodes(working(tmp_path / "root"))
    assert headline(node.machine()).startswith("probe doctor: 1 error")
