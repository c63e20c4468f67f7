"""What a fix removes is what it says: apt itself tells, of a system with a driver and a toolkit."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from weights import mostly_heavy

from probe_core.machine import Machine
from probe_core.model.fix import filled, run
from probe_core.readiness.actions import action_of
from probe_core.readiness.distributions import COMMANDS, command
from probe_core.readiness.packages import STATUS, driver_packages, replaced

# Name to (source, dependencies): invented versions, names and dependencies as Ubuntu has them.
DRIVER = "nvidia-graphics-drivers-580"
PACKAGES: dict[str, tuple[str, str]] = {
    "libc6": ("glibc", ""),
    "nvidia-driver-580": (DRIVER, "libnvidia-compute-580, libnvidia-gl-580, nvidia-utils-580"),
    "libnvidia-compute-580": (DRIVER, "libc6 (>= 1.0), libc6 (<< 3)"),
    "libnvidia-gl-580": (DRIVER, "libnvidia-compute-580"),
    "nvidia-utils-580": (DRIVER, "libnvidia-compute-580"),
    "cuda-drivers": ("cuda-drivers", "nvidia-driver-580 | nvidia-driver-580-open"),
    "nvidia-container-toolkit": (
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base, libnvidia-container-tools",
    ),
    "nvidia-container-toolkit-base": ("nvidia-container-toolkit", ""),
    "libnvidia-container-tools": ("libnvidia-container", "libnvidia-container1"),
    "libnvidia-container1": ("libnvidia-container", "libc6"),
    "nvidia-cuda-toolkit": ("nvidia-cuda-toolkit", "libc6"),
    "cuda-toolkit-12-8": ("cuda-toolkit-12-8", "cuda-nvcc-12-8"),
    "cuda-nvcc-12-8": ("cuda-nvcc-12-8", "libc6"),
}
OWN = ["libnvidia-compute-580", "libnvidia-gl-580", "nvidia-driver-580", "nvidia-utils-580"]


def paragraph(name: str, source: str, depends: str, status: str = "") -> str:
    fields = {
        "Package": name,
        "Status": status,
        "Architecture": "amd64",
        "Maintainer": "Nobody <nobody@example.invalid>",
        "Version": "1.0-1",
        "Source": source,
        "Depends": depends,
        "Description": "invented\n with a second line: of text",
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def system(root: Path, extra: dict[str, tuple[str, str]] | None = None) -> Machine:
    packages = {**PACKAGES, **(extra or {})}
    text = "\n".join(
        paragraph(name, source, depends, "install ok installed")
        for name, (source, depends) in packages.items()
    )
    place = root / STATUS.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_text(text)
    return Machine(str(root))


def test_the_driver_is_named_and_the_toolkits_stay(tmp_path: Path) -> None:
    assert driver_packages(system(tmp_path)) == ["cuda-drivers", *OWN]


@pytest.mark.parametrize("name", ["nvidia-container-toolkit", "libnvidia-container1"])
def test_nothing_is_removed_that_a_toolkit_needs(name: str, tmp_path: Path) -> None:
    extra = {name: (PACKAGES[name][0], "libnvidia-compute-580")}
    assert driver_packages(system(tmp_path, extra)) == []


def test_an_alternative_that_stays_keeps_a_package(tmp_path: Path) -> None:
    extra = {"blender": ("blender", "libnvidia-compute-580 | libc6")}
    assert driver_packages(system(tmp_path, extra)) == ["cuda-drivers", *OWN]


@pytest.mark.parametrize(
    ("name", "source", "is_own"),
    [
        ("libcuda1", "nvidia-graphics-drivers", True),
        ("nvidia-headless-no-dkms-580-server", "", True),
        ("libnvidia-compute-570-open", "nvidia-graphics-drivers-570-open", True),
        ("libnvidia-container-dev", "libnvidia-container", False),
        ("nvidia-modprobe", "", False),
        ("nvidia-driver-assistant", "", False),
        ("libnvidia-egl-wayland1", "egl-wayland", False),
        ("cuda-compat-12-8", "cuda-compat-12-8", False),
        ("nvtop", "nvtop", False),
        ("libcuda1", "nvidia-graphics-drivers (580.1-2)", True),
    ],
)
def test_which_packages_are_a_drivers(name: str, source: str, is_own: bool, tmp_path: Path) -> None:
    names = driver_packages(system(tmp_path, {name: (source, "")}))
    assert (name in names) is is_own


@pytest.mark.parametrize(
    "text",
    ["", "Package: x\n", "\0\0\0", "Status: install ok installed\n\n: \n", "Package: nvidia-smi\n"],
)
def test_a_damaged_status_names_nothing(text: str, tmp_path: Path) -> None:
    place = tmp_path / STATUS.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert driver_packages(Machine(str(tmp_path))) == []


def test_a_line_that_goes_on_is_no_field(tmp_path: Path) -> None:
    place = tmp_path / STATUS.lstrip("/")
    place.parent.mkdir(parents=True)
    text = paragraph("nvidia-smi", "", "", "install ok installed")
    for more, names in (
        (" Status: deinstall ok config-files\n\tPackage: x\n", ["nvidia-smi"]),
        ("Status: deinstall ok config-files\n", []),
        ("Status\n", ["nvidia-smi"]),
    ):
        place.write_text(text + more)
        assert driver_packages(Machine(str(tmp_path))) == names


def test_a_removed_package_is_not_installed(tmp_path: Path) -> None:
    place = tmp_path / STATUS.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_text(paragraph("nvidia-smi", "", "", "deinstall ok config-files"))
    assert driver_packages(Machine(str(tmp_path))) == []


# --- apt itself

needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt-get is not here")

# What a shell makes of the parts of a line.
SHELL = {
    "$(. /etc/os-release; echo $VERSION_ID)": "24.04",
    " -t $(. /etc/os-release; echo $VERSION_CODENAME)-backports": "",
    "$(dpkg --print-architecture)": "amd64",
}


def apt_lines() -> dict[str, str]:
    """Return each command of a distribution that apt runs, and that line as a shell gives it."""
    names = {"release": "6.8.0-60-generic", "module": "nvidia", "parameter": "nomodeset"}
    names |= {"branch": "470", "version": "580.95.05", "kernel": "linux"}
    lines = {}
    for family in ("ubuntu", "debian", "proxmox"):
        for parts in (command(topic, family) for topic in COMMANDS):
            text = action_of(filled(parts or ("",), names), "host").command
            for line in text.split(" && "):
                if line.startswith("sudo apt "):
                    lines[line] = line
                    for part, value in SHELL.items():
                        lines[line] = lines[line].replace(part, value)
    return lines


def named(line: str) -> list[str]:
    return [word for word in line.split()[3:] if not word.startswith("-")]


class Apt:
    """apt-get with folders of its own: it simulates, and reads nothing of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("lists/partial", "cache/archives/partial", "archive", "none"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        self.options = [
            f"Dir::State={root}",
            f"Dir::State::status={root}{STATUS}",
            f"Dir::State::lists={root}/lists",
            f"Dir::Cache={root}/cache",
            f"Dir::Etc={root}/none",
            f"Dir::Etc::sourcelist={root}/sources.list",
            "APT::Architecture=amd64",
            "APT::Architectures::=amd64",
            "APT::Sandbox::User=root",
        ]
        (root / "sources.list").write_text("")

    def offer(self, names: Iterable[str]) -> None:
        """Give it an archive that has newer versions of these packages."""
        entries = (
            paragraph(name, "", "").replace("1.0-1", "2.0-1")
            + (CONFLICTS if name.startswith("nvidia-driver-470") else "")
            + f"Filename: ./{name}.deb\nSize: 1\n"
            for name in names
        )
        (self.root / "archive/Packages").write_text("\n".join(entries))
        (self.root / "sources.list").write_text(f"deb [trusted=yes] file:{self.root}/archive ./\n")
        self.run("update")

    def run(self, *words: str) -> str:
        flags = [word for option in self.options for word in ("-o", option)]
        ran = subprocess.run(
            ["apt-get", *flags, *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def simulated(self, line: str) -> dict[str, list[str]]:
        """Return {"Inst": names, "Remv": names, "Purg": names} of what a line would do."""
        done: dict[str, list[str]] = {"Inst": [], "Remv": [], "Purg": []}
        for text in self.run("-s", *line.split()[2:]).splitlines():
            verb, _, rest = text.partition(" ")
            if verb in done:
                done[verb].append(rest.split()[0])
        return {verb: sorted(names) for verb, names in done.items()}


# Ubuntu's branches exclude each other by a name that all provide.
CONFLICTS = "Conflicts: nvidia-driver-580, libnvidia-compute-580\n"


@needs_apt
def test_what_goes_is_what_the_action_says(tmp_path: Path) -> None:
    names = driver_packages(system(tmp_path))
    line = f"sudo apt purge {' '.join(names)}"
    action = action_of(("inside WSL ", run(line), ": the driver is Windows's"), "host")
    assert (action.command, action.root) == (line, True)
    assert Apt(tmp_path).simulated(line) == {"Inst": [], "Remv": [], "Purg": names}
    assert action.removes == [f"package {name}" for name in names]
    assert names == ["cuda-drivers", *OWN]
    assert action.undo == f"sudo apt install {' '.join(names)}"


@needs_apt
def test_the_pattern_of_before_took_the_toolkits(tmp_path: Path) -> None:
    system(tmp_path)
    gone = Apt(tmp_path).simulated("sudo apt purge ^nvidia-.* ^libnvidia-.*")["Purg"]
    assert {"nvidia-container-toolkit", "libnvidia-container1", "nvidia-cuda-toolkit"} <= {*gone}


@pytest.fixture(scope="session")
def apt(tmp_path_factory: pytest.TempPathFactory) -> Apt:
    root = tmp_path_factory.mktemp("apt")
    system(root)
    result = Apt(root)
    result.offer(sorted({name for line in apt_lines().values() for name in named(line)}))
    return result


@needs_apt
@pytest.mark.parametrize("line", mostly_heavy(apt_lines(), 4))
def test_every_apt_line_installs_what_it_names_and_removes_what_it_says(
    line: str, apt: Apt
) -> None:
    """The archive has each package that a line names; what those depend on is the archive's own."""
    asked = apt_lines()[line]
    done = apt.simulated(asked)
    machine = Machine(str(apt.root))
    action = action_of((run(line),), "host")
    removes = [f"package {name}" for name in replaced(machine, action.changes)]
    assert [f"package {name}" for name in sorted(done["Remv"] + done["Purg"])] == removes
    if "full-upgrade" not in line:
        assert done["Inst"] == sorted(named(asked)), line
        assert action.removes == []
        assert "--reinstall" in line or (action.undo or "").startswith("sudo apt remove ")
