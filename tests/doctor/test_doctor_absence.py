"""Signs of an accelerator that is not there: each seen, none where nothing points to one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import doctor_absences as machines
import pytest
import recorded
from doctor_absences import LOST, RULE, UUID, Make, laptop, nvidia, server, virtual
from doctor_cases import complete
from readiness_nodes import Node
from reports import recorded_machine, report_of, report_of_recording
from test_doctor_bundle import bundle_of
from weights import mostly_heavy

from probe_core.doctor.check import Request
from probe_core.doctor.checks.absence import CHECKS, SIGNS, looked_at, points_to_one
from probe_core.doctor.examine import examine
from probe_core.machine import Machine
from probe_core.testing.stage import Watched

CODES = [sign.code for sign in SIGNS]
DRIVER = "lspci -d 10de:` must list the device"


def document_of(machine: Machine, **arguments: Any) -> dict[str, Any]:
    report = report_of(machine, **arguments)
    return dict(examine(Request(machine, report)))  # type: ignore[arg-type]


def document(make: Make, root: Path) -> dict[str, Any]:
    node = make(root)
    complete(node)
    return document_of(node.machine())


def signs(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in document["findings"] if finding["code"] in CODES]


def only_sign(make: Make, root: Path) -> dict[str, Any]:
    found = signs(document(make, root))
    assert len(found) == 1, [finding["code"] for finding in found]
    return found[0]


def test_each_sign_has_a_pair() -> None:
    assert list(machines.PAIRS) == CODES


CHOSEN = ("gpu-off-in-firmware", "gpu-removed-by-rule", "gpu-off-by-mode", "egpu-off-in-firmware")


@pytest.mark.parametrize("code", CODES)
def test_a_sign_is_told_with_its_place_and_step(code: str, tmp_path: Path) -> None:
    expected = {
        "wsl-1": ("/proc/sys/kernel/osrelease: 4.4.0-19041-Microsoft", "wsl --set-version NAME 2"),
        "wsl-without-gpu": ("/dev/dxg is not there", "`wsl --update`"),
        "gpu-off-in-firmware": (f"{machines.ASUS}: 1", "`supergfxctl -m Hybrid`, then reboot"),
        "gpu-removed-by-rule": ("/etc/udev/rules.d/50-remove-nvidia.rules: ACT", "envycontrol -s"),
        "gpu-off-by-mode": ("/etc/prime-discrete: off", "`sudo prime-select nvidia`, then reboot"),
        "egpu-off-in-firmware": (
            f"{machines.WMI}/egpu_connected: 1; {machines.WMI}/egpu_enable: 0",
            f"`echo 1 | sudo tee {machines.WMI}/egpu_enable`, then reboot",
        ),
        "egpu-not-authorized": ("0-1/authorized: 0 (Razer Core X", f"`boltctl enroll {UUID}`"),
        "container-without-device": (
            f"NVIDIA_VISIBLE_DEVICES={machines.GRANTED}; no device of vendor 10de on the PCI bus",
            "`docker run --gpus all`",
        ),
        "device-lost": (f"kernel log: {LOST}", "power the machine off and on"),
        "function-without-gpu": ("has 0000:01:00.1, a GPU's sound", "/sys/bus/pci/rescan"),
        "driver-without-device": ("/proc/modules: nvidia; no device of vendor 10de", DRIVER),
    }
    finding = only_sign(machines.PAIRS[code][0], tmp_path)
    assert finding["code"] == code
    assert finding["device"] is None
    evidence, fix = expected[code]
    assert evidence in finding["evidence"]
    assert fix in finding["fix"]
    is_chosen = code in CHOSEN
    assert finding["severity"] == ("info" if is_chosen else "warning")


@pytest.mark.parametrize("code", CODES)
def test_a_look_alike_has_no_sign(code: str, tmp_path: Path) -> None:
    assert signs(document(machines.PAIRS[code][1], tmp_path)) == []


HEALTHY: dict[str, Make] = {
    "a server": server,
    "a laptop": laptop,
    "a virtual machine": virtual,
    "a desktop with its card": nvidia,
    "a container": machines.contained(),
    "a container of a CPU image": machines.contained(NVIDIA_VISIBLE_DEVICES="none"),
    "a pod": machines.contained(KUBERNETES_SERVICE_HOST="10.0.0.1"),
    "a container with the libraries of its image": machines.with_driver(machines.contained()),
    "a laptop with a screen that waits": machines.thunderbolt("Studio Display"),
    "a laptop with an enclosure that is used": machines.thunderbolt("Core X", authorized=1),
    "an old link of an earlier boot": machines.with_log(server, LOST, "Linux version 6.9"),
    "a GPU that came back": machines.with_log(nvidia, LOST),
    "a rule about a card that is there": machines.rule(RULE, nvidia),
    "a rule that is a comment": machines.rule(f"# {RULE}"),
    "a module that only begins alike": machines.with_files(
        laptop, {"/proc/modules": "nvidia_wmi_ec_backlight 16384 0 - Live 0x0\n"}
    ),
    "a toolkit's stub": machines.with_files(
        server, {"/usr/lib/x86_64-linux-gnu/libcuda.so.1": b"\x7fELF\x02"}
    ),
    "a laptop whose external GPU is on": machines.xg_mobile(1, make=nvidia),
    "a container with Ascend's NPU": machines.with_files(
        machines.contained(ASCEND_VISIBLE_DEVICES="0"), {"/dev/davinci_manager": ""}
    ),
    "a container that asks for no NPU": machines.with_files(
        machines.contained(ASCEND_VISIBLE_DEVICES="void"), {"/dev/null": ""}
    ),
    "a host with the variable": machines.with_files(server, {"/dev/null": ""}),
    "supergfxd in hybrid mode": machines.with_files(
        laptop, {"/etc/supergfxd.conf": '{\n  "mode": "Hybrid",\n  "vfio_enable": false\n}\n'}
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_points_to_an_accelerator(name: str, tmp_path: Path) -> None:
    found = document(HEALTHY[name], tmp_path)
    assert signs(found) == []
    assert [f["code"] for f in found["findings"] if f["severity"] != "info"] == []


@pytest.mark.parametrize("name", mostly_heavy(recorded.names(), 4))
def test_a_recorded_machine_has_no_sign(name: str) -> None:
    request = Request(recorded_machine(name), report_of_recording(name))  # type: ignore[arg-type]
    assert [check.run(request)["findings"] for check in CHECKS] == [[]] * len(SIGNS)


@pytest.mark.parametrize("code", mostly_heavy(CODES, 4))
def test_a_bundle_has_the_same_sign(code: str, tmp_path: Path) -> None:
    node = machines.PAIRS[code][0](tmp_path / "root")
    complete(node)
    document, bundle = bundle_of(node, tmp_path / "unpacked")
    kept = ("code", "severity")
    found = [[finding[key] for key in kept] for finding in signs(bundle.document)]
    assert found == [[finding[key] for key in kept] for finding in signs(document)]
    assert [first for first, _ in found] == [code]


# --- what explains what


def test_what_is_switched_off_explains_the_driver(tmp_path: Path) -> None:
    make = machines.with_driver(machines.PAIRS["gpu-off-in-firmware"][0], "i915")
    assert only_sign(make, tmp_path)["code"] == "gpu-off-in-firmware"


def test_what_is_switched_off_is_logged_as_lost(tmp_path: Path) -> None:
    make = machines.with_log(machines.PAIRS["gpu-off-in-firmware"][0], LOST)
    assert only_sign(make, tmp_path)["code"] == "gpu-off-in-firmware"


def test_an_external_gpu_that_is_off_explains_its_driver(tmp_path: Path) -> None:
    make = machines.with_driver(machines.xg_mobile(0), "ext4")
    assert only_sign(make, tmp_path)["code"] == "egpu-off-in-firmware"


ASCEND_NODES = "`--device=/dev/davinci0 --device=/dev/davinci_manager"


@pytest.mark.parametrize(
    ("value", "pod", "expected"),
    [
        ("0", False, f"start the container anew, on a host with an NPU, with {ASCEND_NODES}"),
        (
            "0," * 39 + "0",
            False,
            f"start the container anew, on a host with an NPU, with {ASCEND_NODES}",
        ),
        ("0-3", False, f"start the container anew, on a host with an NPU, with {ASCEND_NODES}"),
        ("0", True, "request it in the pod's `resources.limits`, then start the pod anew"),
    ],
)
def test_a_container_that_was_to_have_an_npu_of_ascend(
    value: str, pod: bool, expected: str, tmp_path: Path
) -> None:
    environ = {"ASCEND_VISIBLE_DEVICES": value}
    environ |= {"KUBERNETES_SERVICE_HOST": "10.0.0.1"} if pod else {}

    def board(root: Path) -> Node:
        node = server(root)
        # Huawei's boards have a display of the same vendor.
        node.tree.pci("0000:06:00.0", "19e5:1711", pci_class="030000", driver="hibmc-drm")
        node.nodes("/dev/null")
        return node

    finding = only_sign(machines.contained(make=board, **environ), tmp_path)
    assert (finding["code"], finding["severity"]) == ("container-without-device", "warning")
    assert finding["evidence"] == (
        f"ASCEND_VISIBLE_DEVICES={value}; no /dev/davinci_manager, no NPU of Ascend on the PCI bus"
    )
    assert finding["fix"].startswith(expected)


def test_two_tools_that_switched_it_off_are_one_cause(tmp_path: Path) -> None:
    mode = {"/etc/supergfxd.conf": '{"mode": "Integrated", "vfio_enable": false}'}
    make = machines.with_files(machines.with_files(laptop, {machines.ARMOURY: "1\n"}), mode)
    finding = only_sign(make, tmp_path)
    assert (finding["code"], finding["evidence"]) == (
        "gpu-off-in-firmware",
        f"{machines.ARMOURY}: 1",
    )


def test_a_lost_card_explains_its_driver(tmp_path: Path) -> None:
    make = machines.with_driver(machines.with_log(server, LOST), "nvidia")
    assert only_sign(make, tmp_path)["code"] == "device-lost"


# --- the same sign elsewhere


@pytest.mark.parametrize(
    ("lines", "evidence"),
    [
        (
            ["NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>"],
            "kernel log: NVRM: Xid (PCI:0000:01:00): 79, pid=",
        ),
        (
            [
                "NVRM: The NVIDIA GPU 0000:01:00.0",
                "NVRM: (PCI ID: 10de:1c8c) installed in this system has",
                "NVRM: fallen off the bus and is not responding to commands.",
            ],
            "kernel log: NVRM: The NVIDIA GPU 0000:01:00.0",
        ),
        (
            ["[12.3] amdgpu 0000:03:00.0: amdgpu: device lost from bus!"],
            "kernel log: [12.3] amdgpu 0000:03:00.0: amdgpu: device lost from bus!",
        ),
    ],
)
def test_the_words_of_a_loss(lines: list[str], evidence: str, tmp_path: Path) -> None:
    finding = only_sign(machines.with_log(server, *lines), tmp_path)
    assert finding["code"] == "device-lost"
    assert finding["evidence"].startswith(evidence)


def test_a_card_is_lost_beside_one_that_works(tmp_path: Path) -> None:
    line = "NVRM: Xid (PCI:0000:41:00): 79, pid=1234, GPU has fallen off the bus."
    found = document(machines.with_log(nvidia, line), tmp_path)
    (finding,) = signs(found)
    assert (finding["code"], finding["severity"]) == ("device-lost", "warning")
    assert "xid-seen" not in [entry["code"] for entry in found["findings"]]


def test_a_golden_image_without_a_card(tmp_path: Path) -> None:
    finding = only_sign(machines.with_driver(server), tmp_path)
    assert finding["code"] == "driver-without-device"
    assert finding["evidence"].startswith("/usr/lib/x86_64-linux-gnu/libcuda.so.1 is installed")


def test_a_virtual_machine_is_given_its_device_by_the_hypervisor(tmp_path: Path) -> None:
    finding = only_sign(machines.with_driver(virtual), tmp_path)
    assert finding["fix"].startswith("attach the device to this virtual machine")


def test_a_laptop_whose_discrete_gpu_is_gone(tmp_path: Path) -> None:
    finding = only_sign(machines.with_driver(laptop, "i915", "nvidia"), tmp_path)
    assert (finding["code"], finding["severity"]) == ("driver-without-device", "warning")


def test_another_vendors_module(tmp_path: Path) -> None:
    make = machines.with_files(server, {"/proc/modules": "habanalabs 16384 0 - Live 0x0\n"})
    finding = only_sign(make, tmp_path)
    assert finding["evidence"] == (
        "/proc/modules: habanalabs; no device of vendor 1da3 on the PCI bus"
    )


@pytest.mark.parametrize(
    ("sign", "environ", "severity", "fix"),
    [
        ("/.dockerenv", {"NVIDIA_VISIBLE_DEVICES": "all"}, "info", "`docker run --gpus all`"),
        (
            "/run/.containerenv",
            {"NVIDIA_VISIBLE_DEVICES": "0"},
            "warning",
            "`podman run --device nvidia.com/gpu=all` (CDI)",
        ),
        (
            "/.dockerenv",
            {"NVIDIA_VISIBLE_DEVICES": "all", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "info",
            "request it: `resources.limits: {nvidia.com/gpu: 1}`",
        ),
        (
            "/.dockerenv",
            {"NVIDIA_VISIBLE_DEVICES": "GPU-1", "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "warning",
            "runtimeClassName: nvidia",
        ),
        (
            "/.dockerenv",
            {"HABANA_VISIBLE_DEVICES": "0,1"},
            "warning",
            "--runtime=habana -e HABANA_VISIBLE_DEVICES=all",
        ),
    ],
)
def test_a_container_requests_and_installs_nothing(
    sign: str, environ: dict[str, str], severity: str, fix: str, tmp_path: Path
) -> None:
    finding = only_sign(machines.contained(sign, **environ), tmp_path)
    assert (finding["code"], finding["severity"]) == ("container-without-device", severity)
    assert fix in finding["fix"]
    assert "install" not in finding["fix"]


def test_the_hosts_loss_is_repaired_on_the_host(tmp_path: Path) -> None:
    finding = only_sign(machines.contained(make=machines.with_log(server, LOST)), tmp_path)
    assert finding["fix"].startswith("on the host: power the machine off and on")


@pytest.mark.parametrize(
    ("code", "where", "undo"),
    [
        ("wsl-1", "Windows", None),
        ("wsl-without-gpu", "Windows", None),
        ("gpu-off-in-firmware", "host", "supergfxctl -m Integrated"),
        ("gpu-removed-by-rule", "host", "sudo envycontrol -s integrated"),
        ("gpu-off-by-mode", "host", "sudo prime-select intel"),
        ("egpu-off-in-firmware", "host", None),
        ("egpu-not-authorized", "host", f"boltctl forget {UUID}"),
        ("function-without-gpu", "host", None),
    ],
)
def test_what_a_step_does_and_undoes(
    code: str, where: str, undo: str | None, tmp_path: Path
) -> None:
    action = only_sign(machines.PAIRS[code][0], tmp_path)["action"]
    assert (action["where"], action["undo"], action["removes"]) == (where, undo, [])
    assert bool(action["reboots"]) is (code in CHOSEN)


def test_a_container_in_wsl_is_given_the_gpu_by_its_engine(tmp_path: Path) -> None:
    make = machines.wsl("5.15.153.1-microsoft-standard-WSL2")
    make = machines.contained(make=make, NVIDIA_VISIBLE_DEVICES="all")
    finding = only_sign(make, tmp_path)
    assert (finding["code"], finding["severity"]) == ("container-without-device", "info")


@pytest.mark.parametrize(
    ("name", "severity"), [("Core X Chroma", "warning"), ("TS3 Plus", "info"), (None, "info")]
)
def test_what_may_be_an_enclosure(name: str | None, severity: str, tmp_path: Path) -> None:
    finding = only_sign(machines.thunderbolt(name), tmp_path)
    assert (finding["code"], finding["severity"]) == ("egpu-not-authorized", severity)


def test_an_enclosure_is_enrolled_by_the_id_that_the_kernel_has(tmp_path: Path) -> None:
    known = only_sign(machines.thunderbolt("Core X"), tmp_path / "known")
    folder = "/sys/bus/thunderbolt/devices/0-1"
    assert known["evidence"] == f"{folder}/authorized: 0 (Razer Core X)"
    assert known["fix"] == f"`boltctl enroll {machines.UUID}`"
    unnamed = machines.with_files(machines.thunderbolt(None), {f"{folder}/unique_id": ""})
    found = only_sign(unnamed, tmp_path / "unnamed")
    assert found["evidence"] == f"{folder}/authorized: 0 (a device without a name)"
    assert found["fix"] == "`boltctl enroll UUID`, of `boltctl list`"


def test_a_security_level_that_allows_no_pcie(tmp_path: Path) -> None:
    finding = only_sign(machines.thunderbolt("Core X", security="dponly"), tmp_path)
    assert finding["fix"] == "allow PCIe devices in the firmware setup's Thunderbolt security level"


@pytest.mark.parametrize(
    ("files", "fix"),
    [
        ({"/etc/prime/current_type": "intel\n"}, "`sudo prime-select nvidia`, then reboot"),
        (
            {"/etc/supergfxd.conf": '{\n  "mode": "Integrated",\n  "vfio_enable": false\n}\n'},
            "`supergfxctl -m Hybrid`, then reboot",
        ),
        (
            {"/etc/prime-discrete": "off\n", "/etc/os-release": "ID=pop\n"},
            "`sudo system76-power graphics hybrid`, then reboot",
        ),
    ],
)
def test_modes_of_other_tools(files: dict[str, object], fix: str, tmp_path: Path) -> None:
    finding = only_sign(machines.with_files(machines.with_driver(laptop), files), tmp_path)
    assert (finding["code"], finding["fix"]) == ("gpu-off-by-mode", fix)


def test_a_rule_of_nobodys_tool_is_removed_by_hand(tmp_path: Path) -> None:
    path = "/etc/udev/rules.d/00-no-dgpu.rules"
    finding = only_sign(machines.with_files(laptop, {path: RULE}), tmp_path)
    assert finding["fix"] == f"remove that line from {path}, then reboot"


# --- the count, other systems, and what is touched


def test_the_signs_that_were_looked_at_are_counted(tmp_path: Path) -> None:
    found = document(server, tmp_path / "server")
    # The recording has no kernel log.
    assert looked_at(found["checks"]) == len(SIGNS) - 1 == 10
    found = document(machines.with_log(server, "all well"), tmp_path / "log")
    assert looked_at(found["checks"]) == len(SIGNS)
    assert not points_to_one(found["findings"])
    found = document(machines.PAIRS["gpu-off-in-firmware"][0], tmp_path / "off")
    assert points_to_one(found["findings"])


def test_other_systems_have_none_of_these(tmp_path: Path) -> None:
    for system in ("darwin", "windows"):
        found = document_of(Machine(str(tmp_path), {}, os=system))
        statuses = {check["code"]: check["status"] for check in found["checks"]}
        assert {statuses[code] for code in CODES} == {"not_applicable"}


def test_a_prober_that_was_left_out_is_no_loss(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    complete(node)
    assert signs(document_of(node.machine(), disable=["bus"])) == []


def test_the_signs_open_no_device_and_read_little(tmp_path: Path) -> None:
    node = machines.with_driver(machines.with_log(server, LOST), "nvidia")(tmp_path)
    complete(node)
    report = report_of(node.machine())
    watched = Watched(node.machine())
    request = Request(watched, report)  # type: ignore[arg-type]
    for check in CHECKS:
        check.run(request)
    assert not [path for path in watched.noted if path.startswith("/dev/") and path != "/dev/dxg"]
    assert not [path for path in watched.noted if path.endswith(("/config", "_link_width"))]
