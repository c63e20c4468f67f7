"""What waits for a boot: unfinished packages, requests for one, an initramfs that is too old."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from boot_cases import amd, grub, nvidia, then
from boot_machines import NEXT, NOW, Change, Computer
from test_next_boot import causes, given, predicted

from probe_changes.packages import unfinished, wants_boot
from probe_core.machine import Machine

MODPROBE = "/etc/modprobe.d/gpu.conf"
INITRAMFS = f"/boot/initrd.img-{NEXT}"
MADE = 1_700_000_000


def at(computer: Computer, path: str, seconds: int) -> None:
    """Set when a file was written, relative to the initramfs."""
    place = computer.tree.root / path.lstrip("/")
    os.utime(place, (MADE + seconds, MADE + seconds))


def dated(path: str, text: str, seconds: int) -> Change:
    def change(computer: Computer) -> None:
        computer.file(path, text)
        at(computer, path, seconds)

    return change


def prepared(root: Path, *changes: Change, make: Callable[[Path], Computer] = Computer) -> Computer:
    """A computer with initramfs of the same moment for both kernels; all else is older."""
    computer = make(root)
    grub()(computer)
    for path in computer.tree.root.glob("**/modprobe.d/*.conf"):
        os.utime(path, (MADE - 60, MADE - 60))
    for path in computer.tree.root.glob("lib/modules/**/*.ko"):
        os.utime(path, (MADE - 60, MADE - 60))
    for release in (NOW, NEXT):
        dated(f"/boot/initrd.img-{release}", "packed", 0)(computer)
    then(*changes)(computer)
    return computer


def hints(computer: Computer, code: str) -> list[str]:
    return [f["what"] for f in predicted(computer)["findings"] if f["code"] == code]


OLDER: dict[str, tuple[Change, ...]] = {
    "nouveau is forbidden since": (dated(MODPROBE, "blacklist nouveau\n", 5),),
    "an alias off": (dated("/usr/lib/modprobe.d/x.conf", "alias nouveau off\n", 5),),
    "vfio-pci takes this GPU": (dated(MODPROBE, "options vfio-pci ids=10de:2684,10de:22ba\n", 5),),
    "dracut is told to hold the module, which is newer": (
        dated("/etc/dracut.conf.d/n.conf", 'force_drivers+=" nvidia nvidia_drm "\n', -60),
        lambda c: at(c, f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko", 5),
    ),
    "initramfs-tools, and options of the module": (
        dated("/etc/initramfs-tools/modules", "# early\nnvidia_drm\n", -60),
        dated(MODPROBE, "options nvidia-drm modeset=1\n", 5),
    ),
}

UP_TO_DATE: dict[str, tuple[Change, ...]] = {
    "the line is older": (dated(MODPROBE, "blacklist nouveau\n", -5),),
    "of the same moment": (dated(MODPROBE, "blacklist nouveau\n", 0),),
    "of sound": (dated(MODPROBE, "options snd_hda_intel power_save=1\n", 5),),
    "a comment": (dated(MODPROBE, "# blacklist nouveau\n", 5),),
    "no .conf": (dated("/etc/modprobe.d/gpu.conf.bak", "blacklist nouveau\n", 5),),
    "written at each boot": (dated("/run/modprobe.d/gpu.conf", "blacklist nouveau\n", 5),),
    "vfio-pci takes another device": (dated(MODPROBE, "options vfio-pci ids=8086:1521\n", 5),),
    "options of a module that need not be inside": (
        dated(MODPROBE, "options nvidia NVreg_DynamicPowerManagement=0x02\n", 5),
    ),
    "akmods built the module afterwards": (
        lambda c: at(c, f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko", 5),
    ),
    "mkinitcpio's list is a comment": (
        dated("/etc/mkinitcpio.conf", "#MODULES=(nvidia)\nMODULES=()\n", -60),
        lambda c: at(c, f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko", 5),
    ),
    "the initramfs of the other kernel is older": (
        lambda c: at(c, f"/boot/initrd.img-{NOW}", -600),
        dated(MODPROBE, "blacklist nouveau\n", -5),
    ),
    "amdgpu's line, and no GPU of AMD": (dated(MODPROBE, "options amdgpu dc=1\n", 5),),
}


@pytest.mark.parametrize("name", OLDER)
def test_an_initramfs_that_is_too_old_is_a_hint(name: str, tmp_path: Path) -> None:
    computer = prepared(tmp_path, *OLDER[name])
    (what,) = hints(computer, "initramfs-older")
    assert what.startswith(f"{INITRAMFS} is older than /")
    assert predicted(computer)["status"] == "passed"


@pytest.mark.parametrize("name", UP_TO_DATE)
def test_an_initramfs_that_fits_is_silent(name: str, tmp_path: Path) -> None:
    assert hints(prepared(tmp_path, *UP_TO_DATE[name]), "initramfs-older") == []


def test_nouveau_of_an_older_initramfs_takes_the_card(tmp_path: Path) -> None:
    line = dated(MODPROBE, "blacklist nouveau\n", 5)
    computer = prepared(tmp_path, line)
    (hint,) = (f for f in predicted(computer)["findings"] if f["code"] == "initramfs-older")
    assert hint["why"] == f"{MODPROBE} is about nouveau; what the initramfs holds is not read"
    computer.booted(NEXT, driver="nouveau", modules=("nouveau",))
    assert given(computer) == ["nouveau-bound"]


def test_amdgpus_lines_count_for_its_cards(tmp_path: Path) -> None:
    computer = amd(tmp_path)
    grub(newest="6.12.9")(computer)
    dated("/boot/initrd.img-6.12.9", "packed", 0)(computer)
    dated(MODPROBE, "options amdgpu dc=1\n", 5)(computer)
    assert len(hints(computer, "initramfs-older")) == 1


def test_archs_initramfs_has_the_name_of_its_kernel(tmp_path: Path) -> None:
    computer = prepared(tmp_path, dated(MODPROBE, "blacklist nouveau\n", 5))
    computer.remove(INITRAMFS)
    computer.remove(f"/boot/vmlinuz-{NEXT}")
    computer.file(f"/lib/modules/{NEXT}/pkgbase", "linux\n")
    computer.file("/boot/vmlinuz-linux")
    dated("/boot/initramfs-linux.img", "packed", 0)(computer)
    (what,) = hints(computer, "initramfs-older")
    assert what.startswith("/boot/initramfs-linux.img is older")


UNREAD = {
    "/var/lib/rpm/rpmdb.sqlite": "rpm's database /var/lib/rpm/rpmdb.sqlite is not read",
    "/usr/lib/sysimage/rpm/Packages.db": "rpm's database /usr/lib/sysimage/rpm/Packages.db is not",
    "/var/lib/pacman/local/ALPM_DB_VERSION": "pacman's database /var/lib/pacman/local is not read",
    "/lib/apk/db/installed": "apk's database /lib/apk/db/installed is not read",
}


@pytest.mark.parametrize("path", UNREAD)
def test_a_database_that_is_no_text_is_told(path: str, tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    then(grub(), lambda c: c.file(path, "SQLite format 3"))(computer)
    answer = predicted(computer)
    (hint,) = (f for f in answer["findings"] if f["code"] == "next-boot-unknown")
    assert hint["why"].startswith(UNREAD[path])
    assert hint["why"].endswith(
        "whether a package of a driver or kernel is unfinished is not known"
    )
    assert answer["status"] == "passed"  # of the rest nothing is open


def test_where_dpkgs_list_tells_no_other_database_counts(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    then(grub(), lambda c: c.file("/var/lib/rpm/rpmdb.sqlite", "SQLite format 3"))(computer)
    computer.file("/var/lib/dpkg/status", "Package: vim\nStatus: install ok installed\n")
    assert hints(computer, "next-boot-unknown") == []


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"/run/reboot-required": "", "/run/reboot-required.pkgs": "linux-image-1\nlibc6\n"},
         ["linux-image-1 asks for a boot"]),
        ({"/run/reboot-required": ""}, ["a package asks for a boot"]),
        ({"/run/reboot-needed": "reboot\n"}, ["a package asks for a boot"]),
        ({"/run/reboot-required": "", "/run/reboot-required.pkgs": "libc6\ndbus\n"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_a_request_for_a_boot_is_no_fault(
    files: dict[str, str], told: list[str], tmp_path: Path
) -> None:
    computer = Computer(tmp_path)
    grub()(computer)
    for path, text in files.items():
        computer.file(path, text)
    assert hints(computer, "reboot-required") == told
    assert predicted(computer)["status"] == "passed"


@pytest.mark.parametrize("link", ["/system-update", "/etc/system-update"])
def test_packages_that_the_boot_installs_are_not_known(link: str, tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    then(grub(), lambda c: c.tree.link(link, "/var/lib/system-update"))(computer)
    answer = predicted(computer)
    assert (answer["status"], causes(answer)) == ("unknown", [])
    assert answer["reason"].startswith(f"{link}: the next boot installs packages")


def test_packages_are_told_where_the_kernel_is_not_known(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    then(nvidia(), lambda c: c.file("/sys/kernel/kexec_loaded", "1\n"))(computer)
    computer.file("/var/lib/dpkg/status", "Package: nvidia-dkms-580\nStatus: install ok unpacked\n")
    assert causes(predicted(computer)) == ["package-unfinished"]


def paragraph(name: str, status: str) -> str:
    return f"Package: {name}\nStatus: {status}\nDescription: a\n Package: other\n"


@pytest.mark.parametrize(
    ("paragraphs", "expected"),
    [
        ([("nvidia-dkms-580", "install ok unpacked")], [("nvidia-dkms-580", "unpacked")]),
        ([("rocm-core", "install reinstreq installed")], [("rocm-core", "to be reinstalled")]),
        (
            [("dkms", "install reinstreq half-installed"), ("vim", "install ok unpacked")],
            [("dkms", "half-installed")],
        ),
        ([("amdgpu-dkms", "reinstreq ok installed"), ("dkms", "install ok half-configured")],
         [("dkms", "half-configured")]),
        ([("nvidia-utils", "deinstall ok config-files")], []),
        ([("nvidia-utils", "unpacked"), ("nvidia-x", "a b unpacked c")], []),
    ],
)  # fmt: skip
def test_packages_that_dpkg_did_not_finish(
    paragraphs: list[tuple[str, str]], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = tmp_path / "var/lib/dpkg/status"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(paragraph(*pair) for pair in paragraphs))
    assert list(unfinished(Machine(str(tmp_path)))) == expected


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (None, ("/run/reboot-required", [])),
        ("", ("/run/reboot-required", [])),
        ("libc6 vim", None),
        (
            "libc6 linux-image-6.8 nvidia-dkms-580 linux-image-6.8",
            ("/run/reboot-required", ["linux-image-6.8", "nvidia-dkms-580"]),
        ),
    ],
)
def test_packages_that_ask_for_a_boot(
    listed: str | None, expected: tuple[str, list[str]] | None, tmp_path: Path
) -> None:
    machine = Machine(str(tmp_path))
    assert wants_boot(machine) is None
    (tmp_path / "run").mkdir()
    (tmp_path / "run/reboot-required").write_text("")
    if listed is not None:
        (tmp_path / "run/reboot-required.pkgs").write_text(listed)
    assert wants_boot(machine) == expected
