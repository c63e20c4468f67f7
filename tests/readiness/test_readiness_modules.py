"""What is known of a kernel's modules: where each lies, whether it is loaded, what forbids it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe_core.machine import Machine
from probe_core.readiness.modules import Modules, driver_of, forbids, module_of, stem
from probe_core.readiness.scene import Scene

NOW, OTHER = "6.8.0-60-generic", "6.8.0-62-generic"
OWN = f"/lib/modules/{NOW}"


def modules(root: Path, files: dict[str, str | bytes], release: str = NOW) -> Modules:
    for path, content in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    machine = Machine(str(root))
    return Modules(machine, release, Scene(machine).loaded)


@pytest.mark.parametrize(
    ("path", "name", "driver"),
    [
        ("updates/dkms/nvidia-uvm.ko.zst", "nvidia_uvm", "nvidia_uvm"),
        ("nvidia.ko", "nvidia", "nvidia"),
        ("kernel/amdgpu.ko.xz", "amdgpu", "amdgpu"),
        ("a/intel_vpu.ko.gz", "intel_vpu", "intel_vpu"),
        ("nvidia-current.ko", "nvidia_current", "nvidia"),
        ("nvidia-tesla-470-uvm.ko", "nvidia_tesla_470_uvm", "nvidia_uvm"),
        ("nvidia-legacy-390xx-drm.ko", "nvidia_legacy_390xx_drm", "nvidia_drm"),
        ("nvidia-current-modeset.ko", "nvidia_current_modeset", "nvidia_modeset"),
        ("nvidia-current-peermem.ko", "nvidia_current_peermem", "nvidia_peermem"),
        ("nvidia-current-other.ko", "nvidia_current_other", "nvidia"),
        ("nvidia.ko.sig", None, None),
        ("modules.dep", None, None),
        ("", None, None),
    ],
)
def test_the_module_of_a_file(path: str, name: str | None, driver: str | None) -> None:
    assert (stem(path), driver_of(path)) == (name, driver)


@pytest.mark.parametrize(
    ("line", "module", "is_forbidden"),
    [
        ("blacklist nvidia-drm", "nvidia_drm", True),
        ("blacklist", None, True),
        ("install nvidia /bin/false", "nvidia", True),
        ("install nvidia /usr/bin/true", "nvidia", True),
        ("install nvidia /sbin/modprobe -i nvidia", "nvidia", False),
        ("alias nvidia off", "nvidia", True),
        ("alias nvidia nvidia_current", "nvidia", False),
        ("options nvidia off", "nvidia", False),
        ("softdep nvidia pre: drm", "nvidia", False),
    ],
)
def test_what_a_line_of_modprobe_forbids(line: str, module: str | None, is_forbidden: bool) -> None:
    assert (module_of(line.split()), forbids(line.split())) == (module, is_forbidden)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, None),
        ({"/etc/modprobe.d/a.conf": "# blacklist amdgpu\nblacklist amdgpu_x\n"}, None),
        ({"/etc/modprobe.d/a": "blacklist amdgpu\n"}, None),
        (
            {"/etc/modprobe.d/a.conf": "options drm x\nblacklist  amdgpu\n"},
            ("/etc/modprobe.d/a.conf", "blacklist amdgpu"),
        ),
        (
            {"/usr/lib/modprobe.d/b.conf": "install amdgpu \\\n  /bin/false\n"},
            ("/usr/lib/modprobe.d/b.conf", "install amdgpu /bin/false"),
        ),
        (
            {"/etc/modprobe.d/a.conf": f"install amdgpu {'x' * 200} /bin/true"},
            ("/etc/modprobe.d/a.conf", f"install amdgpu {'x' * 185}"),
        ),
        (
            {"/proc/cmdline": "quiet module_blacklist=nouveau,amdgpu\n"},
            ("/proc/cmdline", "module_blacklist=nouveau,amdgpu"),
        ),
        (
            {
                "/proc/cmdline": "modprobe.blacklist=amdgpu",
                "/etc/modprobe.d/a.conf": "blacklist amdgpu",
            },
            ("/proc/cmdline", "modprobe.blacklist=amdgpu"),
        ),
        ({"/proc/cmdline": "blacklist=amdgpu amdgpu.modeset=0"}, None),
    ],
)
def test_what_forbids_a_module(
    files: dict[str, str | bytes], found: tuple[str, str] | None, tmp_path: Path
) -> None:
    assert modules(tmp_path, files).forbidden("amdgpu") == found


def test_whether_a_module_is_loaded(tmp_path: Path) -> None:
    files = {"/proc/modules": "nvidia_uvm 1 0 - Live 0x0\n", "/sys/module/drm/version": "1"}
    builtin = {f"{OWN}/modules.builtin": "kernel/drivers/accel/intel-vpu.ko\n"}
    known = modules(tmp_path / "a", {**files, **builtin})
    names = ("nvidia-uvm", "nvidia_uvm", "drm", "intel_vpu", "nvidia")
    assert [known.is_loaded(name) for name in names] == [True, True, True, True, False]
    assert modules(tmp_path / "b", {"/sys/module/drm/version": "1"}).is_loaded("nvidia") is False
    assert modules(tmp_path / "c", {"/proc/modules": ""}).is_loaded("nvidia") is None


def test_where_a_module_lies(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{OWN}/modules.dep": "kernel/a/xe.ko.zst: kernel/drm.ko\n/opt/amdgpu.ko:\n",
        f"{OWN}/updates/dkms/nvidia-current.ko": "",
        f"{OWN}/kernel/nvidia-580/nvidia-uvm.ko": "",
        f"{OWN}/kernel/drivers/accel/ivpu/intel_vpu.ko": "",
        f"{OWN}/kernel/drivers/gpu/drm/i915/other.ko": "",
        f"/usr/lib/modules/{OTHER}/extra/tenstorrent.ko": "",
    }
    known = modules(tmp_path, files)
    names = ("xe", "amdgpu", "nvidia", "nvidia-uvm", "intel_vpu", "i915", "tenstorrent")
    assert [known.on_disk(name) for name in names] == [
        f"{OWN}/kernel/a/xe.ko.zst",
        "/opt/amdgpu.ko",
        f"{OWN}/updates/dkms/nvidia-current.ko",
        f"{OWN}/kernel/nvidia-580/nvidia-uvm.ko",
        f"{OWN}/kernel/drivers/accel/ivpu/intel_vpu.ko",
        None,
        None,
    ]
    other = f"/usr/lib/modules/{OTHER}"
    assert known.kernels == [OWN, other]
    assert known.on_disk("tenstorrent", other) == f"{other}/extra/tenstorrent.ko"
    assert known.for_other_kernel("tenstorrent") == other
    assert known.for_other_kernel("xe") is None
    # A kernel that nobody names, and one whose folder is not there.
    assert [modules(tmp_path, {}, release).on_disk("xe") for release in ("", "5.0")] == [None] * 2
    assert modules(tmp_path, {}, "").for_other_kernel("tenstorrent") is None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (f"nvidia/580.95.05/{OTHER}/x86_64/module/nvidia.ko", "nvidia/580.95.05"),
        (f"nvidia-open/580.95.05/{OTHER}/log", "nvidia-open/580.95.05"),
        ("nvidia/580.95.05/source/dkms.conf", "nvidia/580.95.05"),
        (f"nvidia/580.95.05/{NOW}/x86_64/module/nvidia.ko", None),
        (f"nvidiafb/1/{OTHER}/log", None),
    ],
)
def test_what_dkms_did_not_build_for_this_kernel(
    path: str, found: str | None, tmp_path: Path
) -> None:
    known = modules(tmp_path, {f"/var/lib/dkms/{path}": ""})
    assert known.for_other_kernel("nvidia") == (found and f"/var/lib/dkms/{found}")


def test_a_list_that_is_cut_off_tells_nothing_of_what_it_lacks(tmp_path: Path) -> None:
    bound = (1 << 20) - 4096
    assert [Modules.is_whole("x" * size) for size in (0, bound - 1, bound)] == [True, True, False]
    assert not modules(tmp_path / "a", {}).is_complete
    assert modules(tmp_path / "b", {f"{OWN}/extra/x.ko": ""}).is_complete
    assert modules(tmp_path / "c", {f"{OWN}/modules.dep": "xe.ko:\n"}).is_complete
    assert not modules(tmp_path / "d", {f"{OWN}/modules.dep": "x" * bound}).is_complete


@pytest.mark.parametrize(
    ("key", "listed", "is_enrolled"),
    [(b"0 own", b"\6 0 other0 own", True), (b"0 own", b"\6 0 other", False), (b"", b"\6", False)],
)
def test_whether_a_key_of_this_machine_is_enrolled(
    key: bytes, listed: bytes, is_enrolled: bool, tmp_path: Path
) -> None:
    variable = "/sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
    path = "/var/lib/shim-signed/mok/MOK.der"
    found = modules(tmp_path, {path: key, variable: listed}).enrolled
    assert found == ((path,) if is_enrolled else ())


@pytest.mark.parametrize(
    ("raw", "is_enforced"),
    [(b"\6\0\0\0\1", True), (b"\6\0\0\0\0", False), (b"\0\0\0\1", False), (None, False)],
)
def test_whether_firmware_enforces_signatures(
    raw: bytes | None, is_enforced: bool, tmp_path: Path
) -> None:
    path = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    assert modules(tmp_path, {path: raw} if raw else {}).secure_boot is is_enforced
