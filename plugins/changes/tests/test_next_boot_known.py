"""How surely the next kernel is known, and what is said where it is not."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boot_cases import bls, grub, nvidia, secure, systemd_boot, then
from boot_machines import NEXT, NOW, OLD, OTHER, OWNER, Computer, module
from test_next_boot import causes, predicted

from probe_changes.grub import GrubMenu
from probe_changes.kernels import Kernels, package_key, version_key
from probe_changes.loaders import next_boot
from probe_changes.module_file import read_module
from probe_changes.projection import Projection
from probe_core.machine import Machine
from probe_core.testing import Tree

UNKNOWN = "next-boot-unknown"


def found(computer: Computer) -> tuple[str | None, str]:
    machine = computer.machine()
    boot = next_boot(machine, Kernels(machine))
    return boot.release, boot.certainty


def codes(answer: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in answer["findings"]]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("6.8.0-62-generic", "6.8.0-100-generic"),
        ("6.9.12-200.fc40.x86_64", "6.10.3-200.fc40.x86_64"),
        ("6.13~rc1", "6.13"),
        ("6.12.9", "6.12.10"),
        ("6.1.0-9-amd64", "6.1.0-28-amd64"),
        ("5.14.0-427.el9", "5.14.0-427.13.1.el9"),
    ],
)
def test_numbers_are_compared_by_value(older: str, newer: str) -> None:
    assert version_key(older) < version_key(newer)


def test_the_name_of_an_entry_counts_before_its_version() -> None:
    assert package_key("f9e8-6.8.0-58.fc40") > package_key("a0b1-6.8.0-62.fc40")
    assert package_key("a0b1-6.8.0-62.fc40") > package_key("a0b1-6.8.0-9.fc40")


KNOWN = {
    "grub.cfg's first entry": (grub(), NEXT, "known"),
    "an entry by its place": (grub("1>1"), NOW, "known"),
    "an entry by title": (grub(f"1>Ubuntu, with Linux {NOW}"), NOW, "known"),
    "a saved entry that is gone: the first": (grub("${saved_entry}", saved="gone"), NEXT, "known"),
    "nothing saved: the first": (grub("${saved_entry}"), NEXT, "known"),
    "Fedora, an index": (bls(f"1-{NOW}", f"1-{NEXT}", saved="1"), NOW, "known"),
    "systemd-boot, saved": (
        systemd_boot(f"a {NOW}", f"b {NEXT}", LoaderEntryDefault="@saved",
                     LoaderEntrySaved="a.conf"), NOW, "known",
    ),
    "systemd-boot, preferred (v260)": (
        systemd_boot(f"a {NOW}", f"b {NEXT}", conf="preferred a*\n"), NOW, "known"
    ),
    "systemd-boot, entries closed": (systemd_boot(), NEXT, "likely"),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_the_next_kernel_is_found(name: str, tmp_path: Path) -> None:
    change, release, certainty = KNOWN[name]
    computer = Computer(tmp_path)
    change(computer)
    assert found(computer) == (release, certainty)


def test_a_unified_image_is_an_entry(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    systemd_boot()(computer)
    computer.file(f"/efi/EFI/Linux/0123-{NOW}.efi", "")
    assert found(computer) == (NOW, "known")


def test_archs_images_have_their_release_in_pkgbase(tmp_path: Path) -> None:
    computer = Computer.__new__(Computer)
    computer.tree = Tree(tmp_path)
    computer.environ, computer.access = {}, {}
    for base, release in (("linux", "6.17.1-arch1-1"), ("linux-lts", "6.12.51-1-lts")):
        computer.file(f"/usr/lib/modules/{release}/pkgbase", f"{base}\n")
        computer.file(f"/usr/lib/modules/{release}/vmlinuz", "")
        computer.file(f"/boot/vmlinuz-{base}", "")
    assert found(computer) == ("6.12.51-1-lts", "likely")
    computer.file(
        "/boot/grub/grub.cfg",
        "set default=\"0\"\nmenuentry 'Arch Linux' {\n linux /vmlinuz-linux rw\n}\n",
    )
    assert found(computer) == ("6.17.1-arch1-1", "known")


OSTREE = "set default=0\nmenuentry 'Fedora 42' {{\n linux /ostree/f-1/vmlinuz-{} ostree={}\n}}\n"


@pytest.mark.parametrize(
    ("slot", "certainty"), [("/ostree/boot.0/f/1/0", "known"), ("/ostree/boot.0/f/2/0", "unknown")]
)
def test_another_deployment_is_not_read(tmp_path: Path, slot: str, certainty: str) -> None:
    computer = Computer(tmp_path)
    computer.file("/proc/cmdline", "ro ostree=/ostree/boot.1/f/1/0\n")
    computer.file("/boot/grub2/grub.cfg", OSTREE.format(NEXT, slot))
    assert found(computer)[1] == certainty


def test_a_new_kernel_of_fedora_is_likely_the_saved_entry(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.file("/etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_DEFAULT=saved\n")
    assert found(computer) == (None, "unknown")
    computer.file("/etc/sysconfig/kernel", "UPDATEDEFAULT=yes\nDEFAULTKERNEL=kernel-core\n")
    assert found(computer) == (NEXT, "likely")


def test_a_raspberry_pi_boots_the_kernel_of_its_board(tmp_path: Path) -> None:
    computer = Computer.__new__(Computer)
    computer.tree = Tree(tmp_path)
    computer.environ, computer.access = {}, {}
    computer.tree.release("6.6.31+rpt-rpi-v8")
    for release in ("6.6.31+rpt-rpi-v8", "6.12.25+rpt-rpi-v8", "6.12.25+rpt-rpi-2712"):
        computer.file(f"/boot/vmlinuz-{release}", "")
    assert found(computer) == ("6.12.25+rpt-rpi-v8", "likely")


ORDERED = {
    "newest by number": ({}, "6.8.0-1042-kvm", "likely"),
    "Ubuntu's order of kinds": ({"grub": 'GRUB_FLAVOUR_ORDER="generic"'}, NEXT, "likely"),
    "in a file of its own": (
        {"grub.d/99-kernel.cfg": "GRUB_FLAVOUR_ORDER=lowlatency generic"}, NEXT, "likely",
    ),
    "a kind that is not installed": (
        {"grub": "GRUB_FLAVOUR_ORDER=generic-64k"}, "6.8.0-1042-kvm", "likely"
    ),
    "one image before all": (
        {"grub": f"GRUB_TOP_LEVEL=/boot/vmlinuz-{NOW}"}, NOW, "likely"
    ),
    "a later file decides of the default": (
        {"grub.d/50-cloud.cfg": f'GRUB_DEFAULT="1>Ubuntu, with Linux {NOW}"'}, NOW, "likely",
    ),
    "one that grub-mkconfig reads not": (
        {"grub.d/50-cloud.cfg.bak": f'GRUB_DEFAULT="1>Ubuntu, with Linux {NOW}"'},
        "6.8.0-1042-kvm", "likely",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_the_order_of_a_closed_menu_is_the_configured_one(name: str, tmp_path: Path) -> None:
    files, release, certainty = ORDERED[name]
    computer = Computer(tmp_path)
    computer.kernel("6.8.0-1042-kvm")
    computer.file("/etc/default/grub", "GRUB_DEFAULT=0\n")
    for path, text in files.items():
        computer.file(f"/etc/default/{path}", f"GRUB_DEFAULT=0\n{text}\n")
    assert found(computer) == (release, certainty)


def test_why_a_module_is_not_loaded_is_told_without_secure_boot(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    grub(options="module.sig_enforce=1")(computer)
    (finding,) = (f for f in predicted(computer)["findings"] if f["severity"] == "error")
    assert finding["why"].endswith(f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko has no signature")


UNSEEN = {
    "kexec": ("/sys/kernel/kexec_loaded", "1\n", "another kernel is loaded for kexec"),
    "ostree": ("/run/ostree/staged-deployment", "x", "an update waits"),
    "another system": (
        "/boot/grub/grub.cfg",
        "set default=0\nmenuentry 'Windows' {\n chainloader /EFI/Microsoft/bootmgfw.efi\n}\n",
        "starts no kernel of this system",
    ),
    "saved, and grubenv is closed": (
        "/etc/default/grub", "GRUB_DEFAULT=saved\n", "grubenv is closed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSEEN)
def test_what_cannot_be_known_is_told(name: str, tmp_path: Path) -> None:
    path, text, words = UNSEEN[name]
    computer = Computer(tmp_path)
    computer.file(path, text)
    answer = predicted(computer)
    assert (answer["status"], codes(answer)) == ("unknown", [UNKNOWN])
    assert words in answer["reason"]


def test_of_an_unknown_boot_each_kernel_is_judged(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.without_nvidia(NEXT)
    computer.file("/sys/kernel/kexec_loaded", "1\n")
    answer = predicted(computer)
    assert causes(answer) == ["module-missing-for-kernel"]
    (finding,) = (f for f in answer["findings"] if f["severity"] == "warning")
    assert finding["what"].startswith(f"If Linux {NEXT} boots: ")


def test_a_container_has_no_boot(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.container()
    answer = predicted(computer)
    assert (answer["status"], codes(answer)) == ("not_applicable", [UNKNOWN])


def test_the_boot_that_mends_is_told(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    then(grub(), nvidia(version="580.105.08"))(computer)
    computer.libraries("580.105.08")
    answer = predicted(computer)
    assert codes(answer) == ["next-kernel", "mended-by-next-boot"]
    assert "version-mismatch" in answer["findings"][1]["what"]


def test_akmods_builds_at_the_boot(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    grub()(computer)
    computer.without_nvidia(NEXT)
    computer.file("/usr/src/akmods/nvidia-kmod.latest", "")
    (finding,) = (f for f in predicted(computer)["findings"] if f["severity"] == "warning")
    assert "akmods builds it at the boot; a second one may be needed" in finding["why"]


def test_a_list_of_modules_that_is_cut_says_nothing(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    grub()(computer)
    computer.without_nvidia(NEXT)
    computer.file(f"/lib/modules/{NEXT}/modules.dep", "kernel/a/very/long/name.ko:\n" * 40_000)
    answer = predicted(computer)
    assert (answer["status"], causes(answer)) == ("unknown", [])
    assert "are not seen whole" in answer["reason"]


def test_zstd_is_not_known_to_be_unsigned(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    secure(OWNER)(computer)
    computer.remove(f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko")
    computer.file(f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko.zst", b"\x28\xb5\x2f\xfd")
    computer.listed(NEXT, "updates/dkms/nvidia.ko.zst")
    computer.file("/var/lib/dkms/nvidia/580.95.05/" + NEXT + "/x86_64/module/nvidia.ko.zst", "")
    answer = predicted(computer)
    assert causes(answer) == []
    assert answer["status"] == "unknown"
    assert "whether nvidia is signed is not known" in answer["reason"]


def test_a_key_that_nobody_can_look_up_is_not_known(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    secure(OTHER)(computer)
    answer = predicted(computer)
    assert (causes(answer), answer["status"]) == ([], "unknown")
    assert "whether nvidia's key is enrolled is not known" in answer["reason"]


@pytest.mark.parametrize(("name", "is_noted"), [("amdgpu", True), ("amd", True), ("nvidia", False)])
def test_what_is_not_known_counts_for_devices_that_are_here(name: str, is_noted: bool) -> None:
    device = {"vendor": "amd", "driver": {"name": "amdgpu"}}
    processor = {"vendor": "intel", "driver": None}
    request = SimpleNamespace(report={"devices": [processor, device]})
    projection: Any = SimpleNamespace(_request=request, unknown=[])
    Projection._note(projection, name, "it is not known")
    assert projection.unknown == ["it is not known"] * is_noted


@pytest.mark.parametrize(
    ("built", "version"),
    [
        (["nvidia/580.95.05/6.8/x86_64/module"], "580.95.05"),
        (["nvidia-open/580.95.05/6.8/x86_64/module"], "580.95.05"),
        (["nvidiafb/1/6.8/x86_64/module", "zfs/2/6.8/x86_64/module"], ""),
        (["nvidia/580.95.05/6.8/x86_64/log"], ""),
        (["nvidia/580.95.05/6.9/x86_64/module"], ""),
        (["nvidia/570/6.8/x86_64/module", "nvidia/580/6.8/x86_64/module"], ""),
        (["nvidia/570/6.9/x86_64/module", "nvidia/580/6.8/x86_64/module"], "580"),
        (["nvidia/570/6.9/x86_64/module", "nvidia-open/580/6.8/a/log",
          "nvidia-open/580/6.8/x86_64/module"], "580"),
    ],
)  # fmt: skip
def test_the_version_that_dkms_built(built: list[str], version: str, tmp_path: Path) -> None:
    for folder in built:
        (tmp_path / "var/lib/dkms" / folder).mkdir(parents=True)
        (tmp_path / "var/lib/dkms" / folder / "nvidia.ko").write_text("")
    projection: Any = Projection.__new__(Projection)
    projection._machine, projection.release = Machine(str(tmp_path)), "6.8"
    assert projection._in_dkms() == version


def test_a_half_configured_package_is_a_warning(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    grub()(computer)
    computer.file(
        "/var/lib/dpkg/status",
        "Package: nvidia-dkms-580\nStatus: install ok half-configured\nVersion: 1\n\n"
        "Package: vim\nStatus: install ok half-configured\n\n"
        "Package: nvidia-utils-580\nStatus: install ok installed\n",
    )
    answer = predicted(computer)
    assert causes(answer) == ["package-unfinished"]
    assert answer["findings"][-1]["evidence"] == "nvidia-dkms-580"


SUPPOSED = {
    "a branch that dropped Pascal": ("10de:1b80", "595", ["legacy-branch"]),
    "the last branch of Pascal": ("10de:1b80", "580", []),
    "a branch before Ada": ("10de:2684", "515", ["driver-too-old-for-gpu"]),
    "Ada on a newer one": ("10de:2684", "595.45.04", []),
}


@pytest.mark.parametrize("name", SUPPOSED)
def test_a_supposed_driver_is_judged_by_the_same_rules(name: str, tmp_path: Path) -> None:
    ids, driver, told = SUPPOSED[name]
    assert causes(predicted(Computer(tmp_path, ids), driver=driver)) == told


def test_a_supposed_kernel_need_not_be_next(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    grub(newest=NOW)(computer)
    computer.without_nvidia(NEXT)
    assert causes(predicted(computer)) == []
    assert causes(predicted(computer, kernel=NEXT)) == ["module-missing-for-kernel"]
    assert causes(predicted(computer, kernel="6.8.0-62")) == ["module-missing-for-kernel"]


@pytest.mark.heavy
def test_garbage_in_every_file_raises_nothing(tmp_path: Path) -> None:
    chooser = random.Random(3)
    computer = Computer(tmp_path)
    then(secure(OWNER), bls(f"1-{NEXT}"), systemd_boot(f"a {NOW}"))(computer)
    paths = [
        "/boot/grub/grub.cfg", "/boot/grub/grubenv", "/boot/grub2/grub.cfg", "/boot/grub2/grubenv",
        f"/boot/loader/entries/1-{NEXT}.conf", "/efi/loader/entries/a.conf", "/etc/default/grub",
        "/efi/loader/loader.conf", "/var/lib/dpkg/status",
        f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko", f"/lib/modules/{NEXT}/modules.dep",
        "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
    ]  # fmt: skip
    for path in paths * 2:
        computer.file(path, chooser.randbytes(chooser.choice((1, 40, 5000))))
        assert predicted(computer)["status"] in ("passed", "failed", "unknown")


def test_a_signature_that_is_cut_is_a_problem(tmp_path: Path) -> None:
    whole = module("580.95.05", signed=OWNER)
    machine = Machine(str(tmp_path))
    for cut in range(1, len(whole), 7):
        (tmp_path / "x.ko").write_bytes(whole[:cut] + whole[-28:])
        read_module(machine, "/x.ko")  # raises nothing
    (tmp_path / "x.ko").write_bytes(whole)
    read = read_module(machine, "/x.ko")
    assert (read.version, read.signer, read.problem) == ("580.95.05", OWNER, "")


def test_a_menu_of_submenus_has_an_end() -> None:
    menu = GrubMenu("submenu 'a' {\n" * 2000)
    assert menu.entry("0") is None
    assert menu.entry("0>0>0>0") is None


def test_an_older_image_is_not_taken_for_the_newest(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.kernel(OLD)
    computer.file(f"/boot/vmlinuz-{NEXT}.old", "")
    computer.file("/etc/default/grub", "GRUB_DEFAULT=0\n")
    assert found(computer) == (NEXT, "likely")


def test_a_kernel_that_is_not_installed_has_unknown_modules(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    answer = predicted(computer, kernel="6.18.1")
    assert (causes(answer), answer["status"]) == ([], "unknown")
    assert answer["reason"] == "Linux 6.18.1 is not installed: its modules are not known"


def test_a_kernel_without_initramfs_is_a_warning(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    grub()(computer)
    computer.file(f"/boot/initrd.img-{NOW}", "")
    assert causes(predicted(computer)) == ["initramfs-missing"]
    computer.file(f"/boot/initrd.img-{NEXT}", "")
    assert causes(predicted(computer)) == []


def test_a_supposed_driver_is_judged_in_a_container(tmp_path: Path) -> None:
    computer = Computer(tmp_path, "10de:1b80")
    computer.container()
    assert causes(predicted(computer, driver="595")) == ["legacy-branch"]


def test_a_boot_that_only_mends_has_passed(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    then(grub(), nvidia(version="580.105.08"))(computer)
    computer.libraries("580.105.08")
    assert predicted(computer)["status"] == "passed"


def installed(root: Path, *releases: str) -> Computer:
    computer = Computer.__new__(Computer)
    computer.tree = Tree(root)
    computer.environ, computer.access = {}, {}
    computer.tree.release(releases[-1])
    for release in releases:
        computer.file(f"/lib/modules/{release}/modules.dep", "kernel/fs/ext4/ext4.ko:\n")
    return computer


NAMED = {
    "Alpine": (("6.12.40-0-lts", "6.12.52-0-lts"), ("vmlinuz-lts",), "6.12.52-0-lts"),
    "Slackware": (("6.12.1",), ("vmlinuz-huge-6.12.1", "vmlinuz-generic-6.12.1"), "6.12.1"),
    "an image for Secure Boot": ((NEXT,), (f"vmlinuz-{NEXT}", f"vmlinuz-{NEXT}.efi.signed"), NEXT),
    "a custom one": (("6.12.1", "6.12.2-rt"), ("vmlinuz-6.12.1", "vmlinuz-rt"), "6.12.2-rt"),
}


@pytest.mark.parametrize("name", NAMED)
def test_an_image_that_is_not_named_as_its_modules_is_known(name: str, tmp_path: Path) -> None:
    releases, images, release = NAMED[name]
    computer = installed(tmp_path, *releases)
    for image in images:
        computer.file(f"/boot/{image}")
    assert found(computer) == (release, "likely")


def test_a_menu_names_alpines_image(tmp_path: Path) -> None:
    computer = installed(tmp_path, "6.12.52-0-lts")
    computer.file(
        "/boot/grub/grub.cfg",
        "set default=0\nmenuentry 'Alpine, with Linux lts' {\n linux /boot/vmlinuz-lts ro\n}\n",
    )
    assert found(computer) == ("6.12.52-0-lts", "known")


def test_modules_without_a_folder_are_not_known(tmp_path: Path) -> None:
    computer = Computer(tmp_path)
    computer.file("/etc/default/grub", "GRUB_DEFAULT=0\n")
    computer.file("/boot/vmlinuz-6.9.0-custom")
    answer = predicted(computer)
    assert (answer["status"], causes(answer)) == ("unknown", [])
    assert answer["reason"] == "no folder of modules is seen for Linux 6.9.0-custom"
