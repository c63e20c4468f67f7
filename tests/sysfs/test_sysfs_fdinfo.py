"""Who uses a device: each client once, whoever holds it, and never a sleeping device's figures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trees import Tree

from probe_core.api import Machine
from probe_core.sysfs import fdinfo

AMDGPU = """\
pos:\t0
flags:\t02100002
drm-driver:\tamdgpu
drm-client-id:\t42
drm-pdev:\t0000:03:00.0
drm-memory-vram:\t2048 KiB
drm-memory-gtt: \t512 KiB
drm-resident-vram:\t1024 KiB
drm-total-cpu:\t3 MiB
drm-engine-gfx:\t1000000 ns
drm-engine-capacity-gfx:\t2
drm-engine-compute:\tsoon
"""


def descriptor(tree: Tree, pid: int, number: int, node: str, text: str = "") -> None:
    """Open a device node in a process."""
    tree.link(f"/proc/{pid}/fd/{number}", f"/dev/dri/{node}")
    tree.file(f"/proc/{pid}/fdinfo/{number}", text)


def test_one_client(tree: Tree) -> None:
    descriptor(tree, 100, 5, "renderD128", AMDGPU)
    tree.link("/proc/100/fd/0", "/dev/null")
    usage = fdinfo.clients(tree.machine())
    (client,) = usage.clients
    assert (client.node, client.pids, client.number) == ("renderD128", [100], 42)
    assert (client.driver, client.address) == ("amdgpu", "0000:03:00.0")
    assert client.memory == {"vram": 1 << 20, "gtt": 512 << 10, "cpu": 3 << 20}
    assert client.engines == {"gfx": 1_000_000}
    assert (usage.processes, usage.unreadable, usage.complete) == (1, 0, True)


def test_a_client_counts_once_across_descriptors_nodes_and_processes(tree: Tree) -> None:
    descriptor(tree, 100, 5, "renderD128", AMDGPU)
    descriptor(tree, 100, 6, "card1", AMDGPU)
    descriptor(tree, 200, 3, "renderD128", AMDGPU)
    descriptor(tree, 200, 4, "renderD128", AMDGPU.replace("42", "43"))
    found = fdinfo.clients(tree.machine()).clients
    assert [(one.number, one.pids) for one in found] == [(42, [100, 200]), (43, [200])]


def test_only_the_devices_asked_for(tree: Tree) -> None:
    descriptor(tree, 100, 5, "renderD128", AMDGPU)
    descriptor(tree, 100, 6, "renderD129", AMDGPU.replace("42", "1"))
    found = fdinfo.clients(tree.machine(), frozenset({"renderD129"})).clients
    assert [one.node for one in found] == ["renderD129"]


def test_of_a_sleeping_device_it_is_known_who_holds_it(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.pci("0000:03:00.0", "1002:744c", drm=(1, 128), power="suspended")
    descriptor(tree, 100, 5, "renderD128", AMDGPU)
    descriptor(tree, 100, 6, "renderD128", AMDGPU)
    opened: list[str] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda p, *rest: opened.append(str(p)) or real(p, *rest))
    (client,) = fdinfo.clients(tree.machine()).clients
    assert (client.pids, client.driver, client.memory) == ([100], None, {})
    assert not any("fdinfo" in path for path in opened)


def test_what_cannot_be_read_is_counted(tree: Tree) -> None:
    descriptor(tree, 100, 5, "renderD128", AMDGPU)
    tree.file("/proc/200/comm", "other\n")  # no fd folder, as one that may not be listed
    tree.file("/proc/meminfo", "")
    usage = fdinfo.clients(tree.machine())
    assert (usage.processes, usage.unreadable, len(usage.clients)) == (2, 1, 1)


def test_bounds(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid in range(100, 110):
        descriptor(tree, pid, 5, "renderD128", AMDGPU.replace("42", str(pid)))
    machine = tree.machine()
    for name in ("MAX_PROCESSES", "MAX_DESCRIPTORS", "MAX_CLIENTS"):
        with monkeypatch.context() as patch:
            patch.setattr(fdinfo, name, 4)
            usage = fdinfo.clients(machine)
            assert (len(usage.clients), usage.complete) == (4, False)


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("drm-memory-vram: 12", {"vram": 12}),
        ("drm-memory-vram: 1 KiB", {"vram": 1024}),
        ("drm-memory-vram: 1 parsec", {}),
        ("drm-memory-vram: -1 KiB", {}),
        ("drm-memory-vram: " + "9" * 5000, {}),
        ("drm-total-vram: 5\ndrm-memory-vram: 4\ndrm-resident-vram: 3", {"vram": 3}),
    ],
)
def test_sizes(text: str, memory: dict[str, int]) -> None:
    assert fdinfo.Client("renderD128", fdinfo.parse(text)).memory == memory


def test_no_drm_lines() -> None:
    assert fdinfo.parse("pos:\t0\nflags:\t02\n") == {}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_live_machine_is_swept(tmp_path: Path) -> None:
    """Without a GPU nothing is found, and this process's own descriptors could be read."""
    code = (
        "from probe_core.api import Machine; from probe_core.sysfs import fdinfo\n"
        "usage = fdinfo.clients(Machine())\n"
        "assert usage.processes > usage.unreadable >= 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert fdinfo.clients(Machine(str(tmp_path))).processes == 0
