"""Which kernels a Linux machine has installed, and whose an image or a boot entry is."""

from __future__ import annotations

import re

from probe_changes.grub import deployment_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from probe_core.machine import Machine

    Key: TypeAlias = tuple[tuple[int, int, str], ...]


# The order of kernel releases: numbers by value, as package managers and loaders sort them.

_END = (1, 0, "")
"""Sorts after ``~`` and before everything else (deb-version(7), rpm-version(7))."""


def version_key(text: str) -> Key:
    """Return a sorting key: ``6.8.0-100`` is after ``6.8.0-62``, ``6.13~rc1`` before ``6.13``."""
    # Runs of digits, runs of letters, and each tilde; what separates them is left out.
    return (*map(_part, re.findall(r"[0-9]+|[^\W\d_]+|~", text[:256])), _END)


def _part(part: str) -> tuple[int, int, str]:
    if part == "~":
        return 0, 0, ""
    # rpmvercmp and GNU's `sort -V`: a number is newer than letters.
    return (3, int(part), "") if part.isdecimal() else (2, 0, part)


def package_key(name: str) -> tuple[Key, Key, Key]:
    """Return the key by which GRUB's blscfg sorts the names of its files, without ``.conf``.

    A name is split from the right as rpm's name-version-release, and compared in this order.
    """
    head, _, release = name.rpartition("-")
    first, _, version = head.rpartition("-")
    return version_key(first), version_key(version), version_key(release)


# The kernels of a machine.

MODULES = ("/lib/modules", "/usr/lib/modules")
_IMAGES = ("vmlinuz-", "vmlinux-", "kernel-", "Image-")
_MAX = 64
"""Kernels that are looked at: distributions keep two to five."""

_SIDE = ("rescue", ".old", ".bak", ".dpkg-", ".rpmsave", ".efi.signed")
"""Parts of the names of images that no rule takes for the newest."""


def _is_initramfs(name: str, release: str) -> bool:
    """Return whether a file of /boot is the initramfs of a release (Debian, Fedora)."""
    return name in (f"initrd.img-{release}", f"initramfs-{release}.img", f"initrd-{release}")


class Kernels:
    """The installed kernels of a machine.

    `images` maps a release to its image. A folder of modules alone is none: DKMS and removed
    packages leave folders behind. `newest` is the first by the distribution's order, and None
    where no image is seen. `deployment` is ostree's tree that runs, "" without ostree.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        listed = {name: f"{root}/{name}" for root in MODULES for name in machine.listdir(root)}
        self.folders = dict(list(listed.items())[:_MAX])
        self._bases = self._pkgbases()
        self.images = dict(self._images())
        self.deployment = deployment_of(machine.read("/proc/cmdline", 16 << 10) or "")

    def _pkgbases(self) -> dict[str, str]:
        """Return Arch's names of kernels ("linux-lts") with their releases."""
        pairs = (
            (self._machine.read(f"{folder}/pkgbase", 256), release)
            for release, folder in self.folders.items()
        )
        return {base: release for base, release in pairs if base}

    def _images(self) -> Iterator[tuple[str, str]]:
        for release, folder in self.folders.items():
            # Fedora and Arch keep the image beside the modules, and copy it to /boot.
            if self._machine.exists(f"{folder}/vmlinuz"):
                yield release, f"{folder}/vmlinuz"
        for name in self._machine.listdir("/boot"):
            if any(mark in name for mark in _SIDE):
                continue
            stem = next((name[len(start) :] for start in _IMAGES if name.startswith(start)), None)
            if stem:
                yield self._named(stem), f"/boot/{name}"

    def _named(self, stem: str) -> str:
        """Return the release in the name of an image; as it stands where no folder tells another.

        Alpine calls the image of 6.12.52-0-lts "lts", Slackware that of 6.12.1 "huge-6.12.1".
        """
        if stem in self._bases:
            return self._bases[stem]
        if stem in self.folders or stem[:1].isdecimal():
            return stem
        own = [r for r in self.folders if r.endswith(f"-{stem}") or stem.endswith(f"-{r}")]
        return max(own, key=version_key, default=stem)

    @property
    def newest(self) -> str | None:
        """The release that comes first by number, Arch's LTS kernel before its own.

        grub-mkconfig sorts ``vmlinuz-linux-lts`` before ``vmlinuz-linux`` as a longer name.
        """
        bases = {release: base for base, release in self._bases.items()}
        if any(release in bases for release in self.images):
            return max(self.images, key=lambda r: version_key(bases.get(r, "")), default=None)
        return max(self._of_board(), key=version_key, default=None)

    def _of_board(self) -> list[str]:
        """Return the releases for this board: Raspberry Pi OS installs those of several."""
        running = self._machine.read("/proc/sys/kernel/osrelease", 256) or ""
        flavour = running.partition("-rpi-")[2]
        own = [r for r in self.images if flavour and r.endswith(f"-rpi-{flavour}")]
        return own or [*self.images]

    def initramfs_of(self, release: str) -> str | None:
        """Return the initramfs of a release in /boot; None where none is seen.

        Arch names it by its kernel: initramfs-linux.img.
        """
        bases = [f"initramfs-{base}.img" for base, own in self._bases.items() if own == release]
        for name in self._machine.listdir("/boot"):
            if _is_initramfs(name, release) or name in bases:
                return f"/boot/{name}"
        return None

    def lacks_initramfs(self, release: str) -> bool:
        """Return whether /boot has the initramfs of every kernel but this one's."""
        names = self._machine.listdir("/boot")
        own = {r for r in self.images if any(_is_initramfs(name, r) for name in names)}
        image = self.images.get(release, "")
        others = [
            r for r, path in self.images.items() if path.startswith("/boot/") and r != release
        ]
        return (
            image.startswith("/boot/") and release not in own and bool(others) and own >= {*others}
        )

    def release_of(self, image: str, version: str = "") -> str | None:
        """Return the release that a boot entry starts; None where nothing shows it.

        `image` is the path that the entry names, `version` what it says of it.
        """
        known = [*self.folders, *self.images]
        name = image.rpartition("/")[2]
        stem = next((name[len(start) :] for start in _IMAGES if name.startswith(start)), "")
        for text in (stem, version):
            if text in known:
                return text
            if self._named(text) in known:
                return self._named(text)
        within = [release for release in known if release in image]
        if within:
            return max(within, key=len)
        plain = stem or version
        return plain if plain[:1].isdecimal() else None
