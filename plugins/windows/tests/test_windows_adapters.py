"""Display adapters out of exports of the registry, read by a stand-in below our code."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request, Unavailable
from probe_core.pipeline.validate import check_sighting
from probe_windows import identity
from probe_windows.memory import _is_own, _missing
from probe_windows.prober import probe_devices

FOLDER = Path(__file__).parent
STANDIN = FOLDER / "standin"


def ask(export: str | Path, arch: str = "x86_64", denied: str = "") -> Any:
    """Probe with the stand-in as `winreg`, which reads an export when it is imported."""
    path = export if isinstance(export, Path) else FOLDER / "exports" / f"{export}.reg"
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("STANDIN_REG", str(path))
        changed.setenv("STANDIN_DENIED", denied)
        changed.syspath_prepend(str(STANDIN))
        changed.delitem(sys.modules, "winreg", raising=False)
        try:
            answer = probe_devices(Request(Machine(os="windows", arch=arch)))
        finally:
            sys.modules.pop("winreg", None)
    if isinstance(answer, NotApplicable):
        return answer.reason
    answer = json.loads(json.dumps(answer))
    for item in answer:
        assert "finding" in item or check_sighting(item)[1] == []
    return answer


LAPTOP = "laptop-with-a-card-that-is-gone"


def test_laptop_has_its_two_gpus_and_not_the_one_that_is_gone() -> None:
    intel, nvidia = ask(LAPTOP)
    assert intel == {
        "ids": ["pci:0000:00:02.0"], "kind": "gpu", "vendor": "intel",
        "name": "Intel(R) Iris(R) Xe Graphics",
        "pci": {"id": "8086:a7a0", "subsystem": "1043:1531", "revision": "04", "class": "030000"},
        "node_index": {"display_class": 0},
        "driver": {"name": "igfxn", "version": "32.0.101.6647", "date": "5-14-2025"},
        "memory": {"kind": "unified", "parts": {"vram": 128 << 20}},
        "unknown": {
            "units": "the registry has no count of them",
            "clocks.max_mhz": "the registry has no clock",
        },
    }  # fmt: skip
    assert nvidia["ids"] == ["pci:0000:01:00.0"]
    assert nvidia["name"] == "NVIDIA GeForce RTX 4060 Laptop GPU"
    assert nvidia["pci"]["class"] == "030200"


def test_vram_is_the_64_bit_value() -> None:
    _, nvidia = ask(LAPTOP)
    assert nvidia["memory"] == {
        "kind": "dedicated", "total": 8585740288, "parts": {"vram": 8585740288},
    }  # fmt: skip


def test_nvidias_version_is_also_given_its_own_way() -> None:
    _, nvidia = ask(LAPTOP)
    assert nvidia["driver"] == {
        "name": "nvlddmkm", "version": "576.52", "windows_version": "32.0.15.7652",
        "date": "5-14-2025",
    }  # fmt: skip


def test_beside_an_arm_processor_nvidias_memory_may_be_shared() -> None:
    _, nvidia = ask(LAPTOP, "aarch64")
    assert nvidia["memory"] == {"parts": {"vram": 8585740288}}
    assert set(nvidia["unknown"]) >= {"memory.kind", "memory.total"}


def test_size_in_eight_bytes_is_a_number_and_an_apus_is_not_the_whole() -> None:
    card, apu = ask("desktop-amd")
    assert card["memory"] == {
        "kind": "dedicated", "total": 25753026560, "parts": {"vram": 25753026560},
    }  # fmt: skip
    assert (card["ids"], apu["ids"]) == (["pci:0000:03:00.0"], ["pci:0000:16:00.0"])
    assert apu["memory"] == {"parts": {"vram": 512 << 20}}
    assert "does not tell a card" in apu["unknown"]["memory.kind"]
    assert card["driver"]["version"] == "32.0.21013.1000"


def test_what_a_virtual_machine_shows_is_a_display() -> None:
    video, render = ask("hyper-v-guest")
    assert [video["kind"], render["kind"]] == ["display", "display"]
    assert render["vendor"] == "microsoft"
    # A bus beyond 255 is no address that others would share.
    assert render["ids"] == [
        "windows:PCI\\VEN_1414&DEV_008E&SUBSYS_00000000&REV_00\\5&1&0&0",
    ]  # fmt: skip
    assert video["ids"][0].startswith("windows:VMBUS\\{da0a7802")
    assert "subsystem" not in render["pci"]


def test_adreno_has_no_pci_address() -> None:
    (gpu,) = ask("snapdragon", "aarch64")
    assert (gpu["kind"], gpu["ids"]) == ("gpu", ["windows:ACPI\\QCOM0C36\\0"])
    assert (gpu["name"], gpu["vendor"]) == ("Qualcomm(R) Adreno(TM) X1-85 GPU", "qualcomm")
    assert gpu["memory"] == {"kind": "unified"}


def test_key_that_cannot_be_read_costs_its_adapter_alone() -> None:
    devices = ask(LAPTOP, denied="Services\\igfxn\\Enum")
    assert [device["vendor"] for device in devices] == ["nvidia"]


def test_gpu_without_its_own_driver_is_known_by_its_instance() -> None:
    (gpu,) = ask("desktop-with-the-basic-driver")
    assert "name" not in gpu
    assert gpu["unknown"]["name"] == "the basic driver names itself, not the GPU"
    (fact,) = gpu["step_facts"]
    assert (fact["step"], fact["status"], fact["code"]) == ("driver", "broken", "basic-display")
    assert fact["evidence"].startswith("Enum\\PCI\\VEN_10DE&DEV_2684")
    assert fact["evidence"].endswith(": Service=BasicDisplay")
    assert (gpu["kind"], gpu["ids"]) == ("gpu", ["pci:0000:01:00.0"])
    assert gpu["pci"]["id"] == "10de:2684"
    assert gpu["driver"]["name"] == "BasicDisplay"
    assert gpu["driver"]["version"] == "10.0.26100.1"


def test_registry_without_adapters_is_not_applicable(tmp_path: Path) -> None:
    empty = tmp_path / "empty.reg"
    empty.write_text("Windows Registry Editor Version 5.00\n\n[HKEY_LOCAL_MACHINE\\SYSTEM]\n")
    assert ask(empty) == "the registry lists no display adapter that is there now"


def test_recorded_machine_has_no_registry(tmp_path: Path) -> None:
    answer = probe_devices(Request(Machine(str(tmp_path), os="windows")))
    assert isinstance(answer, NotApplicable)


@pytest.mark.skipif(sys.platform == "win32", reason="there is a registry here")
def test_other_systems_have_no_winreg() -> None:
    with pytest.raises(Unavailable) as caught:
        probe_devices(Request(Machine(os="windows")))
    assert caught.value.code == "no-registry"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "@System32\\drivers\\pci.sys,#65536;PCI bus %1, device %2, function %3;(1,0,0)",
            (1, 0, 0),
        ),
        ("PCI-Bus 1, Gerät 0, Funktion 0", None),
        ("@x;(102,31,7)", (102, 31, 7)),
        ("@x;(256,0,0)", None),
        ("@x;(1,0)", None),
        ("@x;(1,0,8)", None),
        ("(-1,0,0)", None),
        ("", None),
        (7, None),
    ],
)
def test_address_is_read_from_the_untranslated_end(text: object, expected: object) -> None:
    assert identity.address({"locationinformation": text}) == expected


def test_two_machines_worth_of_ids_are_not_mixed() -> None:
    """A hardware id that only begins like another's is another device."""
    assert identity.pci("PCI\\VEN_10DE&DEV_28E0\\4&1", {}) == {"id": "10de:28e0"}
    whole = "pci\\ven_10DE&dev_2684&subsys_889A1043&rev_A1\\4&1"
    known = {"id": "10de:2684", "subsystem": "1043:889a", "revision": "a1"}
    classes = ["PCI\\CC_03", "PCI\\CC_03000G", "PCI\\VEN_10DE&CC_030200&x", "PCI\\CC_030000"]
    assert identity.pci(whole, {"compatibleids": classes}) == known | {"class": "030200"}
    assert identity.pci(whole, {"compatibleids": "PCI\\CC_030000"}) == known
    assert identity.pci(whole.replace("889A1043", "00000000"), {}) == {
        "id": "10de:2684",
        "revision": "a1",
    }
    assert identity.pci("PCI\\VEN_10DE\\4&1", {}) == {}
    assert identity.pci("PCI\\VEN_10DG&DEV_28E0\\4&1", {}) == {}
    assert identity.pci("USB\\VID_17E9&PID_6000\\1", {}) == {}


KIND = "the registry does not tell a card from an integrated GPU"
SIZE = "HardwareInformation.qwMemorySize"


@pytest.mark.parametrize(
    ("own", "vram", "reasons"),
    [
        (None, None, {"memory.kind": KIND, "memory.total": f"{SIZE}: no size"}),
        (None, 8 << 30, {"memory.kind": KIND, "memory.total": f"{SIZE}: its size is known, but not"
                         " whether a program can use more"}),
        (True, None, {"memory.total": f"{SIZE}: no size"}),
        (True, 0, {"memory.total": f"{SIZE}: no size"}),
        (True, 8 << 30, {}), (False, None, {}), (False, 8 << 30, {}),
    ],
)  # fmt: skip
def test_why_a_memory_is_unknown(
    own: bool | None, vram: int | None, reasons: dict[str, str]
) -> None:
    assert _missing(own, vram) == reasons


@pytest.mark.parametrize(
    ("vendor", "name", "address", "arch", "own"),
    [
        ("nvidia", "", (1, 0, 0), "x86_64", True),
        ("nvidia", "", (1, 0, 0), "aarch64", None),
        ("nvidia", "", None, "x86_64", None),
        ("intel", "", (0, 2, 0), "x86_64", False),
        ("intel", "", (0, 2, 1), "x86_64", False),
        ("intel", "", (0, 3, 0), "x86_64", None),
        ("intel", "", (1, 2, 0), "x86_64", True),
        ("intel", "", (3, 0, 0), "x86_64", True),
        ("amd", "AMD Radeon RX 7900 XTX", (3, 0, 0), "x86_64", True),
        ("amd", "AMD Radeon RX Vega 11 Graphics", (3, 0, 0), "x86_64", None),
        ("amd", "AMD Radeon 780M Graphics", (3, 0, 0), "x86_64", None),
        ("qualcomm", "Adreno RX", (0, 0, 0), "aarch64", None),
    ],
)
def test_whose_memory_it_is(
    vendor: str, name: str, address: Any, arch: str, own: bool | None
) -> None:
    sighting: Any = {"vendor": vendor, "name": name}
    assert _is_own(sighting, address, arch) is own
