"""A cause that is added in its one place is everywhere: CONTRIBUTING's row."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ENTRY = """    blocks(
        "fan-stopped",
        "its fan does not turn",
        "`cat {folder}/hwmon/*/fan1_input` prints 0",
        "replace the fan",
        vendor="nvidia",
        word="too hot",
        keeps_from="cuda",
        fixes={"host": "replace the fan of {address}"},
    ),
"""

EVERYWHERE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from types import SimpleNamespace
from probe_core.doctor.causes import concerned
from probe_core.doctor.examine import all_checks
from probe_core.machine import Machine
from probe_core.model.causes import CAUSES
from probe_core.model.findings import finding
from probe_core.model.verdict import state_word
from probe_core.readiness import Scene
from probe_core.readiness.chain import broken
from probe_core.readiness.fixes import fix_of
from probe_core.visibility import see
import regions_doctor, regions_model

def gpu(address):
    step = broken("hardware", "fan-stopped", "0 rpm")
    return {
        "id": "pci:" + address, "ids": ["pci:" + address], "kind": "gpu", "vendor": "nvidia",
        "parent": None, "node_index": {}, "driver": {"name": "nvidia"}, "power_state": "active",
        "memory": {"kind": "dedicated"}, "pci": None, "visibility": {},
        "readiness": {"state": "blocked", "broken": "hardware", "steps": [step]},
    }

device = gpu("0000:01:00.0")
check = next(check for check in all_checks() if check.code == "fan-stopped")
views = see([device], {})
scene = Scene(Machine(sys.argv[2]))
step = device["readiness"]["steps"][0]
print(json.dumps({
    "finding": finding("fan-stopped", "a", "b", "c", severity="error")["code"],
    "severity": CAUSES["fan-stopped"].severity,
    "step": [check.step, check.summary],
    "whose": [len(concerned("fan-stopped", [device, {**device, "vendor": "amd"}]))],
    "word": state_word(device),
    "fix": fix_of(device, step, scene),
    "vulkan": views["vulkan"][0].entries()[device["id"]]["visible"],
    "cuda": views["cuda"][0].entries()[device["id"]]["visible"],
    "page": "### fan-stopped" in regions_doctor.causepages(),
}))
"""


def test_one_entry_in_the_table_is_everywhere(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "probe_core", copy / "probe_core", ignore=ignored)
    for module in (ROOT / "docs").glob("*.py"):
        shutil.copy(module, copy)
    table = copy / "probe_core/model/causes.py"
    before, start, after = table.read_text("utf-8").partition("HARDWARE = (\n")
    table.write_text(before + start + ENTRY + after, "utf-8")
    (tmp_path / "root").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", EVERYWHERE, str(copy), str(tmp_path / "root")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "finding": "fan-stopped",
        "severity": "error",
        "step": ["hardware", "Whether its fan does not turn."],
        "whose": [1],
        "word": "too hot",
        "fix": "replace the fan of 0000:01:00.0",
        "vulkan": None,
        "cuda": False,
        "page": True,
    }
