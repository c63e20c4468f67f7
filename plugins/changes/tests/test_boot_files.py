"""What is read of the files of boot loaders, kernels, modules and packages, value by value."""

from __future__ import annotations

import gzip
import lzma
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boot_machines import MARK, OWNER, module, signature

from probe_changes import module_file
from probe_changes.grub import BootEntry, GrubMenu, deployment_of, grub_environment
from probe_changes.initramfs import _lists_own, stale
from probe_changes.kernels import Kernels, version_key
from probe_changes.loaders import NextBoot, next_boot
from probe_changes.modprobe import files, lines
from probe_changes.module_file import ModuleFile, parts_of_signer, read_module, signer_of
from probe_changes.packages import offline_update, unfinished, unread_database
from probe_changes.projection import Projection, _has_key, _is_enforced, _is_of_owner
from probe_core.machine import Machine
from probe_core.testing import Tree

NOW, NEXT = "6.8.0-60-generic", "6.8.0-62-generic"
EFIVARS = "/sys/firmware/efi/efivars/{}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


def machine_with(root: Path, contents: Mapping[str, str | bytes]) -> Machine:
    tree = Tree(root)
    for path, content in contents.items():
        tree.file(path, content)
    return Machine(str(root), {}, os="linux", arch="x86_64")


def boot_of(root: Path, contents: Mapping[str, str | bytes]) -> NextBoot:
    images = {f"/boot/vmlinuz-{release}": "" for release in (NOW, NEXT)}
    machine = machine_with(root, {**images, **contents})
    return next_boot(machine, Kernels(machine))


def of_firmware(text: str) -> bytes:
    return b"\x07\0\0\0" + f"{text}\0".encode("utf-16-le")


def systemd_boot(conf: str = "", **variables: str) -> dict[str, str | bytes]:
    found: dict[str, str | bytes] = {EFIVARS.format("LoaderInfo"): of_firmware("systemd-boot 257")}
    found |= {EFIVARS.format(name): of_firmware(text) for name, text in variables.items()}
    for name, release in (("a one", NOW), ("b", NEXT)):
        text = f"version {release}\nlinux /id/{release}/linux\noptions ro\n"
        found[f"/efi/loader/entries/{name}.conf"] = text
    return {**found, "/efi/loader/loader.conf": conf}


MENU = f"menuentry 'One' {{\n linux /vmlinuz-{NOW} ro $x quiet\n}}\n"
NEWEST = f"/boot/vmlinuz-{NEXT} is the newest image"
NO_ENTRIES = "grub.cfg, which has the entries, is closed"
CLOSED = "no image of a kernel is seen in /boot or /lib/modules"
SAVED = "/etc/default/grub: GRUB_DEFAULT=saved, and grubenv is closed"
NIX = "/nix/var/nix/profiles/system/kernel-modules/lib/modules"

EVIDENCE: dict[str, tuple[dict[str, str | bytes], str | None, str, str]] = {
    "kexec": (
        {"/sys/kernel/kexec_loaded": "1\n"}, None, "unknown",
        "/sys/kernel/kexec_loaded: another kernel is loaded for kexec",
    ),
    "no kexec": ({"/sys/kernel/kexec_loaded": "0\n"}, NEXT, "likely",
                 NEWEST),
    "NixOS": ({"/etc/NIXOS": "", f"{NIX}/6.1/x": ""}, "6.1", "likely", f"{NIX} has 6.1"),
    "NixOS, two trees": (
        {"/etc/NIXOS": "", f"{NIX}/6.1/x": "", f"{NIX}/6.2/x": "", f"{NIX}/6.3/x": ""},
        None, "unknown", f"{NIX} has 6.1, 6.2",
    ),
    "NixOS, no tree": ({"/etc/NIXOS": ""}, None, "unknown", f"{NIX} is empty or closed"),
    "the default of a menu": (
        {"/boot/grub/grub.cfg": MENU}, NOW, "known", "/boot/grub/grub.cfg: default=0, 'One'",
    ),
    "an entry for one boot": (
        {"/boot/grub/grub.cfg": f"set default=7\n{MENU}", "/boot/grub/grubenv": "next_entry=One\n"},
        NOW, "known", "/boot/grub/grubenv: next_entry=One, 'One'",
    ),
    "defaults that differ": (
        {"/boot/grub/grub.cfg": f'set default="0"\nset default="1"\n{MENU}'}, NOW, "likely",
        "/boot/grub/grub.cfg: default=0, 'One'",
    ),
    "nothing saved": (
        {"/boot/grub2/grub.cfg": f'set default="${{saved_entry}}"\n{MENU}',
         "/boot/grub2/grubenv": "x=1\n"},
        NOW, "known", "/boot/grub2/grubenv: saved_entry=(none), 'One'",
    ),
    "a saved entry that is closed": (
        {"/boot/grub2/grub.cfg": f'set default="${{saved_entry}}"\n{MENU}'}, None, "unknown", SAVED,
    ),
    "packages save their kernel": (
        {"/etc/default/grub": "GRUB_DEFAULT=saved\n",
         "/etc/sysconfig/kernel": 'UPDATEDEFAULT="yes"\n'},
        NEXT, "likely",
        f"{SAVED}; /etc/sysconfig/kernel: UPDATEDEFAULT=yes; {NEWEST}",
    ),
    "packages do not": (
        {"/etc/default/grub": "GRUB_DEFAULT=saved\n",
         "/etc/sysconfig/kernel": "UPDATEDEFAULT=no\n"}, None, "unknown", SAVED,
    ),
    "an empty menu": (
        {"/boot/grub/grub.cfg": "# nothing\n"}, NEXT, "likely",
        f"/boot/grub/grub.cfg: default=0: no entry of it is seen; {NEWEST}",
    ),
    "a closed menu": (
        {"/etc/default/grub": "GRUB_TIMEOUT=5\n"}, NEXT, "likely",
        f"grub.cfg is closed; {NEWEST}",
    ),
    "a closed menu, nothing saved": (
        {"/etc/default/grub": "GRUB_DEFAULT=saved\n", "/boot/grub/grubenv": "x=1\n"}, NEXT,
        "likely", f"grub.cfg is closed; {NEWEST}",
    ),
    "a closed menu, one saved": (
        {"/etc/default/grub": "GRUB_DEFAULT=saved\n",
         "/boot/grub/grubenv": f"saved_entry=1>Linux {NOW}\n"},
        NOW, "likely", f"/etc/default/grub: the default is 1>Linux {NOW}",
    ),
    "a closed menu, an entry for one boot": (
        {"/etc/default/grub": "", "/boot/grub/grubenv": f"next_entry=Linux {NOW}\n"},
        NOW, "likely", f"grubenv: next_entry=Linux {NOW}",
    ),
    "a closed menu, an entry of another name": (
        {"/etc/default/grub": f"GRUB_DEFAULT={'W' * 130}\n"}, None, "unknown",
        f"/etc/default/grub: the default is {'W' * 120}; {NO_ENTRIES}",
    ),
    "kinds in an order": (
        {"/etc/default/grub": f"GRUB_FLAVOUR_ORDER='x generic {'y' * 130}'\n"}, NEXT, "likely",
        f"/etc/default/grub: GRUB_FLAVOUR_ORDER=x generic {'y' * 110}",
    ),
    "an image that is first": (
        {"/etc/default/grub": f"GRUB_TOP_LEVEL=/boot/vmlinuz-{NOW}\n"}, NOW, "likely",
        f"/etc/default/grub: GRUB_TOP_LEVEL=/boot/vmlinuz-{NOW}",
    ),
    "a long title": (
        {"/boot/grub/grub.cfg": MENU.replace("One", "T" * 130)}, NOW, "known",
        f"/boot/grub/grub.cfg: default=0, '{'T' * 120}'",
    ),
    "an image without a release": (
        {"/boot/grub/grub.cfg": "menuentry 'One' {\n linux /kernel.img ro\n}\n"}, None, "unknown",
        "/boot/grub/grub.cfg: default=0, 'One': /kernel.img does not show its release",
    ),
    "no files of entries": (
        {"/boot/grub2/grub.cfg": "blscfg\n"}, NEXT, "likely",
        f"/boot/grub2/grub.cfg: default=0; /boot/loader/entries is closed or empty; {NEWEST}",
    ),
    "the first entry of systemd-boot": (systemd_boot(), NEXT, "known",
                                        "systemd-boot's first entry, 'b'"),
    "a name with a space": (systemd_boot("default a one\n"), NOW, "known",
                            "loader.conf: default=a one, 'a one'"),
    "a saved one by loader.conf": (
        systemd_boot("default @saved\n", LoaderEntrySaved="A ONE.CONF"), NOW, "known",
        "loader.conf: default=A ONE.CONF, 'a one'",
    ),
    "one boot before the default": (
        systemd_boot("default b\n", LoaderEntryOneShot="a*", LoaderEntryDefault="b"), NOW, "known",
        "LoaderEntryOneShot=a*, 'a one'",
    ),
    "nothing saved by systemd-boot": (systemd_boot("default @saved\ndefault\n"), NEXT, "known",
                                      "systemd-boot's first entry, 'b'"),
    "another boot loader": (
        {**systemd_boot(), EFIVARS.format("LoaderInfo"): of_firmware("rEFInd 0.14")}, NEXT,
        "likely", NEWEST,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EVIDENCE)
def test_on_what_the_next_kernel_rests(name: str, tmp_path: Path) -> None:
    contents, *expected = EVIDENCE[name]
    boot = boot_of(tmp_path, contents)
    assert [boot.release, boot.certainty, boot.why] == expected


def test_without_an_image_nothing_is_newest(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, {"/etc/default/grub": ""})
    boots = [next_boot(machine, Kernels(machine))]
    (tmp_path / "etc/default/grub").unlink()
    boots.append(next_boot(machine, Kernels(machine)))
    assert [(boot.release, boot.certainty, boot.why) for boot in boots] == [
        (None, "unknown", f"grub.cfg is closed; {CLOSED}"), (None, "unknown", CLOSED),
    ]  # fmt: skip


def test_the_parameters_of_an_entry(tmp_path: Path) -> None:
    assert boot_of(tmp_path, {"/boot/grub/grub.cfg": MENU}).options == "ro quiet"
    variables = {
        "/boot/grub2/grub.cfg": "blscfg\n",
        "/boot/grub2/grubenv": "kernelopts=root=/dev/sda ro\n",
        "/boot/loader/entries/x.conf": f"linux /vmlinuz-{NOW}\noptions $kernelopts\noptions a=1\n",
    }
    assert boot_of(tmp_path / "bls", variables).options == "root=/dev/sda ro a=1"
    unified = {
        EFIVARS.format("LoaderInfo"): of_firmware("systemd-boot 257"),
        f"/boot/EFI/Linux/{NOW}.efi": "", "/boot/EFI/Linux/other.txt": "",
    }  # fmt: skip
    boot = boot_of(tmp_path / "uki", unified)
    assert (boot.release, boot.options) == (NOW, None)


def entry_of(text: str, name: str = "n") -> BootEntry:
    return BootEntry.of_file(name, text)


def test_the_lines_of_an_entry() -> None:
    text = "title  A title\nlinux /l\nuki /u\nefi /e\nversion 1\nsort-key k\nmachine-id m\nx\n"
    entry = entry_of(text)
    found = (entry.title, entry.image, entry.version, entry.sort_key, entry.machine_id)
    assert found == ("A title", "/l", "1", "k", "m")
    assert [entry_of(text).image for text in ("uki /u\nefi /e\n", "efi /e\n", "")] == [
        "/u",
        "/e",
        "",
    ]
    assert entry_of("").title == "n"


@pytest.mark.parametrize(
    ("name", "is_exhausted"),
    [("a+0", True), ("a+0-3", True), ("a+1-2", False), ("a+10", False), ("a", False), ("0", False)],
)
def test_an_entry_without_tries(name: str, is_exhausted: bool) -> None:
    assert entry_of("", name).is_exhausted is is_exhausted


@pytest.mark.parametrize(
    ("order", "entries"),
    [
        # No tries left is last, then those with a sort-key come first, by key and machine.
        (["b", "a+0"], {"a+0": "version 9", "b": "version 1"}),
        (["a", "b"], {"b": "version 9", "a": "sort-key k\nversion 1"}),
        (["b", "a"], {"a": "sort-key l", "b": "sort-key k"}),
        (["b", "a"], {"a": "sort-key k\nmachine-id 2", "b": "sort-key k\nmachine-id 1"}),
        (["a", "b"], {"a": "sort-key k\nversion 6.10", "b": "sort-key k\nversion 6.9"}),
        # Without a key the name decides, and no version.
        (["b", "a"], {"a": "version 9\nmachine-id 1", "b": "version 1\nmachine-id 2"}),
        (["b", "a"], {"a": "sort-key k\nversion 1", "b": "sort-key k\nversion 1"}),
    ],
)
def test_the_order_of_systemd_boot(
    order: list[str], entries: dict[str, str], tmp_path: Path
) -> None:
    contents: dict[str, str | bytes] = {
        f"/efi/loader/entries/{name}.conf": f"title {name}\nlinux /{NOW}/linux\n{text}\n"
        for name, text in entries.items()
    }
    contents[EFIVARS.format("LoaderInfo")] = of_firmware("systemd-boot 257")
    assert boot_of(tmp_path, contents).why == f"systemd-boot's first entry, {order[0]!r}"


def test_the_parts_of_a_menu() -> None:
    menu = GrubMenu(
        "function load {\n set x=9\n}\n"
        "set default='2>b>>c'\n"
        "menuentry 'One' --id=first {\n linux16 /a one\n linux /b\n}\n"
        "menuentry \"It's two\" $menuentry_id_option 'second' {\n if [ x ]; then\n}\n"
        "submenu 'More' --id more {\n function f {\n }\n"
        " menuentry 'b>c' {\n  linuxefi\t/c $y q r\n }\n}\n"
        "menuentry 'Open {\n linux /d\n}\n"
    )
    assert [(entry.name, entry.title) for entry in menu.entries] == [
        ("first", "One"), ("second", "It's two"), ("more", "More"), ("'Open", "'Open"),
    ]  # fmt: skip
    assert (menu.default, menu.uses_bls, menu.is_certain) == ("2>b>>c", False, True)
    wanted = {
        "2>b>>c": "/c", "more>0": "/c", "More": "/c", "2>9": "/c", "first": "/a", "One": "/a",
        "second": "", "3": "/d", "4": "/a", "00003": "/a", "": "/a", "gone": "/a",
    }  # fmt: skip
    assert {name: found.image for name in wanted if (found := menu.entry(name))} == wanted
    entry = menu.entry("2>0")
    assert entry is not None
    assert entry.options == "q r"


@pytest.mark.parametrize(("count", "last"), [(512, "e511"), (513, "e511")])
def test_so_many_entries_of_a_menu(count: int, last: str) -> None:
    menu = GrubMenu("".join(f"menuentry e{n} {{\n}}\n" for n in range(count)))
    assert (len(menu.entries), menu.entries[-1].title) == (512, last)


def test_an_environment_block() -> None:
    text = "# GRUB=1\n a = b=c \nnone\n#x=1\n"
    assert grub_environment(text) == {"a": "b=c"}


@pytest.mark.parametrize(
    ("options", "tree"),
    [
        ("ro ostree=/ostree/boot.1/fedora/abc/0 quiet", "fedora/abc/0"),
        ("ostree=/ostree/boot.0.1/fedora/abc/0", "fedora/abc/0"),
        ("ro quiet", ""),
    ],
)
def test_the_tree_that_ostree_starts(options: str, tree: str) -> None:
    assert deployment_of(options) == tree


# Kernels.


def test_the_order_of_long_names() -> None:
    long = "x" * 30
    assert version_key(f"{long}1") < version_key(f"{long}2")
    assert version_key(f"{'x' * 256}1") == version_key(f"{'x' * 256}2")
    assert version_key("6.1rc") < version_key("6.1.1")
    assert version_key("6.1~1") < version_key("6.1") < version_key("6.1a")


@pytest.mark.parametrize(
    ("image", "version", "release"),
    [
        ("/vmlinuz-9.9.9", "", "9.9.9"),
        ("/other", "9.9", "9.9"),
        ("/vmlinuz-custom", "", None),
        ("/other", "", None),
        (f"/boot/vmlinuz-{NOW}", NEXT, NOW),
        ("/other", NEXT, NEXT),
        (f"/id/{NOW}/linux", "", NOW),
        (f"/{NOW}/{NOW}.x", "", f"{NOW}.x"),
        ("/vmlinuz-generic", "", NEXT),
    ],
)
def test_the_release_that_an_entry_starts(
    image: str, version: str, release: str | None, tmp_path: Path
) -> None:
    releases = (NOW, NEXT, f"{NOW}.x")
    machine = machine_with(tmp_path, {f"/lib/modules/{name}/a": "" for name in releases})
    assert Kernels(machine).release_of(image, version) == release


@pytest.mark.parametrize(
    ("names", "lacks"),
    [
        ([f"initrd.img-{NOW}"], True),
        ([f"initramfs-{NOW}.img"], True),
        ([f"initrd-{NOW}"], True),
        ([], False),
        ([f"initrd.img-{NEXT}"], False),
        ([f"initrd.img-{NOW}", f"initrd-{NEXT}"], False),
        ([f"initrd.img-{NOW}", "vmlinuz-6.1"], False),  # a third has none either
        ([f"initrd.img-{NOW}", "initrd.img-6.1", "vmlinuz-6.1"], True),
    ],
)
def test_which_kernel_lacks_its_initramfs(names: list[str], lacks: bool, tmp_path: Path) -> None:
    names = [*names, f"vmlinuz-{NOW}", f"vmlinuz-{NEXT}"]
    machine = machine_with(tmp_path, {f"/boot/{name}": "" for name in names})
    kernels = Kernels(machine)
    assert (kernels.lacks_initramfs(NEXT), kernels.lacks_initramfs("6.2")) == (lacks, False)


def test_one_kernel_alone_lacks_nothing(tmp_path: Path) -> None:
    assert not Kernels(machine_with(tmp_path, {f"/boot/vmlinuz-{NOW}": ""})).lacks_initramfs(NOW)


@pytest.mark.parametrize(
    ("release", "name"),
    [(NOW, f"initrd.img-{NOW}"), ("6.1", "initramfs-linux.img"), ("6.2", None)],
)
def test_the_initramfs_of_a_release(release: str, name: str | None, tmp_path: Path) -> None:
    listed = (f"initrd.img-{NOW}", "initramfs-linux.img", "initramfs-other.img")
    contents: dict[str, str | bytes] = {f"/boot/{each}": "" for each in listed}
    machine = machine_with(tmp_path, {**contents, "/lib/modules/6.1/pkgbase": "linux\n"})
    assert Kernels(machine).initramfs_of(release) == (name and f"/boot/{name}")


def test_so_many_kernels_are_looked_at(tmp_path: Path) -> None:
    contents: dict[str, str | bytes] = {f"/lib/modules/6.{n}/a": "" for n in range(65)}
    assert len(Kernels(machine_with(tmp_path, contents)).folders) == 64


# modprobe.d and the makers of an initramfs.


def test_the_lines_of_modprobe(tmp_path: Path) -> None:
    text = "#\n" * 100 + "blacklist a\nblacklist\nother b\noptions c \\\n x=1\n\n alias d off\n"
    machine = machine_with(tmp_path, {"/etc/modprobe.d/a.conf": text})
    assert list(lines(machine, "/etc/modprobe.d/a.conf")) == [
        ["blacklist", "a"], ["options", "c", "x=1"], ["alias", "d", "off"],
    ]  # fmt: skip
    assert list(lines(machine, "/none")) == []


def test_so_many_files_of_a_folder(tmp_path: Path) -> None:
    contents: dict[str, str | bytes] = {f"/a/{n:03}.conf": "" for n in range(257)}
    machine = machine_with(tmp_path, {**contents, "/b/x.conf": "", "/b/y.conf.bak": ""})
    found = list(files(machine, ("/a", "/b", "/c")))
    assert (len(found), found[-2:]) == (257, ["/a/255.conf", "/b/x.conf"])


DRACUT = "/etc/dracut.conf"


@pytest.mark.parametrize(
    ("path", "text", "lists"),
    [
        ("/etc/initramfs-tools/modules", "nvidia\n", True),
        ("/etc/initramfs-tools/modules", "ext4 nvidia\n", False),
        ("/etc/initramfs-tools/modules", "# nvidia\n\nnvidia_drm x=1\n", True),
        (DRACUT, 'add_drivers+=" nvidia "\n', True),
        (DRACUT, "force_drivers='ext4 nvidia_uvm'\n", True),
        (DRACUT, "\nMODULES=(ext4 nvidia)\n", True),
        (DRACUT, "omit_drivers+=nvidia\n", False),
        (DRACUT, "nvidia\n", False),
        (DRACUT, "MODULES=(ext4) # nvidia\n", False),
    ],
)
def test_who_is_told_to_hold_the_module(path: str, text: str, lists: bool, tmp_path: Path) -> None:
    machine = machine_with(tmp_path, {path: text})
    assert _lists_own(machine, path) is lists


def test_links_that_lead_nowhere_are_of_no_time(tmp_path: Path) -> None:
    machine = machine_with(tmp_path, {"/boot/initrd": "", "/etc/modprobe.d/x.conf": "blacklist xe"})
    (tmp_path / "boot/link").symlink_to("none")
    (tmp_path / "etc/modprobe.d/y.conf").symlink_to("none")
    assert stale(machine, "/boot/link", ["xe"], [], None) is None
    assert stale(machine, None, ["xe"], [], None) is None


# The file of a module.


def read(tmp_path: Path, content: bytes, name: str = "x.ko") -> ModuleFile:
    (tmp_path / name).write_bytes(content)
    return read_module(Machine(str(tmp_path)), f"/{name}")


WHOLE = module("580.95.05", "Dual MIT/GPL", OWNER)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.ko", b"", "it is no ELF file of 64 bits"),
        ("x.ko", b"\x7fELF\x01" + WHOLE[5:], "it is no ELF file of 64 bits"),
        ("x.ko", WHOLE[:58] + b"\x41" + WHOLE[59:], "its sections are damaged"),
        ("x.ko", WHOLE[:60] + b"\x01\x10" + WHOLE[62:], "its sections are damaged"),
        ("x.ko", module("1") + bytes(8) + MARK, "its signature is of a kind that is not known"),
        ("x.ko", WHOLE[:-38] + b"\x01" + WHOLE[-37:],
         "its signature is of a kind that is not known"),
        ("x.ko", module("1") + struct.pack(">8BI", 0, 0, 2, 0, 0, 0, 0, 0, 0) + MARK,
         "its signature is of a kind that is not known"),
        ("x.ko", module("1") + struct.pack(">8BI", 0, 0, 2, 0, 0, 0, 0, 0, (64 << 10) + 1) + MARK,
         "its signature is of a kind that is not known"),
        ("x.ko.xz", b"no archive at all, and long enough",
         "no xz: Input format not supported by decoder"),
        ("x.ko.xz", lzma.compress(WHOLE)[:-9],
         "Compressed file ended before the end-of-stream marker was reached"),
        ("x.ko.gz", b"none", "Not a gzipped file (b'no')"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_module(
    name: str, content: bytes, problem: str, tmp_path: Path
) -> None:
    found = read(tmp_path, content, name)
    assert (found.problem, found.signer) == (f"/{name}: {problem}", b"")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python unpacks zstd")
def test_zstd_is_named(tmp_path: Path) -> None:
    problem = "/x.ko.zst: zstd is unpacked from Python 3.14 on"
    assert read(tmp_path, b"", "x.ko.zst").problem == problem


def test_a_module_that_is_packed_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # NVIDIA's largest has about 100 MB.
    large = module("580.95.05", "Dual MIT/GPL") + bytes(20 << 20) + signature(OWNER)
    packed = gzip.compress(large, 1)
    found = read(tmp_path, packed, "x.ko.gz")
    assert (found.version, found.is_open, found.signer) == ("580.95.05", True, OWNER)
    monkeypatch.setattr(module_file, "MAX_UNPACKED", len(large))
    assert read(tmp_path, packed, "x.ko.gz").problem == ""
    monkeypatch.setattr(module_file, "MAX_UNPACKED", len(large) - 1)
    problem = "/x.ko.gz: it unpacks to more than a module has"
    assert read(tmp_path, packed, "x.ko.gz").problem == problem


def test_a_module_of_the_other_byte_order(tmp_path: Path) -> None:
    info, names = b"version=1\0license=GPL\0", b"\0.modinfo\0"
    head = b"\x7fELF\x02\x02\x01" + bytes(9)
    head += struct.pack(">HHIQQQIHHHHHH", 1, 22, 1, 0, 0, 96, 0, 64, 0, 0, 64, 2, 0)
    section = ">IIQQQQIIQQ"
    table = struct.pack(section, 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    table += struct.pack(section, 1, 1, 0, 0, 74, len(info), 0, 0, 1, 0)
    found = read(tmp_path, head + names + info + table)
    assert (found.version, found.licence, found.is_open, found.problem) == ("1", "GPL", False, "")


@pytest.mark.parametrize(
    "message",
    [b"", b"\x30", b"\x30\x05a", b"\x30\x82\x01", b"\x30\x00", b"\x30\x04\x30\x02\x05\x00"],
)
def test_a_damaged_signature(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"^its signature is damaged$"):
        signer_of(message)


@pytest.mark.parametrize(
    ("signer", "parts"),
    [
        (b"\x30\x06\x30\x01a\x02\x01b", [b"\x30\x01a", b"\x02\x01b"]),
        (b"\x80\x02id", [b"id"]),
        (b"\x30\x81\x03\x02\x01b", [b"\x02\x01b"]),
        (b"\x80\x09", [b"\x80\x09"]),
    ],
)
def test_by_what_a_key_is_found(signer: bytes, parts: list[bytes]) -> None:
    assert parts_of_signer(signer) == parts
    whole = b"".join(parts)
    assert [_has_key(keys, signer) for keys in (whole, whole[1:], b"")] == [True, False, False]
    assert not _has_key(whole, b"")


# What the kernel demands of a module.


@pytest.mark.parametrize(
    ("parameters", "is_enforced"),
    [
        ("module.sig_enforce", True), ("module.sig_enforce=1", True),
        ("module.sig_enforce=Y", True), ("module.sig_enforce=on", True),
        ("module.sig_enforce=0", False), ("module.sig_enforce=2", False), ("sig_enforce=1", False),
        ("module.sig_enforce=1 module.sig_enforce=0", False), ("", False),
    ],
)  # fmt: skip
def test_whether_signatures_are_demanded(parameters: str, is_enforced: bool) -> None:
    assert _is_enforced(parameters.split()) is is_enforced


@pytest.mark.parametrize(
    ("file", "is_owner"),
    [
        ("/lib/modules/6.8/updates/dkms/nvidia.ko", True),
        ("/lib/modules/6.8/kernel/drivers/gpu/drm/xe/xe.ko", False),
        ("/lib/modules/6.8/kernel/drivers/video/nvidia.ko", True),
        ("/lib/modules/6.8/kernel/nvidia-580/nvidia.ko", False),
    ],
)
def test_who_signs_a_module(file: str, is_owner: bool) -> None:
    assert _is_of_owner(file) is is_owner


@pytest.mark.parametrize(
    ("lockdown", "given", "now", "is_secure", "enforced", "enforces"),
    [
        (None, "", "", False, "", False),
        (None, "", "", True, "", True),
        ("[none] integrity", "", "", True, "", False),
        ("none [integrity]", "", "", True, "", True),
        ("[none] integrity", "lockdown=integrity", "", False, "", True),
        (None, "lockdown=integrity", "", False, "", False),  # a kernel that has no lockdown
        (None, "module.sig_enforce=1", "", False, "", True),
        (None, "", "", False, "Y", True),
        (None, "", "", False, "N", False),
        (None, "", "module.sig_enforce=1", False, "Y", False),  # the next boot has it not
    ],
)
def test_whether_the_next_kernel_refuses(
    lockdown: str | None, given: str, now: str, is_secure: bool, enforced: str, enforces: bool,
    tmp_path: Path,
) -> None:  # fmt: skip
    contents: dict[str, str | bytes] = {}
    if lockdown is not None:
        contents["/sys/kernel/security/lockdown"] = f"{lockdown}\n"
    contents["/sys/module/module/parameters/sig_enforce"] = f"{enforced}\n"
    present = SimpleNamespace(command_line=now.split(), secure_boot=is_secure)
    projection: Any = Projection.__new__(Projection)
    projection._machine = machine_with(tmp_path, contents)
    projection._modules = SimpleNamespace(command_line=given.split())
    projection._request = SimpleNamespace(scene=SimpleNamespace(modules=present))
    assert projection._enforces is enforces


@pytest.mark.parametrize(("name", "is_used"), [("xe", True), ("amdgpu", True), ("i915", False)])
def test_which_module_is_used(name: str, is_used: bool) -> None:
    devices = [{"driver": {"name": "xe"}}, {"driver": None}]
    scene = SimpleNamespace(modules=SimpleNamespace(loaded={"amdgpu"}))
    projection: Any = Projection.__new__(Projection)
    projection._request = SimpleNamespace(report={"devices": devices}, scene=scene)
    assert projection._is_used(name) is is_used


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (None, "dkms.service may build it at the boot"),
        ("/var/lib/dkms/nvidia-open/580/x", ""),
        (f"/usr/lib/modules/{NEXT}/build/Makefile", ""),
        ("/lib/systemd/system/dkms.service", ""),
    ],
)
def test_what_dkms_needs_to_build_at_the_boot(
    missing: str | None, told: str, tmp_path: Path
) -> None:
    needed = ("/var/lib/dkms/nvidia-open/580/x", f"/usr/lib/modules/{NEXT}/build/Makefile",
              "/lib/systemd/system/dkms.service", "/var/lib/dkms/nvidiafb/1/x")  # fmt: skip
    projection: Any = Projection.__new__(Projection)
    projection.release = NEXT
    projection._machine = machine_with(tmp_path, {path: "" for path in needed if path != missing})
    assert projection.builds_at_boot("nvidia") == told
    log = tmp_path / "var/lib/dkms/nvidia-open/580/build/make.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"DKMS make.log for {NEXT}\n")
    assert projection.builds_at_boot("nvidia") == ""


# Packages.

UNKNOWN = "whether a package of a driver or kernel is unfinished is not known"


@pytest.mark.parametrize(
    ("size", "reason"),
    [((16 << 20) - 1, ""), (16 << 20, "dpkg's database /var/lib/dpkg/status is too long: ")],
)
def test_how_long_dpkgs_list_may_be(size: int, reason: str, tmp_path: Path) -> None:
    machine = machine_with(tmp_path, {"/var/lib/dpkg/status": ""})
    with (tmp_path / "var/lib/dpkg/status").open("r+b") as file:
        file.truncate(size)
    assert unread_database(machine) == (reason and f"{reason}{UNKNOWN}")


def test_dpkgs_list_that_is_closed(tmp_path: Path) -> None:
    (tmp_path / "var/lib/dpkg/status").mkdir(parents=True)
    machine = Machine(str(tmp_path))
    closed = f"dpkg's database /var/lib/dpkg/status is closed: {UNKNOWN}"
    assert (unread_database(machine), list(unfinished(machine))) == (closed, [])


@pytest.mark.parametrize("name", ["system-update", "etc/system-update"])
def test_a_link_of_an_offline_update(name: str, tmp_path: Path) -> None:
    assert offline_update(Machine(str(tmp_path))) == ""
    Tree(tmp_path).link(f"/{name}", "/var/lib/none")
    assert offline_update(Machine(str(tmp_path))) == f"/{name}"
