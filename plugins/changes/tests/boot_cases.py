"""What stands before a boot, what the boot makes of it, and the cause that the doctor gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import boot_machines as machines
import readiness_nodes as nodes
from boot_machines import MOK, NEXT, NOW, OLD, OTHER, OWNER, Change, Computer
from readiness_nodes import VERSION

Make = Callable[[Path], Computer]


class Case:
    """One computer: how it is made, what a boot does to it, and the cause then (None: healthy)."""

    def __init__(
        self, cause: str | None, before: Change, after: Change, make: Make = Computer
    ) -> None:
        self.cause = cause
        self.before = before
        self.after = after
        self.make = make


def no_module(computer: Computer) -> None:
    computer.grub()
    computer.without_nvidia(NEXT)


def unbound(computer: Computer) -> None:
    computer.booted(NEXT, driver=None, modules=("snd",))


def bound(computer: Computer, release: str = NEXT, version: str = VERSION) -> None:
    computer.booted(release, driver="nvidia", version=version)


def loaded_alone(computer: Computer, version: str = VERSION, kind: str = "") -> None:
    """The module is loaded and refuses the GPU."""
    computer.booted(NEXT, driver=None, version=version, kind=kind)


def then(*changes: Change) -> Change:
    def change(computer: Computer) -> None:
        for each in changes:
            each(computer)

    return change


def grub(*values: str, **more: str) -> Change:
    return lambda computer: computer.grub(*values, **more)


def file(path: str, content: object) -> Change:
    return lambda computer: computer.file(path, content)


def removed(*paths: str) -> Change:
    def change(computer: Computer) -> None:
        for path in paths:
            computer.remove(path)

    return change


def nvidia(release: str = NEXT, version: str = "", **more: str | bytes) -> Change:
    return lambda computer: computer.nvidia(release, version, **more)  # type: ignore[arg-type]


def older_kernel(computer: Computer) -> None:
    computer.kernel(OLD)


def bls(*names: str, saved: str = "", wanted: str = "${saved_entry}") -> Change:
    """A computer with Fedora's entries; each name is a file's, and its release what follows it."""

    def change(computer: Computer) -> None:
        menu = f'set default="{wanted}"\nblscfg\n'
        computer.file("/boot/grub2/grub.cfg", menu)
        computer.file("/boot/grub2/grubenv", f"saved_entry={saved}\n" if saved else "\n")
        for name in names:
            release = name.partition("-")[2]
            text = f"title Fedora\nversion {release}\nlinux /vmlinuz-{release}\noptions ro quiet\n"
            computer.file(f"/boot/loader/entries/{name}.conf", text)

    return change


def systemd_boot(*entries: str, conf: str = "", **variables: str) -> Change:
    """A computer with systemd-boot; an entry is "NAME RELEASE" or "NAME RELEASE SORT-KEY"."""

    def change(computer: Computer) -> None:
        computer.variable("LoaderInfo", "systemd-boot 257.5")
        for entry in entries:
            name, release, *key = entry.split()
            text = f"title X\nversion {release}\nlinux /id/{release}/linux\noptions ro\n"
            text += f"sort-key {key[0]}\nmachine-id 1\n" if key else ""
            computer.file(f"/efi/loader/entries/{name}.conf", text)
        computer.file("/efi/loader/loader.conf", conf)
        for name, value in variables.items():
            computer.variable(name, value)

    return change


def debian_newest(computer: Computer) -> None:
    """grub.cfg is closed, and its image of -100 is newer than that of -62."""
    computer.kernel("6.8.0-100-generic")
    computer.file("/etc/default/grub", "GRUB_DEFAULT=0\n")


def debian_newest_booted(computer: Computer) -> None:
    computer.booted("6.8.0-100-generic", driver=None, modules=("snd",))


def secure(signed_next: bytes, signed_now: bytes = OWNER) -> Change:
    def change(computer: Computer) -> None:
        computer.secure()
        computer.grub()
        computer.nvidia(NOW, signed=signed_now)
        computer.nvidia(NEXT, signed=signed_next)

    return change


def keys(*names: tuple[str, int]) -> Change:
    content = b"".join(machines.certificate(*name) for name in names)
    return file(MOK, b"\x06\0\0\0" + content)


def amd(root: Path) -> Computer:
    """A desktop with an RX 9070 XT on a kernel of today, and an older one beside it."""
    computer = Computer.__new__(Computer)
    node = nodes.amd(root, ids="1002:7550")
    computer.__dict__.update(node.__dict__)
    computer.version = ""
    computer.tree.release("6.12.9")
    for release in ("6.12.9", "6.8.0-62-generic"):
        computer.file(f"/boot/vmlinuz-{release}")
        path = "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko"
        computer.file(f"/lib/modules/{release}/modules.dep", f"{path}:\n")
        computer.file(f"/lib/modules/{release}/{path}")
        computer.file(f"/lib/modules/{release}/modules.builtin", "")
    computer.file("/etc/os-release", 'ID=debian\nVERSION_ID="13"\n')
    computer.file("/lib/firmware/amdgpu/gc_12_0_1_me.bin")
    return computer


def amd_booted(computer: Computer) -> None:
    computer.booted("6.8.0-62-generic", driver=None, modules=("amdgpu",))


def pascal(root: Path) -> Computer:
    return Computer(root, ids="10de:1b80")


def blackwell(root: Path) -> Computer:
    """An RTX 5090 on the open module."""
    computer = Computer(root, ids="10de:2b85")
    computer.file("/proc/driver/nvidia/version", nodes.OPEN_TEXT)
    for release in (NOW, NEXT):
        computer.nvidia(release, licence="Dual MIT/GPL")
    computer.file(f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin")
    return computer


def turing_open(root: Path) -> Computer:
    computer = Computer(root, ids="10de:2684")
    computer.file("/proc/driver/nvidia/version", nodes.OPEN_TEXT)
    for release in (NOW, NEXT):
        computer.nvidia(release, licence="Dual MIT/GPL")
    computer.file(f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin")
    return computer


def open_bound(computer: Computer) -> None:
    computer.booted(NEXT, driver="nvidia", version=VERSION, kind="open")


NOUVEAU = f"/lib/modules/{NEXT}/kernel/drivers/gpu/drm/nouveau/nouveau.ko"
MISSING, SIGNED = "module-missing-for-kernel", "secure-boot"
DKMS = "/var/lib/dkms/nvidia/580.95.05"

# Every one of these keeps its GPU from the next boot on.
BROKEN: dict[str, Case] = {
    "grub starts the newer kernel, for which DKMS built nothing": Case(MISSING, no_module, unbound),
    "its build failed, and the log says so": Case(
        MISSING,
        then(no_module, file(f"{DKMS}/build/make.log", f"DKMS make.log for nvidia ({NEXT})\n")),
        unbound,
    ),
    "DKMS built for the running kernel alone": Case(
        MISSING, then(no_module, file(f"{DKMS}/{NOW}/x86_64/module/nvidia.ko", "")), unbound
    ),
    "grub-reboot chose the newer kernel once": Case(
        MISSING,
        then(
            no_module,
            grub(
                f"gnulinux-advanced-1>gnulinux-{NOW}-advanced-1",
                once=f"gnulinux-advanced-1>gnulinux-{NEXT}-advanced-1",
            ),
        ),
        unbound,
    ),
    "the saved entry is the newer kernel": Case(
        MISSING,
        then(no_module, grub("${saved_entry}", saved=f"1>Ubuntu, with Linux {NEXT}", newest=NOW)),
        unbound,
    ),
    "the default is the second entry of the submenu": Case(
        MISSING, then(no_module, grub("1>1", newest=NOW)), unbound
    ),
    "grub.cfg is closed: the newest image, by number": Case(
        MISSING, debian_newest, debian_newest_booted
    ),
    "the older kernel is the default, and has no module": Case(
        MISSING,
        then(older_kernel, grub(f"gnulinux-advanced-1>gnulinux-{OLD}-advanced-1")),
        lambda computer: computer.booted(OLD, driver=None, modules=("snd",)),
    ),
    "Fedora: the new kernel became the saved entry": Case(
        MISSING,
        then(no_module, removed("/boot/grub/grub.cfg", "/boot/grub/grubenv", "/boot/grub"),
             bls(f"1-{NOW}", f"1-{NEXT}", saved=f"1-{NEXT}")),
        unbound,
    ),
    "Fedora: nothing is saved, and the newest file counts": Case(
        MISSING,
        then(no_module, removed("/boot/grub/grub.cfg", "/boot/grub/grubenv", "/boot/grub"),
             bls(f"1-{NOW}", f"1-{NEXT}")),
        unbound,
    ),
    "a cloned image: the old machine id sorts before": Case(
        MISSING,
        then(older_kernel, bls(f"a0b1-{NEXT}", f"f9e8-{OLD}")),
        lambda computer: computer.booted(OLD, driver=None, modules=("snd",)),
    ),
    "systemd-boot: the newest version of one sort-key": Case(
        MISSING,
        then(lambda c: c.without_nvidia(NEXT),
             systemd_boot(f"a {NOW} ubuntu", f"b {NEXT} ubuntu")),
        unbound,
    ),
    "systemd-boot: one boot of another entry": Case(
        MISSING,
        then(lambda c: c.without_nvidia(NEXT),
             systemd_boot(f"a {NOW}", f"b {NEXT}", conf="default a\n",
                          LoaderEntryOneShot="b.conf")),
        unbound,
    ),
    "systemd-boot: a pattern of loader.conf": Case(
        MISSING,
        then(lambda c: c.without_nvidia(NEXT),
             systemd_boot(f"old-1 {NOW}", f"new-1 {NEXT}", conf="timeout 3\ndefault new-*\n")),
        unbound,
    ),
    "nouveau takes what no module of NVIDIA's takes": Case(
        "nouveau-bound",
        then(no_module, removed("/etc/modprobe.d/blacklist-nouveau.conf"),
             file(NOUVEAU, "")),
        lambda computer: computer.booted(NEXT, driver="nouveau", modules=("nouveau",)),
    ),
    "the module has no signature, and Secure Boot is on": Case(
        SIGNED, secure(b""), unbound
    ),
    "the module is signed with a key that nobody enrolled": Case(
        SIGNED, then(secure(OTHER), keys(("this computer's DKMS key", 7))), unbound
    ),
    "xz: the signature lies within the compression": Case(
        SIGNED,
        then(secure(OWNER), removed(f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko"),
             nvidia(suffix=".ko.xz")),
        unbound,
    ),
    "a new line forbids the module": Case(
        "module-blacklisted", then(grub(), file("/etc/modprobe.d/off.conf", "blacklist nvidia\n")),
        unbound,
    ),
    "the next entry's parameters forbid it": Case(
        "module-blacklisted", grub(options="module_blacklist=nvidia"),
        lambda c: c.booted(NEXT, driver=None, modules=("snd",), options="module_blacklist=nvidia"),
    ),
    "a line of modprobe.d that goes on": Case(
        "module-blacklisted",
        then(grub(), file("/etc/modprobe.d/z.conf", "install nvidia \\\n  /bin/false\n")),
        unbound,
    ),
    "nouveau is told to register nothing": Case(
        MISSING,
        then(no_module, grub(options="nouveau.modeset=0"),
             removed("/etc/modprobe.d/blacklist-nouveau.conf"), file(NOUVEAU, "")),
        lambda c: c.booted(NEXT, driver=None, modules=("nouveau",), options="nouveau.modeset=0"),
    ),
    "so by modprobe.d": Case(
        MISSING,
        then(no_module, file(NOUVEAU, ""),
             file("/etc/modprobe.d/blacklist-nouveau.conf", "options nouveau modeset=0\n")),
        lambda computer: computer.booted(NEXT, driver=None, modules=("nouveau",)),
    ),
    "the next entry has lockdown, and the module no signature": Case(
        "module-not-loaded",
        then(grub(options="lockdown=integrity"),
             file(machines.LOCKDOWN, "[none] integrity confidentiality\n")),
        lambda c: c.booted(NEXT, driver=None, modules=("snd",), options="lockdown=integrity"),
    ),
    "the next entry demands signatures": Case(
        "module-unsigned", grub(options="module.sig_enforce=1"),
        lambda c: c.booted(NEXT, driver=None, modules=("snd",), options="module.sig_enforce=1"),
    ),
    "the libraries are of another version than the module": Case(
        "version-mismatch", then(grub(), lambda c: c.libraries("580.82.07")),
        then(bound),
    ),
    "the module for the new kernel is of an older version": Case(
        "version-mismatch", then(grub(), nvidia(version="570.144")),
        lambda computer: bound(computer, version="570.144"),
    ),
    "the new branch has dropped the GPU": Case(
        "legacy-branch",
        then(grub(), nvidia(version="590.44.01"), lambda c: c.libraries("590.44.01")),
        lambda computer: loaded_alone(computer, "590.44.01"), pascal,
    ),
    "the closed module replaced the open one on Blackwell": Case(
        "closed-module-unsupported", then(grub(), nvidia(licence="NVIDIA")), loaded_alone, blackwell
    ),
    "the open module replaced the closed one on Pascal": Case(
        "open-module-unsupported", then(grub(), nvidia(licence="Dual MIT/GPL")),
        lambda computer: loaded_alone(computer, kind="open"), pascal,
    ),
    "the open module's firmware went with a package": Case(
        "gsp-firmware-missing",
        then(grub(), removed(f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin"),
             file("/lib/firmware/regulatory.db", "")),
        open_bound, turing_open,
    ),
    "amdgpu of an older kernel, which is the default": Case(
        "kernel-too-old", grub(newest="6.8.0-62-generic"), amd_booted, amd
    ),
    "amdgpu's firmware for the new card was removed": Case(
        "firmware-missing",
        then(grub(newest="6.12.9"), removed("/lib/firmware/amdgpu/gc_12_0_1_me.bin"),
             file("/lib/firmware/amdgpu/navi10_me.bin", "")),
        lambda computer: computer.booted("6.12.9", driver=None, modules=("amdgpu",)), amd,
    ),
    "nomodeset in the next entry": Case(
        "nomodeset", grub(newest="6.12.9", options="nomodeset"),
        lambda computer: computer.booted("6.12.9", driver=None, modules=("amdgpu",),
                                         options="nomodeset"), amd,
    ),
}  # fmt: skip

# Look-alikes: nothing of them may be called broken.
SILENT: dict[str, Case] = {
    "both kernels have the module": Case(None, grub(), bound),
    "a kernel without the module that is not next": Case(
        None, then(older_kernel, grub()), bound
    ),
    "the newest kernel lacks it, and the saved one has it": Case(
        None,
        then(no_module,
             grub("${saved_entry}", saved=f"gnulinux-advanced-1>gnulinux-{NOW}-advanced-1")),
        lambda computer: bound(computer, NOW),
    ),
    "a rescue image": Case(
        None, then(grub(), file("/boot/vmlinuz-0-rescue-0123456789abcdef", "")), bound
    ),
    "a folder of modules that a removed kernel left": Case(
        None,
        then(file("/etc/default/grub", "GRUB_DEFAULT=0\n"),
             lambda c: c.kernel("6.8.0-99-generic", image=False)),
        bound,
    ),
    "the module is unsigned, and Secure Boot is off": Case(None, then(grub(), nvidia()), bound),
    "a kernel without lockdown takes unsigned modules": Case(
        None,
        then(secure(b"", b""), file("/sys/kernel/security/lockdown", "[none] integrity\n")),
        bound,
    ),
    "signatures are expressly not demanded": Case(
        None, grub(options="module.sig_enforce=0"), bound
    ),
    "the running kernel demands signatures, and the next does not": Case(
        None,
        then(grub(), file("/proc/cmdline", "ro module.sig_enforce\n"),
             file("/sys/module/module/parameters/sig_enforce", "Y\n")),
        bound,
    ),
    "lockdown=none": Case(
        None,
        then(grub(options="lockdown=none"), file(machines.LOCKDOWN, "[none] integrity\n")),
        bound,
    ),
    "NVIDIA's module, and nouveau without modesetting": Case(
        None, grub(options="nouveau.modeset=0"), bound
    ),
    "signed with the key of the module that is loaded": Case(None, secure(OWNER), bound),
    "signed with another key that is enrolled": Case(
        None, then(secure(OTHER), keys(("a new key", 8))), bound
    ),
    "Ubuntu's own package of the module, signed as the kernel is": Case(
        None,
        then(secure(OWNER), removed(f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko"),
             nvidia(place="kernel/nvidia-580", signed=OTHER)),
        bound,
    ),
    "nouveau is forbidden": Case(
        None, then(grub(), file("/etc/modprobe.d/n.conf", "blacklist nouveau\nblacklist nova\n")),
        bound,
    ),
    "an update of module and libraries, which the boot completes": Case(
        None,
        then(grub(), nvidia(version="580.105.08"), nvidia(NOW, "580.105.08"),
             lambda c: c.libraries("580.105.08")),
        lambda computer: bound(computer, version="580.105.08"),
    ),
    "leftovers of an older version in DKMS": Case(
        None,
        then(grub(), file("/var/lib/dkms/nvidia/570.86.10/6.8.0-50-generic/x86_64/module/a", "")),
        bound,
    ),
    "systemd-boot: no tries are left for the newest": Case(
        None,
        then(lambda c: c.without_nvidia(NEXT),
             systemd_boot(f"a {NOW} ubuntu", f"b+0-3 {NEXT} ubuntu")),
        lambda computer: bound(computer, NOW),
    ),
    "systemd-boot: the default of the firmware": Case(
        None,
        then(lambda c: c.without_nvidia(NEXT),
             systemd_boot(f"a {NOW}", f"b {NEXT}", conf="default b\n",
                          LoaderEntryDefault="a.conf")),
        lambda computer: bound(computer, NOW),
    ),
    "the driver is built in": Case(
        None,
        then(grub(newest="6.12.9"),
             removed("/lib/modules/6.12.9/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko"),
             file("/lib/modules/6.12.9/modules.dep", ""),
             file("/lib/modules/6.12.9/modules.builtin",
                  "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko\n")),
        lambda computer: computer.booted("6.12.9", driver="amdgpu", modules=("ext4",)), amd,
    ),
    "the GPU is kept for a virtual machine": Case(
        None,
        then(no_module, lambda c: c.booted(NOW, driver="vfio-pci", modules=("vfio_pci",))),
        lambda c: c.booted(NEXT, driver="vfio-pci", modules=("vfio_pci",)),
    ),
    "an older kernel whose driver is newer, from outside": Case(
        None,
        then(grub(newest="6.8.0-62-generic"),
             removed("/lib/modules/6.8.0-62-generic/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko"),
             file("/lib/modules/6.8.0-62-generic/updates/dkms/amdgpu.ko", ""),
             file("/lib/modules/6.8.0-62-generic/modules.dep", "updates/dkms/amdgpu.ko:\n")),
        lambda c: c.booted("6.8.0-62-generic", driver="amdgpu", modules=("amdgpu",)), amd,
    ),
}  # fmt: skip
