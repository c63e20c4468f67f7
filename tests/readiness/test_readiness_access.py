"""What access(2) answers of real nodes, and what a recording says instead."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import sys
from pathlib import Path

import pytest
from readiness_nodes import DEVICE, Node, amd, nvidia, verdict
from test_readiness_causes import people

from probe_core.machine import Machine
from probe_core.machine.access import _refusal, access, mode_allows, number, status
from probe_core.readiness import Scene
from probe_core.readiness.closed import _not_a_member, _without_kfd, cause, groups_of

LIVE = Machine(environ={})


def test_a_node_that_opens_is_ok_and_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr(os, "open", lambda *arguments: opened.append(arguments))
    assert access(LIVE, "/dev/null") == "ok"
    assert access(LIVE, "/dev/nvidia-of-no-machine") == "missing"
    assert opened == []


def test_what_is_no_character_device_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").write_text("")
    for path in (tmp_path / "nvidia0", tmp_path):
        assert access(LIVE, str(path)) == "unknown"
    assert access(LIVE, "/dev/\0") == "unknown"


def test_numbers_and_modes() -> None:
    node = status(LIVE, "/dev/null")
    assert node is not None
    assert stat.S_ISCHR(node.st_mode)
    assert number(node) == (1, 3)
    assert status(LIVE, "/etc/passwd") is None
    assert mode_allows(node, 1000, {1000})


def closed_node(folder: Path, mode: int, group: int) -> str:
    """Return a character device without rights for others: only root can make one."""
    path = str(folder / "node")
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.chmod(path, mode)
        os.chown(path, 0, group)
    except PermissionError:
        pytest.skip("making a device node needs root")
    return path


def answer_of_a_user(path: str, groups: list[int]) -> str:
    """Return what a process without rights is answered, and whether it imported ctypes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups(groups)
        os.setgid(54321)
        os.setuid(54321)
        loaded = "ctypes" in sys.modules
        sys.modules.pop("ctypes", None)
        text = access(LIVE, path)
        imported = "ctypes" in sys.modules
        os.write(writer, f"{text} {imported} {loaded}".encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    text = os.read(reader, 100).decode()
    os.close(reader)
    return text


@pytest.mark.parametrize(("groups", "expected"), [([], "EACCES False"), ([105], "ok False")])
def test_mode_and_groups_decide_for_a_user(
    groups: list[int], expected: str, tmp_path: Path
) -> None:
    path = closed_node(tmp_path, 0o660, 105)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and str(folder) != "/" and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o711)
    assert answer_of_a_user(path, groups).rsplit(" ", 1)[0] == expected


def test_what_a_recording_says_counts(tmp_path: Path) -> None:
    answers = {"/dev/kfd": "EPERM", "/dev/x": "ok"}
    machine = Machine(str(tmp_path), access=answers)
    assert [access(machine, path) for path in ("/dev/kfd", "/dev/x")] == ["EPERM", "ok"]
    assert access(machine, "/dev/y") == "unknown"  # nobody recorded /dev
    (tmp_path / "dev").mkdir()
    assert access(machine, "/dev/y") == "missing"
    (tmp_path / "dev" / "y").write_text("")
    assert access(machine, "/dev/y") == "unknown"
    answers["/dev/kfd"] = "ok"
    assert machine.access["/dev/kfd"] == "EPERM"


def test_it_is_part_of_the_machines_value(tmp_path: Path) -> None:
    machine = Machine(str(tmp_path), access={"/dev/kfd": "EPERM"})
    assert machine == Machine(str(tmp_path), access={"/dev/kfd": "EPERM"})
    assert hash(machine) == hash(Machine(str(tmp_path), access={"/dev/kfd": "EPERM"}))
    assert machine != Machine(str(tmp_path))
    for other in (copy.deepcopy(machine), pickle.loads(pickle.dumps(machine))):
        assert (other, other.access) == (machine, {"/dev/kfd": "EPERM"})


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("nvidia-uvm", (507, 0), (511, 0)),
        ("nvidia0", (195, 0), (1, 3)),
        ("nvidiactl", (195, 255), (1, 3)),
    ],
)
def test_a_node_of_another_driver(
    tmp_path: Path, name: str, right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    """With /dev/null in place of /dev/nvidia0 or /dev/nvidiactl an H200's NVML counts no GPU."""
    node = nvidia(tmp_path)
    node.file("/proc/devices", "Character devices:\n195 nvidia\n507 nvidia-uvm\n")
    place = tmp_path / "dev" / name
    place.unlink()
    try:
        os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(*wrong))
    except PermissionError:
        pytest.skip("making a device node needs root")
    assert verdict(node.device()) == ("blocked", "node", "node-number-stale")
    place.unlink()
    os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(*right))
    assert verdict(node.device()) == ("ready", None, None)


def test_a_recording_of_existing_nodes_says_nothing_of_permission(tmp_path: Path) -> None:
    node = amd(tmp_path)
    node.access.clear()
    device = node.device()
    assert verdict(device) == ("ready", None, None)
    steps = {step["step"]: step["status"] for step in device["readiness"]["steps"]}
    assert (steps["node"], steps["permission"], steps["granted"]) == ("ok", "unknown", "unknown")
    assert device["id"] == DEVICE


@pytest.mark.parametrize(
    ("members", "mode", "code"),
    [
        ("ada", 0o660, "group-not-active"),
        ("ada", 0o600, "no-permission"),  # the group could not open it either
        ("bob", 0o660, "not-in-group"),
        ("", 0o660, "not-in-group"),
    ],
)
def test_why_a_node_s_mode_refuses(members: str, mode: int, code: str, tmp_path: Path) -> None:
    scene = Scene(people(amd(tmp_path / "root"), members=members).machine())
    number, _ = scene.process.listed_groups()["render"]
    node = os.stat_result((0o020000 | mode, 0, 0, 1, 0, number, 0, 0, 0, 0))
    assert _not_a_member("/dev/dri/renderD128", node, scene, "refused")[0] == code


RENDER = "/dev/dri/renderD128"


def stands(monkeypatch: pytest.MonkeyPatch, mode: int, owner: int, group: int) -> None:
    """Let stat(2) answer so of the render node; only root can make one."""
    look = os.stat

    def stat_of(path: object, **options: object) -> os.stat_result:
        if not str(path).endswith(RENDER):
            return look(path, **options)  # type: ignore[call-overload,no-any-return]
        return os.stat_result((stat.S_IFCHR | mode, 0, 0, 1, owner, group, 0, 0, 0, 0))

    monkeypatch.setattr(os, "stat", stat_of)


NOT_THE_HOSTS = "/proc/self/uid_map is not the host's"


@pytest.mark.parametrize(
    ("mode", "owner", "group", "users", "code", "evidence"),
    [
        (0o660, 0, 105, "0 0 4294967295", "not-in-group", "this process is not in group 105"),
        (0o660, 0, 65534, "0 1000 1", "userns-group-lost", NOT_THE_HOSTS),
        (0o660, 65534, 105, "0 1000 1", "userns-group-lost", NOT_THE_HOSTS),
        (0o660, 0, 105, "0 1000 1", "not-in-group", "this process is not in group 105"),
        (0o660, 0, 65534, "0 0 4294967295", "not-in-group", "this process is not in group 65534"),
        (
            *(0o666, 0, 105, "0 0 4294967295", "no-permission"),
            "which allows this process; an access list or a security module refuses",
        ),
    ],
)
def test_why_a_node_that_is_here_refuses(
    mode: int,
    owner: int,
    group: int,
    users: str,
    code: str,
    evidence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = people(amd(tmp_path))
    node.file("/proc/self/uid_map", f"{users}\n")
    stands(monkeypatch, mode, owner, group)
    found, said = cause(RENDER, Scene(node.machine()))
    where = f"access(2) of {RENDER}: EACCES; mode {mode:04o}, owner {owner}:{group}"
    separator = ", " if code == "no-permission" else "; "
    assert (found, said) == (code, f"{where}{separator}{evidence}")


@pytest.mark.parametrize(
    ("enforce", "label", "code"),
    [("1", "user_t", "selinux-denies"), ("1", "", "selinux-denies"), ("0", "", "no-permission")],
)
def test_a_security_module_refuses_what_the_mode_allows(
    enforce: str, label: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = people(amd(tmp_path))
    node.file("/sys/fs/selinux/enforce", enforce)
    node.file("/proc/self/attr/current", label)
    stands(monkeypatch, 0o666, 0, 105)
    found, evidence = cause(RENDER, Scene(node.machine()))
    assert found == code
    assert evidence.endswith(f"/sys/fs/selinux/enforce is 1{label and ', ' + label}") == (
        code == "selinux-denies"
    )


def test_a_label_is_read_to_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = people(amd(tmp_path))
    node.file("/sys/fs/selinux/enforce", "1")
    node.file("/proc/self/attr/current", "u" * 300)
    stands(monkeypatch, 0o666, 0, 105)
    assert cause(RENDER, Scene(node.machine()))[1].endswith(f"/enforce is 1, {'u' * 256}")


@pytest.mark.parametrize(
    ("path", "group"),
    [("/dev/davinci0", "HwHiAiUser"), ("/dev/apex_0", "apex"), ("/dev/neuron0", "render")],
)
def test_the_group_of_a_vendors_own_package(path: str, group: str, tmp_path: Path) -> None:
    assert groups_of(path, Scene(people(amd(tmp_path)).machine())) == group


@pytest.mark.parametrize(
    ("folder", "container", "step"),
    [
        ("/sys/class/kfd", False, ("broken", "kfd-missing", "; /sys has it")),
        ("/sys/class/kfd", True, ("broken", "kfd-missing", "; this is a container (docker)")),
        ("/sys/class/drm", False, ("broken", "kfd-missing", "; /sys/class/kfd is absent")),
        ("/sys/class", False, ("unknown", None, "; /sys/class is not there")),
    ],
)
def test_a_render_node_without_kfd(
    folder: str, container: bool, step: tuple[str, str | None, str], tmp_path: Path
) -> None:
    node = Node(tmp_path)
    node.file(f"{folder}/there")
    if container:
        node.container()
    found = _without_kfd(Scene(node.machine()), "/dev/kfd: missing")
    status, code, more = step
    assert (found["status"], found["code"]) == (status, code)
    assert found["evidence"] == f"/dev/kfd: missing{more}"


@pytest.mark.parametrize(
    ("over_ssh", "has_list", "code"),
    [
        (True, True, "ssh-no-seat"),
        (True, False, "not-in-group"),
        (False, True, "not-in-group"),
    ],
)
def test_the_list_of_the_user_at_the_screen(
    over_ssh: bool, has_list: bool, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attribute(path: str, name: str) -> bytes:
        if not has_list or name != "system.posix_acl_access":
            raise OSError
        return b"\x02\x00\x00\x00"

    node = people(amd(tmp_path))
    node.environ |= {"SSH_CONNECTION": "::1 1 ::1 22"} if over_ssh else {}
    stands(monkeypatch, 0o660, 0, 105)
    monkeypatch.setattr(os, "getxattr", attribute, raising=False)
    assert cause(RENDER, Scene(node.machine()))[0] == code


@pytest.mark.parametrize(
    ("group", "name"),
    [(44, "video"), (105, "render"), (4242, "4242"), (0, "render"), (65534, "render")],
)
def test_the_group_to_join_is_that_of_the_node(
    group: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands(monkeypatch, 0o660, 0, group)
    assert groups_of(RENDER, Scene(people(amd(tmp_path)).machine())) == name


def test_the_kernel_s_own_number_of_a_refusal() -> None:
    assert _refusal("/nowhere/node") == "ENOENT"
    assert _refusal("/dev/null/x") == "ENOTDIR"
    assert _refusal("/dev/null") == "ok"
