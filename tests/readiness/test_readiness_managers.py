"""Every line of dnf, pacman and zypper, and of what layers their packages, on a described system.

A line that names what its repositories lack, that is in conflict with what is installed where it
is printed, or that does nothing there, fails; what it removes is what its action says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import package_solver as solver
import pytest
from package_solver import PROGRAMS, Database, Refused, System
from readiness_nodes import Node, amd, intel, nvidia

from probe_core.machine import Machine
from probe_core.model.causes import CAUSES
from probe_core.model.fix import CONFLICTING, filled
from probe_core.readiness.actions import Action, action_of
from probe_core.readiness.distributions import COMMANDS, command_of_branch
from probe_core.readiness.fixes import fix_for
from probe_core.readiness.packages import PACMAN, replaced
from probe_core.readiness.scene import Scene

# Family to the described distribution, and to what installs packages there.
SYSTEMS = {
    "fedora": "fedora",
    "ostree": "fedora",
    "rhel": "rhel9",
    "rhel10": "rhel10",
    "oracle": "rhel9",
    "oracle10": "rhel10",
    "arch": "arch",
    "manjaro": "arch",
    "suse": "suse",
    "transactional": "suse",
}

# The branches that a fix may name: the last of legacy GPUs, and the first of Blackwell.
BRANCHES = ("340", "390", "470", "570", "580")

# Topic to what is installed where it is printed: all but the base has a driver of NVIDIA's.
STATES = {
    "driver branch": ("driver", False),
    "driver open": ("closed", True),
    "module open": ("closed", False),
    "module closed": ("driver", False),
    "libraries nvidia": ("without-libraries", False),
    "libraries nvidia again": ("driver", False),
    "gsp firmware": ("driver", False),
    "fabric manager": ("driver", False),
    "subnet manager": ("driver", False),
    "headers": ("dkms", False),
    "newer kernel": ("kernel", True),
}


# What is no package in a command.
WORDS = (*PROGRAMS, *"dup install pkg reinstall upgrade".split())


@dataclass
class Line:
    """One command that a fix prints, with the text around it."""

    text: str
    family: str
    topic: str
    branch: str
    action: Action

    @property
    def known(self) -> Database:
        return solver.database(SYSTEMS[self.family])

    def state(self) -> tuple[str, bool]:
        """Return the name of the state, and whether its packages are the older ones."""
        state, is_old = STATES.get(self.topic, ("base", False))
        states = self.known.states
        # Where the flavours of the module are one package's, there is one state of the driver.
        return state if state in states else "driver" if state == "closed" else "base", is_old

    def system(self) -> System:
        state, is_old = self.state()
        return System(self.known, state, self.text, is_old=is_old)

    def __str__(self) -> str:
        return f"{self.family}-{self.topic}-{self.branch}".replace(" ", "-")

    def words(self) -> list[str]:
        """Return the words of its commands that are packages."""
        parts = [text.removeprefix("sudo ").split(" ") for text in self.commands()]
        words = [word for part in parts for word in part if part[1] != "module"]
        return [word for word in words if word not in WORDS and not word.startswith("-")]

    def may_remove(self) -> bool:
        return any("--allowerasing" in text for text in self.commands())

    def commands(self) -> list[str]:
        """Return the commands of the line that a package manager runs."""
        found = self.action.command.split(" && ")
        return [line for line in found if _installs(line.removeprefix("sudo ").split(" "))]


def _installs(words: list[str]) -> bool:
    return words[0] in PROGRAMS and words[1] != "kargs"


def lines() -> dict[str, Line]:
    """Return each line of each family, for each branch of NVIDIA's driver that it may name."""
    result: dict[str, Line] = {}
    for family, name in SYSTEMS.items():
        known = solver.database(name)
        names = {"module": "nvidia", "parameter": "nomodeset", "kernel": "linux"}
        names |= {"release": known.kernel, "version": "580.95.05"}
        names["fabric_manager"] = "nvidia-fabricmanager"
        if family.startswith("oracle"):
            uek = next(p for p in known.packages if p.name == "kernel-uek-devel")
            names["release"] = f"{uek.version}.x86_64"
        for topic in (topic for topic in COMMANDS if topic.rpartition(" ")[2] not in BRANCHES):
            for branch in BRANCHES:
                parts = command_of_branch(topic, family, branch) or ()
                made = filled(parts, {**names, "branch": branch})
                line = Line("".join(made), family, topic, branch, action_of(made, "host"))
                if line.commands():
                    result.setdefault(f"{family}: {topic}: {line.text}", line)
    return result


LINES = lines()


def test_there_are_lines_of_every_family_and_program() -> None:
    assert {line.family for line in LINES.values()} == {*SYSTEMS}
    programs = {c.removeprefix("sudo ").split()[0] for li in LINES.values() for c in li.commands()}
    assert programs == {*PROGRAMS}


@pytest.mark.parametrize("line", LINES.values(), ids=str)
def test_every_line_does_what_its_action_says(line: Line, tmp_path: Path) -> None:
    system = line.system()
    before = pacman(tmp_path, system) if line.family in ("arch", "manjaro") else None
    done = [system.run(text) for text in line.commands()]
    installs = {package for one in done for package in one.installs + one.again}
    assert installs, line.text
    packages = [text for text in line.action.changes if text.startswith("package ")]
    assert sorted(packages) == sorted(f"package {word}" for word in line.words())
    assert all(any(word.startswith(name) for name in installs) for word in line.words()), done
    removes = sorted(package for one in done for package in one.removes)
    if before is not None:
        assert replaced(before, line.action.changes) == removes
        assert line.action.removes == []
        return
    assert line.action.removes == ([CONFLICTING] if removes or line.may_remove() else [])
    if line.may_remove():
        assert line.action.undo is None


def pacman(root: Path, system: System) -> Machine:
    """Return a machine with pacman's records of what is installed (its `local` database)."""
    for package in system.installed.values():
        place = root / PACMAN.lstrip("/") / f"{package.name}-{package.version}"
        place.mkdir(parents=True)
        fields = {"NAME": [package.name], "CONFLICTS": package.conflicts}
        text = "\n".join(f"%{key}%\n" + "\n".join(v) + "\n" for key, v in fields.items() if v)
        (place / "desc").write_text(text)
    return Machine(str(root))


def test_what_pacman_removes_is_read_from_its_records(tmp_path: Path) -> None:
    """A GPU that the closed module does not support: nvidia-open takes nvidia's place."""
    node = nvidia(tmp_path, ids="10de:2b85")
    node.file("/etc/os-release", "ID=arch\n")
    for name, conflicts in (("nvidia", ""), ("nvidia-utils", "nvidia-libgl"), ("dkms", "")):
        text = f"%NAME%\n{name}\n\n%CONFLICTS%\n{conflicts}\n\n%DEPENDS%\nnvidia-open\n"
        node.file(f"{PACMAN}/{name}-580.105.08-3/desc", text)
    broken: Any = {"step": "driver", "status": "broken", "code": "closed-module-unsupported"}
    device: Any = node.device()
    fix = fix_for(device, broken, Scene(node.machine()))
    assert fix is not None
    assert fix.line == "`sudo pacman -S nvidia-open`, then reboot"
    assert fix.action.removes == ["package nvidia"]
    assert (fix.action.changes, fix.action.undo) == (["package nvidia-open"], None)
    node.file(f"{PACMAN}/nvidia-580xx-dkms-580.105.08-3/desc", "%CONFLICTS%\nNVIDIA-MODULE\n")
    fix = fix_for(device, broken, Scene(node.machine()))
    assert fix is not None
    assert fix.action.removes == ["package nvidia", "package nvidia-580xx-dkms"]


# --- the lines of before, and the package managers' rules


def system(name: str, state: str, text: str = "", *, is_old: bool = False) -> System:
    return System(solver.database(name), state, text, is_old=is_old)


REFUSED = [
    # What was printed before, and why it did nothing or the wrong thing.
    (
        "fedora",
        "driver",
        "sudo dnf install akmod-nvidia-470xx (RPM Fusion)",
        "xorg-x11-drv-nvidia-470xx conflicts with xorg-x11-drv-nvidia",
    ),
    (
        "fedora",
        "base",
        "sudo dnf install akmod-nvidia-340xx (RPM Fusion)",
        "no match for akmod-nvidia-340xx",
    ),
    (
        "fedora",
        "driver",
        "sudo rpm-ostree install akmod-nvidia (RPM Fusion)",
        "akmod-nvidia already requested",
    ),
    (
        "rhel9",
        "base",
        "sudo dnf module install nvidia-driver:open-dkms (NVIDIA's repository)",
        "dkms is in EPEL, which nothing enables here",
    ),
    (
        "rhel9",
        "driver",
        "sudo dnf module install nvidia-driver:580-dkms (NVIDIA's repository)",
        "nvidia-driver:open-dkms is enabled: no switch without switch-to",
    ),
    (
        "rhel9",
        "driver",
        "sudo dnf module switch-to nvidia-driver:390-dkms --allowerasing (NVIDIA's repository)",
        "no module nvidia-driver:390-dkms",
    ),
    (
        "rhel9",
        "driver",
        "sudo dnf install nvidia-kmod-common (NVIDIA's repository)",
        "nothing to do",
    ),
    (
        "rhel10",
        "base",
        "sudo dnf install kmod-nvidia-470xx (ELRepo)",
        "no match for kmod-nvidia-470xx",
    ),
    (
        "suse",
        "base",
        "sudo zypper install nvidia-open-driver-G06-signed-kmp-meta",
        (
            "nvidia-open-driver-G06-signed-kmp-meta is in NVIDIA's repository,"
            " which nothing enables here"
        ),
    ),
    (
        "suse",
        "driver",
        "sudo zypper install nvidia-common-G06 (NVIDIA's repository)",
        "nothing to do",
    ),
    (
        "suse",
        "driver",
        "sudo zypper install nvidia-fabricmanager-580 (NVIDIA's CUDA repository)",
        "no match for nvidia-fabricmanager-580",
    ),
    # Part of an upgrade: the module of another version needs the libraries that are there.
    (
        "arch",
        "closed",
        "sudo pacman -S nvidia-utils",
        "nvidia would lack what they need",
    ),
    ("arch", "base", "sudo pacman -S nvidia-580xx-dkms", "no match for nvidia-580xx-dkms"),
]


@pytest.mark.parametrize(("name", "state", "line", "reason"), REFUSED)
def test_a_line_that_does_not_work_is_refused(
    name: str, state: str, line: str, reason: str
) -> None:
    command = line.partition(" (")[0]
    with pytest.raises(Refused) as refused:
        system(name, state, line).run(command)
    assert str(refused.value) == reason


def test_a_switch_takes_the_other_module_away() -> None:
    line = "sudo dnf module switch-to nvidia-driver:580-dkms --allowerasing"
    done = system("rhel9", "driver", "NVIDIA's repository").run(line)
    assert (done.installs, done.removes) == (["kmod-nvidia-latest-dkms"], ["kmod-nvidia-open-dkms"])


def test_a_legacy_branch_takes_the_newest_away() -> None:
    line = "sudo dnf install --allowerasing akmod-nvidia-580xx xorg-x11-drv-nvidia-580xx-cuda"
    done = system("fedora", "driver", "RPM Fusion").run(line)
    new = ["akmod-nvidia-580xx", "xorg-x11-drv-nvidia-580xx", "xorg-x11-drv-nvidia-580xx-cuda"]
    assert done.installs == new
    assert done.removes == ["akmod-nvidia", "xorg-x11-drv-nvidia", "xorg-x11-drv-nvidia-cuda"]


def test_every_package_has_a_source_and_a_repository() -> None:
    for name in {*SYSTEMS.values()}:
        known = solver.database(name)
        assert all(known.sources.values())
        repositories = {package.repository for package in known.packages}
        assert repositories <= {*known.named, "gone"}
        names = {package.name for package in known.packages}
        installed = {entry for state in known.states.values() for entry in state}
        assert {entry.removesuffix(solver.OLDER) for entry in installed} <= names


@pytest.mark.parametrize(
    ("family", "branch", "expected"),
    [
        ("fedora", "340", None),
        ("fedora", "390", "akmod-nvidia-390xx"),
        ("rhel", "390", None),
        ("rhel", "470", "kmod-nvidia-470xx"),
        ("rhel10", "470", None),
        ("suse", "470", "x11-video-nvidiaG05"),
        ("suse", "390", None),
        ("arch", "340", "nvidia-340xx-dkms"),
        ("debian", "390", None),
        ("ubuntu", "390", "ubuntu-drivers"),
        ("rhel", "570", "open-dkms"),
        ("rhel", "", "open-dkms"),
    ],
)
def test_the_newest_driver_is_not_for_a_legacy_gpu(
    family: str, branch: str, expected: str | None
) -> None:
    parts = command_of_branch("driver nvidia", family, branch)
    if expected is None:
        assert parts is None
    else:
        assert parts is not None
        assert expected in "".join(parts)


# --- each fix that is printed is one of these lines

RELEASES = {
    "fedora": "ID=fedora\nVERSION_ID=43\n",
    "rhel": 'ID="rocky"\nVERSION_ID="9.6"\nID_LIKE="rhel centos fedora"\n',
    "rhel10": 'ID="rhel"\nVERSION_ID="10.0"\n',
    "oracle": 'ID="ol"\nVERSION_ID="9.6"\nID_LIKE="fedora"\n',
    "arch": "ID=arch\n",
    "suse": 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n',
}
# GT 430, GTX Titan, GTX 1080, V100, RTX 4090, RTX 5090, B200: one of each branch and module.
NVIDIAS = ("0de1", "1005", "1b80", "1db6", "2684", "2b85", "2901")
MACHINES = {
    **{f"nvidia-{number}": partial(nvidia, ids=f"10de:{number}") for number in NVIDIAS},
    "amd": amd,
    "intel": intel,
}


def printed(node: Node) -> set[str]:
    """Return the commands of all causes' fixes on a machine that install packages."""
    device: Any = node.device()
    scene = Scene(node.machine())
    commands = set()
    for code, cause in CAUSES.items():
        step: Any = {"step": cause.step, "status": "broken", "evidence": None, "code": code}
        fix = fix_for(device, step, scene)
        for text in fix.line.split("`")[1::2] if fix else ():
            commands |= {one for one in text.split(" && ") if one.startswith("sudo ")}
    return {text for text in commands if _installs(text.removeprefix("sudo ").split(" "))}


@pytest.mark.heavy
@pytest.mark.parametrize("family", RELEASES)
@pytest.mark.parametrize("machine", MACHINES)
def test_every_line_that_a_fix_prints_was_run(machine: str, family: str, tmp_path: Path) -> None:
    node = MACHINES[machine](tmp_path)
    node.file("/etc/os-release", RELEASES[family])
    line = next(line for line in LINES.values() if line.family == family)
    release = line.known.kernel
    if family == "oracle":
        uek = next(p for p in line.known.packages if p.name == "kernel-uek-devel")
        release = f"{uek.version}.x86_64"
    node.tree.release(release)
    run = {text for line in LINES.values() if line.family == family for text in line.commands()}
    # By hand, because the package has no branch in its name: the words say which.
    by_hand = {"sudo dnf install cuda-drivers", "sudo dnf install --allowerasing cuda-drivers"}
    found = printed(node)
    assert found - by_hand <= run
    assert found
