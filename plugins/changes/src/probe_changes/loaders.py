"""Which kernel the boot loader starts next, by its own files: GRUB, its BLS form, systemd-boot.

The rules are those of grub-mkconfig's 00_header and 10_linux, of Fedora's blscfg, and of
systemd-boot (systemd, src/boot/boot.c). Where a file cannot be read, the distribution's rule
stands for it, and the answer is `likely` at most.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from probe_changes.grub import BootEntry, GrubMenu, grub_environment
from probe_changes.kernels import Kernels, package_key, version_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Literal

    from probe_core.machine import Machine

    Certainty = Literal["known", "likely", "unknown", "assumed"]

_FOLDERS = ("/boot/grub", "/boot/grub2", "/boot/efi/EFI/fedora", "/boot/efi/EFI/redhat")
_ENTRIES = ("/boot/loader", "/efi/loader", "/boot/efi/loader")
_VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_EFIVARS = "/sys/firmware/efi/efivars"
_DEFAULTS = "/etc/default/grub"
_UPDATES = "/etc/sysconfig/kernel"
_KEXEC = "/sys/kernel/kexec_loaded"
_STAGED = "/run/ostree/staged-deployment"
_MAX_ENTRIES = 128
_LIMIT = 1 << 20


class NextBoot:
    """The kernel that starts next.

    `release` is None where it is not known, `options` are the kernel's parameters (None: as now),
    `certainty` says what the answer rests on, `why` is the evidence.
    """

    def __init__(
        self, release: str | None, certainty: Certainty, why: str, options: str | None = None
    ) -> None:
        self.release = release
        self.certainty: Certainty = certainty if release else "unknown"
        self.why = why
        self.options = options


def next_boot(machine: Machine, kernels: Kernels) -> NextBoot:
    """Return what boots next; never raises for what a file holds."""
    if machine.read(_KEXEC, 16) == "1":
        return NextBoot(None, "unknown", f"{_KEXEC}: another kernel is loaded for kexec")
    if machine.exists(_STAGED):
        return NextBoot(None, "unknown", f"{_STAGED}: an update waits, whose tree is not read")
    if machine.exists("/etc/NIXOS"):
        return _of_nixos(machine)
    return _of_systemd_boot(machine, kernels) or _of_grub(machine, kernels) or _by_rule(kernels, "")


def _of_nixos(machine: Machine) -> NextBoot:
    folder = "/nix/var/nix/profiles/system/kernel-modules/lib/modules"
    names = machine.listdir(folder)
    why = f"{folder} has {', '.join(names[:2])}" if names else f"{folder} is empty or closed"
    return NextBoot(names[0] if len(names) == 1 else None, "likely", why)


def _by_rule(kernels: Kernels, cause: str) -> NextBoot:
    newest = kernels.newest
    if newest is None:
        reason = "no image of a kernel is seen in /boot or /lib/modules"
        return NextBoot(None, "unknown", f"{cause}; {reason}" if cause else reason)
    rule = f"{kernels.images[newest]} is the newest image"
    return NextBoot(newest, "likely", f"{cause}; {rule}" if cause else rule)


# GRUB: what `default` names in grub.cfg, which next_entry overrides for one boot.


def _of_grub(machine: Machine, kernels: Kernels) -> NextBoot | None:
    folder = next((path for path in _FOLDERS if machine.listdir(path)), None)
    configured = _settings(machine)
    if folder is None and configured is None:
        return None
    environment = _environment(machine)
    text = machine.read(f"{folder}/grub.cfg", _LIMIT) if folder else None
    if not text:
        return _without_menu(machine, kernels, configured or {}, environment)
    menu = GrubMenu(text)
    variables = environment or {}
    wanted = variables.get("next_entry", "")
    place = f"{folder}/grubenv: next_entry={wanted}"
    if not wanted:
        wanted, place = menu.default, f"{folder}/grub.cfg: default={menu.default or 0}"
        if "saved_entry" in wanted:
            if environment is None:
                return _saved_unseen(machine, kernels)
            wanted = variables.get("saved_entry", "")
            place = f"{folder}/grubenv: saved_entry={wanted or '(none)'}"
    if menu.uses_bls:
        return _of_entries(machine, kernels, wanted, place, variables)
    entry = menu.entry(wanted)
    if entry is None:
        return _by_rule(kernels, f"{place}: no entry of it is seen")
    return _started(entry, kernels, place, menu.is_certain)


def _started(entry: BootEntry, kernels: Kernels, place: str, is_certain: bool) -> NextBoot:
    where = f"{place}, {entry.title[:120]!r}"
    if entry.deployment not in ("", kernels.deployment):
        why = f"{where} is of another deployment of ostree, whose tree is not read"
        return NextBoot(None, "unknown", why)
    if not entry.image:
        return NextBoot(None, "unknown", f"{where} starts no kernel of this system")
    release = kernels.release_of(entry.image, entry.version)
    if release is None:
        return NextBoot(None, "unknown", f"{where}: {entry.image} does not show its release")
    return NextBoot(release, "known" if is_certain else "likely", where, entry.options)


def _environment(machine: Machine) -> dict[str, str] | None:
    """Return GRUB's variables; None where its file cannot be read."""
    for folder in _FOLDERS:
        text = machine.read(f"{folder}/grubenv", 4096)
        if text is not None:
            return grub_environment(text)
    return None


def _settings(machine: Machine) -> dict[str, str] | None:
    """Return what grub-mkconfig reads: its file, and Debian's and Ubuntu's of a folder after it."""
    names = [name for name in machine.listdir(f"{_DEFAULTS}.d") if name.endswith(".cfg")]
    paths = [_DEFAULTS, *(f"{_DEFAULTS}.d/{name}" for name in names[:_MAX_ENTRIES])]
    texts = [text for path in paths if (text := machine.read(path, 64 << 10)) is not None]
    pairs = grub_environment("\n".join(texts)).items()
    return {name: value.strip("\"'") for name, value in pairs} if texts else None


def _preferred(kernels: Kernels, configured: dict[str, str]) -> NextBoot | None:
    """Return the first kernel of a menu whose order is told; None where the newest is the first.

    GRUB_TOP_LEVEL is an image (GRUB 2.12), GRUB_FLAVOUR_ORDER Ubuntu's: kinds of kernels.
    """
    top = configured.get("GRUB_TOP_LEVEL", "")
    release = next((r for r, image in kernels.images.items() if top and image == top), None)
    if release is not None:
        return NextBoot(release, "likely", f"{_DEFAULTS}: GRUB_TOP_LEVEL={top[:120]}")
    order = configured.get("GRUB_FLAVOUR_ORDER", "")
    for flavour in order.split():
        if own := [r for r in kernels.images if r.endswith(f"-{flavour}")]:
            why = f"{_DEFAULTS}: GRUB_FLAVOUR_ORDER={order[:120]}"
            return NextBoot(max(own, key=version_key), "likely", why)
    return None


def _without_menu(
    machine: Machine,
    kernels: Kernels,
    configured: dict[str, str],
    environment: dict[str, str] | None,
) -> NextBoot:
    """Return the likely kernel where grub.cfg is closed: what it was made of says the default."""
    if environment and environment.get("next_entry"):
        name = environment["next_entry"]
        return _named(kernels, name, f"grubenv: next_entry={name}")
    default = configured.get("GRUB_DEFAULT", "0")
    if default == "saved":
        if environment is None:
            return _saved_unseen(machine, kernels)
        default = environment.get("saved_entry", "") or "0"
    if default == "0":
        return _preferred(kernels, configured) or _by_rule(kernels, "grub.cfg is closed")
    return _named(kernels, default, f"{_DEFAULTS}: the default is {default[:120]}")


def _saved_unseen(machine: Machine, kernels: Kernels) -> NextBoot:
    """Return the likely kernel where a saved entry counts and cannot be read.

    With UPDATEDEFAULT the package of a kernel makes itself the saved entry (Fedora, RHEL).
    """
    cause = f"{_DEFAULTS}: GRUB_DEFAULT=saved, and grubenv is closed"
    settings = grub_environment(machine.read(_UPDATES, 16 << 10) or "")
    if settings.get("UPDATEDEFAULT", "").strip("\"'") == "yes":
        return _by_rule(kernels, f"{cause}; {_UPDATES}: UPDATEDEFAULT=yes")
    return NextBoot(None, "unknown", cause)


def _named(kernels: Kernels, name: str, place: str) -> NextBoot:
    """Return the kernel whose release stands in the name of an entry (grub-mkconfig)."""
    within = [release for release in kernels.images if release in name]
    if not within:
        return NextBoot(None, "unknown", f"{place}; grub.cfg, which has the entries, is closed")
    return NextBoot(max(within, key=len), "likely", place)


# Entries of the Boot Loader Specification, one file each.


def _read_entries(machine: Machine, folder: str) -> list[BootEntry]:
    names = [name for name in machine.listdir(folder) if name.endswith(".conf")]
    entries = []
    for name in names[:_MAX_ENTRIES]:
        text = machine.read(f"{folder}/{name}", 64 << 10)
        if text is not None:
            entries.append(BootEntry.of_file(name.removesuffix(".conf"), text))
    return entries


def _of_entries(
    machine: Machine, kernels: Kernels, wanted: str, place: str, variables: dict[str, str]
) -> NextBoot:
    """Return GRUB's choice among the files of /boot/loader/entries."""
    entries = _read_entries(machine, "/boot/loader/entries")
    if not entries:
        return _by_rule(kernels, f"{place}; /boot/loader/entries is closed or empty")
    entries.sort(key=lambda entry: package_key(entry.name), reverse=True)
    chosen = next((e for e in entries if wanted in (e.name, e.title)), None)
    if chosen is None and wanted.isdecimal() and int(wanted[:4]) < len(entries):
        chosen = entries[int(wanted[:4])]
    chosen = chosen or entries[0]
    for name, value in variables.items():
        chosen.options = (chosen.options or "").replace(f"${name}", value)
    return _started(chosen, kernels, place, is_certain=True)


# systemd-boot: variables of the firmware, then loader.conf.


def _of_systemd_boot(machine: Machine, kernels: Kernels) -> NextBoot | None:
    loader = _variable(machine, "LoaderInfo") or ""
    if not loader.startswith("systemd-boot"):
        return None
    folder = next((path for path in _ENTRIES if machine.listdir(f"{path}/entries")), None)
    entries = _read_entries(machine, f"{folder}/entries") if folder else []
    entries += _images_of(machine)
    if not entries:
        return _by_rule(kernels, "systemd-boot's entries are closed")
    _sort(entries)
    for pattern, place in _wishes(machine, folder):
        chosen = next((entry for entry in entries if _matches(entry, pattern)), None)
        if chosen is not None:
            return _started(chosen, kernels, f"{place}={pattern}", is_certain=True)
    return _started(entries[0], kernels, "systemd-boot's first entry", is_certain=True)


def _images_of(machine: Machine) -> list[BootEntry]:
    """Return the unified kernel images, which need no file of their own."""
    names = [
        (folder, name)
        for folder in ("/boot/EFI/Linux", "/efi/EFI/Linux", "/boot/efi/EFI/Linux")
        for name in machine.listdir(folder)
        if name.endswith(".efi")
    ]
    entries = []
    for folder, name in names[:_MAX_ENTRIES]:
        entry = BootEntry(name.removesuffix(".efi"), name)
        entry.image = f"{folder}/{name}"
        entry.options = None
        entries.append(entry)
    return entries


def _sort(entries: list[BootEntry]) -> None:
    """Sort as systemd-boot does: no tries left last, then with sort-key, newest version first."""

    def group(entry: BootEntry) -> tuple[bool, bool, str, str]:
        machine = entry.machine_id if entry.sort_key else ""
        return entry.is_exhausted, not entry.sort_key, entry.sort_key, machine

    # The last sort counts first: each leaves equal ones in the order of the one before.
    entries.sort(key=lambda entry: version_key(entry.name), reverse=True)
    entries.sort(key=lambda e: version_key(e.version) if e.sort_key else (), reverse=True)
    entries.sort(key=group)


def _wishes(machine: Machine, folder: str | None) -> Iterable[tuple[str, str]]:
    """Yield the names or patterns that are asked for, the first that fits counts."""
    for name in ("LoaderEntryOneShot", "LoaderEntryDefault"):
        value = _variable(machine, name)
        if value == "@saved":
            value = _variable(machine, "LoaderEntrySaved")
        if value:
            yield value, name
    text = machine.read(f"{folder}/loader.conf", 64 << 10) if folder else None
    for line in (text or "").splitlines():
        fields = line.split(None, 1)
        if len(fields) == 2 and fields[0] in ("default", "preferred"):
            value = fields[1].strip()
            value = _variable(machine, "LoaderEntrySaved") or "" if value == "@saved" else value
            if value:
                yield value, f"loader.conf: {fields[0]}"


def _matches(entry: BootEntry, pattern: str) -> bool:
    names: Sequence[str] = (entry.name, f"{entry.name}.conf", f"{entry.name}.efi")
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in names)


def _variable(machine: Machine, name: str) -> str | None:
    """Return a variable of the firmware: 4 bytes of attributes, then UTF-16."""
    try:
        raw = machine.read_bytes(f"{_EFIVARS}/{name}-{_VENDOR}", 4096)
    except (OSError, ValueError):
        return None
    return raw[4:].decode("utf-16-le", "replace").strip("\0 ")
