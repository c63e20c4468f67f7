"""Computers before a boot, and as they are after it, as trees below the code that is tested."""

from __future__ import annotations

import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import readiness_nodes as nodes
from readiness_nodes import LIBRARIES, PCI, Node

NOW, NEXT, OLD = nodes.RELEASE, "6.8.0-62-generic", "6.8.0-58-generic"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
MOK = "/sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
LOADER = "/sys/firmware/efi/efivars/{}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
LOCKDOWN = "/sys/kernel/security/lockdown"
MARK = b"~Module signature appended~\n"
UPDATES = "updates/dkms"

Change = Callable[["Computer"], None]


def der(tag: int, *parts: bytes) -> bytes:
    """Return an element of DER."""
    content = b"".join(parts)
    length = len(content)
    size = bytes([length]) if length < 128 else b"\x82" + length.to_bytes(2, "big")
    return bytes([tag]) + size + content


def signer(name: str, serial: int) -> bytes:
    """Return an IssuerAndSerialNumber."""
    common_name = der(0x30, der(0x06, b"\x55\x04\x03"), der(0x0C, name.encode()))
    return der(0x30, der(0x30, der(0x31, common_name)), der(0x02, serial.to_bytes(8, "big")))


def certificate(name: str, serial: int) -> bytes:
    """Return what of a certificate a list of keys is searched for."""
    own = signer(name, serial)
    return der(0x30, own[2:])


def signature(who: bytes) -> bytes:
    """Return the PKCS#7 message, the header and the mark that `sign-file` appends."""
    info = der(0x30, der(0x02, b"\x01"), who, der(0x30, b""), der(0x04, b"s" * 64))
    algorithms, content = der(0x31, b""), der(0x30, der(0x06, b"\x2a"))
    data = der(0x30, der(0x02, b"\x01"), algorithms, content, der(0x31, info))
    message = der(0x30, der(0x06, b"\x2a\x86\x48"), der(0xA0, data))
    header = struct.pack(">8BI", 0, 0, 2, 0, 0, 0, 0, 0, len(message))
    return message + header + MARK


def module(version: str, licence: str = "NVIDIA", signed: bytes = b"") -> bytes:
    """Return an ELF file of 64 bits whose only sections are names and .modinfo."""
    info = f"version={version}\0license={licence}\0".encode()
    names = b"\0.shstrtab\0.modinfo\0"
    at = 64 + len(info) + len(names)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, 3, 1)
    section = "<IIQQQQIIQQ"
    table = bytes(64)
    table += struct.pack(section, 1, 3, 0, 0, 64 + len(info), len(names), 0, 0, 1, 0)
    table += struct.pack(section, 11, 1, 0, 0, 64, len(info), 0, 0, 1, 0)
    return head + info + names + table + (signature(signed) if signed else b"")


OWNER, OTHER = signer("this computer's DKMS key", 7), signer("a new key", 8)


class Computer(Node):
    """A machine with two kernels and NVIDIA's driver by DKMS; it runs the older one."""

    def __init__(self, root: Path, ids: str = "10de:2684", version: str = nodes.VERSION) -> None:
        super().__init__(root)
        node = nodes.nvidia(root, ids=ids)
        self.access = node.access
        self.version = version
        for release in (NOW, NEXT):
            self.kernel(release)
            self.nvidia(release)
        self.file("/etc/os-release", 'ID=ubuntu\nVERSION_ID="24.04"\n')
        self.file("/etc/modprobe.d/blacklist-nouveau.conf", "blacklist nouveau\n")
        self.file("/proc/cmdline", f"BOOT_IMAGE=/boot/vmlinuz-{NOW} root=UUID=1 ro\n")

    def kernel(self, release: str, image: bool = True) -> None:
        """Install a kernel: its image, and a list of modules that depmod wrote."""
        if image:
            self.file(f"/boot/vmlinuz-{release}")
        folder = f"/lib/modules/{release}"
        self.file(f"{folder}/modules.builtin", "kernel/fs/ext4/ext4.ko\n")
        self.file(f"{folder}/modules.dep", "kernel/drivers/gpu/drm/nouveau/nouveau.ko:\n")

    def listed(self, release: str, *paths: str) -> None:
        """Write the list of modules again."""
        own = ("kernel/drivers/gpu/drm/nouveau/nouveau.ko", *paths)
        self.file(f"/lib/modules/{release}/modules.dep", "".join(f"{path}:\n" for path in own))

    def nvidia(
        self,
        release: str,
        version: str = "",
        *,
        signed: bytes = b"",
        licence: str = "NVIDIA",
        place: str = UPDATES,
        suffix: str = ".ko",
    ) -> None:
        """Install NVIDIA's module for a kernel."""
        content = module(version or self.version, licence, signed)
        content = lzma.compress(content) if suffix == ".ko.xz" else content
        self.file(f"/lib/modules/{release}/{place}/nvidia{suffix}", content)
        self.listed(release, f"{place}/nvidia{suffix}")

    def without_nvidia(self, release: str) -> None:
        """Remove the module of a kernel."""
        (self.tree.root / f"lib/modules/{release}/{UPDATES}/nvidia.ko").unlink()
        self.listed(release)

    def grub(self, default: str = "0", *, saved: str = "", once: str = "", newest: str = NEXT,
             options: str = "") -> None:  # fmt: skip
        """Write the menu that grub-mkconfig makes, and its environment block."""
        lines = ['if [ "${next_entry}" ] ; then', '   set default="${next_entry}"', "else",
                 f'   set default="{default}"', "fi"]  # fmt: skip
        lines += _entry("Ubuntu", "gnulinux-simple-1", newest, options)
        lines += [
            "submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-1' {"
        ]
        for release in dict.fromkeys((newest, NEXT, NOW, OLD)):
            name = f"gnulinux-{release}-advanced-1"
            lines += _entry(f"Ubuntu, with Linux {release}", name, release, options)
        self.file("/boot/grub/grub.cfg", "\n".join([*lines, "}", ""]))
        block = "# GRUB Environment Block\n"
        block += f"saved_entry={saved}\n" if saved else ""
        block += f"next_entry={once}\n" if once else ""
        self.file("/boot/grub/grubenv", block + "#" * (1024 - len(block)))

    def variable(self, name: str, text: str) -> None:
        """Set a variable of systemd-boot in the firmware."""
        self.file(LOADER.format(name), b"\x07\0\0\0" + f"{text}\0".encode("utf-16-le"))

    def secure(self) -> None:
        """Turn Secure Boot on, with the lockdown that distributions tie to it."""
        self.file(SECURE_BOOT, b"\x06\0\0\0\x01")
        self.file(LOCKDOWN, "none [integrity] confidentiality\n")

    # --- after the boot

    def booted(self, release: str, *, driver: str | None, version: str = "", kind: str = "",
               modules: tuple[str, ...] = (), options: str = "") -> None:  # fmt: skip
        """Make the machine what it is once it has booted: what its kernel then shows."""
        self.tree.release(release)
        self.file("/proc/cmdline", f"BOOT_IMAGE=/boot/vmlinuz-{release} root=UUID=1 ro {options}\n")
        link = self.tree.root / f"sys/bus/pci/devices/{PCI}"
        bound = link.resolve() / "driver"
        bound.unlink(missing_ok=True)
        if driver is not None:
            self.tree.link(f"/{bound.relative_to(self.tree.root.resolve())}",
                           f"/sys/bus/pci/drivers/{driver}")  # fmt: skip
        names = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm") if version else modules
        self.modules("ext4", *names)
        shown = self.tree.root / "proc/driver/nvidia/version"
        shown.unlink(missing_ok=True)
        if version:
            text = nodes.OPEN_TEXT if kind == "open" else nodes.VERSION_TEXT
            self.file("/proc/driver/nvidia/version", text.replace(nodes.VERSION, version))

    def libraries(self, version: str) -> None:
        """Exchange the driver's libraries for those of another version."""
        for name in ("libcuda.so", "libnvidia-ml.so"):
            for path in (self.tree.root / LIBRARIES.lstrip("/")).glob(f"{name}.*"):
                path.unlink()
            self.file(f"{LIBRARIES}/{name}.{version}", b"\x7fELF\x02\x01\x01")
            self.tree.link(f"{LIBRARIES}/{name}.1", f"{LIBRARIES}/{name}.{version}")


def _entry(title: str, name: str, release: str, options: str) -> list[str]:
    return [
        f"menuentry '{title}' --class ubuntu $menuentry_id_option '{name}' {{",
        "\tif [ x$grub_platform = xxen ]; then insmod xzio; fi",
        f"\tlinux\t/boot/vmlinuz-{release} root=UUID=1 ro {options} $vt_handoff",
        f"\tinitrd\t/boot/initrd.img-{release}",
        "}",
    ]
