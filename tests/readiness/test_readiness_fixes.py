"""The exact fix of a cause on each distribution, engine and orchestrator; nothing is guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import test_readiness_causes as causes
from readiness_nodes import Node, amd, intel, nvidia

from probe_core.machine import Machine, surroundings
from probe_core.machine.engines import option
from probe_core.model.causes import CAUSES
from probe_core.model.fix import Command
from probe_core.readiness.distributions import (
    COMMANDS,
    FAMILIES,
    VARIANTS,
    family_of,
    os_release,
)
from probe_core.readiness.fixes import IN_CONTAINER, ON_HOST, fix_for, fix_of, meaning_of
from probe_core.readiness.scene import Scene


def fix(node: Node, release: str = "") -> str:
    """Return the fix that the report gives on this distribution."""
    if release:
        node.file("/etc/os-release", release)
    report = node.report()
    findings = [f for f in report["findings"] if f["step"]]
    return str(findings[0]["fix"])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("ID=ubuntu\n", "`sudo ubuntu-drivers install`, then reboot"),
        ('ID=pop\nID_LIKE="ubuntu debian"\n', "`sudo ubuntu-drivers install`, then reboot"),
        ("ID=debian\n", "`sudo apt install nvidia-driver` (section non-free), then reboot"),
        (
            "ID=fedora\n",
            "`sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda` (RPM Fusion), then reboot",
        ),
        (
            'ID="rocky"\nID_LIKE="rhel centos fedora"\n',
            (
                "`sudo dnf module install nvidia-driver:open-dkms` (NVIDIA's repository, and EPEL"
                " for dkms), then reboot"
            ),
        ),
        (
            "ID=arch\n",
            "`sudo pacman -S nvidia-open` (before Turing: nvidia-580xx-dkms), then reboot",
        ),
        (
            'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n',
            (
                "`sudo zypper install nvidia-open-driver-G06-signed-kmp-meta` (NVIDIA's"
                " repository), then reboot"
            ),
        ),
        ("ID=alpine\n", "use a distribution with glibc: NVIDIA's driver has no build for musl"),
        (
            "ID=nixos\n",
            (
                "in /etc/nixos/configuration.nix set `services.xserver.videoDrivers ="
                ' [ "nvidia" ];`, then `sudo nixos-rebuild boot` and reboot'
            ),
        ),
        ("ID=haiku\n", "install NVIDIA's driver, then reboot"),
    ],
)
def test_the_driver_by_distribution(release: str, expected: str, tmp_path: Path) -> None:
    assert fix(causes.no_module_on_disk(tmp_path), release) == expected


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            causes.module_of_another_kernel,
            (
                "`sudo apt install linux-headers-6.8.0-60-generic && sudo dkms autoinstall`,"
                " then reboot"
            ),
        ),
        (
            causes.key_was_rejected,
            "`sudo mokutil --import /var/lib/shim-signed/mok/MOK.der`, reboot, enrol the key",
        ),
        (
            causes.blacklisted_by_prime_select,
            (
                "remove the line `blacklist nvidia` from /lib/modprobe.d/blacklist-nvidia.conf,"
                " `sudo update-initramfs -u`, then reboot"
            ),
        ),
        (
            causes.blacklisted_by_the_command_line,
            (
                "remove modprobe.blacklist=nouveau,nvidia from /etc/default/grub,"
                " `sudo update-grub`, then reboot"
            ),
        ),
        (
            causes.nomodeset,
            "remove nomodeset from /etc/default/grub, `sudo update-grub`, then reboot",
        ),
        (
            causes.amdgpu_without_firmware,
            "`sudo apt install linux-firmware`, then `sudo update-initramfs -u`, then reboot",
        ),
        (causes.kepler_and_a_new_driver, "`sudo apt install nvidia-driver-470`, then reboot"),
        (
            causes.no_gsp_firmware,
            (
                "`sudo apt install --reinstall nvidia-firmware-580-580.95.05`, then"
                " `sudo update-initramfs -u`, then reboot"
            ),
        ),
        (
            causes.radeon,
            (
                "add amdgpu.si_support=1 radeon.si_support=0 to GRUB_CMDLINE_LINUX in"
                " /etc/default/grub, `sudo update-grub`, then reboot"
            ),
        ),
        (
            causes.upgraded_without_a_restart,
            (
                "`sudo reboot`; or, with no GPU program running: `sudo rmmod nvidia_uvm nvidia_drm"
                " nvidia_modeset nvidia && sudo modprobe nvidia`"
            ),
        ),
        (
            causes.cuda_without_nvml,
            "`sudo apt install libnvidia-compute-580 nvidia-utils-580`",
        ),
        (
            causes.no_rocm,
            "`sudo apt install rocm` (AMD's repository); wheels of PyTorch bring their own",
        ),
        (causes.not_in_render, "`sudo usermod -aG render,video $USER`, then log in again"),
        (
            causes.nothing_known_of_modules,
            "`sudo modprobe nvidia`; where that fails: `sudo ubuntu-drivers install`, then reboot",
        ),
    ],
)
def test_each_cause_on_ubuntu(make: causes.Machine, expected: str, tmp_path: Path) -> None:
    assert fix(make(tmp_path), "ID=ubuntu\n") == expected


def test_a_container_is_given_the_device_by_its_own_engine(tmp_path: Path) -> None:
    docker = causes.docker_without_gpus(tmp_path / "docker")
    assert "`docker run --gpus all`" in fix(docker, "ID=ubuntu\n")
    podman = causes.without_nodes(amd(tmp_path / "podman"))
    podman.remove("/.dockerenv")
    podman.container("/run/.containerenv")
    text = fix(podman)
    assert "`podman run --device=/dev/kfd --device=/dev/dri --group-add keep-groups`" in text
    docker = causes.without_nodes(amd(tmp_path / "amd"))
    text = fix(docker)
    assert "--device=/dev/kfd --device=/dev/dri --group-add $(stat -c %g /dev/kfd)`" in text
    assert option("google", "docker") == "`docker run --device={node}`"


def test_nothing_is_installed_inside_a_container(tmp_path: Path) -> None:
    node = causes.container_without_libraries(tmp_path)
    node.container()
    assert fix(node, "ID=ubuntu\n") == (
        "start the container with `docker run --gpus all`, or CDI: `--device nvidia.com/gpu=all`;"
        " the host's nvidia-container-toolkit adds the libraries"
    )


def test_the_families_of_commands_are_known() -> None:
    families = {family for commands in COMMANDS.values() for family in commands}
    assert families <= {*FAMILIES.values(), *VARIANTS}
    assert set(VARIANTS.values()) <= {*FAMILIES.values(), "rhel10"}


RELEASES = (
    "ID=ubuntu",
    "ID=debian",
    "ID=fedora",
    "ID=rocky\nID_LIKE=rhel",
    "ID=rhel\nVERSION_ID=10.0",
    "ID=arch",
    "ID=opensuse-leap",
    "ID=nixos",
    "ID=alpine",
    "ID=haiku",
)
ENGINES = ("", "/.dockerenv", "/run/.containerenv", "/.singularity.d")


@pytest.mark.heavy
@pytest.mark.parametrize("vendor", ["nvidia", "amd", "intel"])
@pytest.mark.parametrize("engine", ENGINES)
def test_no_fix_of_any_cause_raises_or_keeps_a_brace(
    engine: str, vendor: str, tmp_path: Path
) -> None:
    node = {"nvidia": nvidia, "amd": amd, "intel": intel}[vendor](tmp_path)
    if engine:
        node.file(engine)
    report = node.report()
    device = report["devices"][0]
    for release in RELEASES:
        node.file("/etc/os-release", f"{release}\n")
        scene = Scene(node.machine())
        for code, cause in CAUSES.items():
            step: Any = {"step": cause.step, "status": "broken", "evidence": "", "code": code}
            text = fix_of(device, step, scene) + meaning_of(device, step, scene)
            assert text, code
            resource = "limits: {" if code == "pod-without-gpu" else ""
            assert "{" not in (text.replace(resource, "") if resource else text), (code, text)


def test_every_topic_of_a_fix_has_commands() -> None:
    parts = [part for cause in CAUSES.values() for fix in cause.fixes.values() for part in fix]
    topics = {part for part in parts if isinstance(part, Command)}
    assert {topic for topic in topics if "{" not in topic} <= set(COMMANDS)


def test_every_situation_of_a_fix_is_one_that_is_looked_for() -> None:
    situations = {name for cause in CAUSES.values() for name in cause.fixes}
    engines = {*surroundings.ENGINES, "kubernetes", "apptainer", "flatpak", "snap", "container"}
    without_nvidia = {"pod without NVIDIA", "container without NVIDIA"}
    assert situations <= {*ON_HOST, *IN_CONTAINER, *engines, *without_nvidia}


@pytest.mark.parametrize("text", ["", "ID\n=\nID==x\n", "\0\0", 'ID="ubuntu', "ID_LIKE=ubuntu"])
def test_a_damaged_os_release_is_read_or_ignored(text: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text(text)
    assert family_of(os_release(Machine(str(tmp_path)))) in ("", "ubuntu")


def test_the_file_below_usr_counts_where_etc_has_none(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.file("/usr/lib/os-release", "ID=fedora\n")
    assert Scene(node.machine()).family == "fedora"


def test_a_cause_of_others_has_no_fix_of_ours(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    device: Any = node.device()
    step: Any = {"step": "driver", "status": "broken", "evidence": "", "code": "acme-broken"}
    assert fix_for(device, step, Scene(node.machine())) is None
