"""Whatever files hold: nothing raises, is opened, or blocks without evidence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import test_readiness_causes as cases
from hypothesis import given
from hypothesis import strategies as st
from readiness_nodes import DEVICE, FOLDER, PCI, RELEASE, Node, amd, intel, nvidia, verdict
from weights import mostly_heavy

from probe_core.model.causes import CAUSES
from probe_core.model.ids import STATES, STEP_STATUSES
from probe_core.testing.spy import Notes

Listener = Callable[[str, tuple[object, ...]], None]

READ = (
    "/etc/group",
    "/etc/ld.so.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/proc/cmdline",
    "/proc/devices",
    "/proc/driver/nvidia/params",
    "/proc/driver/nvidia/version",
    f"/proc/driver/nvidia/gpus/{PCI}/information",
    "/proc/modules",
    "/proc/self/attr/current",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/self/status",
    "/proc/self/uid_map",
    "/proc/sys/kernel/osrelease",
    "/run/systemd/container",
    "/sys/class/kfd/kfd/topology/nodes/1/properties",
    "/sys/fs/cgroup/devices/devices.list",
    "/sys/fs/selinux/enforce",
    f"{FOLDER}/aer_dev_fatal",
    f"{FOLDER}/config",
    f"{FOLDER}/current_link_width",
    f"{FOLDER}/power/runtime_status",
    f"{FOLDER}/resource",
    f"{FOLDER}/resource1_resize",
    f"/lib/modules/{RELEASE}/modules.dep",
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
)
"""Files that a step reads."""

WORDS = st.sampled_from(
    [
        *("63", "0", "-1", "active", "suspended", "yes", "GPU Excluded: Yes", "Device Minor: 99"),
        *("c 195:* rwm", "a *:* rwm", "9:devices:/../..", "0::/kubepods", "Groups: 44 x", "Uid: x"),
        *(
            "nvidia 1 0",
            "include /etc/*",
            "TOTAL_ERR_FATAL 7",
            "0x0 0x0 0x0",
            "99999999999999999999999",
        ),
        *("nomodeset", "module_blacklist=nvidia", "/", "..", "\0", "\x1b[2J", "\udcff", "é"),
    ]
)
TEXTS = st.lists(WORDS | st.text(max_size=12), max_size=6).map("\n".join)
CONTENTS = TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=80)
ANSWERS = st.sampled_from(["ok", "missing", "EACCES", "EPERM", "EIO", "unknown", "?"])
MAKERS = {"nvidia": nvidia, "amd": amd, "intel": intel}


@pytest.mark.heavy
@given(
    maker=st.sampled_from(sorted(MAKERS)),
    driver=st.booleans(),
    files=st.dictionaries(st.sampled_from(READ), CONTENTS, max_size=8),
    answers=st.lists(ANSWERS, min_size=3, max_size=3),
    environ=st.dictionaries(
        st.sampled_from(
            [
                *("container", "SNAP", "SLURM_JOB_ID", "NVIDIA_VISIBLE_DEVICES", "CUDA_VERSION"),
                *("LD_LIBRARY_PATH", "HSA_OVERRIDE_GFX_VERSION", "CUDA_MPS_PIPE_DIRECTORY"),
            ]
        ),
        st.text(max_size=12).filter(lambda text: "\0" not in text),
        max_size=3,
    ),
)
def test_garbage_never_raises_and_never_blocks_without_evidence(
    maker: str,
    driver: bool,
    files: dict[str, bytes],
    answers: list[str],
    environ: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("garbage")
    node = MAKERS[maker](root) if driver else MAKERS[maker](root, driver=None)
    for path, content in files.items():
        node.file(path, content)
    node.access = dict(zip(node.access, answers, strict=False)) | {}
    node.environ = environ
    device = next(d for d in node.report()["devices"] if d["id"] == DEVICE)
    readiness = device["readiness"]
    assert readiness["state"] in STATES
    for step in readiness["steps"]:
        assert step["status"] in STEP_STATUSES
        assert step["evidence"], step
        assert "could not be judged" not in step["evidence"], step
        assert step["status"] != "broken" or CAUSES[step["code"]].step == step["step"]
    assert (readiness["broken"] is None) == (readiness["state"] in ("ready", "unknown"))


ABSURD = {
    # Contradictory or absurd, and still: this device can be used as far as anybody knows.
    f"{FOLDER}/current_link_width": "63",
    f"{FOLDER}/aer_dev_fatal": "TOTAL_ERR_FATAL many",
    f"{FOLDER}/resource": "all of it\n",
    "/proc/devices": "195\nnvidia-uvm 507\nx y z\n",
    "/proc/modules": "\0\0\0",
    f"/proc/driver/nvidia/gpus/{PCI}/information": "Device Minor: minus one\nGPU Excluded: maybe\n",
    "/proc/driver/nvidia/version": "NVRM version: none of your business\n",
    "/sys/fs/cgroup/devices/devices.list": "c 195:0 rwm\nand something else\n",
    "/proc/self/uid_map": "a b c\n",
}


@pytest.mark.heavy
@pytest.mark.parametrize("path", ABSURD)
def test_absurd_files_leave_a_healthy_device_usable(path: str, tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.file("/proc/self/cgroup", "9:devices:/\n")
    node.file(f"{FOLDER}/config", b"\xde\x10\x84\x26" + b"\0" * 60)
    node.file(path, ABSURD[path])
    assert verdict(node.device()) == ("ready", None, None)


def test_an_odd_answer_of_access_is_unknown_with_its_reason(tmp_path: Path) -> None:
    node = nvidia(tmp_path)
    node.nodes("/dev/nvidia0", answer="EIO")
    device = node.device()
    assert device["readiness"]["state"] == "unknown"
    step = device["readiness"]["steps"][2]
    assert (step["status"], step["evidence"]) == ("unknown", "/dev/nvidia0: EIO")


_listeners: list[Listener] = []


@cache
def _listen() -> None:
    """Install the hook that serves all tests of this process: no audit hook can be removed."""

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        for listener in _listeners:
            listener(event, arguments)

    sys.addaudithook(hear)


@contextmanager
def hearing(listener: Listener) -> Iterator[None]:
    _listen()
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def notes_of(node: Node) -> Iterator[Notes]:
    notes = Notes(node.machine())
    notes.listening = True
    with hearing(notes.hear):
        yield notes


@pytest.mark.parametrize("name", mostly_heavy([*cases.BROKEN, *cases.HEALTHY], 10))
def test_nothing_is_opened_written_started_or_loaded(name: str, tmp_path: Path) -> None:
    node = (
        cases.BROKEN[name][1](tmp_path) if name in cases.BROKEN else cases.HEALTHY[name](tmp_path)
    )
    node.report()  # modules are loaded now, and their caches written
    with notes_of(node) as notes:
        node.report()
    assert notes.events == []


SLEEPY = (
    "config",
    "current_link_width",
    "current_link_speed",
    "max_link_width",
    "resource1_resize",
)


def test_files_of_a_sleeping_device_are_not_read(tmp_path: Path) -> None:
    node = nvidia(tmp_path, power="suspended")
    for name in SLEEPY:
        node.file(f"{FOLDER}/{name}", "63")
    opened: list[str] = []

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            opened.append(str(arguments[0]))

    node.report()
    with hearing(hear):
        node.report()
    names = {Path(path).name for path in opened}
    assert "runtime_status" in names
    assert names.isdisjoint(SLEEPY)
