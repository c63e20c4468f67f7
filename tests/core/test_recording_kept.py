"""What a recording keeps of drivers, libraries and the user, and what it leaves out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from trees import Tree

from probe_core import Machine
from probe_core.readiness import Scene
from probe_core.recording.drivers import Loader, joined, kernel_files, public, refused_files
from probe_core.recording.process import (
    account_files,
    account_variables,
    address_space,
    cgroups,
    node_access,
    surroundings,
)

KERNEL = "/lib/modules/6.12.9"
FIRMWARE = "/lib/firmware"
UDEV = '{}ACTION=="add", ATTR{{class}}=="0x03{}", ATTR{{remove}}="1"\n'


def machine(tree: Tree, **environ: str) -> Machine:
    return Machine(str(tree.root), environ, "linux", "x86_64")


def kept_of_kernel(tree: Tree, *below: str) -> dict[str, str]:
    found = kernel_files(here := machine(tree), Scene(here))
    return {path: text.decode() for path, text in found.items() if path.startswith(below)}


def test_modules_are_kept_by_name(tree: Tree) -> None:
    tree.release("6.12.9")
    for name in ("nvidia", "nvidia_uvm", "snd"):
        tree.file(f"/sys/module/{name}/refcnt", "1\n")
    tree.file(f"{KERNEL}/modules.dep", "a/nvidia.ko.zst: b/drm.ko\nb/drm.ko:\nc/vfio-pci.ko:\n")
    tree.file(f"{KERNEL}/modules.builtin", "kernel/i915.ko\nkernel/ext4.ko\n")
    tree.file(f"{KERNEL}/updates/radeon.ko", "code")
    tree.file(f"{KERNEL}/updates/mine.ko", "code")
    tree.file(f"{KERNEL}/vmlinuz", "image")
    tree.file("/var/lib/dkms/nvidia-580/1.2/6.12.9/log", "x")
    tree.file("/var/lib/dkms/vbox-7/1.2/6.12.9/log", "x")
    for number in range(70):
        tree.file(f"/boot/vmlinuz-6.12.{number:02}", "image")
    tree.file("/boot/initrd-6.12.9", "image")
    found = kept_of_kernel(tree, "/sys/module", "/lib/modules", "/var", "/boot")
    images = {f"/boot/vmlinuz-6.12.{number:02}": "" for number in range(64)}
    assert found == {
        "/sys/module/nvidia/refcnt": "",
        "/sys/module/nvidia_uvm/refcnt": "",
        f"{KERNEL}/a/nvidia.ko.zst": "",
        f"{KERNEL}/c/vfio-pci.ko": "",
        f"{KERNEL}/updates/radeon.ko": "",
        f"{KERNEL}/modules.dep": "a/nvidia.ko.zst: b/drm.ko\nc/vfio-pci.ko:\n",
        f"{KERNEL}/modules.builtin": "kernel/i915.ko\n",
        f"{KERNEL}/vmlinuz": "",
        "/var/lib/dkms/nvidia-580/1.2/6.12.9/dkms.conf": "",
        **images,
    }
    # What was not read to its end would say that a module is not installed.
    tree.file(f"{KERNEL}/modules.dep", "a/nvidia.ko.zst:\n".ljust((1 << 20) - 4096, "x"))
    assert f"{KERNEL}/modules.dep" not in kept_of_kernel(tree, KERNEL)


def test_lines_about_drivers_are_kept_of_configuration(tree: Tree) -> None:
    lines = "blacklist nouveau\n# blacklist xe\noptions nvidia NVreg=1\nblacklist pcspkr\n"
    lines += "install amdgpu /bin/false\ninstall radeon /usr/bin/mine\nalias i915 \\\noff\n"
    tree.file("/etc/modprobe.d/a.conf", lines)
    tree.file("/etc/modprobe.d/b.conf", "blacklist pcspkr\n")
    tree.file("/etc/modprobe.d/c.bak", "blacklist nouveau\n")
    tree.file("/etc/prime-discrete", "off\n")
    tree.file("/etc/prime/current_type", "nvidia\n")
    tree.file("/etc/udev/rules.d/50.rules", UDEV.format("", "0200") + UDEV.format("#", "0000"))
    tree.file("/etc/udev/rules.d/51.rules", UDEV.format("#", "0000"))
    tree.file("/etc/nvidia-container-runtime/config.toml",
              '[nvidia-container-runtime]\nlog = "/home/ada"\nmode = "cdi"\n')  # fmt: skip
    assert kept_of_kernel(tree, "/etc") == {
        "/etc/modprobe.d/a.conf": "blacklist nouveau\noptions nvidia NVreg=1\n"
        "install amdgpu /bin/false\nalias i915 off\n",
        "/etc/prime-discrete": "off\n",
        "/etc/udev/rules.d/50.rules": UDEV.format("", "0200"),
        "/etc/nvidia-container-runtime/config.toml": '[nvidia-container-runtime]\nmode = "cdi"\n',
    }


def test_of_firmware_a_few_names_are_kept(tree: Tree) -> None:
    for number in range(9):
        tree.file(f"{FIRMWARE}/amdgpu/a{number}.bin", "code")
    for name in ("gc_11_0_0_pfp.bin", "gc_11_0_1_pfp.bin", "gc_12_0_0_pfp.bin", "z.bin"):
        tree.file(f"{FIRMWARE}/amdgpu/{name}", "code")
    tree.file(f"{FIRMWARE}/nvidia/tu102/gsp.bin", "code")
    tree.file(f"{FIRMWARE}/nvidia/tu102/acr/ucode.bin", "code")
    tree.file(f"{FIRMWARE}/arm/mali/arch10.8/mali.bin", "code")
    tree.file(f"{FIRMWARE}/updates/amdgpu/y.bin", "code")
    tree.file(f"{FIRMWARE}/updates/amdgpu/z.bin", "code")
    names = [f"amdgpu/a{number}.bin" for number in range(8)]
    names += ["amdgpu/gc_11_0_0_pfp.bin", "amdgpu/gc_12_0_0_pfp.bin"]
    names += ["nvidia/tu102/gsp.bin", "arm/mali/arch10.8/mali.bin", "updates/amdgpu/y.bin"]
    assert kept_of_kernel(tree, FIRMWARE) == dict.fromkeys(
        (f"{FIRMWARE}/{name}" for name in (*names, "regulatory.db")), ""
    )
    tree.file(f"{FIRMWARE}/a.bin", "code")
    tree.file(f"{FIRMWARE}/b.bin", "code")
    assert kept_of_kernel(tree, f"{FIRMWARE}/a.", f"{FIRMWARE}/b.", f"{FIRMWARE}/r") == {
        f"{FIRMWARE}/a.bin": ""
    }


SECURE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def test_how_the_machine_was_started_is_kept(tree: Tree) -> None:
    assert kept_of_kernel(tree, "/proc", "/sys") == {}
    tree.file(
        "/proc/cmdline", "root=UUID=1 nomodeset pci=noats amdgpu.dc=0 xe.force=1 nova-core.a\n"
    )
    tree.file("/sys/module/firmware_class/parameters/path", "/home/ada/firmware\n")
    tree.file(SECURE, b"\x07\0\0\0\x01")
    tree.file("/sys/firmware/acpi/tables/PPTT", b"\xff")
    tree.file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    assert kept_of_kernel(tree, "/proc", "/sys") == {
        "/proc/cmdline": "nomodeset pci=noats amdgpu.dc=0 xe.force=1 nova-core.a\n",
        "/sys/module/firmware_class/parameters/path": "/elsewhere\n",
        SECURE: "\6\0\0\0\1",
        "/sys/firmware/acpi/tables/PPTT": "",
        "/sys/kernel/security/lockdown": "none [integrity] confidentiality\n",
    }
    tree.file(SECURE, b"\x07\0\0\0\0")
    tree.file("/sys/module/firmware_class/parameters/path", "\n")
    assert kept_of_kernel(tree, SECURE, "/sys/module") == {SECURE: "\6\0\0\0\0"}


@pytest.mark.parametrize(
    ("width", "space", "stands"),
    [
        (b"63\n", b"\x86\x80" + b"\xff" * 62, True),
        (b"63\n", b"\xff" * 64, False),
        (b"63\n", None, False),
        (b"16\n", b"\x86\x80", False),
    ],
)
def test_a_link_of_63_lanes_says_whether_the_device_answers(
    width: bytes, space: bytes | None, stands: bool, tree: Tree
) -> None:
    folder = "/sys/devices/pci0000:00/0000:00:01.0"
    tree.file(f"{folder}/class", "0x030000\n")
    if space is not None:
        tree.file(f"{folder}/config", space)
    found = dict(refused_files(machine(tree), {f"{folder}/current_link_width": width}))
    assert found == ({f"{folder}/config": b"answers\n"} if stands else {})


ELF = b"\x7fELF\x02\x01\x01" + bytes(9)


def kept_libraries(tree: Tree, **environ: str) -> Loader:
    return Loader(here := machine(tree, **environ), Scene(here))


def test_libraries_are_kept_by_name_version_and_head(tree: Tree) -> None:
    usr = "/usr/lib/x86_64-linux-gnu"
    tree.file(f"{usr}/libcuda.so.580.1", ELF + b"code")
    (tree.root / f".{usr}/libcuda.so.1").symlink_to("libcuda.so.580.1")
    tree.file("/home/ada/lib/libcuda.so.1", b"\xff" * 20)
    tree.file("/usr/local/cuda/compat/libcuda.so.1", "code")
    tree.file("/opt/rocm-7.0.0/lib/libamdhip64.so.7", ELF)
    for number in range(70):
        for kind in ("fallback", "lazy"):
            tree.file(f"/opt/rocm-7.0.0/lib/rocblas/library/{kind}_gfx{number + 900}.dat", "x")
    tree.file("/opt/rocm-7.0.0/lib/rocblas/library/TensileManifest.txt", "x")
    tree.file("/etc/ld.so.conf", "/usr/own\n/home/ada/lib\n")
    tree.file("/etc/ld.so.cache", "libcuda.so.1 libc.so.6 libze_intel_gpu.so.1 /home/ada")
    tree.file("/usr/lib/wsl/lib/libdxcore.so", "x")
    tree.file("/usr/lib/wsl/lib/nvidia-smi", "x")
    tree.file("/usr/lib/wsl/lib/d3d", "x")
    tree.file("/usr/lib/wsl/drivers/nv_dispi.inf/a", "x")
    tree.file("/usr/lib/wsl/drivers/libthing/a", "x")
    for number in range(300):
        tree.file(f"/usr/lib/wsl/lib/nvz{number:03}", "x")
    found = kept_libraries(tree, LD_LIBRARY_PATH="/home/ada/lib/:/home/ada/unused")
    kernels = "/opt/rocm-7.0.0/lib/rocblas/library/fallback_gfx{}.dat"
    assert found.environ == {"LD_LIBRARY_PATH": "/opt/venv/lib"}
    assert found.links == {f"{usr}/libcuda.so.1": "libcuda.so.580.1"}
    assert found.files == {
        "/opt/venv/lib/libcuda.so.1": b"",
        f"{usr}/libcuda.so.580.1": ELF,
        "/opt/rocm-7.0.0/lib/libamdhip64.so.7": ELF,
        **{kernels.format(900 + number): b"" for number in range(64)},
        "/usr/local/cuda/compat/libcuda.so.1": b"",
        "/etc/ld.so.conf": b"/usr/own\n",
        "/etc/ld.so.cache": b"libcuda.so.1\nlibze_intel_gpu.so.1\n",
        "/usr/lib/wsl/lib/libdxcore.so": b"",
        "/usr/lib/wsl/lib/nvidia-smi": b"",
        **{f"/usr/lib/wsl/lib/nvz{number:03}": b"" for number in range(253)},
        "/usr/lib/wsl/drivers/nv_dispi.inf": b"",
        "/usr/lib/libc.so.6": b"",
    }


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        ((), {}),
        (("/etc/NIXOS",), {"/etc/NIXOS"}),
        (("/run/opengl-driver/lib/x",), set()),
        (("/etc/NIXOS", "/run/opengl-driver/lib/x"),
         {"/etc/NIXOS", "/run/opengl-driver/lib/libc.so.6"}),
        (("/usr/lib/libm.so.6",), {"/usr/lib/libc.so.6"}),
    ],
)  # fmt: skip
def test_that_the_loaders_folders_were_looked_at_is_kept(
    files: tuple[str, ...], kept: set[str], tree: Tree
) -> None:
    for path in files:
        tree.file(path, "x")
    assert set(kept_libraries(tree).files) == set(kept)
    other = Machine(str(tree.root), {}, "darwin", "arm64")
    assert Loader(other, Scene(other)).files == {}


@pytest.mark.parametrize(
    ("folder", "kept"),
    [
        ("/usr/lib", "/usr/lib"), ("/lib64", "/lib64"), ("/nix/store", "/nix/store"),
        ("/home/ada/lib", "/opt/venv/lib"), ("/usrlib", "/opt/venv/lib"),
        ("/home/ada/v/lib/python3.12/site-packages/torch/lib",
         "/opt/venv/lib/python3.12/site-packages/torch/lib"),
    ],
)  # fmt: skip
def test_which_folders_are_named(folder: str, kept: str) -> None:
    assert public(folder) == kept


def test_a_name_that_is_no_text_is_kept_readable() -> None:
    assert joined(["a", "b\udcff"]) == b"a\nb?\n"


# The user, the distribution, and the variables.


def kept_account(tree: Tree, uid: str | None = "1000", **environ: str) -> dict[str, str]:
    found = account_files(here := machine(tree, **environ), Scene(here), uid)
    return {path: text.decode() for path, text in found.items()}


def test_of_accounts_the_groups_of_gpus_are_kept(tree: Tree) -> None:
    tree.file("/proc/self/status", "Uid:\t1001\t1\t1\t1\nGid:\t5\t5\t5\t5\nGroups:\t5\n")
    tree.file("/etc/passwd", "ada:x:1001:1001:Ada:/home/ada:/bin/sh\n")
    assert kept_account(tree) == {}
    tree.file("/etc/group", "render:x:104:bob,ada\nvideo:x:44:bob\nwheel:x:10:ada\nbad:x:x:ada\n")
    assert kept_account(tree) == {
        "/etc/passwd": "user:x:1000:1000::/:\n",
        "/etc/group": "render:x:104:user\nvideo:x:44:\n",
    }
    assert kept_account(tree, None) == {}


@pytest.mark.parametrize(
    ("label", "kept"),
    [
        ("system_u:system_r:container_t:s0:c1,c2", "system_u:system_r:container_t:s0\n"),
        ("snap.ada-tool.run (enforce)", "snap.app\n"),
        ("/usr/bin/ada (enforce)", "unconfined\n"),
        ("", None),
    ],
)
def test_how_a_process_is_confined(label: str, kept: str | None, tree: Tree) -> None:
    tree.file("/proc/self/attr/current", f"{label}\n")
    assert kept_account(tree).get("/proc/self/attr/current") == kept


def test_which_distribution_it_is(tree: Tree) -> None:
    tree.file("/usr/lib/os-release", 'ID=b\nNAME="x"\nHOME_URL=y\nVERSION_ID="1"\n')
    assert kept_account(tree) == {"/usr/lib/os-release": 'ID=b\nVERSION_ID="1"\n'}
    tree.file("/etc/os-release", "ID=a\nID_LIKE=c\nVARIANT_ID=d\nIDX=e\n")
    tree.file("/run/ostree-booted", "x")
    tree.file("/usr/bin/nvidia-modprobe", "x")
    assert kept_account(tree) == {
        "/etc/os-release": "ID=a\nID_LIKE=c\nVARIANT_ID=d\n",
        "/run/ostree-booted": "",
        "/usr/bin/nvidia-modprobe": "",
    }


def test_whether_the_daemon_of_mps_lives(tree: Tree) -> None:
    def kept(folder: str) -> dict[str, str]:
        return kept_account(tree, CUDA_MPS_PIPE_DIRECTORY=folder)

    assert kept("/home/ada/mps") == {}
    tree.file("/home/ada/mps/x", "")
    usual = "/tmp/nvidia-mps"
    assert kept("/home/ada/mps") == {f"{usual}/log": ""}
    assert kept("home/ada/mps") == {}
    tree.file("/home/ada/mps/control", "")
    tree.file("/home/ada/mps/nvidia-cuda-mps-control.pid", "77\n")
    tree.file("/proc/self/stat", "")
    gone = {
        f"{usual}/log": "",
        f"{usual}/control": "",
        f"{usual}/nvidia-cuda-mps-control.pid": "77\n",
        "/proc/self/status": "",
    }
    assert kept("/home/ada/mps") == gone
    tree.file("/proc/77/comm", "sh\n")
    assert kept("/home/ada/mps") == gone | {"/proc/77/comm": "nvidia-cuda-mps\n"}


@pytest.mark.parametrize(
    ("environ", "kept"),
    [
        ({"SSH_CONNECTION": "10.0.0.1 22"}, {"SSH_CONNECTION": "1"}),
        ({"CUDA_VERSION": "12.8.1"}, {"CUDA_VERSION": "12.8.1"}),
        ({"CUDA_VERSION": ""}, {"CUDA_VERSION": ""}),
        ({"CUDA_VERSION": "/home/ada"}, {"CUDA_VERSION": "?"}),
        ({"HSA_OVERRIDE_GFX_VERSION": "1" * 23}, {"HSA_OVERRIDE_GFX_VERSION": "1" * 23}),
        ({"HSA_OVERRIDE_GFX_VERSION": "1" * 24}, {"HSA_OVERRIDE_GFX_VERSION": "?"}),
        ({"CUDA_MPS_PIPE_DIRECTORY": "/x"}, {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps"}),
        ({"CUDA_MPS_PIPE_DIRECTORY": "x", "HOME": "/home/ada"}, {}),
    ],
)
def test_which_variables_are_kept(environ: dict[str, str], kept: Any, tree: Tree) -> None:
    assert account_variables(machine(tree, **environ)) == kept


def test_the_line_about_the_address_space(tree: Tree) -> None:
    assert address_space(machine(tree)) is None
    tree.file("/proc/self/limits", "Max cpu time 1\nMax address space 5 5 bytes\nMax x 1\n")
    assert address_space(machine(tree)) == "Max address space 5 5 bytes\n"


def test_which_nodes_are_asked_about(tree: Tree) -> None:
    tree.file("/sys/class/drm/renderD128/dev", "226:128\n")
    tree.file("/sys/class/drm/card0/dev", "226:0\n")
    tree.file("/sys/class/accel/accel3/dev", "261:3\n")
    assert node_access(machine(tree), ["/dev/kfd"], []) == {}
    tree.file("/dev/dri/renderD128", "")
    opens = {"/dev/dri/renderD128": "ok", "/dev/kfd": "missing"}
    known = Machine(str(tree.root), {}, "linux", "x86_64", access=opens)
    declared: Any = SimpleNamespace(nodes=["/dev/acme", "/dev/acme*", "/dev/acme#"])
    missing = {"/dev/acme": "missing", "/dev/accel/accel3": "missing"}
    assert node_access(known, ["/dev/kfd"], [declared]) == opens | missing
    # Where nothing of /dev was recorded, only what the recording itself says is known.
    (tree.root / "dev/dri/renderD128").unlink()
    (tree.root / "dev/dri").rmdir()
    (tree.root / "dev").rmdir()
    assert node_access(known, ["/dev/kfd"], [declared]) == opens


@pytest.mark.parametrize(
    ("word", "kept"),
    [("docker\n", "docker"), ("podman", "podman"), ("lxc-libvirt", "lxc"), ("ada", "other"),
     ("", "other")],
)  # fmt: skip
def test_which_engine_made_a_container(word: str, kept: str, tree: Tree) -> None:
    tree.file("/run/systemd/container", word)
    assert surroundings(machine(tree))["/run/systemd/container"] == kept


def test_of_mounts_those_of_devices_are_kept(tree: Tree) -> None:
    kept = "tmpfs /dev tmpfs rw,size=64k 0 0\nshm /dev/shm tmpfs rw,size=1g 0 0\n"
    tree.file("/proc/self/mounts", f"/dev/sda /home/ada ext4 rw 0 0\n{kept}x /dev/shm/a x rw 0 0\n")
    assert surroundings(machine(tree)) == {"/proc/self/mounts": kept}


def test_groups_of_processes_have_names_that_tell_nothing(tree: Tree) -> None:
    path = "system.slice/ada-job.service/docker-0123.scope/../deep"
    tree.file("/proc/self/cgroup", f"0::/{path}\n1:name=systemd:/x\n2:cpu,memory:/job_7/ada\n")
    tree.file("/sys/fs/cgroup/memory.max", "max\n")
    tree.file("/sys/fs/cgroup/system.slice/ada-job.service/memory.max", "5\n")
    tree.file("/sys/fs/cgroup/memory/job_7/memory.max", "7\n")
    assert cgroups(machine(tree), ["memory.max"]) == {
        "/proc/self/cgroup": "0::/system.slice/group2.service/docker-group3/group4\n"
        "2:memory:/job_group1/group2\n",
        "/sys/fs/cgroup/memory.max": "max\n",
        "/sys/fs/cgroup/system.slice/group2.service/memory.max": "5\n",
        "/sys/fs/cgroup/memory/job_group1/memory.max": "7\n",
    }
