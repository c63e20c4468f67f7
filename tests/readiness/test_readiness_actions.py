"""A fix as a typed action: declared, right for its place, and it repairs the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import readiness_nodes as nodes
import test_readiness_causes as causes
from readiness_nodes import FOLDER, LIBRARIES, RELEASE, VERSION, Node, amd, intel, nvidia
from weights import mostly_heavy

from probe_core.model.causes import CAUSES
from probe_core.model.fix import (
    CONFLICTING,
    REBOOT,
    Blank,
    Command,
    Part,
    at,
    by_hand,
    filled,
    otherwise,
    parts_of,
    run,
)
from probe_core.readiness.actions import (
    PLACES,
    PROGRAMS,
    Action,
    action_of,
    does_something,
    parts_of_text,
)
from probe_core.readiness.distributions import COMMANDS, command
from probe_core.readiness.fixes import Fix, fix_for
from probe_core.readiness.scene import Scene

# --- what the parts of a fix declare

BLACKLIST = "echo blacklist nouveau | sudo tee /etc/b.conf"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            (run("sudo apt install libnvidia-compute-580 nvidia-utils-580"),),
            (
                "sudo apt install libnvidia-compute-580 nvidia-utils-580",
                ["package libnvidia-compute-580", "package nvidia-utils-580"],
                [],
                "sudo apt remove libnvidia-compute-580 nvidia-utils-580",
                False,
            ),
        ),
        (
            (
                run("sudo modprobe nvidia"),
                otherwise("; where that fails: "),
                run("sudo ubuntu-drivers install"),
                REBOOT,
            ),
            ("sudo modprobe nvidia", ["module nvidia"], [], "sudo modprobe -r nvidia", False),
        ),
        (
            (run("sudo usermod -aG render,video $USER"), ", then log in again"),
            (
                "sudo usermod -aG render,video $USER",
                ["group render", "group video"],
                [],
                "sudo gpasswd -d $USER render && sudo gpasswd -d $USER video",
                False,
            ),
        ),
        (
            (run("sudo rpm-ostree kargs --delete=nomodeset"), REBOOT),
            (
                "sudo rpm-ostree kargs --delete=nomodeset",
                [],
                ["parameter nomodeset"],
                'sudo rpm-ostree kargs --append="nomodeset"',
                True,
            ),
        ),
        (
            (run("sudo transactional-update pkg install a"), REBOOT),
            (
                "sudo transactional-update pkg install a",
                ["package a"],
                [],
                "sudo transactional-update pkg remove a",
                True,
            ),
        ),
        (
            (run('sudo grubby --update-kernel=ALL --args="a=1 b=2"'), REBOOT),
            (
                'sudo grubby --update-kernel=ALL --args="a=1 b=2"',
                ["parameter a=1", "parameter b=2"],
                [],
                'sudo grubby --update-kernel=ALL --remove-args="a=1 b=2"',
                True,
            ),
        ),
        (
            (
                by_hand("take nomodeset out of a file", removes=("parameter nomodeset",)),
                ", ",
                run("sudo update-grub"),
                REBOOT,
            ),
            ("", ["boot loader"], ["parameter nomodeset"], None, True),
        ),
        (
            (run(BLACKLIST), ", then ", run("sudo dracut --force"), REBOOT),
            (
                f"{BLACKLIST} && sudo dracut --force",
                ["file /etc/b.conf", "initramfs"],
                [],
                "sudo rm /etc/b.conf",
                True,
            ),
        ),
        (
            (run("sudo reboot"), otherwise("; or: "), run("sudo rmmod nvidia")),
            ("sudo reboot", ["running kernel"], [], None, True),
        ),
        # What is printed is not read: words have no command, no reboot and no place.
        (
            ("on the host `sudo modprobe nvidia`; or reboot",),
            ("", [], [], None, False),
        ),
        # Of two ways the one that a command goes, also where another one begins by hand.
        (
            (by_hand("edit a file"), otherwise(", or "), run("sudo modprobe nvidia"), REBOOT),
            ("sudo modprobe nvidia", ["module nvidia"], [], "sudo modprobe -r nvidia", True),
        ),
        (
            ("remove a card", REBOOT, otherwise(", or "), "use another slot"),
            ("", [], [], None, True),
        ),
        (
            (run("export LD_LIBRARY_PATH=/a"),),
            ("export LD_LIBRARY_PATH=/a", ["variable LD_LIBRARY_PATH=/a"], [], None, False),
        ),
    ],
)
def test_what_parts_do(parts: tuple[str, ...], expected: tuple[Any, ...]) -> None:
    action = action_of(parts, "host")
    told = (action.command, action.changes, action.removes, action.undo, action.reboots)
    assert told == expected
    assert action.root is any("sudo " in part.command for part in parts if isinstance(part, Part))


@pytest.mark.parametrize(
    ("line", "changes", "undo"),
    [
        ("flatpak override --user --device=all org.a.B", ["setting devices"],
         "flatpak override --user --reset org.a.B"),
        ("flatpak update", ["packages of the system"], None),
        ("sudo snap connect ollama:opengl", ["setting ollama:opengl"],
         "sudo snap disconnect ollama:opengl"),
        ("sudo snap install ollama", [], None),
    ],
)  # fmt: skip
def test_what_a_bundle_of_programs_is_allowed(
    line: str, changes: list[str], undo: str | None
) -> None:
    action = action_of((run(line),), "host")
    assert (action.changes, action.undo) == (changes, undo)


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        (("start WSL anew: ", run("wsl --shutdown"), " in Windows"), "Windows"),
        ((run("sudo systemctl edit ollama.service"), ": `PrivateDevices=no`"), "service"),
        ((at("host", "on the host "), run("sudo reboot")), "host"),
        (("on the host ", run("sudo reboot")), "container"),
        (("use another image", otherwise(", or "), at("host", "there "), run("reboot")), "host"),
        ((at("host", "there "), "do it", otherwise(", or "), run("reboot")), "container"),
    ],
)
def test_where_it_is_done(parts: tuple[str, ...], where: str) -> None:
    assert action_of(parts, "container").where == where


class Unknown(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return Blank(key)


def test_a_person_completes_a_command_with_a_blank() -> None:
    parts = (run("sudo snap connect {app}:opengl"), "; {app} is its name")
    known = action_of(filled(parts, {"app": "ollama"}), "host")
    assert (known.command, known.changes) == (
        "sudo snap connect ollama:opengl",
        ["setting ollama:opengl"],
    )
    asked = filled(parts, Unknown())
    assert "".join(asked) == "`sudo snap connect app:opengl`; app is its name"
    action = action_of(asked, "host")
    assert (action.command, action.changes, action.undo) == ("", ["setting app:opengl"], None)


def test_an_editor_is_completed_by_a_person() -> None:
    action = action_of((run("sudo systemctl edit a.service"), ": `[Service]`"), "host")
    assert (action.command, action.changes, action.root) == ("", ["service a.service"], True)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("`sudo nvidia-smi -i 0 -c 0`", "sudo nvidia-smi -i 0 -c 0"),
        ("`sudo modprobe a && sudo modprobe b`", "sudo modprobe a && sudo modprobe b"),
        ("run `sudo modprobe a`", ""),
        ("`sudo modprobe a`, then reboot", ""),
        ("`sudo modprobe a` or `sudo modprobe b`", ""),
        ("`sudo dmesg | tail`", ""),
        ("`acme-reset --all`", ""),
        ("sudo modprobe a", ""),
        ("on the host: reboot", ""),
        ("``", ""),
        ("`", ""),
        ("", ""),
    ],
)
def test_the_fix_of_a_plugin_is_a_command_where_that_is_all_of_it(text: str, command: str) -> None:
    parts = parts_of_text(text)
    assert "".join(parts) == text
    action = action_of(parts, "host")
    assert (action.command, action.reboots, action.where) == (command, False, "host")


@pytest.mark.parametrize(
    "text",
    [
        *("nvidia-smi -q", "nvidia-smi mig -lgi", "amd-smi list", "apt list --installed"),
        *("sudo dnf info nvidia-open", "rpm-ostree status", "systemctl status nvidia-imex"),
        *("snap connections ollama", "flatpak info app", "boltctl list", "wsl --list"),
        *("mokutil --sb-state", "modprobe --showconfig", "incus list", "pct list"),
    ],
)
def test_a_command_that_only_looks_is_no_action(text: str) -> None:
    assert not does_something(text)


ARGUMENTS = ("", "'", "$(", "a b c", *"x -c -e -i -t -- edit override enroll".split())


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_text_of_a_plugin_raises(program: str) -> None:
    for words in (f"{first} {second}" for first in ARGUMENTS for second in ARGUMENTS):
        action_of(parts_of_text(f"`sudo {program} {words}`"), "host")


# --- every line of every distribution


NAMES = {"release": RELEASE, "module": "nvidia", "parameter": "nomodeset", "branch": "470"}
NAMES |= {"version": VERSION, "kernel": "linux", "fabric_manager": "nvidia-fabricmanager"}


def lines() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for topic, commands in COMMANDS.items():
        for family in commands:
            if commands[family]:  # else a family that has none, though the one it is like has
                yield topic, family, filled(command(topic, family) or (), NAMES)


def test_every_command_can_be_filled_in() -> None:
    for topic, family, parts in lines():
        assert parts, (topic, family)
        assert "{" not in "".join(parts), (topic, family)
        actions = [action_of(parts, "host")]
        named = [name for action in actions for name in (*action.changes, *action.removes)]
        assert not any("{" in name for name in named), (topic, family)


def test_packages_are_installed_and_none_is_removed() -> None:
    """What the manuals say of the words; `test_readiness_managers.py` has what they do."""
    opposites = {"dnf": "remove", "pacman": "-R", "zypper": "remove", "apk": "del", "apt": "remove"}
    for topic, family, parts in lines():
        action = action_of(parts, "host")
        program = action.command.removeprefix("sudo ").partition(" ")[0]
        packages = [name for name in action.changes if name.startswith("package ")]
        is_again = any(word in action.command for word in ("reinstall", "--force", "upgrade"))
        if "--allowerasing" in action.command:
            assert (action.removes, action.undo) == ([CONFLICTING], None)
        elif program in opposites and packages and not is_again:
            names = " ".join(name.removeprefix("package ") for name in packages)
            undo = f"sudo {program} {opposites[program]} {names}"
            assert undo in (action.undo or ""), (topic, family)
            assert action.removes == []
        # No package by a pattern, and nothing without being asked.
        assert not any(sign in text for text in packages for sign in "*?[^"), parts
        assert not {"-y", "--yes", "--noconfirm", "--force-yes"} & {*action.command.split()}, parts


# --- every part that is declared


def every_part() -> Iterator[tuple[str, str]]:
    for code, cause in CAUSES.items():
        for fix in (cause.parts, *cause.fixes.values()):
            yield from ((code, part) for part in fix)
    for topic, commands in COMMANDS.items():
        yield from ((topic, part) for fix in commands.values() for part in parts_of(fix))


def commands_to_run() -> list[tuple[str, Part]]:
    return [(n, p) for n, p in every_part() if isinstance(p, Part) and p.is_command]


# Commands that are printed and are no action, each on purpose.
FOR_A_PERSON = {
    # Which boot loader there is, a person knows; the file is edited before.
    ("add parameter", "sudo grub-mkconfig -o /boot/grub/grub.cfg"),
    ("add parameter", "sudo update-grub"),
    ("remove parameter", "sudo grub-mkconfig -o /boot/grub/grub.cfg"),
    ("remove parameter", "sudo update-grub"),
    # For later: it repairs nothing now.
    ("cgroup-denied", "sudo nvidia-ctk system create-dev-char-symlinks --create-all"),
    # The newest branch, where another one is needed.
    ("driver nvidia 580", "sudo dnf install cuda-drivers"),
    ("driver branch 580", "sudo dnf install --allowerasing cuda-drivers"),
    ("module closed 580", "sudo dnf install --allowerasing cuda-drivers"),
    # Of two distributions, after a package.
    ("module-missing-for-kernel", "dkms autoinstall"),
    ("module-missing-for-kernel", "akmods --force"),
    # The version is one that a person looks up.
    ("module-refused", "sudo dkms install --force {module}/VERSION -k {release}"),
}


def test_a_command_in_words_is_there_on_purpose() -> None:
    in_words = {
        (name, text)
        for name, part in every_part()
        if not (isinstance(part, Part) and part.is_command)
        for text in part.split("`")[1::2]
        if does_something(text)
    }
    assert in_words == FOR_A_PERSON


class Some(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return f"/dev/{key}"


def test_every_command_is_of_a_program_that_is_known() -> None:
    for name, part in commands_to_run():
        action = action_of((part.filled(Some()),), "host")
        assert action.changes or action.removes, (name, part)
        assert part == f"`{part.command}`", (name, part)


# Commands whose opposite is not known, and why.
WITHOUT_UNDO = {
    # What is there is made anew.
    *("sudo dracut --force", "sudo update-initramfs -u", "sudo mkinitcpio -P", "sudo mkinitfs"),
    *("sudo update-grub", "sudo grub2-mkconfig -o /boot/grub2/grub.cfg"),
    *("sudo proxmox-boot-tool refresh", "sudo emerge @module-rebuild"),
    "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
    # Where the operator's driver was, no driver is.
    "sudo nvidia-ctk config --in-place --set=nvidia-container-cli.root=/",
    # The package manager does not say what was there before.
    *("sudo apt full-upgrade", "sudo dnf upgrade --refresh", "sudo dnf upgrade akmod-nvidia"),
    *("sudo pacman -Syu", "sudo zypper dup", "sudo rpm-ostree upgrade", "flatpak update"),
    *("sudo dnf reinstall xorg-x11-drv-nvidia", "sudo nvidia-uninstall"),
    *("sudo dnf reinstall nvidia-kmod-common", "sudo zypper install --force nvidia-common-G06"),
    "sudo zypper install --force nvidia-compute-G06",
    "sudo dnf reinstall libnvidia-ml nvidia-driver-cuda-libs",
    "sudo dnf reinstall xorg-x11-drv-nvidia-cuda-libs",
    "sudo apt install --reinstall libnvidia-ml1 libcuda1",
    "sudo apt install --reinstall libnvidia-compute-{branch}",
    # What it removed, the package manager found.
    "sudo dnf install --allowerasing nvidia-open",
    *(
        f"sudo dnf install --allowerasing akmod-nvidia-{name}xx xorg-x11-drv-nvidia-{name}xx-cuda"
        for name in ("390", "470", "580")
    ),
    "sudo apt install --reinstall nvidia-firmware-{branch}-{version}",
    *(f"sudo dnf module install nvidia-driver:{name}-dkms" for name in ("580", "open")),
    "sudo dnf module switch-to nvidia-driver:open-dkms --allowerasing",
    "sudo dnf module switch-to nvidia-driver:580-dkms --allowerasing",
    *("sudo emerge sys-kernel/linux-firmware", "sudo emerge x11-drivers/nvidia-drivers"),
    *("sudo ubuntu-drivers install", "sudo mhwd -a pci nonfree 0300"),
    *("sudo cos-extensions install gpu", "wsl --update", "wsl --set-version {NAME} 2"),
    # It is over once it is done.
    *("sudo reboot", "wsl --shutdown", "sudo systemctl restart nvidia-imex"),
    *("sudo systemctl restart {service}", "sudo systemctl edit {service}"),
    *("sudo nvidia-smi --gpu-reset -i {N}", "sudo nvidia-smi --gpu-reset -i {address}"),
    *("sudo nvidia-modprobe -c {minor} -u", "sudo nvidia-modprobe -u -c 0"),
    "echo 1 | sudo tee /sys/devices/platform/asus-nb-wmi/egpu_enable",
    *("echo 1 | sudo tee /sys/bus/pci/rescan", "pct set {ID} {missing_nodes}"),
    # The value before it was not read.
    *("sudo nvidia-smi --compute-mode=0", "sudo nvidia-smi -pl {WATTS}", "sudo nvidia-smi -mig 0"),
    "nvidia-smi -mig 0",
    *("sudo nvidia-smi mig -cgi {PROFILE} -C", "amd-smi set -C SPX"),
    *("sudo sysctl iogpu.wired_limit_mb={…}", "incus config set {NAME} nvidia.runtime true"),
    "unset HSA_OVERRIDE_GFX_VERSION",
}


@pytest.mark.parametrize(
    ("command", "changes", "removes", "undo"),
    [
        ("modprobe nvidia", "module nvidia", "", "modprobe -r nvidia"),
        ("modprobe -r a b", "", "module a,module b", "modprobe -a a b"),
        ("rmmod a b", "", "module a,module b", "modprobe -a a b"),
        ("systemctl enable --now a b", "service a,service b", "", "systemctl disable --now a b"),
        ("systemctl start a", "service a", "", "systemctl stop a"),
        ("systemctl restart a", "service a", "", None),
        ("systemctl edit a", "service a", "", None),
        ("systemctl status a", "", "", None),
        ("setsebool -P x on", "setting x", "", "setsebool -P x off"),
        ("setsebool -P x 1", "setting x", "", "setsebool -P x off"),
        ("setsebool -P x 0", "setting x", "", "setsebool -P x on"),
        ("setsebool x", "", "", None),
        ("nvidia-modprobe -u", "module nvidia_uvm,node /dev/nvidia-uvm", "", None),
        ("nvidia-modprobe -c 0", "node /dev/nvidiactl,node /dev/nvidia0", "", None),
        (
            "nvidia-modprobe -u -c 0",
            "module nvidia_uvm,node /dev/nvidia-uvm,node /dev/nvidiactl,node /dev/nvidia0",
            "",
            None,
        ),
        ("nvidia-smi -r -i 1", "device", "", None),
        ("nvidia-smi -i 1 -c 0", "setting compute mode", "", "nvidia-smi -i 1 -c 2"),
        ("nvidia-smi --compute-mode=2", "setting compute mode", "", None),
        ("nvidia-smi -i 1 -e 1", "setting ECC mode", "", "nvidia-smi -i 1 -e 0"),
        ("nvidia-smi -pl 300", "setting power limit", "", None),
        ("nvidia-smi -mig 1", "setting MIG mode", "", None),
        ("nvidia-smi mig -dci", "setting MIG mode", "", None),
        ("nvidia-smi", "", "", None),
        ("nvidia-ctk cdi generate --output=/etc/a.yaml", "file /etc/a.yaml", "", None),
        ("nvidia-ctk system create-dev-char-symlinks", "file /dev/char", "", None),
        ("tee /sys/x", "file /sys/x", "", None),
        ("tee /etc/x", "file /etc/x", "", "rm /etc/x"),
    ],
)
def test_what_one_command_does(command: str, changes: str, removes: str, undo: str | None) -> None:
    action = action_of((run(f"sudo {command}"),), "host")
    assert (action.changes, action.removes) == (
        changes.split(",") if changes else [],
        removes.split(",") if removes else [],
    )
    assert action.undo == (undo and f"sudo {undo}")


def test_every_command_says_how_it_is_undone_or_why_not() -> None:
    commands = {part.command: action_of((part,), "host") for _, part in commands_to_run()}
    assert {text for text, action in commands.items() if action.undo is None} == WITHOUT_UNDO


def test_every_place_is_one_that_is_known() -> None:
    parts = [part for _, part in every_part() if isinstance(part, Part)]
    assert {part.where for part in parts} <= {"", *PLACES}
    assert all(not part.changes + part.removes or part.by_hand for part in parts)


# --- a cause in each place


SIGNS = {
    "docker": "/.dockerenv",
    "podman": "/run/.containerenv",
    "apptainer": "/.singularity.d",
    "flatpak": "/.flatpak-info",
    "lxc": "container=lxc",
    "systemd-nspawn": "container=systemd-nspawn",
    "oci": "container=oci",
    "kubernetes": "KUBERNETES_SERVICE_HOST=10.0.0.1",
    "snap": "SNAP=/snap/app/1",
}
# Words that belong to one engine alone.
WORDS = {
    "docker": ("docker ", "Docker"),
    "podman": ("podman ",),
    "apptainer": ("apptainer ",),
    "flatpak": ("flatpak ",),
    "lxc": ("lxc.", "pct ", "incus ", "Incus"),
    "systemd-nspawn": ("systemd-nspawn ",),
    "kubernetes": ("resources.limits", "securityContext", "runtimeClassName", "the pod"),
    "snap": ("snap connect",),
}
# Causes that one engine alone has, or that are told on a host alone.
OF_ONE = {"flatpak": "flatpak", "snap": "snap", "lxc-device-missing": "lxc"}
OF_ONE |= {"pod-without-gpu": "kubernetes"}
ON_A_HOST = {"cdi-spec-stale", "service-without-devices", "wsl-no-library", "wsl-linux-driver"}
ON_A_HOST |= {
    "toolkit-root-gone",
    "device-tree-disabled",
    "mac-guest",
    "basic-display",
    "tdr",
    "wired-limit",
}
RELEASES = ("ID=ubuntu", "ID=debian", "ID=fedora", "ID=rocky\nID_LIKE=rhel", "ID=arch", "ID=nixos")


def in_engine(node: Node, engine: str) -> Node:
    sign = SIGNS[engine]
    if sign.startswith("/"):
        node.file(sign)
    else:
        name, _, value = sign.partition("=")
        node.environ[name] = value
    return node


def fixes(node: Node, device: Any) -> Iterator[tuple[str, Fix]]:
    for code, cause in CAUSES.items():
        if cause.vendor in ("", device["vendor"]):
            step: Any = {"step": cause.step, "status": "broken", "evidence": "", "code": code}
            fix = fix_for(device, step, Scene(node.machine()))
            assert fix is not None
            yield code, fix


def assert_printed(fix: Fix) -> None:
    """Assert that an action is plain data, whose command stands in its line as it is copied."""
    action = fix.action
    assert action.command in " && ".join(fix.line.split("`")[1::2]), fix.line
    texts = [fix.line, action.command, action.where, *action.changes, *action.removes]
    assert {type(text) for text in texts} == {str}


@pytest.mark.heavy
@pytest.mark.parametrize("engine", SIGNS)
@pytest.mark.parametrize("make", [nvidia, amd, intel])
def test_in_a_container_nothing_of_the_host_and_of_no_other_engine(
    make: Callable[[Path], Node], engine: str, tmp_path: Path
) -> None:
    node = in_engine(make(tmp_path), engine)
    device = node.report()["devices"][0]
    for release in RELEASES:
        node.file("/etc/os-release", f"{release}\n")
        for code, fix in fixes(node, device):
            if code in ON_A_HOST or OF_ONE.get(code, engine) != engine:
                continue
            for other, words in WORDS.items():
                if other != engine:
                    assert not any(word in fix.line for word in words), (code, other, fix.line)
            action = fix.action
            assert_printed(fix)
            assert action.where in PLACES
            if action.root:  # root of the host, or of a container that is a whole system
                is_hosts = "on the host" in fix.line or "on the node" in fix.line
                assert is_hosts or engine == "lxc", (code, fix.line)
                assert (action.where == "host") is is_hosts, (code, fix.line)
            assert not any(name.startswith("package ") for name in action.changes), code


@pytest.mark.parametrize(
    ("engine", "place", "other"),
    [("docker", "container", "pod"), ("kubernetes", "pod", "container")],
)
def test_what_is_changed_about_the_container_says_which_kind(
    engine: str, place: str, other: str, tmp_path: Path
) -> None:
    node = in_engine(nvidia(tmp_path), engine)
    device = node.report()["devices"][0]
    places = {fix.action.where for code, fix in fixes(node, device) if code not in OF_ONE}
    assert place in places
    assert other not in places


@pytest.mark.heavy
@pytest.mark.parametrize("make", [nvidia, amd, intel])
@pytest.mark.parametrize("release", RELEASES)
def test_on_a_host_the_distributions_own_commands(
    release: str, make: Callable[[Path], Node], tmp_path: Path
) -> None:
    own = {"ubuntu": "apt", "debian": "apt", "fedora": "dnf", "rocky": "dnf", "arch": "pacman"}
    node = make(tmp_path)
    node.file("/etc/os-release", f"{release}\n")
    managers = {"apt", "dnf", "pacman", "zypper", "apk", "emerge", "rpm-ostree"}
    family = release.partition("\n")[0].removeprefix("ID=")
    for code, fix in fixes(node, node.report()["devices"][0]):
        words = {part.removeprefix("sudo ").split()[0] for part in fix.line.split("`")[1::2]}
        assert words & managers <= {own.get(family)}, (code, fix.line)
        assert_printed(fix)
        assert fix.action.where in ("host", "service", "firmware", "Windows")
        assert not fix.action.command or fix.action.changes or fix.action.removes


def test_no_two_fixes_of_a_machine_undo_each_other() -> None:
    """What one installs or sets, no other removes, whatever causes a document has at once."""
    actions = [action_of(parts, "host") for _, family, parts in lines() if family == "ubuntu"]
    removed = {name for action in actions for name in action.removes}
    changed = {name for action in actions for name in action.changes}
    assert removed & changed <= {"parameter nomodeset"}  # one topic adds, the other removes it


def test_every_topic_has_a_line_of_which_all_is_known() -> None:
    topics = {part for _, part in every_part() if isinstance(part, Command) and "{" not in part}
    by_topic = {topic: parts for topic, family, parts in lines() if family == "ubuntu"}
    for topic in topics & set(by_topic):
        action = action_of(by_topic[topic], "host")
        assert action.changes or action.removes, topic


# --- what a person does first

STUBS = "/usr/local/cuda/lib64/stubs"


def with_stub_of_the_loader(root: Path) -> Node:
    node = nvidia(root)
    node.file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    node.file("/etc/ld.so.conf.d/cuda.conf", f"{STUBS}\n")
    node.file(f"{STUBS}/libcuda.so.1", b"\x7fELF\x02")
    return node


def radeon_on_arch(root: Path) -> Node:
    node = causes.radeon(root)
    node.file("/etc/os-release", "ID=arch\n")
    return node


def pascal_on_rhel_10(root: Path) -> Node:
    node = causes.kepler_and_a_new_driver(root)
    node.file(f"{FOLDER}/device", "0x1b38\n")  # Tesla P40
    node.file("/etc/os-release", "ID=rhel\nVERSION_ID=10.0\n")
    return node


PERSONS: dict[str, tuple[Callable[[Path], Node], list[str], list[str], bool]] = {
    "libcuda-missing": (
        with_stub_of_the_loader,
        ["file /etc/ld.so.cache"],
        [f"line {STUBS} of /etc/ld.so.conf.d"],
        False,
    ),
    "radeon-bound": (
        radeon_on_arch,
        ["parameter amdgpu.si_support=1", "parameter radeon.si_support=0"],
        [],
        True,
    ),
    # The command alone installs the newest branch.
    "legacy-branch": (pascal_on_rhel_10, ["package cuda-drivers"], [CONFLICTING], True),
}


@pytest.mark.parametrize("code", PERSONS)
def test_what_a_person_does_first_has_no_command(code: str, tmp_path: Path) -> None:
    make, changes, removes, reboots = PERSONS[code]
    node = make(tmp_path)
    device = node.report()["devices"][0]
    step: Any = {"step": CAUSES[code].step, "status": "broken", "evidence": "", "code": code}
    fix = fix_for(device, step, Scene(node.machine()))
    assert fix is not None
    action = fix.action
    assert (action.command, action.undo, action.reboots) == ("", None, reboots)
    assert (action.changes, action.removes) == (changes, removes)


def test_the_place_before_all_ways_is_that_of_each(tmp_path: Path) -> None:
    node = in_engine(nvidia(tmp_path), "docker")
    device = node.report()["devices"][0]
    code = "mig-without-instances"
    step: Any = {"step": "granted", "status": "broken", "evidence": "", "code": code}
    fix = fix_for(device, step, Scene(node.machine()))
    assert fix is not None
    assert fix.line.startswith("on the host: create instances: ")
    assert (fix.action.command, fix.action.where) == ("sudo nvidia-smi -mig 0", "host")


# --- done to a machine


class Workshop:
    """Does to a machine what an action says that it does."""

    def __init__(self, node: Node, module: str = "nvidia") -> None:
        self.node = node
        self.module = module

    def apply(self, action: Action) -> None:
        for text in action.removes:
            kind, _, name = text.partition(" ")
            self._removed(kind, name)
        for text in action.changes:
            kind, _, name = text.partition(" ")
            self._changed(kind, name)
        if action.reboots:
            self._reboot()

    def _removed(self, kind: str, name: str) -> None:
        node = self.node
        if kind == "variable":
            node.environ.pop(name)
        elif kind == "parameter":
            self._command_line(lambda words: [word for word in words if word != name])
        elif kind == "line":
            line, _, path = name.partition(" of ")
            text = self._read(path)
            assert line in text
            node.file(path, text.replace(line, ""))

    def _changed(self, kind: str, name: str) -> None:
        node = self.node
        if kind == "variable":
            key, _, value = name.partition("=")
            node.environ[key] = value
        elif kind == "parameter":
            self._command_line(lambda words: [*words, name])
        elif kind == "group":
            node.nodes(*(path for path, state in node.access.items() if state == "EACCES"))
        elif kind == "module":
            self._load(name)
        elif kind == "node":
            node.nodes(name)
        elif kind in ("package", "packages"):
            self._install(name)
        elif kind == "modules":
            node.file(f"/lib/modules/{RELEASE}/updates/dkms/{self.module}.ko")
        elif kind == "key":
            node.file(causes.SECURE_BOOT, b"\x06\0\0\0\0")  # an enrolled key refuses no module
        elif kind == "file":
            node.file(name, "blacklist nouveau\n")
        elif kind == "setting" and name.startswith("NVreg_DeviceFileMode"):
            node.nodes(*nodes.NVIDIA_NODES)

    def _read(self, path: str) -> str:
        place = self.node.tree.root / path.lstrip("/")
        return place.read_text() if place.exists() else ""

    def _command_line(self, change: Callable[[list[str]], list[str]]) -> None:
        words = change(self._read("/proc/cmdline").split())
        self.node.file("/proc/cmdline", " ".join(words) + "\n")

    def _install(self, name: str) -> None:
        node = self.node
        if name == "of the driver":
            node.file(f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko")
            name = "libnvidia-compute"
        if name == "linux-firmware":
            node.file("/lib/firmware/amdgpu/gc_11_0_0_pfp.bin")
        if name.startswith("nvidia-firmware-"):
            node.file(f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin")
        if name == "rocm":
            node.file("/opt/rocm/lib/libhsa-runtime64.so.1", b"\x7fELF\x02")
        if name == "libze-intel-gpu1":
            node.file(f"{LIBRARIES}/libze_intel_gpu.so.1", b"\x7fELF\x02")
        if name.startswith("libnvidia-compute"):
            for library in ("libcuda.so", "libnvidia-ml.so"):
                node.file(f"{LIBRARIES}/{library}.{VERSION}", b"\x7fELF\x02")
                node.tree.link(f"{LIBRARIES}/{library}.1", f"{LIBRARIES}/{library}.{VERSION}")

    def _load(self, name: str) -> None:
        text = self._read("/proc/modules")
        self.node.file("/proc/modules", f"{text}{name} 16384 0 - Live 0x0\n")
        if name == self.module:
            self._bind()

    def _bind(self) -> None:
        """Bind the device, and make what its driver makes."""
        node = self.node
        driver = node.tree.root / FOLDER.lstrip("/") / "driver"
        driver.unlink(missing_ok=True)
        node.tree.link(f"{FOLDER}/driver", f"/sys/bus/pci/drivers/{self.module}")
        if self.module == "nvidia":
            node.file("/proc/driver/nvidia/version", nodes.VERSION_TEXT)
            node.file(causes.INFORMATION, "Device Minor: \t 0\nGPU Excluded:\t No\n")
            node.nodes(*nodes.NVIDIA_NODES)
            self._load("nvidia_uvm")
            self._install("libnvidia-compute")

    def _reboot(self) -> None:
        """Load the module as the kernel does: where nothing forbids it, nor is another first."""
        line = self._read("/proc/cmdline").split()
        folder = self.node.tree.root / "lib/modprobe.d"
        forbidden = [path.read_text() for path in folder.glob("*.conf")] if folder.exists() else []
        is_forbidden = any(f"blacklist {self.module}\n" in f"{text}\n" for text in forbidden)
        by_line = any(
            self.module in word.partition("=")[2].split(",") for word in line if "blacklist" in word
        )
        if not (is_forbidden or by_line or ("nomodeset" in line and self.module != "nvidia")):
            self._load(self.module)


def with_stub(root: Path) -> Node:
    node = nvidia(root)
    folder = "/usr/local/cuda/lib64/stubs"
    node.environ["LD_LIBRARY_PATH"] = f"/opt/lib:{folder}"
    node.file(f"{folder}/libcuda.so.1", b"\x7fELF\x02")
    return node


def nodes_for_root(root: Path) -> Node:
    node = causes.people(nvidia(root))
    node.nodes(*nodes.NVIDIA_NODES, answer="EACCES")
    text = "DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 384\n"
    node.file("/proc/driver/nvidia/params", text)
    return node


def nodes_of_video(root: Path) -> Node:
    node = nodes_for_root(root)
    text = "DeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n"
    node.file("/proc/driver/nvidia/params", text)
    return node


def nouveau_first(root: Path) -> Node:
    node = nvidia(root, driver="nouveau")
    node.modules("nouveau")
    node.file(f"{causes.DKMS}/nvidia.ko")
    return node


def radeon_alone(root: Path) -> Node:
    node = causes.radeon(root)
    node.file(f"{causes.MODULES}/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko")
    return node


REPAIRED: dict[str, tuple[Callable[[Path], Node], str]] = {
    "not-in-group": (causes.not_in_render, "amdgpu"),
    "no-permission, mode": (nodes_for_root, "nvidia"),
    "no-permission, group": (nodes_of_video, "nvidia"),
    "hsa-override-bad": (causes.bad_override, "amdgpu"),
    "hsa-override-foreign": (causes.override_of_another_generation, "amdgpu"),
    "libcuda-missing": (with_stub, "nvidia"),
    "cuda-library-mismatch": (causes.older_libcuda_on_an_h100, "nvidia"),
    "uvm-missing": (causes.uvm_without_module, "nvidia"),
    "nvml-missing": (causes.cuda_without_nvml, "nvidia"),
    "library-missing": (causes.container_without_libraries, "nvidia"),
    "version-mismatch": (causes.upgraded_without_a_restart, "nvidia"),
    "gsp-firmware-missing": (causes.no_gsp_firmware, "nvidia"),
    "driver-not-installed": (causes.no_module_on_disk, "nvidia"),
    "module-missing-for-kernel": (causes.dkms_did_not_build, "nvidia"),
    "module-not-loaded": (causes.blacklist_in_a_file_that_modprobe_does_not_read, "nvidia"),
    "module-blacklisted, file": (causes.blacklisted_by_prime_select, "nvidia"),
    "module-blacklisted, line": (causes.blacklisted_by_the_command_line, "nvidia"),
    "no-driver": (causes.nothing_known_of_modules, "nvidia"),
    "secure-boot": (causes.key_was_rejected, "nvidia"),
    "nouveau-bound": (nouveau_first, "nvidia"),
    "radeon-bound": (radeon_alone, "amdgpu"),
    "nomodeset": (causes.nomodeset, "amdgpu"),
    "firmware-missing": (causes.amdgpu_without_firmware, "amdgpu"),
    "rocm-missing": (causes.no_rocm, "amdgpu"),
    "level-zero-missing": (causes.no_level_zero, "xe"),
}


@pytest.mark.parametrize("name", mostly_heavy(REPAIRED, 3))
def test_what_the_action_changes_repairs_the_machine(name: str, tmp_path: Path) -> None:
    make, module = REPAIRED[name]
    node = make(tmp_path)
    node.file("/etc/os-release", "ID=ubuntu\n")
    report = node.report()
    device = report["devices"][0]
    step = next(s for s in device["readiness"]["steps"] if s["status"] == "broken")
    assert step["code"] == name.partition(",")[0]
    fix = fix_for(device, step, Scene(node.machine()))
    assert fix is not None
    assert fix.line in {f["fix"] for f in report["findings"]}
    Workshop(node, module).apply(fix.action)
    after = node.report()
    states = [s["code"] for s in after["devices"][0]["readiness"]["steps"] if s["code"]]
    assert step["code"] not in states
    assert [f["code"] for f in after["findings"] if f["severity"] == "error"] == []
    assert after["devices"][0]["readiness"]["state"] == "ready"
