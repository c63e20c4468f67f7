"""A machine without a broken device costs nothing of what is for broken ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from readiness_nodes import Node, amd, intel, nvidia

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


def test_a_broken_one_needs_them(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.modules("nouveau")
    node.remove("/sys/bus/pci/devices/0000:01:00.0/driver")
    state, names = imported(node)
    assert state == "blocked"
    assert names >= FOR_BROKEN
