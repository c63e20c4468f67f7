"""What a recording is said to have of a machine it has, and `Coverage` knows what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees import Tree

from probe_core.machine import Machine
from probe_core.probers.records import IN_PART, LEFT_OUT
from probe_core.readiness.switched import RULES
from probe_core.recording.declared import Declared, check_records, own_declarations
from probe_core.recording.gather import gather
from probe_core.testing.reading import Coverage

PCI = "0000:01:00.0"
CARD = f"/sys/bus/pci/devices/{PCI}"

RULE = 'SUBSYSTEM=="pci", ATTR{vendor}=="0x10de", ATTR{class}=="0x030000", ATTR{remove}="1"\n'

TOOLKIT = """[nvidia-container-cli]
path = "/secret"
root = "/run/nvidia/driver"
[nvidia-container-runtime]
mode = "cdi"
"""

FILES: dict[str, object] = {
    "/.dockerenv": "",
    "/run/.containerenv": "secret",
    "/.flatpak-info": "secret",
    "/.singularity.d": "",
    "/run/systemd/container": "podman",
    "/run/nvidia/driver/usr": "",
    "/proc/self/cgroup": "0::/user.slice\n",
    "/proc/self/mounts": "overlay / overlay rw,upperdir=/secret 0 0\ntmpfs /dev tmpfs rw 0 0\n",
    "/proc/self/status": "Name:\tpython\nUid:\t1042\t1042\t1042\t1042\nGroups:\t105\n",
    "/proc/self/limits": "Limit secret\nMax address space 8192000000 unlimited bytes\n",
    "/proc/self/uid_map": "0 0 4294967295\n",
    "/proc/self/attr/current": "unconfined",
    "/proc/cmdline": "root=UUID=secret nomodeset\n",
    "/sys/kernel/security/lockdown": "none [integrity]\n",
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": b"\6\0\0\0\1",
    "/sys/firmware/acpi/tables/PPTT": b"PPTT\xff\xff",
    f"{CARD}/config": b"\xde\x10" + bytes(62),
    "/sys/module/firmware_class/parameters/path": "/srv/secret\n",
    "/sys/module/nvidia/refcnt": 4,
    "/lib/modules/6.8.0/modules.dep": "kernel/drivers/video/nvidia.ko:\n",
    "/usr/lib/modules/6.9.0/modules.builtin": "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko\n",
    "/var/lib/dkms/nvidia/580.95.05/6.8.0/log": "secret",
    "/lib/firmware/amdgpu/gc_11_0_0_me.bin": "",
    "/etc/modprobe.d/a.conf": "# secret\nblacklist nvidia\n",
    "/run/modprobe.d/a.conf": "blacklist nvidia\n",
    "/usr/lib/modprobe.d/a.conf": "blacklist nvidia\n",
    "/lib/modprobe.d/a.conf": "install nvidia \\\n  /bin/false\n",
    "/boot/vmlinuz-6.8.0": "secret",
    "/usr/bin/nvidia-modprobe": "",
    "/sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23": b"\6 secret key",
    "/var/lib/shim-signed/mok/MOK.der": b"secret key",
    "/var/lib/dkms/mok.pub": b"secret key",
    "/etc/pki/akmods/certs/public_key.der": b"secret key",
    "/etc/OpenCL/vendors/intel_legacy1.icd": "secret\n",
    "/tmp/nvidia-mps/control": "",
    "/etc/passwd": "alice:x:1042:1042::/home/alice:/bin/sh\n",
    "/etc/group": "render:x:105:alice\n",
    "/etc/os-release": 'ID=debian\nNAME="secret"\n',
    "/run/ostree-booted": "",
    "/etc/NIXOS": "",
    "/run/current-system/nixos-version": "25.05 secret",
    "/etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
    "/etc/ld.so.conf.d/cuda.conf": "/usr/local/cuda/lib64\n/home/alice/lib\n",
    "/etc/ld.so.cache": b"libcuda.so.1\0libsecret.so.1\0",
    "/etc/prime-discrete": "off\n",
    "/etc/prime/current_type": "intel\n",
    "/etc/supergfxd.conf": '{"mode": "Integrated", "secret": 1}',
    "/etc/nvidia-container-runtime/config.toml": TOOLKIT,
    **{f"{folder}/50-remove-nvidia.rules": f"# secret\n{RULE}" for folder in RULES},
    "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0123/nvidia.inf": "secret",
}
"""A file for each entry of `IN_PART`, and what must not be kept of it."""

ELSEWHERE = {"/usr/lib/os-release": "/etc/os-release", "/etc/ld.so.conf.d/": "/etc/ld.so.conf"}
"""What is recorded where another file is: that one's text has it."""


LIBRARIES = {
    "/lib": "/lib",
    "/lib64": "/lib64",
    "/lib/*": "/lib/x86_64-linux-gnu",
    "/usr/lib": "/usr/lib",
    "/usr/lib64": "/usr/lib64",
    "/usr/lib/*": "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/*/*": "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/local/lib": "/usr/local/lib",
    "/usr/local/lib64": "/usr/local/lib64",
    "/usr/local/lib/*": "/usr/local/lib/x86_64-linux-gnu",
    "/usr/local/*/lib*": "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat": "/usr/local/cuda/compat",
    "/usr/local/cuda/lib64/stubs": "/usr/local/cuda/lib64/stubs",
    "/opt/*/lib*": "/opt/rocm-7.1.0/lib",
    "/opt/xilinx/xrt/lib": "/opt/xilinx/xrt/lib",
    "/run/opengl-driver/lib": "/run/opengl-driver/lib",
}
"""Folders of libraries in `IN_PART` to one that there is."""

OTHERS = {"/opt/*/lib*": "libamdhip64.so.7", "/opt/xilinx/xrt/lib": "libxrt_driver_xdna.so.2"}
"""Folders that have another library than NVIDIA's, to its name."""


def described(root: Path) -> Machine:
    tree = Tree(root)
    tree.pci(PCI, "10de:2684", driver="nvidia", current_link_width=63)
    for path, content in FILES.items():
        tree.file(path, content)
    environ = {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps"}
    return Machine(str(tree.root), environ, arch="x86_64")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """The machine, with what is left out beside it: no test changes it."""
    made = described(tmp_path_factory.mktemp("described") / "root")
    for entry in LEFT_OUT:
        Tree(Path(made.root)).file(left_out(entry), "secret\n")
    return made


def left_out(entry: str) -> str:
    """Return a path of this entry of `LEFT_OUT`."""
    path = entry.replace("*", "4242")
    return f"{path}left" if entry.endswith("/") else path


@pytest.fixture(scope="module")
def recorded(machine: Machine) -> dict[str, bytes]:
    return kept(machine)


@pytest.fixture(scope="module")
def coverage(machine: Machine) -> Coverage:
    return Coverage(machine, [*own_declarations(), acme()])


def kept(machine: Machine) -> dict[str, bytes]:
    recording = gather(machine, "invented in a test", own_declarations()).recording
    return {**recording.files, **dict.fromkeys(recording.links, b"")}


@pytest.mark.heavy
@pytest.mark.parametrize("entry", [entry for entry in IN_PART if "/lib*.so*" not in entry])
def test_each_entry_is_kept_where_it_is_there(entry: str, recorded: dict[str, bytes]) -> None:
    stem = ELSEWHERE.get(entry, entry).partition("*")[0].rstrip("/")
    assert [path for path in recorded if path.startswith(stem)], entry


@pytest.mark.parametrize("folder", LIBRARIES)
def test_a_driver_s_library_is_kept_by_its_name(folder: str, tmp_path: Path) -> None:
    assert f"{folder}/lib*.so*" in IN_PART
    name = OTHERS.get(folder, "libcuda.so.1")
    path = f"{LIBRARIES[folder]}/{name}"
    tree = Tree(tmp_path / "root")
    tree.file(path, b"\x7fELF\2" + bytes(11) + b"secret")
    tree.file(f"{LIBRARIES[folder]}/libsecret.so.1", b"\x7fELF\2")
    is_searched = not folder.startswith("/usr/local/cuda")
    searched = {} if is_searched else {"LD_LIBRARY_PATH": LIBRARIES[folder]}
    texts = kept(Machine(str(tree.root), searched, arch="x86_64"))
    assert texts[path] == b"\x7fELF\2" + bytes(11)
    assert [path for path in texts if "secret" in path] == []


def test_every_folder_of_libraries_is_tried() -> None:
    entries = {entry.removesuffix("/lib*.so*") for entry in IN_PART if "/lib*.so*" in entry}
    assert entries == LIBRARIES.keys()


def test_no_more_is_kept_than_is_said(recorded: dict[str, bytes]) -> None:
    texts = recorded
    assert [path for path, text in texts.items() if b"secret" in text or b"alice" in text] == []
    assert texts["/etc/supergfxd.conf"] == b'"mode": "Integrated"\n'
    kept = b'[nvidia-container-cli]\nroot = "/run/nvidia/driver"\n'
    kept += b'[nvidia-container-runtime]\nmode = "cdi"\n'
    assert texts["/etc/nvidia-container-runtime/config.toml"] == kept
    assert texts["/lib/udev/rules.d/50-remove-nvidia.rules"] == RULE.encode()
    assert texts["/etc/ld.so.conf"] == b"/usr/local/cuda/lib64\n"
    assert texts["/sys/firmware/acpi/tables/PPTT"] == b""
    assert texts["/run/nvidia/driver/usr"] == b""
    assert texts["/etc/ld.so.cache"] == b"libcuda.so.1\n"
    assert texts["/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0123"] == b""
    assert texts[f"/sys/devices/pci0000:00/{PCI}/config"] == b"answers\n"


@pytest.mark.parametrize("entry", LEFT_OUT)
def test_what_is_left_out_is_not_kept(
    entry: str, machine: Machine, recorded: dict[str, bytes], coverage: Coverage
) -> None:
    path = left_out(entry)
    assert machine.exists(path)
    assert path not in recorded
    assert not coverage.holds(path)


def test_the_name_of_a_distribution_is_kept_where_usr_alone_has_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "root")
    tree.file("/usr/lib/os-release", 'ID=debian\nVERSION_ID="13"\nHOME_URL="x"\n')
    texts = kept(tree.machine())
    assert texts["/usr/lib/os-release"] == b'ID=debian\nVERSION_ID="13"\n'
    assert "/etc/os-release" not in texts


def test_a_library_of_windows_that_is_a_link_stays_one(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "root")
    tree.file("/usr/lib/wsl/lib/libcuda.so.1.1", b"\x7fELF\2")
    tree.file("/usr/lib/wsl/lib/libd3d12.so", b"\x7fELF\2")
    (tree.root / "usr/lib/wsl/lib/libcuda.so.1").symlink_to("libcuda.so.1.1")
    recording = gather(tree.machine(), "invented in a test", own_declarations()).recording
    assert recording.links["/usr/lib/wsl/lib/libcuda.so.1"] == "libcuda.so.1.1"
    assert recording.files["/usr/lib/wsl/lib/libd3d12.so"] == b""


def acme() -> Declared:
    declared, mistakes = check_records(
        {
            "files": ["/sys/class/acme/acme#/name"],
            "pci": [{"pci_vendor": ["10de"], "files": ["hwmon/hwmon#/power1_cap"]}],
            "platform": {"files": ["gpuinfo"]},
            "nodes": ["/dev/acme#"],
            "cgroup": ["pids.max"],
        }
    )
    assert not mistakes
    return declared


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("/sys/class/acme/acme0/name", True),
        ("/sys/class/acme/acme0", True),
        ("/sys/class/acme", True),
        ("/sys/class/acme/acme0/serial", False),
        ("/sys/class/acme/acmeX/name", False),
        ("/sys/class/acne", False),
        (f"{CARD}/hwmon/hwmon3/power1_cap", True),
        (f"{CARD}/hwmon/hwmon3/power1_max", False),
        (f"/sys/devices/pci0000:00/{PCI}/hwmon/hwmon3/power1_cap", True),
        ("/sys/bus/pci/devices/0000:99:00.0/hwmon/hwmon3/power1_cap", True),  # none is there
        ("/sys/bus/pci/devices/0000:99:00.0/power1_cap", False),
        ("/sys/bus/pci/devices", True),
        ("/sys/bus/platform/devices/fb000000.gpu/gpuinfo", True),
        ("/sys/bus/platform/devices/fb000000.gpu/serial", False),
        ("/dev/acme0", True),
        ("/dev/acmeX", False),
        ("/sys/fs/cgroup/user.slice/pids.max", True),
        ("/sys/fs/cgroup/user.slice/pids.peak", False),
        ("/sys/fs/cgroup/pids", True),
        ("/sys/fs/cgroup/rdma", False),
        ("/etc/acme.conf", False),
        ("/lib/firmware/acme.bin", True),  # it is not there, and nothing would be lost
    ],
)
def test_what_is_declared_is_held_whether_or_not_it_exists(
    path: str, held: bool, coverage: Coverage
) -> None:
    assert coverage.holds(path) is held


def test_what_a_rule_says_of_one_vendor_holds_of_no_other(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "root")
    tree.pci(PCI, "1002:744c")
    coverage = Coverage(tree.machine(), [*own_declarations(), acme()])
    assert not coverage.holds(f"{CARD}/hwmon/hwmon3/power1_cap")


def test_a_file_that_exists_and_is_kept_in_part_alone_is_not_held(
    tmp_path: Path,
) -> None:
    """`IN_PART` says which of them are kept; the others are missing from the recording."""
    machine = described(tmp_path)
    Tree(tmp_path).file("/lib/modules/6.8.0/acme.ko", "")
    coverage = Coverage(machine, own_declarations())
    assert not coverage.holds("/lib/modules/6.8.0/acme.ko")
    assert coverage.holds("/lib/modules/6.8.0/modules.dep")
    assert coverage.holds("/lib/modules/6.8.0")
