"""No fix makes it worse: overrides, removals, groups and commands, each where it helps alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import readiness_nodes as nodes
import test_readiness_causes as causes
from readiness_nodes import FOLDER, LIBRARIES, PCI, Node, amd, nvidia
from weights import mostly_heavy

from probe_core.doctor.check import Request
from probe_core.doctor.examine import examine
from probe_core.doctor.installation import as_root
from probe_core.readiness.fixes import fix_for, fix_of
from probe_core.readiness.rocm import _BASES, override_for
from probe_core.readiness.scene import Scene

# LLVM, "User Guide for AMDGPU Backend", Generic Processor table: what each runs on.
GENERIC = {
    "gfx9-generic": "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c",
    "gfx9-4-generic": "gfx940 gfx941 gfx942 gfx950",
    "gfx10-1-generic": "gfx1010 gfx1011 gfx1012 gfx1013",
    "gfx10-3-generic": "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
    "gfx11-generic": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
    "gfx12-generic": "gfx1200 gfx1201",
}
ALL = [*" ".join(GENERIC.values()).split(), "gfx803", "gfx908", "gfx90a", "gfx1170"]
FOR_NOBODY = ("gfx906", "gfx908", "gfx90a", "gfx940", "gfx942", "gfx950", "gfx1102", "gfx1103")


def override(root: Path, gfx: str, *codes: str) -> str | None:
    """Return the override for a GPU where rocBLAS has files for `codes`."""
    node = amd(root)
    for code in codes:
        node.file(f"/opt/rocm/lib/rocblas/library/TensileLibrary_lazy_{code}.dat")
    device: Any = {**node.device(), "gfx": gfx}
    return override_for(device, Scene(node.machine()))


@pytest.mark.parametrize("gfx", mostly_heavy(ALL, 4))
def test_an_override_stays_within_a_generic_processor_of_llvm(gfx: str, tmp_path: Path) -> None:
    value = override(tmp_path, gfx, *(code for code in ALL if code != gfx))
    if value is None:
        assert gfx not in _BASES
        return
    base = "gfx" + value.replace(".", "")
    family = next(names.split() for names in GENERIC.values() if gfx in names.split())
    assert (base in family, base == family[0]) == (True, True)


@pytest.mark.parametrize("gfx", [*FOR_NOBODY, "gfx1200", "gfx1201", "gfx1150", "gfx1151"])
def test_no_override_for_a_gpu_that_other_code_breaks(gfx: str, tmp_path: Path) -> None:
    assert override(tmp_path, gfx, *(code for code in ALL if code != gfx)) is None


@pytest.mark.parametrize(
    ("gfx", "codes", "expected"),
    [
        ("gfx1032", ("gfx1030",), "10.3.0"),
        ("gfx1012", ("gfx1010",), "10.1.0"),
        ("gfx1101", ("gfx1100",), "11.0.0"),
        ("gfx90c", ("gfx900",), "9.0.0"),
        ("gfx1032", ("gfx1031",), None),  # the base alone is what others were tried with
        ("gfx906", ("gfx908", "gfx90a"), None),
        ("gfx90c", ("gfx906", "gfx908"), None),
        ("gfx1010", ("gfx1030",), None),
    ],
)
def test_an_override_needs_the_base_of_the_family(
    gfx: str, codes: tuple[str, ...], expected: str | None, tmp_path: Path
) -> None:
    assert override(tmp_path, gfx, *codes) == expected


# --- a stub of the toolkit before the driver's library

STUBS = "/usr/local/cuda/lib64/stubs"
APT = "`sudo apt install libnvidia-compute-580 nvidia-utils-580`"


def stub(root: Path, name: str, variable: str = STUBS) -> Node:
    node = nvidia(root)
    node.file("/etc/os-release", "ID=ubuntu\n")
    node.environ["LD_LIBRARY_PATH"] = variable
    node.file(f"{STUBS}/{name}.so.1", b"\x7fELF\x02")
    return node


def fix(node: Node) -> str:
    findings = [f for f in node.report()["findings"] if f["step"]]
    return str(findings[0]["fix"])


def test_a_stub_goes_and_nothing_is_installed_behind_it(tmp_path: Path) -> None:
    node = stub(tmp_path, "libcuda")
    report = node.report()
    found = next(f for f in report["findings"] if f["step"])
    assert found["code"] == "libcuda-missing"
    assert found["fix"] == (
        f"take {STUBS} out of LD_LIBRARY_PATH (`unset LD_LIBRARY_PATH`): behind it"
        f" {LIBRARIES}/libcuda.so.1 is the driver's"
    )
    assert "the loader finds no libcuda.so.1 of the driver" in found["what"]


def test_the_other_folders_of_the_variable_stay(tmp_path: Path) -> None:
    node = stub(tmp_path, "libnvidia-ml", f"/opt/a/lib:{STUBS}/:/opt/b/lib")
    assert fix(node) == (
        f"take {STUBS} out of LD_LIBRARY_PATH (`export LD_LIBRARY_PATH=/opt/a/lib:/opt/b/lib`):"
        f" behind it {LIBRARIES}/libnvidia-ml.so.1 is the driver's"
    )


def test_a_stub_alone_goes_and_the_library_is_installed(tmp_path: Path) -> None:
    node = stub(tmp_path, "libcuda")
    node.remove(f"{LIBRARIES}/libcuda.so.1")
    first = f"take {STUBS} out of LD_LIBRARY_PATH (`unset LD_LIBRARY_PATH`)"
    assert fix(node) == f"{first}, and {APT}"
    node.container()
    inside = "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    assert fix(node) == f"{first}, and {inside}"


def test_a_stub_of_the_loaders_configuration(tmp_path: Path) -> None:
    node = stub(tmp_path, "libcuda", "")
    node.file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    node.file("/etc/ld.so.conf.d/cuda.conf", f"{STUBS}\n")
    assert fix(node).startswith(f"take {STUBS} out of /etc/ld.so.conf.d, then `sudo ldconfig`: ")


# --- nodes


def test_nvidia_modprobe_where_the_module_is_not_loaded(tmp_path: Path) -> None:
    host = causes.uvm_without_module(tmp_path / "host")
    assert fix(host) == "`sudo nvidia-modprobe -u -c 0` (package nvidia-modprobe)"
    inside = causes.uvm_without_module(tmp_path / "inside")
    inside.container()
    assert fix(inside) == (
        "on the host `sudo nvidia-modprobe -u -c 0`, then start the container anew with"
        " `docker run --gpus all`, or CDI: `--device nvidia.com/gpu=all`"
    )


def test_a_container_without_the_node_of_a_loaded_module_is_started_anew(tmp_path: Path) -> None:
    docker = causes.docker_without_uvm(tmp_path / "docker")
    assert fix(docker) == (
        "start the container anew with `docker run --gpus all`, or CDI:"
        " `--device nvidia.com/gpu=all`: it lacks the node"
    )
    podman = causes.docker_without_uvm(tmp_path / "podman")
    podman.remove("/.dockerenv")
    podman.container("/run/.containerenv")
    assert fix(podman) == (
        "start the container anew with `podman run --device nvidia.com/gpu=all` (CDI): it lacks"
        " the node"
    )


def refused(root: Path, group: int, mode: int, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Return a desktop whose NVIDIA nodes refuse this user."""
    node = causes.people(nvidia(root))
    node.file("/etc/os-release", "ID=ubuntu\n")
    node.nodes(*nodes.NVIDIA_NODES, answer="EACCES")
    stat: Any = type("Stat", (), {"st_mode": 0o20000 | mode, "st_uid": 0, "st_gid": group})()
    # The package has a function of the module's name.
    for module in ("probe_core.readiness.closed", "probe_core.machine.access"):
        monkeypatch.setattr(sys.modules[module], "status", lambda machine, path: stat)
    return node


def test_a_user_joins_the_group_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = refused(tmp_path, 44, 0o660, monkeypatch)
    assert fix(node) == "`sudo usermod -aG video $USER`, then log in again"
    node.container()
    assert fix(node) == "start the container with the group of /dev/nvidiactl: `--group-add video`"


@pytest.mark.parametrize(("group", "mode"), [(0, 0o660), (44, 0o600), (0, 0o600)])
def test_nobody_joins_a_group_that_opens_nothing(
    group: int, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = fix(refused(tmp_path, group, mode, monkeypatch))
    assert text == (
        "let this user open /dev/nvidiactl: its owner, mode, access list or a security module"
        " refuses"
    )
    assert "usermod" not in text


def test_the_modules_own_mode_where_root_alone_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = refused(tmp_path, 0, 0o600, monkeypatch)
    text = "DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 384\n"
    node.file("/proc/driver/nvidia/params", text)
    assert fix(node) == (
        "set NVreg_DeviceFileMode=0666 where `grep -r NVreg_DeviceFile /etc/modprobe.d` shows"
        " 0600, `sudo update-initramfs -u`, then reboot"
    )


# --- the fabric manager runs where the switches are


def step(code: str, name: str) -> Any:
    return {"step": name, "status": "broken", "evidence": "", "code": code}


def fabric(node: Node) -> str:
    node.file("/etc/os-release", "ID=ubuntu\n")
    device: Any = node.device()
    return fix_of(device, step("fabric-not-ready", "runtime"), Scene(node.machine()))


def switch(node: Node) -> Node:
    node.tree.pci("0000:05:00.0", "10de:22a3", pci_class="068000", driver="nvidia-nvswitch")
    return node


def test_the_fabric_manager_beside_switches_on_this_bus(tmp_path: Path) -> None:
    command = (
        "`sudo apt install nvidia-fabricmanager-580 && sudo systemctl enable --now"
        " nvidia-fabricmanager`"
    )
    assert fabric(switch(nvidia(tmp_path / "h100", ids="10de:2330"))) == command
    b200 = switch(nvidia(tmp_path / "b200", ids="10de:2901"))
    assert fabric(b200) == f"{SUBNET_MANAGER}, then `sudo modprobe ib_umad` and {command}"


SUBNET_MANAGER = "`sudo apt install nvlsm infiniband-diags` (NVIDIA's CUDA repository)"


def test_the_switches_of_an_hgx_b200_are_behind_bridges(tmp_path: Path) -> None:
    """They are on no PCI bus: what shows are the bridges' InfiniBand devices."""
    node = nvidia(tmp_path / "host", ids="10de:2901")
    node.file("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n")
    text = fabric(node)
    assert text.startswith(f"{SUBNET_MANAGER}, then `sudo modprobe ib_umad` and `sudo apt install")
    device: Any = node.device()
    fix = fix_for(device, step("fabric-not-ready", "runtime"), Scene(node.machine()))
    assert fix is not None
    assert fix.action.command == (
        "sudo apt install nvlsm infiniband-diags && sudo modprobe ib_umad && sudo apt install"
        " nvidia-fabricmanager-580 && sudo systemctl enable --now nvidia-fabricmanager"
    )
    rocky = 'ID="rocky"\nVERSION_ID="9.6"\nID_LIKE="rhel"\n'
    node.file("/etc/os-release", rocky)
    line = fix_of(device, step("fabric-not-ready", "runtime"), Scene(node.machine()))
    assert line == (
        "`sudo dnf install nvlsm infiniband-diags` (NVIDIA's repository), then"
        " `sudo modprobe ib_umad` and `sudo dnf install nvidia-fabricmanager-580.95.05 && sudo"
        " systemctl enable --now nvidia-fabricmanager` (NVIDIA's repository)"
    )
    # A guest with one GPU has none of it, and an H100 has no such bridges.
    assert "install" not in fabric(nvidia(tmp_path / "guest", ids="10de:2901"))
    h100 = nvidia(tmp_path / "h100", ids="10de:2330")
    h100.file("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n")
    assert "install" not in fabric(h100)


def test_an_older_branch_has_its_fabric_manager_by_another_name(tmp_path: Path) -> None:
    node = switch(nvidia(tmp_path, ids="10de:2330"))
    text = nodes.VERSION_TEXT.replace(nodes.VERSION, "570.195.03")
    node.file("/proc/driver/nvidia/version", text)
    node.file("/etc/os-release", 'ID="rocky"\nVERSION_ID="9.6"\nID_LIKE="rhel"\n')
    device: Any = node.device()
    line = fix_of(device, step("fabric-not-ready", "runtime"), Scene(node.machine()))
    assert line.startswith("`sudo dnf install nvidia-fabric-manager-570.195.03 && ")


# --- a library that is there and empty


EMPTY = {
    "libnvidia-ml": ("nvml-broken", f"; {LIBRARIES}/libcuda.so.1 fits the driver"),
    "libcuda": ("library-broken", ""),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_library_is_installed_again(name: str, tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.file("/etc/os-release", "ID=ubuntu\n")
    node.file(f"{LIBRARIES}/{name}.so.{nodes.VERSION}", b"")
    finding = next(f for f in node.report()["findings"] if f["step"])
    code, more = EMPTY[name]
    evidence = f"{LIBRARIES}/{name}.so.1 is empty{more}"
    assert (finding["code"], finding["evidence"]) == (code, evidence)
    assert finding["fix"] == "`sudo apt install --reinstall libnvidia-compute-580`"
    node.container()
    assert fix(node) == (
        f"take {LIBRARIES}/{name}.so.1 out of the image: a build with NVIDIA's runtime left it"
        " there; then start the container with `docker run --gpus all`, or CDI:"
        " `--device nvidia.com/gpu=all`"
    )


def test_an_nvml_of_the_image_is_taken_out_of_it(tmp_path: Path) -> None:
    node = causes.nvml_of_the_image(tmp_path)
    finding = next(f for f in node.report()["findings"] if f["step"])
    assert finding["code"] == "nvml-broken"
    assert finding["evidence"] == (
        f"/proc/driver/nvidia/version: {nodes.VERSION}; {LIBRARIES}/libnvidia-ml.so.1 leads to"
        f" 570.86.10; {LIBRARIES}/libcuda.so.1 fits the driver"
    )
    assert fix(node) == "take libnvidia-ml.so.1 out of the image: the host's is mounted"


def test_a_library_that_is_broken_otherwise_is_not_said_to_be_empty(tmp_path: Path) -> None:
    node = causes.libraries_of_32_bits(tmp_path)
    node.file("/etc/os-release", "ID=ubuntu\n")
    assert fix(node) == "install it again, in the driver's version"


def test_the_fabric_manager_of_a_rack_is_in_its_switch_trays(tmp_path: Path) -> None:
    node = nvidia(tmp_path, ids="10de:2941")  # GB200
    node.tree.arch = "aarch64"
    assert fabric(node) == (
        "start the switch trays first: their fabric manager is part of NMX-Controller (NMX-C);"
        " then `sudo systemctl restart nvidia-imex` here"
    )


def test_no_fabric_manager_is_installed_without_a_switch(tmp_path: Path) -> None:
    text = fabric(nvidia(tmp_path, ids="10de:2330"))
    assert "install" not in text
    assert text == (
        "start nvidia-fabricmanager of the driver's version on the machine that has the NVSwitches"
    )


# --- words of another system


def unbound_npu(root: Path) -> Node:
    node = Node(root)
    node.tree.pci(PCI, "1022:17f0", pci_class="118000")
    node.tree.release("6.14.0-24-generic")
    node.modules("amdxdna")
    return node


def test_nvrm_is_looked_for_of_nvidias_driver_alone(tmp_path: Path) -> None:
    assert fix(unbound_npu(tmp_path / "npu")) == (
        "`sudo dmesg | grep -i -e amdxdna` has the reason of the driver"
    )
    card = nvidia(tmp_path / "card", driver=None, ids="10de:2204")
    assert fix(card) == "`sudo dmesg | grep -i -e nvidia -e NVRM` has the reason of the driver"


def test_wsl_has_no_session_whose_cgroup_decides(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.tree.release("5.15.153.1-microsoft-standard-WSL2")
    device: Any = node.device()
    text = fix_of(device, step("cgroup-denied", "granted"), Scene(node.machine()))
    assert text == "start WSL anew: `wsl --shutdown` in Windows, then open it again"


@pytest.mark.parametrize(
    ("sign", "expected"),
    [
        ("/run/.containerenv", "start the container with `podman run --device nvidia.com/gpu=all`"),
        ("/.singularity.d", "start the container with `apptainer exec --nv`"),
    ],
)
def test_what_was_not_granted_is_by_the_engines_own_option(
    sign: str, expected: str, tmp_path: Path
) -> None:
    node = nvidia(tmp_path)
    node.container(sign)
    device: Any = node.device()
    text = fix_of(device, step("not-granted", "granted"), Scene(node.machine()))
    assert text.startswith(f"nothing, if that is intended; else {expected}")


@pytest.mark.parametrize(
    ("sign", "expected"),
    [
        ("/.dockerenv", "start the container with `docker run --device=/dev/hailo0`"),
        ("/run/.containerenv", "start the container with `podman run --device=/dev/hailo0`"),
        ("/.singularity.d", "start the container with `apptainer exec --bind /dev/hailo0`"),
    ],
)
def test_an_npu_by_the_engines_own_option(sign: str, expected: str, tmp_path: Path) -> None:
    node = causes.hailo(tmp_path)
    node.container(sign)
    node.nodes(*node.access, answer="missing")
    assert fix(node) == expected


@pytest.mark.parametrize(
    ("sign", "expected"),
    [
        ("/.dockerenv", "start the container with `docker run --shm-size=8g`, or `--ipc=host`"),
        ("/.singularity.d", "give the container more than 64 MiB at /dev/shm"),
    ],
)
def test_shared_memory_by_the_engines_own_option(sign: str, expected: str, tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.container(sign)
    device: Any = node.device()
    assert fix_of(device, step("shm-small", "runtime"), Scene(node.machine())) == expected


def test_sudo_is_given_the_path_of_a_command_that_it_would_not_find(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def installed(folder: str) -> str:
        place = tmp_path / folder
        place.mkdir(parents=True)
        (place / "probe").touch()
        monkeypatch.setattr(sys, "executable", str(place / "python3"))
        return as_root("doctor", "--only", "xid-seen")

    assert installed("env/bin") == f"sudo {tmp_path}/env/bin/probe doctor --only xid-seen"
    assert installed("my env/bin") == f"sudo '{tmp_path}/my env/bin/probe' doctor --only xid-seen"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none/python3"))
    assert as_root("doctor") == f"sudo {tmp_path}/none/python3 -m probe_core doctor"
    monkeypatch.setattr("os.path.isfile", lambda path: path == "/usr/bin/probe")
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    assert as_root("doctor") == "sudo probe doctor"


def test_an_xid_resets_one_gpu_and_none_that_is_gone(tmp_path: Path) -> None:
    def doctor(name: str, number: int) -> str:
        node = nvidia(tmp_path / name)
        line = f"Linux version 6.8\nNVRM: Xid (PCI:{PCI[:-2]}): {number}, pid=1\n"
        node.file("/var/log/dmesg", line)
        document = examine(Request(node.machine(), node.report()))  # type: ignore[arg-type]
        return next(f["fix"] for f in document["findings"] if f["code"] == "xid-seen")

    assert doctor("119", 119) == (
        f"drain the node, then `sudo nvidia-smi --gpu-reset -i {PCI}`, or reboot"
    )
    assert doctor("79", 79) == (
        "power the machine off and on; check seating, power cables and riser"
    )


def test_intel_is_told_of_no_tool_of_nvidia(tmp_path: Path) -> None:
    text = fix(causes.no_nodes_on_a_host(tmp_path))
    assert text == (
        "load the driver xe again, or reboot: with it the kernel makes /dev/dri/renderD128"
    )


# --- one driver serves all GPUs of a machine

KEPLER, VOLTA, TURING, AMPERE, BLACKWELL = "1180", "1db5", "2184", "2204", "2b85"


def beside(root: Path, device: str, other: str, version: str, *, is_open: bool = False) -> Node:
    """Return a machine whose loaded module leaves one GPU alone, or both."""
    node = causes.unbound(root, "nvidia")
    node.file("/etc/os-release", "ID=ubuntu\n")
    node.file(f"{FOLDER}/device", f"0x{device}\n")
    node.tree.pci("0000:02:00.0", f"10de:{other}")
    text = nodes.OPEN_TEXT if is_open else nodes.VERSION_TEXT
    node.file("/proc/driver/nvidia/version", text.replace(nodes.VERSION, version))
    return node


def told(node: Node) -> list[tuple[str, str]]:
    return [(f["code"], f["fix"]) for f in node.report()["findings"] if f["step"] == "driver"]


@pytest.mark.parametrize(
    ("node", "codes"),
    [
        ((KEPLER, BLACKWELL, "550.54.14"), {"legacy-branch", "driver-too-old-for-gpu"}),
        ((VOLTA, BLACKWELL, "580.95.05"), {"no-driver", "closed-module-unsupported"}),
    ],
)
def test_two_gpus_of_which_no_driver_serves_both(
    node: tuple[str, str, str], codes: set[str], tmp_path: Path
) -> None:
    found = told(beside(tmp_path, *node))
    assert {code for code, _ in found} == codes
    for _, text in found:
        assert text.startswith("no driver serves both this GPU (")
        assert "`" not in text


def test_two_gpus_are_given_one_branch(tmp_path: Path) -> None:
    volta = beside(tmp_path / "volta", VOLTA, AMPERE, "590.44.01")
    assert ("legacy-branch", "`sudo apt install nvidia-driver-580`, then reboot") in told(volta)
    turing = beside(tmp_path / "turing", AMPERE, BLACKWELL, "390.157", is_open=True)
    fixes = {text for code, text in told(turing) if code == "driver-too-old-for-gpu"}
    assert fixes == {"`sudo apt install nvidia-driver-570-open` or a later one, then reboot"}


def test_a_gpu_that_a_guest_has_needs_no_driver_of_the_host(tmp_path: Path) -> None:
    node = beside(tmp_path, KEPLER, BLACKWELL, "550.54.14")
    driver = node.tree.root / "sys/bus/pci/devices/0000:02:00.0/driver"
    driver.parent.mkdir(parents=True, exist_ok=True)
    node.tree.link("/sys/bus/pci/devices/0000:02:00.0/driver", "/sys/bus/pci/drivers/vfio-pci")
    assert ("legacy-branch", "`sudo apt install nvidia-driver-470`, then reboot") in told(node)


def test_the_doctor_says_the_same_of_two_gpus(tmp_path: Path) -> None:
    node = beside(tmp_path, KEPLER, BLACKWELL, "550.54.14")
    report = node.report()
    document = examine(Request(node.machine(), report))  # type: ignore[arg-type]
    lines = {f["fix"] for f in document["findings"] if f["step"] == "driver"}
    assert lines == {text for _, text in told(node)}
