"""What of a computer is watched, fact by fact, and what of it is hidden."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from probe_changes.facts import broken_devices, facts_of, version_in
from probe_core.doctor.check import Request
from probe_core.machine import Machine
from probe_core.testing import Tree

SECRET = b"a secret"
ID = "pci:0000:01:00.0"


def device(**fields: Any) -> dict[str, Any]:
    known = {
        **{"id": ID, "ids": [ID], "kind": "gpu", "vendor": "nvidia", "name": "Card", "links": []},
        **{"driver": {"name": "nvidia"}, "parent": None, "readiness": None, "power_state": None},
    }
    return {**known, **fields}


def facts(
    root: Path, files: dict[str, Any] | None = None, devices: Any = (), **environ: str
) -> dict[str, str]:
    tree = Tree(root)
    for path, content in (files or {}).items():
        tree.file(path, content)
    machine = Machine(str(root), environ, os="linux", arch="x86_64")
    report: Any = {"devices": list(devices)}
    return facts_of(Request(machine, report), SECRET)


def test_parameters_of_the_kernel(tmp_path: Path) -> None:
    line = "BOOT_IMAGE=/b root=UUID=1 quiet nomodeset iommu=pt nvidia-drm.modeset=1 foo=bar"
    files = {"/proc/cmdline": line, "/proc/sys/kernel/osrelease": "6.8.0\n"}
    found = facts(tmp_path / "a", files)
    assert found["kernel/release"] == "6.8.0"
    assert {name: value for name, value in found.items() if name.startswith("setting/")} == {
        "setting/nomodeset": "on",
        "setting/iommu": "pt",
        "setting/nvidia-drm.modeset": "1",
        "setting/other parameters": found["setting/other parameters"],
    }
    same = facts(tmp_path / "b", {**files, "/proc/cmdline": "foo=bar quiet resume=x initrd=y"})
    other = facts(tmp_path / "c", {**files, "/proc/cmdline": "foo=baz quiet"})
    others = [one["setting/other parameters"] for one in (found, same, other)]
    assert others[0] == others[1] != others[2]
    assert len(others[0]) == 12
    assert "kernel/release" not in facts(tmp_path / "d")


def test_modules_and_the_version_of_each(tmp_path: Path) -> None:
    text = "NVRM version: NVIDIA UNIX {} for x86_64  580.95.05  Release Build"
    found = facts(
        tmp_path / "a",
        {
            "/proc/modules": "amdgpu 1 0 - Live 0x0\nnvidia 1 0 - Live 0x0\nother 1 0 - Live 0x0\n",
            "/sys/module/amdgpu/version": "6.10.5\n",
            "/sys/module/xe/version": "1\n",
            "/proc/driver/nvidia/version": text.format("Open Kernel Module"),
        },
    )
    own = {n: v for n, v in found.items() if n.partition("/")[0] in ("loaded", "driver")}
    assert own == {
        "loaded/nvidia": "loaded",
        "loaded/amdgpu": "loaded",
        "driver/amdgpu": "6.10.5",
        "driver/nvidia": "580.95.05 open",
    }
    closed = facts(tmp_path / "b", {"/proc/driver/nvidia/version": text.format("Kernel Module")})
    assert closed["driver/nvidia"] == "580.95.05"
    blacklist = {"/etc/modprobe.d/x.conf": "blacklist amdgpu\n"}
    assert "blacklist amdgpu" in facts(tmp_path / "c", blacklist)["setting/amdgpu forbidden"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("a 580.95.05 570.1", "580.95.05"),
        ("a 580.95", "580.95"),
        ("a 580", ""),
        ("a 5.8.0.1", ""),
        ("a 5.8b.1", ""),
        ("a\n580.95", ""),
        ("", ""),
    ],
)
def test_the_version_in_a_line(text: str, version: str) -> None:
    assert version_in(text) == version


def test_firmware_by_names_or_by_number(tmp_path: Path) -> None:
    few = {f"/lib/firmware/xe/{n}.bin": "" for n in range(5)}
    many = {f"/lib/firmware/amdgpu/{n}.bin": "" for n in range(6)}
    bios = {"/sys/class/dmi/id/bios_version": "F12\n"}
    found = facts(tmp_path, {**few, **many, **bios})
    assert found["firmware/xe"] == "0.bin, 1.bin, 2.bin, 3.bin, 4.bin"
    assert found["firmware/amdgpu"].startswith("6 files (")
    assert len(found["firmware/amdgpu"]) == len("6 files (12345678)")
    assert "firmware/nvidia" not in found
    assert (found["firmware/BIOS"], found["firmware/Secure Boot"]) == ("F12", "off")


def test_nodes_with_mode_and_owner(tmp_path: Path) -> None:
    names = ("nvidia0", "kfd", "tty0", "dri/renderD128", "dri/card0", "accel/accel0", "apex_0")
    found = facts(tmp_path, {f"/dev/{name}": "" for name in names})
    own = f"0644 {os.getuid()}:{os.getgid()}"
    assert {name: value for name, value in found.items() if name.startswith("node/")} == {
        f"node/dev/{name}".replace("node/dev", "node//dev"): own
        for name in ("nvidia0", "kfd", "apex_0", "dri/renderD128", "accel/accel0")
    }


def test_so_many_nodes_at_most(tmp_path: Path) -> None:
    found = facts(tmp_path, {f"/dev/nvidia{number}": "" for number in range(65)})
    assert sum(name.startswith("node/") for name in found) == 64


def test_the_process_and_its_variables(tmp_path: Path) -> None:
    status = {"/proc/self/status": "Uid:\t1\t1\t1\t1\nGid:\t5\t5\t5\t5\nGroups:\t44 7\n"}
    found = facts(tmp_path, status, CUDA_VISIBLE_DEVICES="", DRI_PRIME="1", OTHER="2")
    assert found["group/process"] == "5 7 44"
    own = {name: value for name, value in found.items() if name.startswith("variable/")}
    assert own == {"variable/CUDA_VISIBLE_DEVICES": "(empty)", "variable/DRI_PRIME": "1"}


def test_devices_with_driver_and_lanes(tmp_path: Path) -> None:
    links = [{"kind": "nvlink", "local_max_width": 2}, {"kind": "pcie", "local_max_width": 16}]
    devices = [
        device(links=links),
        device(id="a:1", name=None, driver=None),
        device(id="a:2", name=None, vendor=None, driver=None, links=[{"kind": "pcie"}]),
        device(id="cpu:0", kind="cpu"),
    ]
    found = facts(tmp_path, {}, devices)
    own = {n: v for n, v in found.items() if n.partition("/")[0] in ("device", "bound")}
    assert own == {
        f"device/{ID}": "Card", f"bound/{ID}": "nvidia", f"device/{ID} lanes": "16",
        "device/a:1": "nvidia", "device/a:2": "gpu",
    }  # fmt: skip


def test_nothing_that_names_a_person_or_a_computer(tmp_path: Path) -> None:
    uuid = "GPU-12345678-1234-1234-1234-123456789abc"
    environ = {"HOME": "/home/eve", "USER": "eve", "CUDA_VISIBLE_DEVICES": uuid,
               "LD_LIBRARY_PATH": "/home/eve/lib:/eve/box1"}  # fmt: skip
    files = {"/proc/sys/kernel/hostname": "box1\n"}
    found = facts(tmp_path / "a", files, **environ)
    assert found["variable/LD_LIBRARY_PATH"] == "~/lib:/USER/HOST"
    assert uuid not in found["variable/CUDA_VISIBLE_DEVICES"]
    short = {**environ, "HOME": "/", "USER": "ev"}
    assert facts(tmp_path / "b", **short)["variable/LD_LIBRARY_PATH"] == "/home/eve/lib:/eve/box1"
    root = {**environ, "HOME": "/", "USER": "root", "LD_LIBRARY_PATH": "/opt/lib"}
    assert facts(tmp_path / "c", **root)["variable/LD_LIBRARY_PATH"] == "/opt/lib"


def test_long_values_are_cut(tmp_path: Path) -> None:
    found = facts(tmp_path, LD_LIBRARY_PATH="a" * 201)
    assert found["variable/LD_LIBRARY_PATH"] == "a" * 200


def test_what_keeps_devices_away() -> None:
    def steps(code: str | None, state: str = "blocked") -> dict[str, Any]:
        step = {"step": "driver", "status": "broken", "evidence": "", "code": code}
        return {"readiness": {"state": state, "broken": "driver", "steps": [step]}}

    devices = [
        device(**steps("secure-boot")), device(id="a:1", **steps(None)),
        device(id="a:2", **steps("x", "limited")), device(id="cpu:0", kind="cpu", **steps("x")),
    ]  # fmt: skip
    report: Any = {"devices": devices}
    request = Request(Machine("/nonexistent", {}, os="linux"), report)
    assert broken_devices(request) == {ID: "driver:secure-boot", "a:1": "driver:"}
