"""What commands are given of reports and machines, and what is said of a recording that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trees import Tree

from probe_core import Machine
from probe_core.commands import CommandError
from probe_core.commands.recorded import opened
from probe_core.commands.reports import (
    node_network,
    numa_cpus,
    probe_document,
    read_report_text,
)

CPUS, NODES = "/sys/devices/system/cpu", "/sys/devices/system/node"


def test_cpus_of_the_nodes(tree: Tree) -> None:
    assert numa_cpus(Machine(str(tree.root), os="darwin")) == {}
    tree.file(f"{CPUS}/online", "0-5\n")
    tree.file(f"{NODES}/online", "0\n")
    assert numa_cpus(tree.machine()) == {0: list(range(6))}
    tree.file(f"{NODES}/online", "0-2\n")
    for node, cpus in enumerate(("0-1,4", "2-3,5", "")):
        tree.file(f"{NODES}/node{node}/cpulist", f"{cpus}\n")
    assert numa_cpus(tree.machine()) == {0: [0, 1, 4], 1: [2, 3, 5]}


def test_packages_stand_for_nodes_without_lists(tree: Tree) -> None:
    tree.file(f"{CPUS}/online", "0-5\n")
    for cpu, package in enumerate(("0-1", "0-1", "2-3", "2-3", "4-5", "4-5")):
        tree.file(f"{CPUS}/cpu{cpu}/topology/package_cpus_list", f"{package}\n")
        tree.file(f"{CPUS}/cpu{cpu}/node{cpu // 4}/a", "")
    assert numa_cpus(tree.machine()) == {0: [0, 1, 2, 3], 1: [4, 5]}


def test_links_of_linux_alone(tree: Tree) -> None:
    folder = "/sys/devices/virtual/net/acme0"
    tree.link("/sys/class/net/acme0", folder)
    assert node_network(Machine(str(tree.root), os="darwin")) == []


def test_a_report_has_the_settings_that_are_given(tree: Tree) -> None:
    machine = Machine(str(tree.root), {"PROBE_ONLY": "cpu", "PROBE_TIMEOUT": "odd"})
    found, plain = probe_document(machine), probe_document(machine, {"PROBE_ONLY": "cpu"})
    assert found["findings"][0]["code"] == "config-ignored"
    assert found["findings"][1:] == plain["findings"]


def test_a_text_is_as_long_as_it_may_be(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 10)
    assert read_report_text(str(path)) == read_report_text(str(path), 10) == b"x" * 10
    with pytest.raises(ValueError, match="longer than"):
        read_report_text(str(path), 9)


def test_what_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"schema": 2}))
    (tmp_path / "file").touch()
    for name, sentence in (
        ("none", " {}: no such file or folder"),
        ("file/a", " {}: Not a directory"),
        ("a.json", ": '{}' is no recorded machine: it is no recording of schema 1"),
    ):
        path = f"{tmp_path}/{name}"
        with pytest.raises(CommandError) as raised, opened(path):
            pass
        assert str(raised.value) == f"--machine{sentence.format(path)}"


@pytest.mark.parametrize("error", [FileNotFoundError("a"), ValueError("a")])
def test_an_error_of_the_command_is_its_own(error: Exception, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    with pytest.raises(type(error), match="a"), opened(str(tmp_path)):
        raise error
