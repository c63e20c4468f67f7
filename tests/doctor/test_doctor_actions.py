"""The doctor's document has each fix as data, and none of them undoes another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import doctor_systems  # noqa: F401  # adds its machines
import pytest
from doctor_cases import complete, linux_driver_in_wsl, wsl
from doctor_machines import BROKEN
from readiness_nodes import Node
from test_readiness_packages import OWN, system
from weights import mostly_heavy

from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine
from probe_core.model.causes import CAUSES
from probe_core.readiness.actions import PLACES

KEYS = "command where root precondition changes removes undo reboots".split()


def findings(node: Node) -> list[dict[str, Any]]:
    complete(node)
    document: Any = examine(Request(node.machine(), node.report()))  # type: ignore[arg-type]
    return list(document["findings"])


@pytest.mark.parametrize("name", mostly_heavy(BROKEN, 8))
def test_each_cause_has_its_action_and_none_undoes_another(name: str, tmp_path: Path) -> None:
    changed: set[str] = set()
    removed: set[str] = set()
    for finding in findings(BROKEN[name][2](tmp_path)):
        if finding["code"] not in CAUSES:
            continue
        action = finding["action"]
        assert list(action) == KEYS
        assert action["where"] in PLACES
        if action["command"]:
            assert action["command"].split(" && ")[0] in finding["fix"]
            assert action["changes"] or action["removes"]
        assert action["root"] <= ("sudo " in finding["fix"])
        changed.update(action["changes"])
        removed.update(action["removes"])
    assert changed & removed == set()


def test_a_linux_driver_in_wsl_goes_by_the_names_of_its_packages(tmp_path: Path) -> None:
    node = linux_driver_in_wsl(tmp_path)
    system(tmp_path)
    found = next(f for f in findings(node) if f["code"] == "wsl-linux-driver")
    names = ["cuda-drivers", *OWN]
    assert found["fix"] == (
        f"inside WSL `sudo apt purge {' '.join(names)}`: the driver is Windows's"
    )
    assert found["action"] == {
        "command": f"sudo apt purge {' '.join(names)}",
        "where": "host",
        "root": True,
        "precondition": "driver packages",
        "changes": [],
        "removes": [f"package {name}" for name in names],
        "undo": f"sudo apt install {' '.join(names)}",
        "reboots": False,
    }
    # What is removed is what hid the library: without it the machine has no such cause.
    for path in (tmp_path / "usr/lib/x86_64-linux-gnu").glob("libcuda.so*"):
        path.unlink()
    assert [f["code"] for f in findings(node) if f["severity"] == "error"] == []


def test_a_linux_driver_of_the_installer_in_wsl(tmp_path: Path) -> None:
    node = linux_driver_in_wsl(tmp_path)
    general = next(f for f in findings(node) if f["code"] == "wsl-linux-driver")
    assert general["fix"] == (
        "remove the Linux driver inside WSL, and nothing else: the driver is Windows's"
    )
    assert (general["action"]["command"], general["action"]["precondition"]) == (None, None)
    node.file("/usr/bin/nvidia-uninstall")
    found = next(f for f in findings(node) if f["code"] == "wsl-linux-driver")
    assert found["action"]["command"] == "sudo nvidia-uninstall"


def test_a_driver_of_windows_is_installed_there(tmp_path: Path) -> None:
    found = next(
        f for f in findings(wsl("libnvidia-ml.so.1")(tmp_path)) if f["code"] == "wsl-no-library"
    )
    action = found["action"]
    # The update alone brings no driver: a person installs that first.
    assert (action["where"], action["command"], action["changes"]) == ("Windows", None, ["system"])
