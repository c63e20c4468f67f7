"""Package managers in small: what a line of dnf, pacman or zypper does to a described system.

The systems are `packages/*.toml`: which repository has which package, what it needs, provides and
excludes, module streams, and what is installed. The rules are those of the programs' manuals:
dnf(8), pacman(8), zypper(8), rpm-ostree(1), transactional-update(8). Where these programs are
installed, `test_readiness_managers.py` asks them as well.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("packages")
_NOT_REPOSITORIES = ("kernel", "repositories", "states", "modules", "enabled")


OLDER = " (older)"
"""Behind the name of a package of a state: in its older version there."""


class Refused(Exception):
    """What a package manager says instead of doing it."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    repository: str
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()

    def offers(self) -> Iterator[str]:
        """Yield what it provides, its own name in its version among them."""
        yield f"{self.name} = {self.version}"
        yield from self.provides

    def is_named(self, spec: str) -> bool:
        """Return whether a word of dnf is it: NAME, NAME-VERSION, NAME-VERSION-RELEASE.ARCH."""
        version = self.version.rpartition(":")[2]
        names = (f"{self.name}-{text}" for text in (version, version.rpartition("-")[0]))
        return spec.removesuffix(".x86_64") in (self.name, *names)

    def meets(self, need: str) -> bool:
        return any(_meets(offer, need) for offer in self.offers())

    def excludes(self, other: Package) -> bool:
        return other.name != self.name and any(other.meets(name) for name in self.conflicts)


def _capability(text: str) -> tuple[str, str]:
    """Return (name, version) of "name", "name=1.2" and "name = 1.2"."""
    name, _, version = text.partition("=")
    return name.strip(), version.strip()


def _meets(offer: str, need: str) -> bool:
    """Return whether an offer is what is needed; a version without a release is of any release."""
    (name, version), (wanted, exact) = _capability(offer), _capability(need)
    plain = version.partition(":")[2] if ":" in version and ":" not in exact else version
    return name == wanted and (not exact or plain == exact or plain.startswith(f"{exact}-"))


def newer(one: str, other: str) -> bool:
    """Return whether a version is newer, by its numbers."""
    return _numbers(one) > _numbers(other)


def _numbers(version: str) -> list[int]:
    return [int(text) for text in re.findall(r"\d+", version)]


@dataclass
class Database:
    """One distribution: its repositories, all packages in them, and systems of it."""

    kernel: str
    named: dict[str, str | None]
    packages: list[Package]
    older: dict[str, Package]
    states: dict[str, list[str]]
    modules: dict[str, dict[str, list[str]]]
    enabled: dict[str, str]
    sources: dict[str, str] = field(default_factory=dict)


@cache
def database(name: str) -> Database:
    """Return `packages/NAME.toml`."""
    text: dict[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    packages, older, sources = [], {}, {}
    for repository, entries in text.items():
        if repository in _NOT_REPOSITORIES:
            continue
        for package, facts in entries.items():
            made = _package(package, repository, facts, facts["version"])
            packages.append(made)
            older[package] = _package(package, repository, facts, facts.get("older", made.version))
            sources[package] = facts["source"]
    return Database(
        kernel=text["kernel"],
        named={
            repository: None if facts.get("own") else facts["named"]
            for repository, facts in text["repositories"].items()
        },
        packages=packages,
        older=older,
        states=text["states"],
        modules=text.get("modules", {}),
        enabled=text.get("enabled", {}),
        sources=sources,
    )


def _package(name: str, repository: str, facts: dict[str, Any], version: str) -> Package:
    lists = {
        key: tuple(facts.get(key, ())) for key in ("requires", "provides", "conflicts", "streams")
    }
    return Package(name, version, repository, **lists)


@dataclass
class Done:
    """What a line did: names of packages."""

    installs: list[str]
    removes: list[str]
    again: list[str]


class System:
    """A system with some packages installed, and the repositories that the text of a fix names."""

    def __init__(self, known: Database, state: str, text: str, *, is_old: bool = False) -> None:
        self.known = known
        new = {package.name: package for package in known.packages}
        self.installed = {}
        for entry in known.states[state]:
            name = entry.removesuffix(OLDER)
            is_older = is_old or name != entry
            self.installed[name] = known.older[name] if is_older else new[name]
        self.repositories = {
            name for name, words in known.named.items() if words is None or words in text
        }
        self.stream = known.enabled.get(state)

    # What there is to install.

    def available(self) -> list[Package]:
        return [
            package
            for package in self.known.packages
            if package.repository in self.repositories
            and (not package.streams or self.stream in package.streams)
        ]

    def find(self, spec: str) -> Package:
        """Return the package that a word of a command names."""
        for package in self.available():
            if package.is_named(spec) or package.meets(spec):
                return package
        raise Refused(self._why_not(spec))

    def _why_not(self, spec: str) -> str:
        name = _capability(spec)[0]
        for package in self.known.packages:
            if package.is_named(name) or package.meets(spec):
                where = self.known.named.get(package.repository, "no repository any more")
                return f"{spec} is in {where or package.repository}, which nothing enables here"
        return f"no match for {spec}"

    # What a transaction does.

    def install(
        self,
        specs: Iterable[str],
        *,
        erases: bool,
        cascades: bool | None = None,
        again: bool = False,
    ) -> Done:
        plan: dict[str, Package] = {}
        asked = [self.find(spec) for spec in specs]
        for package in asked:
            if again or self.installed.get(package.name) != package:
                plan[package.name] = package
        queue = list(plan.values())
        while queue:
            for need in queue.pop(0).requires:
                if not any(package.meets(need) for package in self._after(plan)):
                    package = self.find(need)
                    plan[package.name] = package
                    queue.append(package)
        gone = self._gone(plan, erases=erases, cascades=erases if cascades is None else cascades)
        if not plan:
            raise Refused("nothing to do")
        return self._commit(plan, gone)

    def _after(self, plan: dict[str, Package], gone: Iterable[str] = ()) -> list[Package]:
        after = {**self.installed, **plan}
        return [package for name, package in after.items() if name not in gone]

    def _gone(self, plan: dict[str, Package], *, erases: bool, cascades: bool) -> set[str]:
        """Return what has to go: what is excluded, and what needs what goes."""
        gone: set[str] = set()
        for new in plan.values():
            for other in self._after(plan):
                if new.excludes(other) or other.excludes(new):
                    if not erases or other.name in plan:
                        raise Refused(f"{new.name} conflicts with {other.name}")
                    gone.add(other.name)
        while True:
            after = self._after(plan, gone)
            broken = {
                package.name
                for package in after
                if not all(any(p.meets(need) for p in after) for need in package.requires)
            }
            if not broken:
                return gone
            if not cascades or broken & {*plan}:
                raise Refused(f"{', '.join(sorted(broken))} would lack what they need")
            gone |= broken

    def _commit(self, plan: dict[str, Package], gone: set[str]) -> Done:
        again = [name for name, package in plan.items() if self.installed.get(name) == package]
        new = [name for name in plan if name not in again]
        self.installed = {package.name: package for package in self._after(plan, gone)}
        return Done(sorted(new), sorted(gone), sorted(again))

    def upgrade(self, names: Iterable[str]) -> Done:
        """Install the newer versions of what is installed."""
        plan = {}
        for package in self.available():
            old = self.installed.get(package.name)
            if package.name in {*names} and old and newer(package.version, old.version):
                plan[package.name] = package
        if not plan:
            raise Refused("nothing to do")
        return self._commit(plan, self._gone(plan, erases=False, cascades=False))

    def switch(self, spec: str, *, is_first: bool, erases: bool) -> Done:
        """Enable a stream of a module, and install its default profile."""
        name, _, stream = spec.partition(":")
        profiles = self.known.modules.get(name, {})
        if stream not in profiles or "nvidia" not in self.repositories:
            raise Refused(f"no module {spec}")
        if is_first and self.stream not in (None, stream):
            raise Refused(f"{name}:{self.stream} is enabled: no switch without switch-to")
        self.stream = stream
        left_out = {
            package.name
            for package in self.installed.values()
            if package.streams and stream not in package.streams
        }
        if left_out and not erases:
            raise Refused(f"{', '.join(sorted(left_out))} are not of {spec}")
        self.installed = {n: p for n, p in self.installed.items() if n not in left_out}
        done = self.install(profiles[stream], erases=erases)
        return Done(done.installs, sorted({*done.removes, *left_out}), done.again)

    # The programs' own words.

    def run(self, line: str) -> Done:
        """Do what one command says."""
        program, *words = shlex.split(line.removeprefix("sudo "))
        return PROGRAMS[program](self, words)


def _split(words: list[str]) -> tuple[set[str], list[str]]:
    options = {word for word in words if word.startswith("-")}
    return options, [word for word in words if word not in options]


def _dnf(system: System, words: list[str]) -> Done:
    options, (verb, *names) = _split(words)
    if options - {"--allowerasing", "--refresh"}:
        raise Refused(f"unknown option in {words}")
    erases = "--allowerasing" in options
    if verb == "module":
        kind, spec = names
        if kind not in ("install", "switch-to"):
            raise Refused(f"unknown command module {kind}")
        return system.switch(spec, is_first=kind == "install", erases=erases)
    if verb == "install":
        return system.install(names, erases=erases)
    if verb == "reinstall":
        lacking = [name for name in names if name not in system.installed]
        if lacking:
            raise Refused(f"{', '.join(lacking)} not installed")
        return system.install(names, erases=erases, again=True)
    if verb == "upgrade":
        return system.upgrade(names or system.installed)
    raise Refused(f"unknown command {verb}")


def _ostree(system: System, words: list[str]) -> Done:
    """Layered packages of an image: what is layered is not layered again, and nothing goes."""
    options, (verb, *names) = _split(words)
    if options:
        raise Refused(f"unknown option in {words}")
    if verb == "upgrade" and not names:
        return system.upgrade(system.installed)
    if verb != "install":
        raise Refused(f"unknown command {verb}")
    requested = [name for name in names if name in system.installed]
    if requested:
        raise Refused(f"{', '.join(requested)} already requested")
    return system.install(names, erases=False)


def _pacman(system: System, words: list[str]) -> Done:
    options, names = _split(words)
    if options == {"-Syu"} and not names:
        return system.upgrade(system.installed)
    if options != {"-S"}:
        raise Refused(f"unknown operation in {words}")
    # It asks before it removes what is in conflict, and installs again what is there; what another
    # package needs it does not break.
    return system.install(names, erases=True, cascades=False, again=True)


def _zypper(system: System, words: list[str]) -> Done:
    options, (verb, *names) = _split(words)
    if verb == "dup" and not options and not names:
        return system.upgrade(system.installed)
    if verb not in ("install", "in") or options - {"--force"}:
        raise Refused(f"unknown command {words}")
    # It asks which solution to take where packages are in conflict.
    return system.install(names, erases=True, again="--force" in options)


def _transactional(system: System, words: list[str]) -> Done:
    if words[:1] != ["pkg"]:
        raise Refused(f"unknown command {words}")
    return _zypper(system, words[1:])


PROGRAMS: dict[str, Callable[[System, list[str]], Done]] = {
    "dnf": _dnf,
    "pacman": _pacman,
    "rpm-ostree": _ostree,
    "transactional-update": _transactional,
    "zypper": _zypper,
}
