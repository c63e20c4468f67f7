"""A machine without a broken device costs nothing of what is for broken ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from readiness_nodes import LIBRARIES, Node, amd, intel, nvidia
from reports import report_of

from probe_core.readiness.library import Libraries
from probe_core.testing.stage import Watched

SCRIPT = """
import json, sys
from probe_core import Machine, probe
root, access = sys.argv[1], json.loads(sys.argv[2])
report = probe(machine=Machine(root, {}, arch="x86_64", access=access))
gpu = next(device for device in report.devices if device.kind == "gpu")
print(json.dumps([gpu.readiness.state, [name for name in sys.modules if "probe_core" in name]]))
"""
# Causes, their fixes, and the commands of distributions.
FOR_BROKEN = {
    *("model.causes", "model.fix", "machine.engines"),
    *("readiness.actions", "readiness.fixes", "readiness.distributions", "readiness.nvidia_fixes"),
}


def imported(node: Node) -> tuple[str, set[str]]:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(node.tree.root), json.dumps(node.access)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    state, names = json.loads(ran.stdout)
    return state, {name.removeprefix("probe_core.") for name in names}


def test_no_fix_is_imported_where_none_is_needed(tmp_path: Path) -> None:
    for make in (nvidia, amd, intel):
        state, names = imported(make(tmp_path / make.__name__))
        assert state == "ready"
        assert names & FOR_BROKEN == set()


def test_of_gpus_that_work_only_those_with_a_second_module_have_it_looked_for(
    tmp_path: Path,
) -> None:
    for make in (nvidia, amd, intel):
        watched = Watched(make(tmp_path / make.__name__).machine())
        report_of(watched)
        assert ("/proc/modules" in watched.noted) is (make is nvidia)


def test_packages_are_searched_for_a_library_that_the_loader_does_not_find(tmp_path: Path) -> None:
    name, node = "libhsa-runtime64.so.1", amd(tmp_path)
    for path in (f"/opt/rocm/lib/{name}", f"{LIBRARIES}/{name}"):
        watched = Watched(node.machine())
        assert Libraries(watched).find_any(name) == path
        assert ("/opt" in watched.noted) is path.startswith("/opt/")
        node.file(f"{LIBRARIES}/{name}", b"\x7fELF\x02")


def test_a_broken_one_needs_them(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.modules("nouveau")
    node.remove("/sys/bus/pci/devices/0000:01:00.0/driver")
    state, names = imported(node)
    assert state == "blocked"
    assert names >= FOR_BROKEN
