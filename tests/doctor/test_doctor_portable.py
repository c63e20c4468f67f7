"""A recording is read on a system that refuses its names and links: Windows."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from doctor_machines import BROKEN
from readiness_nodes import FOLDER, PCI, nvidia
from test_doctor_bundle import bundle_of
from test_doctor_machines import OF_PLUGIN, examined
from weights import mostly_heavy

import probe_core
from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine
from probe_core.machine.mapped import LINKS, encoded, table
from probe_core.model.causes import CAUSES
from probe_core.recording.opening import open_machine

NAMES = [name for name in BROKEN if name not in OF_PLUGIN]


def first_cause(document: Any) -> Any:
    """Return the first finding that is a cause: this look has no probers, which a finding says."""
    return next(entry for entry in document["findings"] if entry["code"] in CAUSES)


def written(folder: str) -> list[str]:
    return [name for _, folders, files in os.walk(folder) for name in (*folders, *files)]


@pytest.mark.parametrize("name", mostly_heavy(NAMES[::3], 6))
def test_a_bundle_gives_the_same_first_cause(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, bundle = bundle_of(BROKEN[name][2](tmp_path / "root"), tmp_path / "unpacked")
    path = tmp_path / "bundle.tar.gz"
    path.write_bytes(bundle.archive())
    with ExitStack() as stack:
        with monkeypatch.context() as windows:
            windows.setattr(sys, "platform", "win32")
            windows.setattr(os, "symlink", pytest.fail)
            machine = stack.enter_context(open_machine(str(path)))
        report: Any = probe_core.probe(machine=machine, only="none").to_json()
        first = first_cause(examine(Request(machine, report)))
        assert [n for n in written(machine.root) if set(n) & set('<>:"|?*\\')] == []
    assert (first["code"], first["fix"], first["evidence"]) == (
        first_cause(document)["code"],
        first_cause(document)["fix"],
        first_cause(bundle.document)["evidence"],
    )


def test_names_and_links_read_as_on_the_machine(tmp_path: Path) -> None:
    """The same tree twice: as it is, and as Windows has it."""
    node = nvidia(tmp_path / "plain")
    plain = node.machine()
    root = tmp_path / "mapped"
    root.mkdir()
    links = {}
    for folder, folders, files in os.walk(plain.root):
        below = folder[len(plain.root) :]
        for name in (*folders, *files):
            place, path = f"{folder}/{name}", f"{below}/{name}"
            target = root / encoded(path).lstrip("/")
            if os.path.islink(place):
                links[path] = os.readlink(place)
            elif os.path.isdir(place):
                target.mkdir(parents=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(Path(place).read_bytes())
    (root / LINKS).write_bytes(table(links))
    mapped = probe_core.Machine(str(root), plain.environ, access=plain.access)
    for path in (
        f"{FOLDER}/vendor",
        f"{FOLDER}/driver",
        f"{FOLDER}/driver/../../../devices",
        "/sys/bus/pci/devices",
        "/sys/class/drm",
        f"/sys/bus/pci/drivers/nvidia/{PCI}/power/runtime_status",
        "/nowhere/at/all",
    ):
        assert mapped.realpath(path) == plain.realpath(path)
        assert mapped.listdir(path) == plain.listdir(path)
        assert mapped.exists(path) is plain.exists(path)
        assert mapped.read(path) == plain.read(path)
    assert examined_alike(mapped, plain)


def examined_alike(*machines: probe_core.Machine) -> bool:
    reports: list[Any] = [probe_core.probe(machine=m, only="none").to_json() for m in machines]
    states = [[(d["id"], d["readiness"]) for d in report["devices"]] for report in reports]
    return states[0] == states[1]


@pytest.mark.parametrize(
    "text", ["", "\0", "/a", "/a\0", "/a\0/b\0/b\0/a\0", "/a\0../../../../etc\0", "/a\0\xff/..\0"]
)
def test_a_hostile_table_of_links(text: str, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / LINKS).write_bytes(text.encode("latin-1"))
    machine = probe_core.Machine(str(tmp_path))
    assert machine.read("/a/passwd") is None
    assert machine.listdir("/a") == []
    assert machine.exists("/proc") is True
    assert machine.realpath("/a") in ("", "/a", "/etc")


def test_names_that_windows_takes_for_devices() -> None:
    path = "/sys/bus/aux/nul.txt/com1/0000:01:00.0/end."
    assert encoded(path).count("/") == path.count("/")
    assert encoded("/aux")[1:] != "aux"
    assert ":" not in encoded(path)
    assert not encoded(path).endswith(".")
    assert encoded("/sys/../proc/./x") == "/sys/../proc/./x"


def test_the_machines_are_broken_where_nothing_is_mapped(tmp_path: Path) -> None:
    name = NAMES[0]
    _, document = examined(BROKEN[name][2](tmp_path))
    assert document["findings"][0]["code"] == BROKEN[name][0]
