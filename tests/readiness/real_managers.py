"""dnf, zypper and pacman themselves, on the described systems, below a folder of the test's own.

Each package is made without a file in it; what is installed before and after is read from the
records that the programs keep. Nothing of this machine is read or changed. They want root, and the
programs of `NEEDED`, which are packages of Debian as well.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from package_solver import Database, Package, System

NEEDED = {
    "dnf": ("dnf", "rpmbuild", "rpm", "createrepo_c", "modifyrepo_c"),
    "zypper": ("zypper", "rpmbuild", "rpm", "createrepo_c"),
    "pacman": ("pacman",),
}
"""Program to those that are needed with it."""


class Failed(Exception):
    """What a program printed that did not do what it was asked."""


def missing(program: str) -> list[str]:
    """Return what is not here of what a program needs, root's rights among it."""
    lacking = [name for name in NEEDED[program] if shutil.which(name) is None]
    return lacking if os.geteuid() == 0 else [*lacking, "root's rights"]


def _run(words: Iterable[str], folder: Path) -> str:
    listed = [str(word) for word in words]
    done = subprocess.run(
        listed,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise Failed(f"{' '.join(listed)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


# Packages of rpm.

_HEAD = """\
Name: none
Version: 1
Release: 1
Summary: none
License: none
%description
none
"""


def _paragraph(package: Package) -> str:
    epoch, _, rest = package.version.rpartition(":")
    version, _, release = rest.rpartition("-")
    lines = [f"%package -n {package.name}", "Summary: none", f"Version: {version}"]
    lines += [f"Release: {release}"] + ([f"Epoch: {epoch}"] if epoch else [])
    for label in ("requires", "provides", "conflicts"):
        lines += [f"{label.capitalize()}: {text}" for text in getattr(package, label)]
    lines += [f"%description -n {package.name}", "none", f"%files -n {package.name}"]
    return "\n".join(lines)


def build_rpms(packages: Iterable[Package], folder: Path) -> dict[str, Path]:
    """Build packages without a file; return name to path."""
    folder.mkdir(parents=True)
    spec = folder / "all.spec"
    listed = list(packages)
    spec.write_text("\n".join([_HEAD, *map(_paragraph, listed)]) + "\n")
    defined = ("--define", f"_topdir {folder}", "--define", "_build_id_links none")
    _run(("rpmbuild", "-bb", "--target", "x86_64", *defined, spec), folder)
    built = list((folder / "RPMS" / "x86_64").glob("*.rpm"))
    return {
        package.name: next(
            path
            for path in built
            if path.name == f"{package.name}-{package.version.rpartition(':')[2]}.x86_64.rpm"
        )
        for package in listed
    }


def _modules(known: Database) -> str:
    """Return the streams as createrepo_c's tools want them (modulemd 2)."""
    documents = []
    for name, streams in known.modules.items():
        for stream, profile in streams.items():
            own = [p for p in known.packages if stream in p.streams]
            artifacts = "".join(f"    - {p.name}-{_nevra(p)}.x86_64\n" for p in own)
            packages = "".join(f"        - {package}\n" for package in profile)
            documents.append(
                f"---\ndocument: modulemd\nversion: 2\ndata:\n  name: {name}\n"
                f"  stream: '{stream}'\n  version: 1\n  context: 01234567\n  arch: x86_64\n"
                "  summary: none\n  description: none\n  license: {module: [MIT]}\n"
                f"  profiles:\n    default:\n      rpms:\n{packages}"
                f"  artifacts:\n    rpms:\n{artifacts}...\n"
            )
        # NVIDIA's name one, too: "dnf module install nvidia-driver:STREAM" needs no profile.
        profiles = "".join(f"    '{stream}': [default]\n" for stream in streams)
        documents.append(
            "---\ndocument: modulemd-defaults\nversion: 1\n"
            f"data:\n  module: {name}\n  profiles:\n{profiles}...\n"
        )
    return "".join(documents)


def _nevra(package: Package) -> str:
    return package.version if ":" in package.version else f"0:{package.version}"


class Rpms:
    """The repositories of a described distribution, and systems of it."""

    def __init__(self, known: Database, folder: Path) -> None:
        self.known = known
        self.folder = folder
        packages = [package for package in known.packages if package.repository in known.named]
        self.new = build_rpms(packages, folder / "new")
        self.old = build_rpms(list(known.older.values()), folder / "old")
        for repository in known.named:
            self._repository(repository, packages)

    def _repository(self, name: str, packages: Iterable[Package]) -> None:
        place = self.folder / "repositories" / name
        place.mkdir(parents=True)
        for package in packages:
            if package.repository == name:
                shutil.copy(self.new[package.name], place)
        _run(("createrepo_c", "-q", place), place)
        if name == "nvidia" and self.known.modules:
            (place / "modules.yaml").write_text(_modules(self.known))
            _run(("modifyrepo_c", place / "modules.yaml", place / "repodata"), place)

    def after(self, system: System, command: str, root: Path) -> dict[str, str]:
        """Run a command on a new root that has what a system has; return what is installed then."""
        root.mkdir()
        files = [
            (self.new if package in self.known.packages else self.old)[name]
            for name, package in system.installed.items()
        ]
        options = ("--justdb", "--nodeps", "--noscripts", "--nosignature", "--ignorearch")
        _run(("rpm", "--root", root, "-i", *options, *files), root)
        program, *words = command.removeprefix("sudo ").split()
        run = {"dnf": self._dnf, "zypper": self._zypper}[program]
        run(system, words, root)
        text = _run(("rpm", "--root", root, "-qa", "--qf", "%{NAME} %{EVR}\\n"), root)
        return dict(line.split() for line in text.splitlines())

    def _places(self, system: System) -> dict[str, Path]:
        return {name: self.folder / "repositories" / name for name in sorted(system.repositories)}

    def _dnf(self, system: System, words: list[str], root: Path) -> None:
        for name in ("none", "log", "persist", "cache"):
            (root / name).mkdir()
        if system.stream is not None:
            folder = root / "etc/dnf/modules.d"
            folder.mkdir(parents=True)
            entries = {"name": "nvidia-driver", "stream": system.stream, "profiles": "default"}
            entries["state"] = "enabled"
            lines = "\n".join(f"{key}={value}" for key, value in entries.items())
            (folder / "nvidia-driver.module").write_text(f"[nvidia-driver]\n{lines}\n")
        settings = {
            "reposdir": root / "none",
            "cachedir": root / "cache",
            "logdir": root / "log",
            "persistdir": root / "persist",
            "tsflags": "justdb,noscripts",
            "gpgcheck": 0,
            "module_platform_id": "platform:el9",
            "install_weak_deps": 0,
            "protected_packages": "",
        }
        options = [f"--setopt={key}={value}" for key, value in settings.items()]
        options += [f"--repofrompath={n},file://{p}" for n, p in self._places(system).items()]
        base = ("dnf", "-y", f"--installroot={root}", "--releasever=9", "--disableplugin=*")
        _run((*base, "--forcearch=x86_64", *options, *words), root)

    def _zypper(self, system: System, words: list[str], root: Path) -> None:
        folder = root / "etc/zypp/repos.d"
        folder.mkdir(parents=True)
        for name, place in self._places(system).items():
            lines = f"enabled=1\ntype=rpm-md\nbaseurl=file://{place}\ngpgcheck=0\n"
            (folder / f"{name}.repo").write_text(f"[{name}]\nname={name}\n{lines}")
        base = ("zypper", "--root", root, "--non-interactive", "--no-gpg-checks")
        _run((*base, "refresh"), root)
        verb, *others = words
        _run((*base, verb, "--no-recommends", *others), root)


# Packages of pacman.


def _member(archive: tarfile.TarFile, name: str, text: str) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(text.encode())
    archive.addfile(info, io.BytesIO(text.encode()))


class Pacman:
    """The repositories of Arch Linux as described, and systems of it."""

    def __init__(self, known: Database, folder: Path) -> None:
        self.known = known
        self.folder = folder
        for repository in known.named:
            self._repository(repository)

    def _repository(self, name: str) -> None:
        place = self.folder / name
        place.mkdir(parents=True)
        with tarfile.open(place / f"{name}.db", "w") as database:
            for package in self.known.packages:
                if package.repository == name:
                    file = self._built(package, place)
                    data = file.read_bytes()
                    fields = {
                        "FILENAME": [file.name],
                        "CSIZE": [str(len(data))],
                        "SHA256SUM": [hashlib.sha256(data).hexdigest()],
                        **self._fields(package),
                    }
                    directory = f"{package.name}-{package.version}"
                    _member(database, f"{directory}/desc", _blocks(fields))

    def _built(self, package: Package, place: Path) -> Path:
        path = place / f"{package.name}-{package.version}-x86_64.pkg.tar"
        lines = [f"pkgname = {package.name}", f"pkgver = {package.version}", "arch = x86_64"]
        names = {"depend": package.requires, "conflict": package.conflicts}
        names["provides"] = package.provides
        lines += [f"{key} = {text}" for key, texts in names.items() for text in texts]
        with tarfile.open(path, "w") as archive:
            _member(archive, ".PKGINFO", "\n".join(lines) + "\n")
        return path

    @staticmethod
    def _fields(package: Package) -> dict[str, Iterable[str]]:
        return {
            "NAME": [package.name],
            "VERSION": [package.version],
            "ARCH": ["x86_64"],
            "DEPENDS": package.requires,
            "CONFLICTS": package.conflicts,
            "PROVIDES": package.provides,
        }

    def after(self, system: System, command: str, root: Path) -> dict[str, str]:
        """Run a command on a new root that has what a system has; return what is installed then."""
        local = root / "db/local"
        local.mkdir(parents=True)
        (local / "ALPM_DB_VERSION").write_text("9\n")
        for package in system.installed.values():
            folder = local / f"{package.name}-{package.version}"
            folder.mkdir()
            (folder / "desc").write_text(_blocks(self._fields(package)))
            (folder / "files").write_text("")
        for name in ("cache", "hooks", "gpg"):
            (root / name).mkdir()
        lines = ["[options]", "Architecture = x86_64", "SigLevel = Never"]
        for name in self.known.named:
            lines += [f"[{name}]", f"Server = file://{self.folder / name}"]
        (root / "pacman.conf").write_text("\n".join(lines) + "\n")
        options = ("--config", root / "pacman.conf", "-r", root, "-b", root / "db")
        options += ("--cachedir", root / "cache", "--hookdir", root / "hooks")
        options += ("--gpgdir", root / "gpg", "--logfile", root / "log", "--noconfirm")
        _run(("pacman", *options, "-Sy"), root)
        # --ask 4: yes to what is asked of packages in conflict, as a person answers.
        words = command.removeprefix("sudo pacman ").split()
        _run(("pacman", *options, "--ask", "4", *words), root)
        text = _run(("pacman", *options, "-Q"), root)
        return dict(line.split() for line in text.splitlines())


def _blocks(fields: dict[str, Iterable[str]]) -> str:
    filled = {key: list(values) for key, values in fields.items() if values}
    return "".join(f"%{key}%\n" + "\n".join(values) + "\n\n" for key, values in filled.items())
