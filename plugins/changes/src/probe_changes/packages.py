"""What package managers have begun: packages that dpkg has not finished, and what waits for a boot.

Only dpkg keeps the states of packages as text. For others it is said that they are not read.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine

STATUS = "/var/lib/dpkg/status"
_LIMIT = 16 << 20
"""Bytes of the list: a desktop with 3,000 packages has 4 MiB."""

_CONCERNED = (
    *("nvidia", "linux-image", "linux-modules", "linux-headers", "dkms", "amdgpu", "rocm"),
    *("initramfs-tools", "linux-firmware", "firmware-amd-graphics", "firmware-intel-graphics"),
)
_STATES = ("unpacked", "half-configured", "half-installed")

_DATABASES = {
    "rpm": (
        *("/usr/lib/sysimage/rpm/rpmdb.sqlite", "/var/lib/rpm/rpmdb.sqlite"),
        *("/usr/lib/sysimage/rpm/Packages.db", "/var/lib/rpm/Packages.db"),
        "/var/lib/rpm/Packages",
    ),
    "pacman": ("/var/lib/pacman/local",),
    "apk": ("/usr/lib/apk/db/installed", "/lib/apk/db/installed"),
}
"""Package manager to the places of its database, the newer first: sqlite, ndb, Berkeley DB."""

_WANTED = ("/run/reboot-required", "/run/reboot-needed")
"""Debian Policy 9.12, and SUSE's zypp-boot-plugin(8)."""

_PACKAGES = "/run/reboot-required.pkgs"
_LINKS = ("/system-update", "/etc/system-update")  # systemd.offline-updates(7)


def unread_database(machine: Machine) -> str:
    """Return why it is not known which packages are unfinished; "" where dpkg's list tells."""
    if machine.exists(STATUS):
        try:
            size = len(machine.read_bytes(STATUS, _LIMIT))
        except (OSError, ValueError):
            return _not_known(f"dpkg's database {STATUS} is closed")
        return _not_known(f"dpkg's database {STATUS} is too long") if size == _LIMIT else ""
    for manager, paths in _DATABASES.items():
        path = next((path for path in paths if machine.exists(path)), None)
        if path is not None:
            return _not_known(f"{manager}'s database {path} is not read")
    return ""


def _not_known(reason: str) -> str:
    return f"{reason}: whether a package of a driver or kernel is unfinished is not known"


def wants_boot(machine: Machine) -> tuple[str, list[str]] | None:
    """Return the file that asks for a boot, and the packages of drivers and kernels that it names.

    None where no file asks, or where Debian's names packages of neither.
    """
    path = next((path for path in _WANTED if machine.exists(path)), None)
    if path is None:
        return None
    listed = (machine.read(_PACKAGES, 64 << 10) or "").split()
    names = [name for name in dict.fromkeys(listed) if any(part in name for part in _CONCERNED)]
    return None if listed and not names else (path, names)


def offline_update(machine: Machine) -> str:
    """Return the link for which the next boot first installs packages; "" without one."""
    return next((path for path in _LINKS if machine.readlink(path) or machine.exists(path)), "")


def unfinished(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield the name and the state of each (dpkg(1), package states)."""
    try:
        text = machine.read_bytes(STATUS, _LIMIT).decode("utf-8", "replace")
    except (OSError, ValueError):
        return
    if not any(f" {state}\n" in text or " reinstreq " in text for state in _STATES):
        return
    for paragraph in text.split("\n\n"):
        fields = dict(_fields(paragraph))
        name, status = fields.get("Package", ""), fields.get("Status", "").split()
        if len(status) == 3 and any(part in name for part in _CONCERNED):
            if status[2] in _STATES:
                yield name, status[2]
            elif status[1] == "reinstreq":
                yield name, "to be reinstalled"


def _fields(paragraph: str) -> Iterator[tuple[str, str]]:
    for line in paragraph.splitlines():
        name, colon, value = line.partition(": ")
        if colon:
            yield name, value
