"""Which installed packages are a driver of NVIDIA's, and what goes with them.

Read where a driver is to be removed, of /var/lib/dpkg/status (dpkg(1), deb822(5)), or of pacman's
records. A pattern such as '^nvidia-.*' would take the container toolkit and CUDA's compiler along.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_core.machine import Machine

    Fields = Mapping[str, str]

STATUS = "/var/lib/dpkg/status"
_LIMIT = 64 << 20

PACMAN = "/var/lib/pacman/local"
"""Where pacman keeps a folder NAME-VERSION-RELEASE for each installed package (pacman(8))."""

# What nvidia-open takes the place of (its PKGBUILD): "conflicts=('nvidia')", and what excludes the
# NVIDIA-MODULE that it provides.
_OPEN = "package nvidia-open"
_EXCLUDED_BY_OPEN = "nvidia"
_PROVIDED_BY_OPEN = ("nvidia-open", "NVIDIA-MODULE")

# The source of the driver's packages in Debian and Ubuntu (debian/control of each branch).
_SOURCE = "nvidia-graphics-drivers"

# The same packages from other archives, by name: with the branch's number behind, or without.
_STEMS = (
    *("libcuda1", "libnvidia-cfg1", "libnvidia-common", "libnvidia-compute", "libnvidia-decode"),
    *("libnvidia-encode", "libnvidia-extra", "libnvidia-fbc1", "libnvidia-gl", "libnvidia-ml1"),
    *("libnvidia-ptxjitcompiler1", "nvidia-compute-utils", "nvidia-dkms", "nvidia-driver"),
    *("nvidia-driver-libs", "nvidia-firmware", "nvidia-headless", "nvidia-headless-no-dkms"),
    *("nvidia-kernel-common", "nvidia-kernel-dkms", "nvidia-kernel-source", "nvidia-smi"),
    *("nvidia-utils", "xserver-xorg-video-nvidia"),
)

# Packages that have no files but bring the driver: they may go with it.
_META = ("cuda", "cuda-drivers", "cuda-runtime", "nvidia-open")


def driver_packages(machine: Machine) -> list[str]:
    """Return the installed packages of the driver and those that go with them, by name.

    Empty where there are none, or where more would go than the driver and what is only its name:
    a compiler or a toolkit that depends on one of its libraries.
    """
    installed = dict(_installed(machine.read(STATUS, _LIMIT) or ""))
    own = {name for name, fields in installed.items() if _is_driver(name, fields)}
    gone = _with_dependents(own, installed)
    is_safe = all(_is_meta(name) for name in gone - own)
    return sorted(gone) if is_safe else []


def replaced(machine: Machine, changes: Sequence[str]) -> list[str]:
    """Return the installed packages that another branch of the driver takes the place of.

    Ubuntu's and NVIDIA's packages of a branch exclude those of each other, and Arch's module
    excludes others; `changes` are an action's.
    """
    if _OPEN in changes and machine.exists(PACMAN):
        return sorted(_excluded_by_open(machine))
    driver = [name for name in changes if name.startswith("package nvidia-driver-")]
    branches = {part for name in driver for part in name.split("-") if part.isdecimal()}
    if not branches:
        return []
    installed = dict(_installed(machine.read(STATUS, _LIMIT) or ""))
    others = {
        name
        for name, fields in installed.items()
        if _is_driver(name, fields) and _split(name)[1] and not branches & {*name.split("-")}
    }
    return sorted(_with_dependents(others, installed))


def _excluded_by_open(machine: Machine) -> Iterator[str]:
    for folder in machine.listdir(PACMAN):
        name = folder.rsplit("-", 2)[0]
        if "nvidia" not in name or name in _PROVIDED_BY_OPEN:
            continue
        # desc has blocks of "%FIELD%", with a value in each line after it.
        text = machine.read(f"{PACMAN}/{folder}/desc", 64 << 10) or ""
        block = text.partition("%CONFLICTS%\n")[2].partition("\n\n")[0]
        if name == _EXCLUDED_BY_OPEN or not {*block.split()}.isdisjoint(_PROVIDED_BY_OPEN):
            yield name


def _installed(text: str) -> Iterator[tuple[str, Fields]]:
    for paragraph in text.split("\n\n"):
        fields = {}
        for line in paragraph.splitlines():
            name, colon, value = line.partition(":")
            if colon and not line.startswith((" ", "\t")):
                fields[name] = value.strip()
        if fields.get("Status", "").endswith(" installed") and "Package" in fields:
            yield fields["Package"], fields


def _is_driver(name: str, fields: Fields) -> bool:
    if fields.get("Source", "").partition(" ")[0].startswith(_SOURCE):
        return True
    stem, branch = _split(name)
    return name in _STEMS or (stem in _STEMS and branch)


def _is_meta(name: str) -> bool:
    return name in _META or _split(name)[0] in _META


def _split(name: str) -> tuple[str, bool]:
    """Return a name up to its number, and whether it has one: ("nvidia-driver", True)."""
    parts = name.split("-")
    at = next((at for at, part in enumerate(parts) if part[:1].isdecimal()), len(parts))
    return "-".join(parts[:at]), at < len(parts)


def _with_dependents(names: set[str], installed: Mapping[str, Fields]) -> set[str]:
    """Return packages and all that can no longer be installed without them, as apt removes them."""
    gone = set(names)
    while True:
        provided = set(_provided(installed, gone))
        more = {
            name
            for name, fields in installed.items()
            if name not in gone and not _is_satisfied(fields, provided)
        }
        # What was broken before is none of this.
        more = {name for name in more if _needs_any(installed[name], gone, installed)}
        if not more:
            return gone
        gone |= more


def _provided(installed: Mapping[str, Fields], gone: set[str]) -> Iterator[str]:
    for name, fields in installed.items():
        if name not in gone:
            yield name
            yield from _names(fields.get("Provides", ""))


def _is_satisfied(fields: Fields, provided: set[str]) -> bool:
    return all(any(name in provided for name in clause) for clause in _clauses(fields))


def _needs_any(fields: Fields, gone: set[str], installed: Mapping[str, Fields]) -> bool:
    missed = {
        *gone,
        *(name for name_of in gone for name in _names(installed[name_of].get("Provides", ""))),
    }
    return any(name in missed for clause in _clauses(fields) for name in clause)


def _clauses(fields: Fields) -> Iterator[list[str]]:
    """Yield the alternatives of each dependency; versions are not compared: none changes here."""
    for key in ("Depends", "Pre-Depends"):
        for clause in fields.get(key, "").split(","):
            if clause.strip():
                yield list(_names(clause.replace("|", ",")))


def _names(text: str) -> Iterator[str]:
    for entry in text.split(","):
        name = entry.partition("(")[0].partition("[")[0].strip().partition(":")[0]
        if name:
            yield name
