"""What changed since it worked: saved on purpose, compared where a device was lost."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from doctor_cases import complete
from readiness_nodes import DEVICE, LIBRARIES, PCI, VERSION_TEXT, Node, nvidia
from reports import report_of

from probe_core.cli.doctor_text import _changed
from probe_core.config import BASELINE, place_of_state
from probe_core.doctor.baseline import compare, facts, save
from probe_core.doctor.check import Request
from probe_core.doctor.document import DoctorDoc
from probe_core.doctor.examine import examine
from probe_core.doctor.log import first_sign
from probe_core.pipeline.expected import keys_of


def looked(node: Node) -> tuple[Request, DoctorDoc]:
    complete(node)
    machine = node.machine()
    request = Request(machine, report_of(machine))  # type: ignore[arg-type]
    return request, examine(request)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = nvidia(tmp_path / "root")
    node.environ["XDG_STATE_HOME"] = str(tmp_path / "state")
    node.file("/sys/module/nvidia/version", "580.95.05\n")
    return node


def test_it_says_what_differs_for_a_device_that_was_ready(node: Node) -> None:
    save(*looked(node))
    node.tree.release("6.8.0-61-generic")
    node.file("/proc/driver/nvidia/version", VERSION_TEXT.replace("580.95.05", "570.86.10"))
    node.file("/sys/module/nvidia/version", "570.86.10\n")
    node.environ["CUDA_VISIBLE_DEVICES"] = "0"
    request, document = looked(node)
    compare(request, document)
    baseline = document["baseline"]
    assert (baseline["lost"], document["healthy"]) == ([DEVICE], False)
    changed = {c["fact"]: (c["before"], c["now"]) for c in baseline["changed"]}
    assert changed == {
        "kernel": ("6.8.0-60-generic", "6.8.0-61-generic"),
        "version of module nvidia": ("580.95.05", "570.86.10"),
        "variable CUDA_VISIBLE_DEVICES": (None, "0"),
    }


def test_a_device_that_still_works_needs_no_comparison(node: Node) -> None:
    save(*looked(node))
    node.tree.release("6.8.0-61-generic")
    request, document = looked(node)
    compare(request, document)
    assert (document["baseline"]["lost"], document["baseline"]["changed"]) == ([], [])


def test_a_variable_takes_nothing_away(node: Node) -> None:
    save(*looked(node))
    node.environ["CUDA_VISIBLE_DEVICES"] = ""
    request, document = looked(node)
    compare(request, document)
    assert (document["baseline"]["lost"], document["healthy"]) == ([], True)


def test_a_card_that_no_bus_shows_any_more_is_an_error(node: Node, tmp_path: Path) -> None:
    path = Path(save(*looked(node)))
    empty = Node(tmp_path / "empty")
    empty.environ["XDG_STATE_HOME"] = node.environ["XDG_STATE_HOME"]
    request, document = looked(empty)
    assert document["healthy"] is True
    other: Any = {"device": None, "step": None, "code": "other"}
    document["findings"] = [other]
    compare(request, document)
    assert document["findings"][1:] == [other]
    saved = document["baseline"]["saved"]
    assert saved == json.loads(path.read_text())["saved"]
    assert saved[4::3] == "--T::Z"
    found = document["findings"][0]
    assert (found["code"], found["severity"], found["device"]) == ("off-the-bus", "error", DEVICE)
    assert found["what"] == f"{DEVICE} is lost: no bus and no plugin shows it now"
    assert found["why"] == f"it was ready on {saved[:10]}"
    action = found["action"]
    assert (action["where"], action["command"], action["reboots"]) == ("host", None, True)
    assert (document["baseline"]["lost"], document["healthy"]) == ([DEVICE], False)
    # Asked about another device, it says nothing of this one.
    other = Request(request.machine, request.report, device="pci:0000:99:00.0")
    document = examine(other)
    compare(other, document)
    assert document["baseline"]["lost"] == []


REMOVED = "pcieport 0000:00:01.0: pciehp: Slot(12): Card not present"
EARLY = "pcieport 0000:00:01.0: pciehp: Slot #12 AttnBtn- PwrCtrl- MRL- AttnInd- Interlock-"
RECOVERED = REMOVED.replace("Card not present", "Link Down/Up ignored (recovered by DPC)")
XID = "NVRM: Xid (PCI:0000:01:00): 79, pid=4242, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("lines", "place", "port", "sign"),
    [
        ((EARLY, REMOVED), PCI, "0000:00:01.0", REMOVED),
        ((EARLY, REMOVED), PCI, None, None),
        ((EARLY, REMOVED), None, None, REMOVED),
        ((XID, REMOVED), PCI, "0000:00:01.0", XID),
        ((REMOVED, XID), PCI, None, XID),
        ((XID.replace("01:00", "02:00"),), PCI, None, None),
        ((RECOVERED, XID), PCI, "0000:00:01.0", XID),
        ((RECOVERED,), None, None, None),
        (("pcieport 0000:00:01.0: AER: Corrected error received",), PCI, "0000:00:01.0", None),
    ],
)
def test_the_first_sign_of_a_loss_is_quoted(
    lines: tuple[str, ...], place: str | None, port: str | None, sign: str | None, tmp_path: Path
) -> None:
    node = Node(tmp_path / "root")
    node.file("/sys/bus/pci/devices/0000:00:01.0/class", "0x060400")
    node.file("/var/log/dmesg", "\n".join(("Linux version 6.8.0", *lines)))
    request, _ = looked(node)
    assert first_sign(request, place, port) == (None if sign is None else f"kernel log: {sign}")


def test_a_port_with_a_card_below_it_lost_none(tmp_path: Path) -> None:
    node = Node(tmp_path / "root")
    node.file("/sys/bus/pci/devices/0000:00:01.0/0000:01:00.0/class", "0x030000")
    node.file("/var/log/dmesg", f"Linux version 6.8.0\n{REMOVED}\n")
    assert first_sign(looked(node)[0], None, None) is None


def test_what_is_absent_has_the_kernels_sign(node: Node) -> None:
    node.file("/var/log/dmesg", f"Linux version 6.8.0\n{XID}\n")
    complete(node)
    report = report_of(node.machine(), expect="2x RTX 4090")
    absent = {"name": "RTX 4090", "count": 1, "device": None, "place": PCI, "port": None}
    report["expected"]["absent"] = [{**absent, "sign": None}]
    document = examine(Request(node.machine(), report))  # type: ignore[arg-type]
    found = next(f for f in document["findings"] if f["code"] == "fewer-than-expected")
    assert found["evidence"] == f"kernel log: {XID}"
    assert document["healthy"] is False


def test_another_computers_baseline_is_not_compared(node: Node, tmp_path: Path) -> None:
    path = Path(save(*looked(node)))
    path.write_text(json.dumps({**json.loads(path.read_text()), "keys": ["another"]}))
    empty = Node(tmp_path / "empty")
    empty.environ["XDG_STATE_HOME"] = node.environ["XDG_STATE_HOME"]
    request, document = looked(empty)
    compare(request, document)
    assert "baseline" not in document
    found = document["findings"][-1]
    assert (found["code"], found["severity"]) == ("baseline-of-another-computer", "info")
    assert (found["what"], document["healthy"]) == (
        f"{path} is not compared: it is another computer's",
        True,
    )


def test_a_container_without_an_id_compares_within_one_boot(node: Node, tmp_path: Path) -> None:
    """Homes of containers are often those of several computers, and no id tells these apart."""
    boot = "/proc/sys/kernel/random/boot_id"
    node.container()
    node.file(boot, "3a9d\n")
    path = save(*looked(node))
    empty = Node(tmp_path / "empty")
    empty.container()
    empty.environ["XDG_STATE_HOME"] = node.environ["XDG_STATE_HOME"]
    empty.file(boot, "3a9d\n")
    request, document = looked(empty)
    compare(request, document)
    assert document["baseline"]["lost"] == [DEVICE]
    for text in ("77f0\n", ""):
        empty.file(boot, text)
        request, document = looked(empty)
        compare(request, document)
        assert "baseline" not in document
        assert document["healthy"] is True
        assert document["findings"][-1]["what"] == (
            f"{path} is not compared: it is of another computer, or of an earlier boot"
        )


def test_a_container_without_an_id_is_known_by_its_gpus_after_a_reboot(node: Node) -> None:
    boot, place = "/proc/sys/kernel/random/boot_id", f"/proc/driver/nvidia/gpus/{PCI}/information"
    own = "Model: \t NVIDIA L4\nGPU UUID: \t GPU-8F0C2B1A-0d5e-4f6a-9b7c-1234567890ab\n"
    node.container()
    node.file(boot, "3a9d\n")
    node.file(place, own)
    save(*looked(node))
    node.file(boot, "77f0\n")
    request, document = looked(node)
    compare(request, document)
    assert document["baseline"]["lost"] == []
    for other in (own.replace("8F0C", "8F0D"), own.replace("8F0C2B1A", "????????"), "Model: L4\n"):
        node.file(place, other)
        request, document = looked(node)
        compare(request, document)
        assert "baseline" not in document


def test_a_sleeping_gpu_is_not_asked_for_its_uuid(node: Node) -> None:
    node.container()
    text = "GPU UUID: \t GPU-8f0c2b1a-0d5e-4f6a-9b7c-1234567890ab\n"
    node.file(f"/proc/driver/nvidia/gpus/{PCI}/information", text)
    request, _ = looked(node)
    devices = request.report["devices"]
    known = ["uuid:GPU-8f0c2b1a-0d5e-4f6a-9b7c-1234567890ab"]
    assert keys_of(request.machine, request.report["node"], devices) == known
    asleep: Any = [{**device, "power_state": "suspended"} for device in devices]
    assert keys_of(request.machine, request.report["node"], asleep) == []


def test_without_a_baseline_nothing_is_compared(node: Node) -> None:
    request, document = looked(node)
    compare(request, document)
    assert "baseline" not in document


@pytest.mark.heavy
@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 9}', '{"schema": 1, "ready": 5, "facts": [1]}', "\0" * 99]
)
def test_a_damaged_baseline_hurts_nothing(text: str, node: Node) -> None:
    path = Path(place_of_state(node.environ, BASELINE))
    path.parent.mkdir(parents=True)
    path.write_text(text)
    request, document = looked(node)
    compare(request, document)
    assert document.get("baseline", {"lost": []})["lost"] == []


@pytest.mark.parametrize("home", [None, "", "home"])
def test_without_a_home_nothing_is_kept(
    home: str | None, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`probe` would not find it: neither the root folder nor the working one is a home."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    node.environ = {} if home is None else {"HOME": home}
    with pytest.raises(ValueError, match=r"^neither XDG_STATE_HOME nor HOME names a folder$"):
        save(*looked(node))
    assert sorted(tmp_path.iterdir()) == before
    request, document = looked(node)
    compare(request, document)
    assert "baseline" not in document


def test_it_is_the_users_alone_and_replaced_as_a_whole(node: Node) -> None:
    request, document = looked(node)
    path = Path(save(request, document))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert save(request, document) == str(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["doctor-baseline.json"]
    assert json.loads(path.read_text())["ready"] == [DEVICE]


def test_facts_of_checks_are_compared_when_they_ran(node: Node) -> None:
    request, document = looked(node)
    request.facts["wheel torch"] = "2.9.1+cu128"
    save(request, document)
    node.file("/proc/driver/nvidia/version", VERSION_TEXT.replace("580.95.05", "570.86.10"))
    request, document = looked(node)
    compare(request, document)
    assert document["baseline"]["changed"] == []
    request.facts["wheel torch"] = "2.10.0+cu130"
    compare(request, document)
    assert document["baseline"]["changed"] == [
        {"fact": "wheel torch", "before": "2.9.1+cu128", "now": "2.10.0+cu130"}
    ]


def test_facts_of_checks_that_did_not_run_then_are_no_changes(node: Node) -> None:
    save(*looked(node))
    node.file("/proc/driver/nvidia/version", VERSION_TEXT.replace("580.95.05", "570.86.10"))
    request, document = looked(node)
    request.facts["wheel torch"] = "2.10.0+cu130"
    compare(request, document)
    assert document["baseline"]["lost"] == [DEVICE]
    assert document["baseline"]["changed"] == []


def test_the_facts_that_are_compared(node: Node) -> None:
    node.file("/proc/cmdline", "root=/dev/sda  quiet\n")
    node.file("/sys/class/dmi/id/bios_version", "F" * 300)
    node.file("/sys/module/xe/version", "v" * 70)
    node.file("/opt/rocm/.info/version", "7.0.2-1\n")
    node.file("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nGroups:\t1000 44 105\n")
    node.file("/proc/self/cgroup", "0::/kubepods.slice/kubepods-podabc.slice\n")
    node.container()
    node.remove(f"{LIBRARIES}/libcuda.so.1")
    node.environ["ZE_AFFINITY_MASK"] = "0"
    request, _ = looked(node)
    request.report["node"]["memory"]["limit"] = 1 << 30
    (gpu,) = (device for device in request.report["devices"] if device["kind"] == "gpu")
    gpu["links"] = [{"kind": "nvlink", "local_width": 4}, {"kind": "pcie", "local_width": 8}]
    gpu["memory"]["parts"] = {"vram": 512 << 20}
    modules = ("nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "xe")
    own = f"NVIDIA GeForce RTX 4090 ({DEVICE})"
    expected = {
        "kernel": "6.8.0-60-generic",
        "kernel command line": "root=/dev/sda quiet",
        "firmware": "F" * 256,
        "container": "kubernetes",
        "memory limit (cgroup)": "1073741824",
        "control group": "kubernetes",
        "groups of this process": "44 105 1000",
        "version of module nvidia": "580.95.05",
        "version of module xe": "v" * 64,
        "variable ZE_AFFINITY_MASK": "0",
        f"driver of {own}": "nvidia",
        f"VRAM of {own}": "536870912",
        f"PCIe lanes of {own}": "8",
        "library libnvidia-ml.so.1": f"{LIBRARIES}/libnvidia-ml.so.580.95.05",
        "ROCm": "7.0.2-1",
    }
    found = {name: value for name, value in facts(request).items() if value is not None}
    assert found == expected | {f"module {name}": "loaded" for name in modules}
    request.scene.linux = False
    absent = [name for name in facts(request) if name.startswith(("module", "kernel c", "library"))]
    assert absent == ["kernel command line"]
    assert facts(request)["kernel command line"] is None


def test_every_fact_is_a_text_of_bounded_length(node: Node) -> None:
    node.environ["CUDA_VISIBLE_DEVICES"] = "0," * 4000
    request, _ = looked(node)
    values = facts(request)
    assert values["kernel"] == "6.8.0-60-generic"
    assert values["module nvidia"] == "loaded"
    assert all(len(value or "") <= 300 for value in values.values())


def test_the_text_says_what_changed_since_it_was_saved() -> None:
    found: Any = {"lost": ["pci:a", "pci:b"], "saved": "2026-11-21T22:14:03Z", "changed": []}
    devices: Any = {"pci:a": {"name": "NVIDIA L4"}}
    head = ["", " NVIDIA L4, pci:b was ready on 2026-11-21. Changed since:"]
    assert list(_changed(found, devices, 80)) == [*head, "   nothing that was saved"]
    found["changed"] = [{"fact": "kernel", "before": "6.1", "now": None}]
    assert list(_changed(found, devices, 80)) == [*head, "   kernel: 6.1 → none"]
    assert list(_changed({**found, "lost": []}, devices, 80)) == []
