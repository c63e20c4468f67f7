"""What the device tree of a board switches off, and what else the doctor reads in pieces."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from trees import Tree

from probe_core import Machine
from probe_core.doctor.baseline import _libraries, _of_device
from probe_core.doctor.bundle import _versions
from probe_core.doctor.causes import _named, _sentence, broken_findings, builtin_checks
from probe_core.doctor.check import ASSUMED, ENVIRONMENT, JOURNAL, Request
from probe_core.doctor.checks.boards import disabled, disabled_nodes
from probe_core.doctor.checks.containers import (
    driver_versions,
    shared_memory,
    specification,
    specifications,
)
from probe_core.doctor.checks.devices import _speeds, link_speed
from probe_core.doctor.checks.drivers import fabric, initialisation, runtime, skew, uvm
from probe_core.doctor.checks.kernel_log import faults
from probe_core.doctor.checks.systems import guest, linux_driver, resets, wired

GPU, NPU = "/gpu@fb000000", "/soc/rknpu@fdab0000"


def report(*kinds: str) -> Any:
    devices = [
        {"kind": kind, "id": f"a:{at}", "name": "One", "vendor": "acme", "ids": [f"a:{at}"]}
        for at, kind in enumerate(kinds)
    ]
    return {"devices": devices, "findings": [], "outcomes": []}


def board(folder: Path, **status: str) -> Tree:
    tree = Tree(folder)
    tree.node("", "acme,board")
    for path, name in ((GPU, "gpu"), (NPU, "npu"), ("/bus@0/npu@1", "other")):
        tree.node(path, "acme,x", status=status.get(name, "okay"))
    tree.node("/gpu", "acme,x", status="disabled")  # no device: it has no address
    tree.node("/cpus/gpu@2", "acme,x", status="disabled")  # no bus
    return tree


def test_nodes_that_are_switched_off(tmp_path: Path) -> None:
    assert disabled_nodes(Tree(tmp_path / "none").machine()) == {}
    machine = board(tmp_path / "some", gpu="disabled", npu="disabled", other="disabled").machine()
    paths = {
        path.removeprefix("/sys/firmware/devicetree/base").removeprefix("/proc/device-tree"): kind
        for path, kind in disabled_nodes(machine).items()
    }
    assert paths == {GPU: "gpu", NPU: "npu", "/bus@0/npu@1": "npu"}


@pytest.mark.parametrize(
    ("status", "kinds", "answer"),
    [
        ({}, (), "passed"),
        ({"gpu": "disabled"}, (), "failed"),
        ({"gpu": "disabled"}, ("cpu", "npu"), "failed"),
        ({"gpu": "disabled"}, ("gpu",), "passed"),
        ({"gpu": "disabled", "npu": "disabled"}, ("gpu",), "failed"),
    ],
)
def test_what_is_off_and_missed(
    status: dict[str, str], kinds: tuple[str, ...], answer: str, tmp_path: Path
) -> None:
    result: Any = disabled.run(Request(board(tmp_path, **status).machine(), report(*kinds)))
    assert result["status"] == answer
    if answer == "failed":
        node = NPU if "npu" in status else GPU
        assert result["findings"][0]["evidence"].endswith(f"{node}/status: disabled")


def test_without_a_device_tree(tmp_path: Path) -> None:
    result = disabled.run(Request(Tree(tmp_path).machine(), report()))
    assert result["status"] == "not_applicable"


def test_what_a_set_of_checks_needs_is_here(tmp_path: Path) -> None:
    machine = Tree(tmp_path).machine()
    plain = Request(machine, report())
    assert [plain.supplies([word]) for word in ("report", ENVIRONMENT, ASSUMED, JOURNAL)] == [
        *(True, False, False, False)
    ]
    other = Request(machine, report(), environment="/a", assumed={"boot": "next"})
    assert other.supplies([ENVIRONMENT, ASSUMED])
    assert not other.supplies([ENVIRONMENT, JOURNAL])


def test_facts_of_a_device_that_are_compared() -> None:
    device: Any = {"name": None, "vendor": "acme", "id": "a:1", "driver": None, "links": []}
    device["memory"] = {"total": 8, "parts": {"vram": 4}}
    assert dict(_of_device(device)) == {"driver of acme (a:1)": "", "VRAM of acme (a:1)": "4"}
    device |= {"name": "One", "memory": {"total": 8}}
    device["links"] = [{"kind": "x"}, {"kind": "pcie", "local_width": 16}]
    assert dict(_of_device(device)) == {
        "driver of One (a:1)": "",
        "VRAM of One (a:1)": "8",
        "PCIe lanes of One (a:1)": "16",
    }


@pytest.mark.parametrize(
    ("step", "found", "is_named"),
    [
        ("query-fails", {}, True),
        ("query-fails", {"prober": "b"}, True),
        ("query-fails", {"prober": "c"}, False),
        ("query-fails", {"code": "other"}, False),
        ("query-fails", {"evidence": "no-such-cause"}, False),
        ("query-fails", {"evidence": None}, False),
        ("gpu-lost", {}, False),
    ],
)
def test_a_plugin_names_the_cause_of_its_own_device(
    step: str, found: dict[str, Any], is_named: bool
) -> None:
    own: Any = {"step": "responding", "status": "broken", "code": step, "evidence": "e"}
    device: Any = {"vendor": "a", "seen_by": ["b"]}
    finding = {"code": "prober-unavailable", "evidence": "module-not-loaded", "prober": "a"}
    finding |= {"why": "w", **found}
    named = _named(device, own, [finding])  # type: ignore[list-item]
    assert (named["code"], named["evidence"]) == (
        ("module-not-loaded", "w") if is_named else (step, "e")
    )


SLOW = {"kind": "pcie", "local_gts": 2.5, "local_max_gts": 16.0}


@pytest.mark.parametrize(
    ("device", "link", "speeds"),
    [
        ({}, {}, (2.5, 16.0)),
        ({"power_state": None}, {}, (2.5, 16.0)),
        ({"power_state": "suspended"}, {}, None),
        ({"kind": "npu"}, {}, None),
        ({}, {"kind": "nvlink"}, None),
        ({}, {"local_gts": 16.0}, None),
        ({}, {"local_gts": None}, None),
        ({}, {"local_max_gts": None}, None),
    ],
)
def test_the_speed_of_a_slow_link(
    device: dict[str, Any], link: dict[str, Any], speeds: tuple[float, float] | None
) -> None:
    links = [{"kind": "x"}, SLOW | link]
    gpu: Any = {"kind": "gpu", "power_state": "active", "links": links, **device}
    assert _speeds(gpu) == speeds


@pytest.mark.parametrize(
    ("links", "busy", "answer"),
    [
        ([], None, "not_applicable"),
        ([SLOW | {"local_gts": 16.0}], 99, "passed"),
        ([SLOW], 99, "failed"),
        ([SLOW], 0, "passed"),
        ([SLOW], None, "unknown"),
    ],
)
def test_a_slow_link_counts_where_its_device_works(
    links: list[Any], busy: int | None, answer: str, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    files = {} if busy is None else {"gpu_busy_percent": busy}
    tree.pci("0000:03:00.0", "1002:744c", driver="amdgpu", **files)
    found = report("gpu")
    found["devices"][0] |= {"id": "pci:0000:03:00.0", "ids": ["pci:0000:03:00.0"], "links": links}
    found["devices"][0] |= {"power_state": "active", "name": "One", "vendor": "amd"}
    result: Any = link_speed.run(Request(tree.machine(), found))
    assert result["status"] == answer
    if answer == "failed":
        evidence = result["findings"][0]["evidence"]
        assert evidence.endswith(": 2.5 of 16 GT/s at gpu_busy_percent 99")


def test_specifications_of_containers(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    text = "kind: nvidia.com/gpu"
    for name, content in (("a.yaml", text), ("b.json", text), ("c.txt", text), ("d.yaml", "x")):
        tree.file(f"/etc/cdi/{name}", content)
    listed = [path for path, _ in specifications(tree.machine())]
    assert listed == ["/etc/cdi/a.yaml", "/etc/cdi/b.json"]
    text = "libcuda.so.580.95.05, libcuda.so.1\nlibcuda.so.570.1"
    assert list(driver_versions(text)) == ["580.95.05", "1", "570.1"]


def event(provider: str, id: int, time: str = "now") -> str:
    return f"TimeCreated  : {time}\r\nProviderName : {provider}\r\nId           : {id}\r\n\r\n"


@pytest.mark.parametrize(
    ("events", "evidence"),
    [
        (["", event("Display", 4101)], None),
        ([event("disk", 153), event("Display", 4101), event("nvlddmkm", 4101)], None),
        (
            [event("nvlddmkm", 153, "11/28/2026 10:11"), event("Display", 4101), "Id : 4101"],
            "2 resets in the event log, the last 11/28/2026 10:11",
        ),
    ],
)
def test_resets_in_windows_log(events: list[str], evidence: str | None, tmp_path: Path) -> None:
    machine = Machine(str(tmp_path), os="windows")
    assert resets.run(Request(machine, report("npu")))["status"] == "not_applicable"
    assert resets.run(Request(machine, report("gpu")))["status"] == "unknown"
    Tree(tmp_path).file("/recorded/events.txt", "".join(events))
    result: Any = resets.run(Request(machine, report("gpu")))
    assert result["status"] == ("passed" if evidence is None else "failed")
    if evidence is not None:
        (finding,) = result["findings"]
        assert (finding["severity"], finding["evidence"]) == ("warning", evidence)


@pytest.mark.parametrize(
    ("limit", "memory", "answer"),
    [
        ("0", "17179869184", "passed"),
        ("12288", "17179869184", "passed"),
        ("1024", "17179869184", "failed"),
        ("x", "17179869184", "unknown"),
        ("1" * 20, "17179869184", "unknown"),
        ("1024", "", "unknown"),
    ],
)
def test_a_limit_of_wired_memory(limit: str, memory: str, answer: str, tmp_path: Path) -> None:
    machine = Machine(str(tmp_path), os="darwin")
    text = f"iogpu.wired_limit_mb: {limit}\nhw.memsize: {memory}\n"
    Tree(tmp_path).file("/recorded/sysctl.txt", text)
    found = {**report("gpu"), "node": {"memory": {"total": None}}}
    result: Any = wired.run(Request(machine, found))
    assert result["status"] == answer
    if answer == "failed":
        assert result["findings"][0]["evidence"].endswith(": 1024 of 16384 MiB")
    found["devices"] = []
    assert wired.run(Request(machine, found))["status"] == "not_applicable"


@pytest.mark.parametrize(("value", "answer"), [("0", "passed"), ("1", "failed"), ("", "unknown")])
def test_a_guest_of_macos(value: str, answer: str, tmp_path: Path) -> None:
    Tree(tmp_path).file("/recorded/sysctl.txt", f"kern.hv_vmm_present: {value}\n")
    result = guest.run(Request(Machine(str(tmp_path), os="darwin"), report()))
    assert result["status"] == answer


def test_where_libraries_lead(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.file("/usr/lib/x86_64-linux-gnu/libcuda.so.580.1", "")
    folder = "/usr/lib/x86_64-linux-gnu"
    tree.link(f"{folder}/libcuda.so.1", f"{folder}/libcuda.so.580.1")
    tree.file("/opt/rocm/.info/version", "6.4.1\n")
    found = dict(_libraries(Request(tree.machine(), report())))
    assert found == {
        "library libcuda.so.1": "/usr/lib/x86_64-linux-gnu/libcuda.so.580.1",
        "library libnvidia-ml.so.1": None,
        "library libze_intel_gpu.so.1": None,
        "ROCm": "6.4.1",
    }
    assert list(_libraries(Request(Machine(str(tmp_path), os="darwin"), report()))) == []


def of_vendor(vendor: str, **facts: Any) -> Any:
    found = report("gpu")
    found["devices"][0] |= {"vendor": vendor, **facts}
    return found


SLEPT = "/sys/power/suspend_stats/success"


@pytest.mark.parametrize(
    ("slept", "params", "code", "answer"),
    [
        (None, "", "cuda-error-999", "passed"),
        ("0", "", "cuda-error-999", "passed"),
        ("3", "", "cuda-error-999", "failed"),
        ("3", "PreserveVideoMemoryAllocations: 1", "cuda-error-999", "passed"),
        ("3", "", "cuda-error-100", "passed"),
        ("3", "", None, "unknown"),
    ],
)
def test_cuda_after_the_machine_slept(
    slept: str | None, params: str, code: str | None, answer: str, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    if slept is not None:
        tree.file(SLEPT, f"{slept}\n")
    tree.file("/proc/driver/nvidia/params", f"{params}\n")
    asked = {"asked": {"cuda": {"code": code}}} if code else {}
    result: Any = uvm.run(Request(tree.machine(), of_vendor("nvidia") | asked))
    assert result["status"] == answer
    if answer == "failed":
        assert result["findings"][0]["evidence"] == f"{SLEPT}: 3; cuInit answered 999"
    assert uvm.run(Request(tree.machine(), of_vendor("amd")))["status"] == "not_applicable"
    container = Machine(str(tmp_path), {"container": "lxc"})
    assert uvm.run(Request(container, of_vendor("nvidia")))["status"] == "not_applicable"


@pytest.mark.parametrize(
    ("outcome", "persistence", "answer"),
    [
        ({}, False, "failed"),
        ({"elapsed_ms": 1999.0}, False, "passed"),
        ({}, True, "passed"),
        ({}, None, "passed"),
        ({"status": "timeout"}, False, "not_applicable"),
        ({"prober": "amd"}, False, "not_applicable"),
    ],
)
def test_a_slow_first_query(
    outcome: dict[str, Any], persistence: bool | None, answer: str, tmp_path: Path
) -> None:
    found = of_vendor("nvidia", persistence=persistence)
    found["outcomes"] = [{"prober": "nvidia", "status": "ok", "elapsed_ms": 2000.0, **outcome}]
    result = initialisation.run(Request(Tree(tmp_path).machine(), found))
    assert result["status"] == answer
    assert [finding["evidence"] for finding in result["findings"]] == (
        ["the query took 2.0 s"] if answer == "failed" else []
    )


@pytest.mark.parametrize(
    ("rocm", "driver", "answer"),
    [
        ("6.4.1-83", "6.12.12", "passed"),
        ("7.2.0", "6.12.12", "failed"),
        ("6.4.1", None, "not_applicable"),
        (None, "6.12.12", "not_applicable"),
        ("9.9.0", "6.12.12", "unknown"),
        ("6", "6.12.12", "not_applicable"),
    ],
)
def test_releases_of_rocm_and_its_driver(
    rocm: str | None, driver: str | None, answer: str, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    for path, text in (("/opt/rocm/.info/version", rocm), ("/sys/module/amdgpu/version", driver)):
        if text is not None:
            tree.file(path, f"{text}\n")
    result = skew.run(Request(tree.machine(), of_vendor("amd")))
    assert result["status"] == answer
    if answer == "failed":
        (found,) = result["findings"]
        assert found["evidence"] == (
            "/opt/rocm/.info/version: 7.2; /sys/module/amdgpu/version: 6.12.12, of ROCm 6.4"
        )
        assert found["fix"] == "install amdgpu-dkms of ROCm 7.2 (AMD's repository), then reboot"
        assert found["action"]["changes"] == ["package amdgpu-dkms"]
    absent = skew.run(Request(tree.machine(), of_vendor("nvidia")))
    assert absent["status"] == "not_applicable"


def outcome(result: Any) -> tuple[str, str | None]:
    """Return the status of a check, and its evidence or its reason."""
    found = [finding["evidence"] for finding in result["findings"]]
    return result["status"], found[0] if found else result["reason"]


@pytest.mark.parametrize(
    ("name", "arch", "answer"),
    [
        ("libze_intel_gpu.so.1.6.31906", "xe2", "failed"),
        ("libze_intel_gpu.so.1.6.31907", "xe2", "passed"),
        ("libze_intel_gpu.so.1.6", "xe2", "unknown"),
        ("libze_intel_gpu.so.1.6.x", "xe2", "unknown"),
        (None, "xe2", "not_applicable"),
        ("libze_intel_gpu.so.1.6.31906", "xe", "not_applicable"),
    ],
)
def test_a_compute_runtime_that_is_older_than_the_gpu(
    name: str | None, arch: str, answer: str, tmp_path: Path
) -> None:
    tree, path = Tree(tmp_path), "/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1"
    if name is not None:
        tree.file(f"/usr/lib/x86_64-linux-gnu/{name}", b"\x7fELF\x02")
        tree.link(path, f"/usr/lib/x86_64-linux-gnu/{name}")
    status, text = outcome(runtime.run(Request(tree.machine(), of_vendor("intel", arch=arch))))
    assert status == answer
    if answer == "failed":
        assert text == f"{path} leads to build 31906; the GPU needs 31907"


SHM = "shm /dev/shm tmpfs rw,nosuid{} 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        (None, ("unknown", "/proc/self/mounts cannot be read")),
        (SHM.format(",size=65536k"), ("failed", "/proc/self/mounts: /dev/shm has 64 MiB")),
        (
            SHM.format(",size=32000k,mode=1777"),
            ("failed", "/proc/self/mounts: /dev/shm has 31 MiB"),
        ),
        (SHM.format(",size=65537k"), ("passed", None)),
        (SHM.format(",size=65536"), ("passed", None)),
        (SHM.format(",size=xk"), ("passed", None)),
        (SHM.format(",size=" + "1" * 12 + "k"), ("passed", None)),
        (SHM.format(""), ("passed", None)),
        ("x /dev/shm \n", ("passed", None)),
        ("x /dev/shmem tmpfs rw,size=1k 0 0\n", ("passed", None)),
    ],
    ids=range(10),
)
def test_shared_memory_of_a_container(
    mounts: str | None, expected: tuple[str, str | None], tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    if mounts is not None:
        tree.file("/proc/self/mounts", mounts)
    machine = Machine(str(tmp_path), {"container": "docker"})
    assert outcome(shared_memory.run(Request(machine, of_vendor("nvidia")))) == expected
    for other, found in ((tree.machine(), of_vendor("nvidia")), (machine, report("cpu"))):
        assert shared_memory.run(Request(other, found))["status"] == "not_applicable"


class Running(Machine):
    """A machine in a folder that passes for the one that runs this."""

    __slots__ = ()

    def path(self, path: str) -> str:
        return self.root + path


SWITCH = "0000:05:00.0"


@pytest.mark.parametrize(
    ("processes", "fields", "container", "expected"),
    [
        ({1: "systemd", 42: "nv-fabricmanage"}, {}, None, ("passed", None)),
        ({1: "systemd", 42: "sshd"}, {}, None,
         ("failed", f"{SWITCH} is an NVSwitch; no process nv-fabricmanager")),
        ({42: "sshd"}, {}, None, ("unknown", "/proc hides the processes of other users")),
        ({}, {"extra": {"fabric": "ready"}}, None, ("passed", None)),
        ({1: "systemd"}, {}, "docker",
         ("unknown", "whether nvidia-fabricmanager runs is not visible here")),
    ],
    ids=range(5),
)  # fmt: skip
def test_a_fabric_manager_for_the_switches(
    processes: dict[int, str],
    fields: dict[str, Any],
    container: str | None,
    expected: tuple[str, str | None],
    tmp_path: Path,
) -> None:
    tree = Tree(tmp_path)
    machine = Running(str(tmp_path), {"container": container} if container else {})
    machine.live = True  # so that its processes count
    found = of_vendor("nvidia", arch=None, **fields)
    assert fabric.run(Request(machine, found))["status"] == "not_applicable"
    tree.pci(SWITCH, "10de:22a3", pci_class="068000", driver="nvidia-nvswitch")
    for number, name in processes.items():
        tree.file(f"/proc/{number}/comm", f"{name}\n")
    assert outcome(fabric.run(Request(machine, found))) == expected
    assert fabric.run(Request(machine, of_vendor("amd")))["status"] == "not_applicable"


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05", "failed"),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1.1", "failed"),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.2", "passed"),
        ("/usr/lib/wsl/drivers/nv/libcuda.so.580.95.05", "passed"),
        (None, "passed"),
    ],
)
def test_a_linux_driver_in_wsl(target: str | None, answer: str, tmp_path: Path) -> None:
    tree, path = Tree(tmp_path), "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    request = Request(tree.machine(), report())
    assert linux_driver.run(request)["status"] == "not_applicable"
    tree.release("6.6.87.2-microsoft-standard-WSL2")
    if target is not None:
        tree.file(target, b"\x7fELF\x02")
        tree.link(path, target)
    status, text = outcome(linux_driver.run(Request(tree.machine(), report())))
    assert status == answer
    if answer == "failed":
        assert text == f"the loader takes {path}, which leads to {target}"


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("amdgpu 0000:03:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x1 address=0x2]", True),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:03:00.0 domain=0x1]", True),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT device=03:00.0 domain=0x1]", True),
        ("DMAR: [DMA Read] Request device [03:00.0] fault addr 0x1", True),
        ("DMAR: [DMA Read] Request device [0000:03:00.0] fault addr 0x1", True),
        ("DMAR: [DMA Read] Request device [04:00.0] fault addr 0x1", False),
        ("DMAR: [DMA Read] Request device fault addr 0x1", False),
        ("DMAR: [DMA Read] Request device [03:00.0] reason 5", False),
        ("[DMA Read] Request device [03:00.0] fault addr 0x1", False),
        (": AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x1", False),
    ],
    ids=range(10),
)
def test_a_fault_of_the_iommu(line: str, device: bool, tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.file("/var/log/dmesg", f"Linux version 6.8.0\n{line}\n")
    own: dict[str, Any] = {"id": "pci:0000:03:00.0", "ids": ["pci:0000:03:00.0"], "arch": None}
    found = of_vendor("amd", **own, parent=None)
    result: Any = faults.run(Request(tree.machine(), found))
    assert [(one["device"], one["evidence"]) for one in result["findings"]] == (
        [("pci:0000:03:00.0", line)] if device else []
    )


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], ("passed", None)),
        ([("ok", "a"), ("unknown", "b")], ("passed", None)),
        ([("unknown", "a"), ("broken", "b")], ("passed", None)),
        ([("unknown", "a"), ("unknown", "b")], ("unknown", "a")),
        ([("not_applicable", "a"), ("unknown", "b")], ("unknown", "a")),
        ([("not_applicable", "a"), ("not_applicable", "b")], ("not_applicable", "a")),
        ([("unknown", None)], ("unknown", "nothing is known")),
    ],
    ids=range(7),
)
def test_what_steps_answer_of_a_cause(
    steps: list[tuple[str, str | None]], expected: tuple[str, str | None], tmp_path: Path
) -> None:
    found = report(*["gpu"] * (len(steps) + 1), "cpu")
    for device, (status, evidence) in zip(found["devices"][1:-1], steps, strict=True):
        step = {"step": "driver", "status": status, "evidence": evidence}
        device["readiness"] = {"steps": [{"step": "node"}, step]}
    check = next(check for check in builtin_checks(()) if check.code == "nomodeset")
    assert outcome(check.run(Request(Tree(tmp_path).machine(), found))) == expected


@pytest.mark.parametrize(
    ("clause", "sentence"),
    [
        ("the kernel is old", "The kernel is old"),
        ("nouveau holds it", "nouveau holds it"),
        ("macOS hides it", "macOS hides it"),
        ("/dev/kfd is absent", "/dev/kfd is absent"),
        ("i915 holds it", "i915 holds it"),
        ("it", "It"),
        ("", ""),
    ],
)
def test_a_clause_becomes_a_sentence(clause: str, sentence: str) -> None:
    assert _sentence(clause) == sentence


def test_the_finding_of_a_break_has_its_own_code_and_the_plugins_reason(tmp_path: Path) -> None:
    found = of_vendor("acme", **{"chip": {"id": None}, "arch": None, "pci": None, "parent": None})
    (gpu,) = found["devices"]
    gpu |= {
        "seen_by": ["acme"],
        "sources": {},
        "driver": None,
        "power_state": None,
        "node_index": {},
    }

    def findings(code: str | None, *reported: dict[str, Any]) -> list[Any]:
        step = {"step": "responding", "status": "broken", "evidence": "a log", "code": code}
        gpu["readiness"] = {"state": "blocked", "broken": "responding", "steps": [step]}
        machine = Tree(tmp_path).machine()
        return broken_findings(Request(machine, {**found, "findings": [*reported]})).findings

    (own,) = findings("acme-hot")
    assert (own["code"], own["why"], own["severity"]) == ("acme-hot", "a log", "error")
    assert "devices" not in own
    (own,) = findings(None)
    assert (own["code"], own["what"]) == ("device-blocked", "The step responding is broken")
    told = {"code": "acme-hot", "device": gpu["id"], "step": "responding", "severity": "error"}
    told |= {"prober": "acme", "why": "its fan stands", "fix": "`sudo modprobe nvidia`"}
    (own,) = findings("acme-hot", told)
    assert (own["why"], own["prober"], own["fix"]) == ("its fan stands", "acme", told["fix"])


@pytest.mark.parametrize(
    ("code", "os", "reason"),
    [
        ("version-mismatch", "linux", "no NVIDIA accelerator is here"),
        ("kfd-missing", "linux", "no AMD accelerator is here"),
        ("nomodeset", "linux", "no accelerator is here"),
        ("mac-guest", "linux", "this is not macOS"),
        ("tdr", "linux", "this is not Windows"),
    ],
)
def test_whom_a_cause_does_not_concern(code: str, os: str, reason: str, tmp_path: Path) -> None:
    check = next(check for check in builtin_checks(()) if check.code == code)
    result = check.run(Request(Machine(str(tmp_path), os=os), report("cpu")))
    assert (result["status"], result["reason"]) == ("not_applicable", reason)


def test_a_specification_of_another_driver(tmp_path: Path) -> None:
    tree = Tree(tmp_path)

    def status() -> str:
        return specification.run(Request(tree.machine(), of_vendor("nvidia")))["status"]

    assert status() == "not_applicable"
    line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Thu Feb 22\n"
    tree.file("/proc/driver/nvidia/version", line)
    assert status() == "not_applicable"
    tree.file("/etc/cdi/a.yaml", "nvidia.com/gpu libcuda.so.580.95.05 libcuda.so.1")
    assert status() == "passed"
    tree.file("/etc/cdi/b.yaml", "nvidia.com/gpu libcuda.so.1")
    assert status() == "passed"
    tree.file("/etc/cdi/c.yaml", "nvidia.com/gpu libcuda.so.570.1")
    assert status() == "failed"


def test_versions_of_an_archive() -> None:
    outcomes = [{"distribution": name} for name in ("b 1", "a 2", "b 1")]
    found: Any = {"probe_core": "1.0", "chipdb": None, "outcomes": outcomes}
    python = ".".join(map(str, sys.version_info[:3]))
    own = {"probe_core": "1.0", "chipdb": None, "plugins": ["a 2", "b 1"]}
    versions = _versions(found)
    assert str(versions["python"]).startswith(python)
    assert {name: versions[name] for name in own} == own
