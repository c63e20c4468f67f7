"""The cause that `--next-boot` predicts is the one that the doctor gives after the boot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from boot_cases import BROKEN, DKMS, SILENT, Case, no_module
from boot_machines import NEXT, NOW, Computer
from reports import recorded_machine, report_of_recording
from weights import mostly_heavy

import probe_core
from probe_changes.loaders import NextBoot
from probe_changes.next_boot import CHECKS, MENDED, _mended
from probe_core.doctor.check import Request
from probe_core.model.findings import NO_FIX

STEPS = ("driver", "library")


def predicted(computer: Computer, **assumed: str) -> dict[str, Any]:
    """Return the answer of the check about the next boot, or about what is assumed."""
    machine = computer.machine()
    report: Any = probe_core.probe(machine=machine, only="cpu").to_json()
    return CHECKS[0].run(Request(machine, report, assumed=assumed or {"boot": "next"}))


def causes(answer: dict[str, Any]) -> list[str]:
    return [f["code"] for f in answer["findings"] if f["severity"] != "info"]


def given(computer: Computer) -> list[str]:
    """Return the causes that readiness gives of the drivers and libraries as they are."""
    steps = computer.device()["readiness"]["steps"]
    return [s["code"] for s in steps if s["status"] == "broken" and s["step"] in STEPS]


def both(case: Case, root: Path) -> tuple[list[str], list[str], dict[str, Any]]:
    computer = case.make(root)
    case.before(computer)
    answer = predicted(computer)
    case.after(computer)
    return causes(answer), given(computer), answer


@pytest.mark.parametrize("name", mostly_heavy(BROKEN, 3))
def test_the_cause_after_the_boot_is_predicted(name: str, tmp_path: Path) -> None:
    case = BROKEN[name]
    told, found, _ = both(case, tmp_path)
    assert found == [case.cause]
    assert told == [case.cause]


@pytest.mark.parametrize(
    ("first_line", "built", "is_named"),
    [
        (f"DKMS make.log for nvidia ({NEXT})", None, True),
        (f"DKMS make.log for nvidia ({NEXT})", NOW, True),
        # It was built since, or the log is of another kernel.
        (f"DKMS make.log for nvidia ({NEXT})", NEXT, False),
        (f"DKMS make.log for nvidia ({NOW})", None, False),
    ],
)
def test_the_log_of_a_build_that_failed_is_named(
    first_line: str, built: str | None, is_named: bool, tmp_path: Path
) -> None:
    computer = Computer(tmp_path)
    no_module(computer)
    computer.file(f"{DKMS}/build/make.log", f"{first_line}\n{NEXT} {NOW}\n")
    if built:
        computer.file(f"{DKMS}/{built}/x86_64/module/nvidia.ko", "")
    findings = predicted(computer)["findings"]
    (finding,) = (f for f in findings if f["code"] == "module-missing-for-kernel")
    sentence = f"; {DKMS}/build/make.log: its build failed"
    assert finding["why"].endswith(sentence) is is_named
    assert finding["evidence"] == finding["why"]


@pytest.mark.parametrize("name", mostly_heavy(SILENT, 3))
def test_what_boots_well_is_not_called_broken(name: str, tmp_path: Path) -> None:
    case = SILENT[name]
    told, found, answer = both(case, tmp_path)
    assert [code for code in found if code != "reserved-for-vm"] == []
    assert [code for code in told if code != "reserved-for-vm"] == []
    assert answer["status"] in ("passed", "failed")


def test_only_the_card_that_a_boot_breaks_is_named(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.tree.pci("0000:02:00.0", "10de:1b80", driver="nvidia")
    computer.tree.pci("0000:03:00.0", "8086:a780", driver="i915")
    computer.grub()
    computer.nvidia(NEXT, "590.44.01")
    computer.libraries("590.44.01")
    i915 = "kernel/drivers/gpu/drm/i915/i915.ko"
    computer.listed(NEXT, "updates/dkms/nvidia.ko", i915)
    answer = predicted(computer)
    told = [(f["code"], f["device"]) for f in answer["findings"] if f["severity"] != "info"]
    assert told == [("legacy-branch", "pci:0000:02:00.0")]
    mended = [f["device"] for f in answer["findings"] if f["code"] == "mended-by-next-boot"]
    assert mended == ["pci:0000:01:00.0"]


def test_each_card_without_its_driver_is_named(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.tree.pci("0000:02:00.0", "10de:2684", driver="nvidia")
    computer.tree.pci("0000:03:00.0", "1002:744c", driver="amdgpu")
    computer.grub()
    computer.without_nvidia(NEXT)
    computer.listed(NEXT, "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko")
    findings = [f for f in predicted(computer)["findings"] if f["severity"] != "info"]
    assert {f["code"] for f in findings} == {"module-missing-for-kernel"}
    assert [f["device"] for f in findings] == ["pci:0000:01:00.0", "pci:0000:02:00.0"]


def test_a_driver_that_nobody_knows_stays(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.tree.pci("0000:05:00.0", "1e36:0002", pci_class="120000", driver="enflame")
    computer.grub()
    assert causes(predicted(computer)) == []


def test_a_supposed_driver_takes_the_card_from_nouveau(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.booted(NEXT, driver="nouveau", modules=("nouveau",))
    computer.remove("/etc/modprobe.d/blacklist-nouveau.conf")
    computer.file(f"/lib/modules/{NEXT}/kernel/drivers/gpu/drm/nouveau/nouveau.ko", "")
    assert causes(predicted(computer, driver="580")) == []


RECORDED = ("server--8x-amd-instinct-mi300x", "inf2-xlarge--aws-inferentia2",
            "raspberry-pi-5-ai-hat--hailo-8-or-8l", "dgx-spark--nvidia-gb10",
            "desktop--nvidia-geforce-rtx-4090-and-intel-uhd-770")  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_without_modules_loses_nothing(name: str) -> None:
    machine, report = recorded_machine(name), report_of_recording(name)
    release = machine.read("/proc/sys/kernel/osrelease") or ""
    for assumed in ({"boot": "next"}, {"kernel": release}):
        assert causes(CHECKS[0].run(Request(machine, report, assumed=assumed))) == []


def test_a_recording_is_judged_for_a_supposed_driver() -> None:
    name = "power9-ac922--4x-tesla-v100"
    machine, report = recorded_machine(name), report_of_recording(name)
    told = {
        driver: causes(CHECKS[0].run(Request(machine, report, assumed={"driver": driver})))
        for driver in ("580", "595")
    }
    assert told == {"580": [], "595": ["legacy-branch"] * 4}


@pytest.mark.parametrize(
    ("driver", "what", "fix"),
    [
        ("", "the boot of Linux 6.8.0-62-generic repairs kernel-changed", "sudo reboot"),
        ("590", "the driver 590 repairs kernel-changed", NO_FIX),
    ],
)
def test_what_a_boot_or_a_driver_repairs_is_said(driver: str, what: str, fix: str) -> None:
    boot = NextBoot("6.8.0-62-generic", "known", "")
    assert _mended("pci:0000:01:00.0", "kernel-changed", boot, driver) == {
        "code": MENDED,
        "severity": "info",
        "what": what,
        "why": "kernel-changed is broken now, and no rule of the doctor's breaks it then",
        "fix": fix,
        "device": "pci:0000:01:00.0",
    }
