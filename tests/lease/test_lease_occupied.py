"""Devices that processes outside any lease use are avoided; parts of a device can be leased."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from lease_node import Node, gpu
from test_lease_keeper import first_line

from probe_core.leasing import lease
from probe_core.pipeline.refresh import refresh
from probe_core.selection import SelectionError
from probe_core.selection.occupied import is_used, occupancy

GIB = 1 << 30
SLEEP = ("--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exec sleep 60")


def memory(free: int, kind: str = "dedicated") -> dict[str, Any]:
    return {"kind": kind, "total": 80 * GIB, "free": free * GIB, "usable": free * GIB}


def used(slot: int, free: int = 60, processes: int | None = 2, **more: Any) -> dict[str, Any]:
    return gpu(slot, memory=memory(free), processes=processes, **more)


def idle(slot: int, **more: Any) -> dict[str, Any]:
    return gpu(slot, memory=memory(79), processes=0, **more)


def uuid(slot: int) -> str:
    return f"GPU-0000000{slot}-0000-0000-0000-00000000000{slot}"


WORDS = ("--", "printenv", "CUDA_VISIBLE_DEVICES")


def test_exec_avoids_them_and_tells_who(tmp_path: Path) -> None:
    node = Node(tmp_path, 2, [used(1), idle(2)])
    done = node.run("exec", *WORDS)
    assert done.stdout.strip() == uuid(2)
    reason = "leaves out pci:0000:01:00.0: 20 GiB in use outside any lease, by 2 processes"
    assert done.stderr.splitlines() == [f"probe: exec {reason}"]


XE: dict[str, Any] = {"vendor": "intel", "driver": {"name": "xe", "version": None}}


def test_a_count_that_gets_the_processors_graphics_names_them_and_who_has_the_card(
    tmp_path: Path,
) -> None:
    graphics = gpu(0, memory=memory(30, "shared"), **XE)
    node = Node(tmp_path, 2, [idle(1, **XE), graphics])
    busy = Node(tmp_path, 2, [used(1, **XE), graphics])
    environ = os.environ | node.environ
    for document in (node.document, busy.document):
        refresh(document, environ)
    with lease(1, report=node.document, environ=environ) as card:
        assert (card.ids, card.excluded) == (["pci:0000:01:00.0"], {})
        with lease(1, report=node.document, environ=environ) as second:
            assert second.ids == ["pci:0000:00:00.0"]
            assert list(second.excluded) == card.ids
            who, instead = second.excluded[card.ids[0]].split("; ")
            assert who.startswith(f"leased by process {os.getpid()} (")
            assert instead == "taken instead: pci:0000:00:00.0 (the processor's own graphics)"
    with lease(1, report=busy.document, environ=environ, avoid_occupied=True) as second:
        assert second.excluded == {
            "pci:0000:01:00.0": "20 GiB in use outside any lease, by 2 processes; taken instead:"
            " pci:0000:00:00.0 (the processor's own graphics)"
        }


@pytest.mark.heavy
def test_exec_refuses_when_only_they_are_left_and_shared_takes_them(tmp_path: Path) -> None:
    node = Node(tmp_path, 2, [used(1), idle(2)])
    for words in (("--device", "0"), ("--gpus", "2"), ("--device", "0", "--wait", "0.1")):
        done = node.run("exec", *words, "--", "true")
        assert done.returncode == 3, words
        assert "pci:0000:01:00.0: 20 GiB in use outside any lease, by 2 processes" in done.stderr
        assert "what would work: --shared to use them all the same, or --wait" in done.stderr
    for flag in ("--shared", "--share"):
        done = node.run("exec", "--gpus", "2", flag, *WORDS)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_wait_ends_when_they_are_gone(tmp_path: Path) -> None:
    node = Node(tmp_path, 1, [used(1)])
    waiter = node.start("exec", "--wait", "20", "--", "sh", "-c", "echo; exit 4")
    node.document["devices"] = [idle(1)]
    report = Path(node.environ["PROBE_STATIC"])
    other = report.with_suffix(".new")
    other.write_text(json.dumps(node.document))
    other.chmod(0o600)
    other.replace(report)
    assert waiter.wait(timeout=20) == 4
    assert waiter.stdout is not None
    waiter.stdout.close()


@pytest.mark.parametrize(
    "device",
    [
        used(1, free=78),  # a CUDA context, or what the driver reserves
        used(1, processes=0),  # a desktop's, which is no compute process
        used(1, processes=None),  # nobody is known, and none is invented
        gpu(1, memory=memory(10, "unified"), processes=2),  # the system's memory
        gpu(1, memory=memory(10) | {"free": None, "usable": None}, processes=2),
    ],
)
def test_these_are_not_occupied(device: dict[str, Any]) -> None:
    assert occupancy([device]) == {}


@pytest.mark.parametrize(
    ("total", "in_use", "counts"),
    [
        (10 * GIB, GIB, False),
        (10 * GIB, GIB + 1, True),
        (80 * GIB, 4 * GIB, False),  # a twentieth: what the driver of a large card reserves
        (80 * GIB, 4 * GIB + 1, True),
    ],
)
def test_how_much_memory_is_in_use_of_an_idle_device(total: int, in_use: int, counts: bool) -> None:
    device: Any = used(1, vendor="amd")
    device["memory"] |= {"total": total, "free": total - in_use}
    assert is_used(device) is counts


# As an H100 was reported (driver 580.159.04) while a loop of torch's matmul kept it busy.
BUSY = {
    "vendor": "nvidia",
    "pci": {"id": "10de:2330", "class": "030200"},
    "memory": {
        "kind": "dedicated",
        "total": 85520809984,
        "free": 84091797504,
        "usable": 84091797504,
        "used": 925696000,
    },
    "processes": 1,
}


def test_one_process_occupies_a_gpu_that_drives_no_display() -> None:
    reason = "882.8 MiB in use outside any lease, by 1 process"
    assert occupancy([gpu(1, **BUSY)]) == {"pci:0000:01:00.0": reason}
    unknown = {"kind": "dedicated", "total": None, "free": None, "usable": None}
    reason = "in use outside any lease, by 1 process"
    assert occupancy([gpu(1, **BUSY | {"memory": unknown})]) == {"pci:0000:01:00.0": reason}


@pytest.mark.parametrize(
    "more",
    [
        {"processes": 0},
        {"processes": None},
        {"pci": {"id": "10de:2684", "class": "030000"}},  # a browser's process is counted, too
        {"pci": None},
        {"vendor": "amd"},  # a process of ROCm's is counted on GPUs that it does not use
    ],
)
def test_little_memory_alone_occupies_nothing(more: dict[str, Any]) -> None:
    assert occupancy([gpu(1, **BUSY | more)]) == {}


def opened(root: Path, pid: int, name: str, *files: str) -> None:
    folder = root / "proc" / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    for number, file in enumerate(files):
        (folder / "fd" / str(number)).symlink_to(file)


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A node with an NVIDIA card whose minor is 3, and an AMD card."""
    information = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information"
    information.parent.mkdir(parents=True)
    information.write_text("Model: \t\t NVIDIA H100\nDevice Minor: \t 3\n")
    (tmp_path / "sys/bus/pci/devices/0000:02:00.0/drm/renderD129").mkdir(parents=True)
    opened(tmp_path, 10, "python3", "/dev/nvidia3", "/dev/null")
    opened(tmp_path, 11, "train\x1b[31m", "/dev/nvidia3")
    opened(tmp_path, 12, "gnome-shell", "/dev/dri/renderD129", "/dev/nvidia3")
    opened(tmp_path, 13, "python3", "/dev/nvidia33")
    return str(tmp_path)


def test_processes_are_named_by_the_node_that_they_have_open(root: str) -> None:
    assert occupancy([used(1, processes=None)], root) == {
        "pci:0000:01:00.0": "20 GiB in use outside any lease, by python3 (10), train?[31m (11)"
    }
    assert occupancy([used(1, processes=5)], root)["pci:0000:01:00.0"].endswith(" and 3 more")


def test_four_processes_are_named_and_the_others_counted(root: str) -> None:
    for pid in range(20, 22):
        opened(Path(root), pid, "job", "/dev/nvidia3")
    whole = occupancy([used(1, processes=None)], root)["pci:0000:01:00.0"]
    assert whole.endswith("by python3 (10), train?[31m (11), job (20), job (21)")
    opened(Path(root), 22, "job", "/dev/nvidia3")
    for processes, count in ((None, 1), (2, 1), (5, 1), (9, 5)):
        more = occupancy([used(1, processes=processes)], root)["pci:0000:01:00.0"]
        assert more.endswith(f"job (20), job (21) and {count} more")


@pytest.mark.parametrize(
    ("text", "is_found"),
    [("Device Minor: 3\n", True), ("Minor: 3\n", False), ("Device Minor: 3x\n", False),
     ("x" * 4090 + "\nDevice Minor: 3\n", False), ("x" * 4000 + "\nDevice Minor: 3\n", True)],
)  # fmt: skip
def test_the_number_of_a_node_of_nvidia(text: str, is_found: bool, root: str) -> None:
    (Path(root) / "proc/driver/nvidia/gpus/0000:01:00.0/information").write_text(text)
    assert bool(occupancy([used(1, processes=None)], root)) is is_found


def test_a_desktop_alone_occupies_nothing(root: str) -> None:
    assert occupancy([used(2, processes=None)], root) == {}
    assert occupancy([used(2, processes=1)], root) == {}
    assert occupancy([used(2, processes=3)], root)["pci:0000:02:00.0"].endswith("by 2 processes")


def test_the_server_of_mps_is_no_job_and_a_daemon_hides_none(root: str) -> None:
    """MPS's server is counted and stays; a monitor is not counted, the job beside it is."""
    place = Path(root)
    for pid in ("10", "11", "12"):
        (place / "proc" / pid / "comm").write_text("nvidia-cuda-mps\n")
    assert occupancy([gpu(1, **BUSY | {"processes": 3})], root) == {}
    for pid in ("10", "11", "12"):
        (place / "proc" / pid / "comm").write_text("nv-hostengine\n")
    assert list(occupancy([gpu(1, **BUSY)], root)) == ["pci:0000:01:00.0"]


def test_what_an_outer_lease_gave_is_used_by_its_own_processes(tmp_path: Path) -> None:
    node = Node(tmp_path, 1, [used(1)])
    inner = " ".join(f"'{word}'" for word in node.command("exec", "--", "echo", "in"))
    done = node.run("exec", "--shared", "--", "sh", "-c", inner)
    assert (done.returncode, done.stdout) == (0, "in\n"), done.stderr


@pytest.mark.heavy
def test_parts_of_a_device_are_leased_until_it_is_full(tmp_path: Path) -> None:
    node = Node(tmp_path, 1, [idle(1)])
    one = node.start("exec", "--reserve", "30GiB", *SLEEP)
    two = node.start("exec", "--reserve", "50GiB", *SLEEP)
    try:
        assert {first_line(one), first_line(two)} == {uuid(1)}
        assert sorted(entry["reserve"] for entry in node.held()) == [30 * GIB, 50 * GIB]
        assert node.run("exec", "--reserve", "1GiB", "--", "true").returncode == 3
        assert node.run("exec", "--share", "--", "true").returncode == 3, "it could take it all"
        assert node.run("exec", "--", "true").returncode == 3
    finally:
        one.kill()
        one.wait()
    try:
        assert node.run("exec", "--reserve", "30GiB", "--", "true").returncode == 0
        assert node.run("exec", "--reserve", "31GiB", "--", "true").returncode == 3
    finally:
        two.kill()
        two.wait()
    for process in (one, two):
        assert process.stdout is not None
        process.stdout.close()
    assert node.run("exec", "--", "true").returncode == 0


def test_a_part_that_no_device_has_is_refused(tmp_path: Path) -> None:
    node = Node(tmp_path, 1, [idle(1)])
    assert node.run("exec", "--reserve", "90GiB", "--", "true").returncode == 3
    assert node.run("exec", "--reserve", "much", "--", "true").returncode == 2
    assert node.run("exec", "--reserve", "1GiB", "--share", "--", "true").returncode == 2


@pytest.mark.heavy
def test_a_dozen_reservations_at_once_never_exceed_the_device(tmp_path: Path) -> None:
    node = Node(tmp_path, 1, [idle(1)])
    started = [
        node.start("exec", "--reserve", "19GiB", "--", "sh", "-c", "echo ok; exec sleep 60")
        for _ in range(12)
    ]
    got = [process for process in started if first_line(process) == "ok"]
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert len(got) == 4


def linked(slot: int, free: int) -> dict[str, Any]:
    """One of four GPUs, of which the first two are linked."""
    peer = {1: 2, 2: 1}.get(slot)
    link = {"kind": "nvlink", "peer": f"pci:0000:{peer or 0:02x}:00.0", "count": 4}
    return gpu(slot, memory=memory(free), processes=0, links=[link] if peer else [])


@pytest.mark.parametrize(
    ("free", "taken"),
    [
        ((79, 79, 79, 79), (1, 2)),
        ((10, 10, 79, 79), (3, 4)),
        ((75, 75, 79, 79), (1, 2)),  # a tenth less does not part linked devices
        ((10, 79, 79, 10), (2, 3)),  # memory before links
        ((79, 50, 79, 10), (1, 3)),
    ],
)
def test_two_devices_have_free_memory_and_are_linked(
    free: tuple[int, ...], taken: tuple[int, ...], tmp_path: Path
) -> None:
    devices = [linked(slot, amount) for slot, amount in enumerate(free, 1)]
    document: dict[str, Any] = Node(tmp_path, 4, devices).document
    refresh(document, {})
    with lease(2, report=document, environ={"PROBE_LEASES": str(tmp_path / "own")}) as leased:
        assert [int(name[9:11]) for name in leased.ids] == list(taken)


def test_python_callers_ask_for_it(tmp_path: Path) -> None:
    document: dict[str, Any] = Node(tmp_path, 1, [used(1)]).document
    refresh(document, {})
    own = {"PROBE_LEASES": str(tmp_path / "own")}
    lease(report=document, environ=own).release()
    with pytest.raises(SelectionError) as caught:
        lease(report=document, environ=own, avoid_occupied=True)
    assert (caught.value.code, caught.value.device) == ("occupied", "pci:0000:01:00.0")
    lease(report=document, environ=own, avoid_occupied=True, share=True).release()
    assert os.listdir(tmp_path / "own")
