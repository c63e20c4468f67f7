"""What the kernel logged says more than that a driver left a device alone, or that none answers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from doctor_cases import (
    ADAPTER,
    LOADING,
    MAGIC,
    XID,
    Case,
    Make,
    fact,
    kernel_log,
    ok,
    unloaded,
)
from fake_probers import Probers
from readiness_nodes import PCI, RELEASE, VERSION, Node, amd, intel, nvidia
from test_readiness_causes import kfd_left_it_out

from probe_core import Machine
from probe_core.cli.doctor_text import lines as lines_of
from probe_core.doctor.baseline import compare, save
from probe_core.doctor.check import Request
from probe_core.doctor.checks.kernel_log import _xids, resets
from probe_core.doctor.installation import as_root
from probe_core.doctor.log import _by_call, _failures, _read, _refused

Document = dict[str, Any]

SCHEMA = Path(__file__).parents[2] / "probe_core" / "doctor" / "doctor.schema.json"

GSP = f"nvidia {PCI}: Direct firmware load for nvidia/{VERSION}/gsp_ga10x.bin failed with error -2"
UNSEEN = fact("responding", "not-responding", "NVML lists 0 of 1 GPUs, not this one")
SYSLOG = "2026-11-23T10:11:12.345678+00:00 gpu3 kernel: "


def refused(make: Make, **pci: Any) -> Make:
    """Return a machine whose driver is loaded, left the device alone, and has firmware."""

    def maker(root: Path) -> Node:
        node = make(root, driver=None, **pci)  # type: ignore[call-arg]
        for path in ("amdgpu/gc_11_0_0_pfp.bin.zst", "xe/lnl_guc_70.bin.xz"):
            node.file(f"/lib/firmware/{path}")
        return node

    return maker


@pytest.fixture
def document(tmp_path: Path, probers: Probers) -> Any:
    def of(make: Make, *lines: str, facts: tuple[Any, ...] = ()) -> Document:
        return Case(kernel_log(*lines, make=make), *facts).document(tmp_path / "root", probers)

    return of


def first(document: Document) -> tuple[str, str, str]:
    finding = document["findings"][0]
    return finding["code"], finding["severity"], finding["evidence"]


OTHER = "0000:09:00.0"
ADAPTER_FAILED = f"NVRM: GPU {PCI}: RmInitAdapter failed! (0x24)"
BAR = f"NVRM: BAR1 is 0M @ 0x0 (PCI:{PCI})"
CABLES = f"NVRM: GPU {PCI}: GPU does not have the necessary power cables connected."


def test_a_region_without_an_address_is_why_the_driver_left_a_gpu(document: Any) -> None:
    text = "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:"
    found = document(refused(nvidia), text, BAR)
    assert first(found) == ("bar-unassigned", "error", f"kernel log: {BAR}")
    assert "Above 4G Decoding" in found["findings"][0]["fix"]
    assert [entry["code"] for entry in found["findings"]] == ["bar-unassigned"]


def test_power_that_is_missing_is_why_a_gpu_does_not_start(document: Any) -> None:
    found = document(nvidia, CABLES, ADAPTER, facts=(UNSEEN,))
    assert first(found) == ("gpu-init-failed", "error", f"kernel log: {CABLES}")
    assert "power cables" in found["findings"][0]["fix"]


@pytest.mark.parametrize(
    "line",
    [
        f"nvidia: {MAGIC}",
        "nvidia: disagrees about version of symbol drm_gem_object_free",
        "nvidia: Unknown symbol drm_gem_object_free (err -22)",
    ],
)
def test_a_module_that_was_built_for_another_kernel_is_built_again(
    line: str, document: Any
) -> None:
    found = document(unloaded, f"{SYSLOG}{line}")
    assert first(found) == ("module-refused", "error", f"kernel log: {line}")
    assert "sudo dkms install --force nvidia/VERSION" in found["findings"][0]["fix"]
    assert len(found["findings"]) == 1


def test_the_module_of_another_driver_explains_nothing(document: Any) -> None:
    found = document(unloaded, f"{SYSLOG}vboxdrv: {MAGIC}")
    assert first(found)[0] == "module-not-loaded"


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (amd, f"amdgpu {PCI}: Direct firmware load for amdgpu/psp_13_0_0_sos.bin failed"),
        (intel, f"xe {PCI}: Direct firmware load for xe/bmg_guc_70.bin failed"),
    ],
)
def test_one_file_of_firmware_that_is_missing_is_named(
    make: Make, line: str, document: Any
) -> None:
    line = f"{line} with error -2"
    found = document(refused(make), f"{SYSLOG}{line}")
    assert first(found) == ("firmware-missing", "error", f"kernel log: {line}")
    assert "firmware" in found["findings"][0]["fix"]
    assert len(found["findings"]) == 1 or found["findings"][1]["severity"] == "info"


@pytest.mark.parametrize(
    "line",
    [
        # Of another device, and of a file without which the driver went on.
        "amdgpu 0000:09:00.0: Direct firmware load for amdgpu/x.bin failed with error -2",
        f"amdgpu {PCI}: amdgpu: Fatal error during GPU init",
    ],
)
def test_other_lines_explain_nothing(line: str, document: Any) -> None:
    assert first(document(refused(amd), line))[0] == "amdgpu-refused"


ENDED = f"amdgpu {PCI}: probe with driver amdgpu failed with error -22"
FATAL = f"amdgpu {PCI}: amdgpu: Fatal error during GPU init"
STUCK = "[drm:atom_op_jump [amdgpu]] *ERROR* atombios stuck in loop for more than 20secs aborting"
RESIZE = "NVRM: Fatal Error while attempting to resize PCIe BARs."


@pytest.mark.parametrize(
    ("make", "lines", "expected"),
    [
        # ROCm/legacy-rocm-build#4533; open-gpu-kernel-modules#1109; before Linux 6.9.
        (amd, (STUCK, FATAL, ENDED), STUCK),
        (nvidia, (RESIZE, f"nvidia: probe of {PCI} failed with error -1"), RESIZE),
        (amd, (ENDED,), ENDED),
        # An earlier attempt, another device, and another driver say nothing of it.
        (amd, (STUCK, f"amdgpu {PCI}: enabling device (0000 -> 0003)", FATAL, ENDED), FATAL),
        (amd, (FATAL.replace(PCI, OTHER), "usb 1-1: device error", ENDED), ENDED),
    ],
)
def test_what_a_driver_logged_first_is_why_it_gave_a_device_up(
    make: Make, lines: tuple[str, ...], expected: str, document: Any
) -> None:
    found = document(refused(make), *(f"{SYSLOG}{line}" for line in lines))
    code = "amdgpu-refused" if make is amd else "no-driver"
    assert first(found) == (code, "error", f"kernel log: {expected}")


def test_an_npu_without_its_firmware(document: Any) -> None:
    """intel/linux-npu-driver#31."""
    line = f"intel_vpu {PCI}: [drm] *ERROR* ivpu_fw_request(): Failed to request firmware: -2"
    ended = f"intel_vpu: probe of {PCI} failed with error -2"
    found = document(npu_left_alone, line, ended)
    assert first(found) == ("firmware-missing", "error", f"kernel log: {line}")


def npu_left_alone(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(PCI, "8086:7d1d", pci_class="120000")
    node.modules("intel_vpu")
    return node


def test_a_signature_that_the_kernel_rejects_is_why_a_module_is_not_loaded(document: Any) -> None:
    """siderolabs/talos#7174: no parameter and no Secure Boot says so."""
    line = "Loading of module with unavailable key is rejected"
    found = document(unloaded, f"{SYSLOG}{line}")
    assert first(found) == ("module-unsigned", "error", f"kernel log: {line}")
    assert found["findings"][0]["fix"].startswith("sign nvidia with a key")


def test_a_rejected_signature_is_of_no_module_of_the_kernel_itself(document: Any) -> None:
    """The line names none, and the kernel's own are signed: another module was rejected."""

    def idle(root: Path) -> Node:
        node = amd(root, driver=None)
        node.modules("ext4")
        module, folder = (
            "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst",
            f"/lib/modules/{RELEASE}",
        )
        node.file(f"{folder}/{module}")
        node.file(f"{folder}/modules.dep", f"{module}:\n")
        return node

    found = document(idle, "Loading of module with unavailable key is rejected")
    assert first(found)[0] == "module-not-loaded"


def test_amds_interface_says_of_a_generation_that_it_has_no_part_for_it(document: Any) -> None:
    line = "kfd kfd: amdgpu: BONAIRE  not supported in kfd"
    found = document(kfd_left_it_out, f"[ 3.5] {line}")
    assert first(found) == ("kfd-unsupported", "info", f"kernel log: {line}")


@pytest.mark.parametrize(
    ("name", "code"), [("GC IP 0b0004 ", "kfd-too-old"), ("NAVI14 VF", "kfd-no-gpu")]
)
def test_a_gpu_that_a_later_kernel_may_know_is_of_no_generation_without_part(
    document: Any, name: str, code: str
) -> None:
    """GC 11.0.4 has its part since Linux 6.2."""
    line = f"kfd kfd: amdgpu: {name} not supported in kfd"
    found = document(kfd_left_it_out, f"[ 3.5] {line}")
    assert first(found) == (code, "info", f"kernel log: {line}")


def test_a_virtual_machine_is_given_addresses_by_its_hypervisor(document: Any) -> None:
    """NVIDIA/gpu-operator#492: its firmware setup has no such switch."""

    def guest(root: Path) -> Node:
        node = refused(nvidia)(root)
        node.file("/sys/class/dmi/id/sys_vendor", "VMware, Inc.\n")
        return node

    fix = document(guest, BAR)["findings"][0]["fix"]
    assert fix.startswith("on the host give the virtual machine UEFI firmware")


def test_a_driver_that_went_on_without_a_file_is_well(document: Any) -> None:
    line = f"amdgpu {PCI}: Direct firmware load for amdgpu/isp_4_1_1.bin failed with error -2"
    assert document(amd, line)["healthy"] is True


def test_the_kernels_words_come_before_those_of_a_library(document: Any) -> None:
    found = document(nvidia, f"{SYSLOG}{ADAPTER}", facts=(UNSEEN,))
    assert first(found) == ("gpu-init-failed", "error", f"kernel log: {ADAPTER}")
    assert found["findings"][0]["fix"].startswith("reboot; if it stays, power the machine off")
    assert [f["code"] for f in found["findings"]] == ["gpu-init-failed"]


def test_firmware_that_is_missing_is_why_a_gpu_does_not_start(document: Any) -> None:
    found = document(nvidia, GSP, ADAPTER, facts=(UNSEEN,))
    assert first(found) == ("gsp-firmware-missing", "error", f"kernel log: {GSP}")
    assert "nvidia-firmware-580" in found["findings"][0]["fix"]


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        ((ADAPTER, f"{LOADING}  {VERSION}  Release Build"), ()),
        ((ADAPTER,), (ok("responding", "NVML answered 31 queries"),)),
        ((ADAPTER.replace(PCI, "0000:09:00.0"),), ()),
    ],
)
def test_an_earlier_attempt_says_nothing_of_a_gpu(
    lines: tuple[str, ...], facts: tuple[Any, ...], document: Any
) -> None:
    assert document(nvidia, *lines, facts=facts)["healthy"] is True


RESET = f"amdgpu {PCI}: amdgpu: GPU reset begin!. Source:  1"
FAILED = f"amdgpu {PCI}: amdgpu: GPU reset end with ret = -62"
SUCCEEDED = f"amdgpu {PCI}: GPU reset(3) succeeded!"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((RESET, FAILED), ("error", "reboot; where that does not help, power it off and on")),
        ((RESET, FAILED, RESET, SUCCEEDED), ("info", "update kernel and firmware")),
    ],
)
def test_how_a_reset_ended_decides(
    lines: tuple[str, ...], expected: tuple[str, str], document: Any
) -> None:
    finding = document(amd, *lines)["findings"][0]
    assert finding["code"] == "amdgpu-reset-seen"
    assert (finding["severity"], finding["fix"].partition(";")[0]) == (
        expected[0],
        expected[1].partition(";")[0],
    )


@pytest.mark.parametrize(
    ("line", "healthy"),
    [
        (f"xe {PCI}: [drm] *ERROR* CRITICAL: Xe has declared device {PCI} as wedged.", False),
        (f"xe {PCI}: [drm] device wedged, needs recovery", False),
        (f"xe {PCI}: [drm] *ERROR* GT0: load failed: status: Reset = 0, BootROM = 0x76", False),
        (f"i915 {PCI}: [drm] *ERROR* Failed to initialize GPU, declaring it wedged!", False),
        (f"xe {PCI}: [drm] device wedged, but recovered through reset", True),
    ],
)
def test_a_gpu_that_recovered_works_on(line: str, healthy: bool, document: Any) -> None:
    assert document(intel, line)["healthy"] is healthy


def test_an_xid_of_a_gpu_that_is_lost_is_no_second_finding(
    tmp_path: Path, probers: Probers
) -> None:
    """Nothing reaches it, so that a plugin's advice to reset it would contradict the Xid's."""
    lost = fact("responding", "gpu-lost", "NVML_ERROR_GPU_IS_LOST")
    fields = {"power_state": "unknown", "memory": {"kind": "dedicated"}}
    case = Case(kernel_log(XID.format(79)), lost, fields=fields)
    finding, *others = case.document(tmp_path / "root", probers)["findings"]
    assert [entry["code"] for entry in others if entry["severity"] != "info"] == []
    assert finding["code"] == "gpu-lost"
    assert finding["fix"].startswith("power the machine off and on")
    assert [entry["code"] for entry in finding["follows"]] == ["xid-seen"]


def test_an_xid_of_a_gpu_that_works_stands_alone(document: Any) -> None:
    finding = document(nvidia, XID.format(48))["findings"][0]
    assert (finding["code"], finding["severity"]) == ("xid-seen", "warning")


ACTION = XID.replace(", pid=4242, name=python", ", GPU recovery action changed from {} to {}")


def action(before: str, after: str) -> str:
    return ACTION.format(154, before, after)


@pytest.mark.parametrize(
    ("lines", "evidence", "fix"),
    [
        # What comes last is not the worst.
        ((79, 63), "79, pid=4242, name=python", "power the machine off and on"),
        ((119, 45), "119, pid=4242, name=python", "drain the node, then `sudo nvidia-smi"),
    ],
)
def test_the_worst_xid_counts(
    lines: tuple[int, ...], evidence: str, fix: str, document: Any
) -> None:
    finding = document(nvidia, *map(XID.format, lines))["findings"][0]
    assert (finding["code"], finding["severity"]) == ("xid-seen", "warning")
    assert finding["evidence"].endswith(f"): {evidence}")
    assert finding["fix"].startswith(fix)


# NVIDIA's catalogue, "Xid Errors": "Immediate Action" of each number.
OF_PROGRAMS = {13, 31, 43, 45, 94}
BY_RESET = {46, 48, 62, 64, 74, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158}


@pytest.mark.parametrize("number", range(1, 160))
def test_each_xid_counts_as_the_catalogue_has_it(number: int) -> None:
    """Later ones count before others where they are as bad: each is the second here."""
    line, weaker, stronger, reset = (
        XID.format(each).partition("] ")[2] for each in (number, 1, 79, 46)
    )
    assert _xids([line]) == ({} if number in OF_PROGRAMS else {f"pci:{PCI}": line})
    assert _xids([stronger, line]) == {f"pci:{PCI}": line if number == 79 else stronger}
    kept = weaker if number in OF_PROGRAMS else line
    assert _xids([weaker, line]) == {f"pci:{PCI}": kept}
    is_reset = _xids([reset, line]) == {f"pci:{PCI}": line}
    assert is_reset == (number in BY_RESET | {79})


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (69, "start the program anew that used it"),  # NVIDIA/k8s-device-plugin#189
        (89, "start the program anew that used it"),
        (105, "start the program anew that used it"),
        (90, "look the number up"),
        (106, "look the number up"),
    ],
)
def test_an_xid_after_which_the_gpu_goes_on(number: int, fix: str, document: Any) -> None:
    finding = document(nvidia, XID.format(number))["findings"][0]
    assert (finding["code"], finding["severity"]) == ("xid-seen", "info")
    assert finding["fix"].startswith(fix)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:01:00): , pid=1",
        "NVRM: Xid (PCI:0000:01:00): 79x, pid=1",
        "NVRM: Xid (PCI:0000:01:00): 10000, pid=1",
        "NVRM: Xid (PCI:0000:01:00 79, pid=1",
        "Xid (PCI:0000:01:00): 79, pid=1",
    ],
)
def test_what_is_no_xid(line: str) -> None:
    assert _xids([line]) == {}


class Buffer:
    """The C library of a system whose kernel has this log: klogctl(3) of it."""

    def __init__(self, text: bytes | None, *, size: int | None = None) -> None:
        self.text, self.size = text, size

    def klogctl(self, action: int, buffer: Any, length: int) -> int:
        if action == 10:  # SYSLOG_ACTION_SIZE_BUFFER
            assert (buffer, length) == (None, 0)
            return self.size if self.size is not None else len(self.text or b"")
        assert action == 3  # SYSLOG_ACTION_READ_ALL
        if self.text is None:
            return -1
        buffer.raw = self.text[:length].ljust(length, b"\0")
        return min(len(self.text), length)


@pytest.mark.parametrize(
    ("library", "text"),
    [
        (Buffer(b"<6>one\n\xff"), "<6>one\n\ufffd"),
        (Buffer(b"a", size=4096), "a"),
        (Buffer(b"a" * (1 << 21)), "a" * (1 << 20)),
        (Buffer(b"", size=8), None),
        (Buffer(None, size=8), None),
        (Buffer(None, size=-1), None),
        (Buffer(None, size=0), None),
        (SimpleNamespace(), None),
        (OSError("musl"), None),
    ],
    ids=range(9),
)
def test_the_ring_buffer_of_the_kernel(
    library: Any, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: None, *, use_errno: bool) -> Any:
        if isinstance(library, OSError):
            raise library
        return library

    monkeypatch.setattr("ctypes.CDLL", load)
    assert _by_call() == text


def test_the_last_boot_of_the_first_log_that_has_text(tmp_path: Path) -> None:
    node = Node(tmp_path)

    def read() -> tuple[str | None, str]:
        machine = node.machine()
        log = _read(Request(machine, {"node": {}, "devices": []}))  # type: ignore[arg-type]
        return log.text, log.reason

    assert read() == (None, "the recording has no kernel log")
    node.file("/var/log/messages", "c")
    node.file("/var/log/dmesg", "")
    node.file("/var/log/kern.log", "Linux version 1\na\nLinux version 2\nb\n")
    assert read() == ("Linux version 2\nb\n", "")
    node.file("/var/log/kern.log", "a" + "b" * (1 << 20))
    assert read() == ("b" * (1 << 20), "")


def test_an_xid_of_four_digits_and_of_each_gpu() -> None:
    lines = ["x NVRM: Xid (PCI:0000:01:00): 9999, a", "NVRM: Xid (0000:0A:00.1): 79, b"]
    assert _xids(lines) == {
        "pci:0000:01:00.0": "NVRM: Xid (PCI:0000:01:00): 9999, a",
        "pci:0000:0a:00.1": "NVRM: Xid (0000:0A:00.1): 79, b",
    }


def test_the_driver_says_what_a_gpu_needs(document: Any) -> None:
    line = action("0x0 (None)", "0x2 (Node Reboot Required)")
    finding = document(nvidia, XID.format(63), line)["findings"][0]
    assert (finding["severity"], "154" in finding["evidence"]) == ("warning", True)
    assert finding["fix"].endswith("or reboot")


def test_what_needs_nothing_any_more_is_over(document: Any) -> None:
    line = action("0x1 (GPU Reset Required)", "0x0 (None)")
    codes = [finding["code"] for finding in document(nvidia, XID.format(119), line)["findings"]]
    assert "xid-seen" not in codes


@pytest.mark.parametrize(("address", "expected"), [(PCI, ["iommu-faults"]), ("0000:07:00.3", [])])
def test_a_fault_of_a_device_that_has_a_driver(
    address: str, expected: list[str], document: Any
) -> None:
    line = f"amdgpu {address}: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0x7f flags"
    found = document(amd, line)["findings"]
    assert [f["code"] for f in found if f["code"] == "iommu-faults"] == expected


def test_a_gpu_that_was_pulled_is_lost(tmp_path: Path, probers: Probers) -> None:
    line = "NVRM: Attempting to remove device 0000:3c:00.0 with non-zero usage count!"
    case = Case(kernel_log(line, make=Node))
    finding = case.document(tmp_path / "root", probers)["findings"][0]
    assert (finding["code"], finding["evidence"]) == ("device-lost", f"kernel log: {line}")


# --- what the log has against the report

WEDGED = f"xe {PCI}: [drm] *ERROR* CRITICAL: Xe has declared device {PCI} as wedged."
DEVICE = f"pci:{PCI}"
ONLY_IN_THE_LOG = {
    "gpu-init-failed": (nvidia, (ADAPTER,)),
    "guc-failed": (intel, (WEDGED,)),
    "amdgpu-reset-seen": (amd, (RESET, FAILED)),
}


@pytest.mark.parametrize("code", ONLY_IN_THE_LOG)
def test_what_only_the_log_knows_is_a_contradiction_with_both_sides(
    code: str, tmp_path: Path, probers: Probers
) -> None:
    make, logged = ONLY_IN_THE_LOG[code]
    case = Case(kernel_log(*logged, make=make))
    report, document = case.examined(tmp_path / "root", probers)
    before = report["devices"][0]["readiness"]
    assert before["state"] == "ready"
    finding = next(f for f in document["findings"] if f["code"] == code)
    other = finding["contradicts"]
    assert other.startswith("the report has it as ready: hardware, driver, node")
    after = document["devices"][0]["readiness"]
    assert (after["state"], after["broken"]) == ("blocked", "responding")
    step = next(s for s in after["steps"] if s["step"] == "responding")
    assert step["evidence"] == f"{finding['evidence']}; but {other}"
    assert (step["status"], step["code"], step["severity"]) == ("broken", code, "error")
    assert document["healthy"] is False
    assert document["node"] == {
        **{"state": "bad", "usable": [], "grantable": [], "missing": [DEVICE], "set_aside": []},
        "cause": code,
    }
    # The report is as it was: other readers have it.
    assert report["devices"][0]["readiness"] is before
    options: Any = {"width": 80, "terminal": True, "colour": False, "encodable": str}
    text = "\n".join(lines_of(document, SimpleNamespace(**options)))  # type: ignore[arg-type]
    assert f"   but    {other[:40]}" in text
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize(
    ("make", "logged"),
    [
        (nvidia, (XID.format(48),)),  # a warning: the GPU may work on
        (amd, (RESET, SUCCEEDED)),
        (nvidia, (ADAPTER, f"{LOADING}  {VERSION}  Release Build")),
        (intel, (f"xe {PCI}: [drm] device wedged, but recovered through reset",)),
        (nvidia, ()),
    ],
)
def test_a_device_that_works_on_is_contradicted_by_nothing(
    make: Make, logged: tuple[str, ...], tmp_path: Path, probers: Probers
) -> None:
    case = Case(kernel_log(*logged, make=make))
    report, document = case.examined(tmp_path / "root", probers)
    assert [f for f in document["findings"] if "contradicts" in f] == []
    assert document["devices"][0]["readiness"] == report["devices"][0]["readiness"]
    assert (document["node"]["state"], document["node"]["usable"]) == ("good", [DEVICE])
    assert document["healthy"] is True


def test_a_break_that_the_report_has_is_no_contradiction(document: Any) -> None:
    found = document(nvidia, ADAPTER, facts=(UNSEEN,))
    assert [f for f in found["findings"] if "contradicts" in f] == []
    assert found["devices"][0]["readiness"]["state"] == "blocked"


def test_of_two_gpus_the_other_stays(tmp_path: Path, probers: Probers) -> None:
    def two(root: Path) -> Node:
        node = nvidia(root)
        node.tree.pci("0000:02:00.0", "10de:2684", driver="nvidia", drm=(1, 129))
        node.nodes("/dev/nvidia1")
        information = "Model: \t\t NVIDIA GeForce RTX 4090\nDevice Minor: \t 1\n"
        node.file("/proc/driver/nvidia/gpus/0000:02:00.0/information", information)
        return node

    case = Case(kernel_log(ADAPTER, make=two))
    document = case.examined(tmp_path / "root", probers)[1]
    states = {d["id"]: d["readiness"]["state"] for d in document["devices"]}
    assert states == {DEVICE: "blocked", "pci:0000:02:00.0": "ready"}
    node = document["node"]
    assert (node["state"], node["usable"], node["cause"]) == (
        "reduced",
        ["pci:0000:02:00.0"],
        "gpu-init-failed",
    )


def test_what_was_ready_is_lost_where_the_log_says_so(
    tmp_path: Path, probers: Probers, monkeypatch: pytest.MonkeyPatch
) -> None:
    well = Case(nvidia)
    report, document = well.examined(tmp_path / "well", probers)
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    request = Request(Machine(str(tmp_path / "well"), environ), report)  # type: ignore[arg-type]
    save(request, document)  # type: ignore[arg-type]
    broken = Case(kernel_log(ADAPTER))
    report, document = broken.examined(tmp_path / "broken", probers)
    request = Request(Machine(str(tmp_path / "broken"), environ), report)  # type: ignore[arg-type]
    compare(request, document)  # type: ignore[arg-type]
    assert document["baseline"]["lost"] == [DEVICE]


def test_failures_of_an_earlier_driver_do_not_count() -> None:
    firmware = f"amdgpu {OTHER}: Direct firmware load for amdgpu/x.bin failed with error -2"
    missing = f"nvidia {PCI}: Direct firmware load for nvidia/1/gsp_a.bin failed with error -2"
    lines = [f"[1.0] {firmware}", f"[2.0] {ADAPTER_FAILED}", f"[2.1] {BAR}"]
    found = {
        f"pci:{OTHER}": ("firmware-missing", firmware),
        f"pci:{PCI}": ("bar-unassigned", BAR.partition("NVRM: ")[1] + BAR.partition("NVRM: ")[2]),
    }
    assert _failures(lines) == found
    again = [*lines, "[3.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580"]
    assert _failures(again) == {f"pci:{OTHER}": found[f"pci:{OTHER}"]}
    assert _failures([*again, missing, ADAPTER_FAILED]) == {
        f"pci:{OTHER}": found[f"pci:{OTHER}"],
        f"pci:{PCI}": ("gsp-firmware-missing", missing),
    }
    assert _failures([CABLES, "[1.0] other"]) == {f"pci:{PCI}": ("gpu-init-failed", CABLES)}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("nvidia: version magic '6.8' should be '6.9'", "nvidia"),
        ("[1.0] amdgpu: disagrees about version of symbol x", "amdgpu"),
        ("[1.0] nvidia_uvm: Unknown symbol nv (err -2)", "nvidia_uvm"),
        ("nvidia: other", None),
        (": Unknown symbol x", None),
    ],
)
def test_modules_that_the_kernel_refused(line: str, name: str | None) -> None:
    found = {} if name is None else {name: ("module-refused", line.removeprefix("[1.0] "))}
    assert _refused([line, f"{line} again"]) == found


@pytest.mark.parametrize(
    ("container", "reason", "fix"),
    [
        (
            "docker",
            "the kernel's log cannot be read in this container",
            "on the host: sudo probe doctor --only amdgpu-reset-seen",
        ),
        (
            None,
            "the kernel's log may be read by root alone here",
            as_root("doctor", "--only", "amdgpu-reset-seen"),
        ),
    ],
)
def test_in_a_container_sudo_does_not_open_the_log(
    container: str | None, reason: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker's and podman's root may not call syslog(2): it lacks CAP_SYSLOG."""
    refusing = SimpleNamespace(klogctl=lambda *arguments: -1)
    monkeypatch.setattr("ctypes.CDLL", lambda *arguments, **options: refusing)
    monkeypatch.setattr("probe_core.doctor.log.FILES", ())
    device = {"kind": "gpu", "vendor": "amd", "ids": [PCI]}
    report: Any = {"devices": [device]}
    scene: Any = SimpleNamespace(container=container)
    result = resets.run(Request(Machine(), report, scene=scene))
    assert (result["status"], result["reason"], result["fix"]) == ("unknown", reason, fix)
