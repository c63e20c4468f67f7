"""Which node it is: a stable id that tells nothing, a name when asked for, and its surroundings."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from reports import report_of
from trees import Tree

import probe_core
from probe_core.machine.surroundings import cgroup_kind, container, in_slurm
from probe_core.pipeline.node import describe

ID = "0123456789abcdef0123456789abcdef"


def node_of(tree: Tree, environ: dict[str, str] | None = None, **settings: Any) -> dict[str, Any]:
    machine = probe_core.Machine(str(tree.root), environ)
    node: dict[str, Any] = report_of(machine, **settings)["node"]
    return node


def test_the_id_is_stable_and_not_the_machine_id(tree: Tree) -> None:
    tree.file("/etc/machine-id", f"{ID}\n")
    identity = node_of(tree)["id"]
    assert identity == "7748d3e04ede6b563f3f48fad8196a53"
    assert node_of(tree)["id"] == identity
    tree.file("/etc/machine-id", f"{ID[::-1]}\n")
    assert node_of(tree)["id"] != identity


@pytest.mark.heavy
def test_the_same_hash_without_the_fast_module(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    tree.file("/etc/machine-id", f"{ID}\n")
    identity = node_of(tree)["id"]
    import hashlib  # first: hashlib itself is made of it

    assert hashlib.blake2s
    monkeypatch.setitem(sys.modules, "_blake2", None)
    assert node_of(tree)["id"] == identity


def test_it_can_be_left_out(tree: Tree) -> None:
    tree.file("/etc/machine-id", f"{ID}\n")
    assert node_of(tree, anonymous=True)["id"] is None


@pytest.mark.parametrize("text", ["", "uninitialized", "0" * 32, "x" * 32, ID[:31], "\0" * 32])
def test_what_is_no_machine_id(text: str, tree: Tree) -> None:
    tree.file("/etc/machine-id", text)
    assert node_of(tree)["id"] is None


def test_a_container_of_an_image_has_none_unless_the_hosts_is_mounted(tree: Tree) -> None:
    tree.file("/etc/machine-id", ID)
    tree.file("/.dockerenv", "")
    assert node_of(tree)["id"] is None
    line = "36 35 98:0 /etc/machine-id /etc/machine-id ro - ext4 /dev/sda1 rw\n"
    tree.file("/proc/self/mountinfo", line)
    assert node_of(tree)["id"] is not None


def test_the_name_is_told_when_asked_for(tree: Tree) -> None:
    tree.file("/proc/sys/kernel/hostname", "node17\n")
    assert node_of(tree)["host"] is None
    assert node_of(tree, hostname=True)["host"] == "node17"


def test_the_time_is_that_of_probing() -> None:
    before = time.time()
    text = report_of(probe_core.Machine(environ={}))["node"]["time"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    stamp = time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert before - 3700 <= stamp <= time.time() + 3700  # mktime may think of summer time


def test_the_time_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, written in (("0625", "062"), ("0", "000"), ("9999", "999")):
        monkeypatch.setattr(time, "time", lambda part=seconds: float(f"1767225599.{part}"))
        assert describe(probe_core.Machine())["time"] == f"2025-12-31T23:59:59.{written}Z"


def test_a_recording_has_no_time(tree: Tree) -> None:
    assert node_of(tree)["time"] is None


CONTAINERS: dict[str, tuple[str | None, dict[str, str], dict[str, str]]] = {
    "none": (None, {}, {"/proc/self/cgroup": "0::/\n"}),
    "user": (None, {}, {"/proc/self/cgroup": "0::/user.slice/user-1000.slice/x.scope\n"}),
    "docker": ("docker", {}, {"/.dockerenv": ""}),
    "docker-by-path": ("docker", {}, {"/proc/self/cgroup": "4:memory:/docker/0f\n"}),
    "podman": ("podman", {}, {"/run/.containerenv": 'engine="podman-5"\nrootless=1\n'}),
    "apptainer": ("apptainer", {}, {"/.singularity.d": "", "/.dockerenv": ""}),
    "job-of-an-apptainer": (None, {"APPTAINER_CONTAINER": "/x.sif"}, {}),
    "lxc": ("lxc", {"container": "lxc"}, {}),
    "nspawn": ("systemd-nspawn", {}, {"/run/systemd/container": "systemd-nspawn\n"}),
    "other": ("container", {"container": "bottle"}, {}),
    "pod": ("kubernetes", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"/.dockerenv": ""}),
    "pod-by-path": ("kubernetes", {}, {"/proc/self/cgroup": "0::/kubepods.slice/pod1/x\n"}),
    "flatpak": ("flatpak", {"container": "flatpak"}, {"/.flatpak-info": "[Application]\n"}),
    "snap": ("snap", {"SNAP": "/snap/a/1"}, {"/proc/self/attr/current": "snap.a.b (enforce)\n"}),
    "child-of-a-snap": (None, {"SNAP": "/snap/a/1"}, {"/proc/self/attr/current": "unconfined\n"}),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", CONTAINERS)
def test_kinds_of_containers(name: str, tree: Tree) -> None:
    kind, environ, files = CONTAINERS[name]
    for path, text in files.items():
        tree.file(path, text)
    assert container(probe_core.Machine(str(tree.root), environ)) == kind
    assert node_of(tree, environ)["container"] == kind


def test_a_mac_with_the_variables_of_a_pod_is_in_none(tree: Tree) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "container": "docker"}
    for system in ("darwin", "windows"):
        assert container(probe_core.Machine(str(tree.root), environ, system, "arm64")) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n", "slurm"),
        ("5:devices:/slurm/uid_1000/job_12/step_0\n1:name=systemd:/\n", "slurm"),
        ("0::/user.slice/user-1000.slice/session-2.scope\n", "user"),
        ("0::/system.slice/ollama.service\n", "system"),
        ("0::/\n", "root"),
        ("0::/mine\n", "other"),
        ("", None),
        ("nonsense", None),
    ],
)
def test_kinds_of_cgroups(text: str, kind: str | None, tree: Tree) -> None:
    assert cgroup_kind(text) == kind
    assert in_slurm(tree.machine(), text) is (kind == "slurm")


VIRTUAL: dict[str, dict[str, str]] = {
    "kvm": {"product_name": "KVM", "sys_vendor": "Red Hat"},
    "qemu": {"product_name": "Standard PC (Q35 + ICH9, 2009)", "sys_vendor": "QEMU"},
    "vmware": {"sys_vendor": "VMware, Inc.", "product_name": "VMware7,1"},
    "virtualbox": {"sys_vendor": "innotek GmbH", "product_name": "VirtualBox"},
    "hyper-v": {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"},
    "amazon": {"sys_vendor": "Amazon EC2", "product_name": "g5.xlarge"},
    "google": {"sys_vendor": "Google", "product_name": "Google Compute Engine"},
}


@pytest.mark.parametrize("kind", VIRTUAL)
def test_kinds_of_virtual_machines(kind: str, tree: Tree) -> None:
    for name, text in VIRTUAL[kind].items():
        tree.file(f"/sys/class/dmi/id/{name}", f"{text}\n")
    assert node_of(tree)["vm"] == kind


def test_other_signs_of_a_virtual_machine(tree: Tree) -> None:
    tree.file("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n")
    tree.file("/sys/class/dmi/id/product_name", "g4dn.metal\n")
    assert node_of(tree)["vm"] is None
    tree.file("/proc/cpuinfo", "processor: 0\nflags\t\t: fpu hypervisor lm\n")
    tree.file("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n")
    assert node_of(tree)["vm"] == "vm"
    tree.file("/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    assert node_of(tree)["vm"] == "wsl"


def memory_of(tree: Tree, **memory: Any) -> dict[str, Any]:
    """Return a device's memory as `share_memory` leaves it."""
    from probe_core.pipeline.conclude import share_memory
    from probe_core.pipeline.node import memory as system

    device: Any = {
        "memory": {"kind": None, "total": None, "free": None, "usable": None, "parts": {}} | memory,
        "sources": {},
        "unknown": {},
    }
    share_memory([device], system(tree.machine()))
    result: dict[str, Any] = device["memory"]
    return result


def test_what_limits_a_memory(tree: Tree) -> None:
    tree.memory(64 << 20, 60 << 20)
    free = memory_of(tree, kind="dedicated", total=24 << 30, free=20 << 30)
    assert (free["usable"], free["limited_by"]) == (20 << 30, "used")
    empty = memory_of(tree, kind="dedicated", total=24 << 30, free=24 << 30)
    assert (empty["usable"], empty.get("limited_by")) == (24 << 30, None)
    shared = memory_of(tree, kind="unified")
    assert (shared["usable"], shared["limited_by"]) == (60 << 30, "system")
    word = memory_of(tree, kind="unified", usable=30 << 30, limited_by="ttm")
    assert (word["usable"], word["limited_by"]) == (30 << 30, "ttm")
    wider = memory_of(tree, kind="unified", usable=62 << 30, limited_by="ttm")
    assert (wider["usable"], wider["limited_by"]) == (60 << 30, "system")
    tree.file("/proc/self/cgroup", "0::/x\n")
    tree.file("/sys/fs/cgroup/x/memory.max", f"{8 << 30}\n")
    within = memory_of(tree, kind="unified")
    assert (within["usable"], within["limited_by"]) == (8 << 30, "cgroup")
    unknown = memory_of(tree, kind="dedicated", total=24 << 30)
    assert (unknown["usable"], unknown.get("limited_by")) == (None, None)
