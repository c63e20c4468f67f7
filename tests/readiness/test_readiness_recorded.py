"""A recording of each machine of `test_readiness_causes` is judged as the machine itself is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import recorded
from readiness_nodes import Node
from reports import report_of
from test_readiness_causes import BROKEN, HEALTHY
from weights import mostly_heavy

from probe_core.recording.document import parse, write
from probe_core.recording.gather import gather
from probe_core.recording.opening import open_machine

MACHINES = {name: make for name, (_, make) in BROKEN.items()} | HEALTHY


def judged(report: dict[str, Any]) -> list[object]:
    """Return what readiness says of each device, and the findings without their evidence."""
    states = [
        (
            device["id"],
            device["readiness"]["state"],
            device["readiness"]["broken"],
            [(step["step"], step["status"], step["code"]) for step in device["readiness"]["steps"]],
        )
        for device in report["devices"]
        if device.get("readiness")
    ]
    findings = [
        (finding["code"], finding["what"], finding["fix"]) for finding in report["findings"]
    ]
    return [states, findings]


def replayed(node: Node, folder: Path) -> dict[str, Any]:
    made = gather(node.machine(), "recorded in a test", recorded.declarations()).recording
    path = folder / "recorded.json"
    path.write_text(write(made))
    parse(path.read_bytes())
    with open_machine(str(path)) as machine:
        return report_of(machine)


@pytest.mark.parametrize("name", mostly_heavy(MACHINES, 20))
def test_recording_is_judged_as_its_machine(name: str, tmp_path: Path) -> None:
    node = MACHINES[name](tmp_path / "root")
    assert judged(replayed(node, tmp_path)) == judged(node.report())


def test_recording_holds_nothing_of_the_person(tmp_path: Path) -> None:
    node = MACHINES["not_in_render"](tmp_path / "root")
    node.file("/etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1042:1042:Alice:/home/alice:\n")
    node.file("/etc/group", "render:x:105:alice,bob\nacme-secret:x:1200:alice\nvideo:x:44:\n")
    node.file("/proc/self/status", "Name:\tpython\nUid:\t1042\t1042\t1042\t1042\nGid:\t1042\n")
    node.file("/proc/self/attr/current", "snap.acme-secret.app (enforce)\n")
    node.file("/proc/cmdline", "root=UUID=acme-secret nomodeset amdgpu.si_support=1 acme=secret\n")
    node.file("/etc/modprobe.d/a.conf", "# acme-secret\nblacklist amdgpu\noptions acme secret=1\n")
    node.file("/etc/os-release", 'ID=debian\nVERSION_ID="13"\nNAME="acme-secret"\n')
    node.file("/etc/ld.so.conf", "/opt/acme/lib\n/home/alice/acme-secret\n")
    node.file("/home/alice/acme-secret/libcuda.so.1", b"\x7fELF\x02")
    node.environ["LD_LIBRARY_PATH"] = "/home/alice/acme-secret:/home/alice/other"
    node.environ["SSH_CONNECTION"] = "192.0.2.1 acme-secret"
    made = gather(node.machine(), "recorded in a test", recorded.declarations()).recording
    text = write(made)
    assert not [word for word in ("alice", "bob", "secret", "1042", "192.0.2") if word in text]
    kept = {path: made.files[path] for path in ("/etc/passwd", "/etc/group", "/proc/cmdline")}
    assert kept == {
        "/etc/passwd": b"user:x:1000:1000::/:\n",
        "/etc/group": b"render:x:105:user\nvideo:x:44:\n",
        "/proc/cmdline": b"nomodeset amdgpu.si_support=1\n",
    }
    assert made.files["/etc/modprobe.d/a.conf"] == b"blacklist amdgpu\n"
    assert made.files["/etc/os-release"] == b'ID=debian\nVERSION_ID="13"\n'
    assert made.environ["LD_LIBRARY_PATH"] == "/opt/venv/lib"
    assert made.files["/opt/venv/lib/libcuda.so.1"] == b"\x7fELF\x02"
