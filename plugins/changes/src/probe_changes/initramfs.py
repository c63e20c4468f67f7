"""Whether an initramfs is older than what it must hold: lines of modprobe.d, a module asked for.

What it holds is not read: it is packed, has 20 to 150 MB, and is often open to root alone. An older
file is a sign and no proof, as not every initramfs holds a driver (Fedora leaves NVIDIA's out).
"""

from __future__ import annotations

import os

from probe_changes.modprobe import COPIED, files, lines, module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.machine import Machine

EARLY = {
    "nvidia": ("nouveau", "nova_core"),
    "amd": ("amdgpu", "radeon"),
    "intel": ("i915", "xe"),
}
"""Vendor to the drivers of its GPUs that are part of the kernel: an initramfs has those for the
console. NVIDIA's own is in it where its makers are told so."""

_OWN = "nvidia"
_PASSTHROUGH = "vfio_pci"

# Where the makers are told of modules to put in: initramfs-tools (a module a line), dracut and
# mkinitcpio (shell variables).
_LISTS = ("/etc/initramfs-tools/modules", "/etc/dracut.conf", "/etc/mkinitcpio.conf")
_LIST_FOLDERS = ("/etc/dracut.conf.d", "/usr/lib/dracut/dracut.conf.d", "/etc/mkinitcpio.conf.d")
_VARIABLES = ("add_drivers", "force_drivers", "MODULES")
_QUOTES = str.maketrans("=+()\"'", "      ")

_LIMIT = 64 << 10


class Stale:
    """An initramfs that is older than `source`; `about` are the modules that this concerns."""

    def __init__(self, initramfs: str, source: str, about: list[str]) -> None:
        self.initramfs = initramfs
        self.source = source
        self.about = about


def stale(
    machine: Machine,
    initramfs: str | None,
    modules: Sequence[str],
    ids: Sequence[str],
    file: str | None,
) -> Stale | None:
    """Return what is newer than an initramfs and must be in it; None where nothing is seen.

    `modules` are the early drivers of the machine's devices, `ids` their PCI ids (10de:2684), and
    `file` is NVIDIA's module for the kernel.
    """
    made = _changed(machine, initramfs) if initramfs else None
    if initramfs is None or made is None:
        return None
    newer = [path for path in files(machine, COPIED) if _is_newer(machine, path, made)]
    is_newer = file is not None and _is_newer(machine, file, made)
    if not newer and not is_newer:
        return None
    has_own = any(_lists_own(machine, path) for path in _makers(machine))
    for path in newer:
        named = _named(machine, path, ids)
        about = [name for name in named if name in modules or name == _PASSTHROUGH]
        about += [name for name in named if has_own and name.startswith(_OWN)]
        if about:
            return Stale(initramfs, path, about)
    return Stale(initramfs, file, [_OWN]) if file is not None and is_newer and has_own else None


def _is_newer(machine: Machine, path: str, made: int) -> bool:
    changed = _changed(machine, path)
    return changed is not None and changed > made


def _changed(machine: Machine, path: str) -> int | None:
    """Return when a file was written, in nanoseconds; None where that cannot be seen."""
    try:
        return os.stat(machine.path(path)).st_mtime_ns
    except (OSError, ValueError):
        return None


def _makers(machine: Machine) -> Iterator[str]:
    yield from _LISTS
    yield from files(machine, _LIST_FOLDERS)


def _named(machine: Machine, path: str, ids: Sequence[str]) -> list[str]:
    """Return what a file of modprobe.d is about; vfio-pci only where it takes one of `ids`."""
    named = (
        module_of(words)
        for words in lines(machine, path)
        if module_of(words) != _PASSTHROUGH or any(id_ in " ".join(words) for id_ in ids)
    )
    return list(dict.fromkeys(named))


def _lists_own(machine: Machine, path: str) -> bool:
    """Return whether the makers of an initramfs are told to put NVIDIA's module in."""
    for line in (machine.read(path, _LIMIT) or "").splitlines():
        words = line.partition("#")[0].translate(_QUOTES).split()
        if path == _LISTS[0]:
            names = words[:1]
        else:
            names = words[1:] if words[:1] and words[0] in _VARIABLES else []
        if any(name.startswith(_OWN) for name in names):
            return True
    return False
