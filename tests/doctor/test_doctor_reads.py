"""What a check says that it needs is what it reads, and a recording has it or is known not to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from doctor_cases import CASES, Case, complete
from reports import report_of
from test_readiness_causes import BROKEN, HEALTHY

from probe_core.doctor.causes import READS
from probe_core.doctor.check import REPORT, Request
from probe_core.doctor.checks import further_checks
from probe_core.doctor.log import kernel_log
from probe_core.machine import Machine
from probe_core.model.ids import ACCELERATORS
from probe_core.probers.records import LEFT_OUT, RECORDS
from probe_core.readiness import _JUDGES, Scene
from probe_core.recording.declared import own_declarations
from probe_core.testing import check_contract
from probe_core.testing.check_contract import covers
from probe_core.testing.reading import Coverage
from probe_core.testing.stage import Watched

CHECKS = {check.code: check for check in further_checks()}
NO_PATHS = {"the event log", "kern.hv_vmm_present", "iogpu.wired_limit_mb", "hw.memsize"}
"""What is read of other systems, which have no such files."""

SHARED = (*check_contract.SHARED, "/recorded/")
"""What shows a container or WSL, and the tools' output of a recorded Mac or Windows."""

ELSEWHERE = {
    *("/proc/driver/nvidia/params", "/proc/driver/nvidia/version"),
    *("/usr/lib/wsl/lib", "/proc/*/comm"),
    "/dev/davinci_manager",
}
"""What checks learn by way of readiness's scene, processes of a live machine alone, and what counts
in a container whose variable asks for it."""

NAMED = ("/home/user", "/srv/env", "/opt/nvidia/lib", "/tmp/mps", "/proc/4242")
"""What variables and the loader's configuration name on those machines, and a process."""


def read_by_checks() -> Mapping[str, set[str]]:
    """Return each check's code to the paths that it reads of the machines of all causes."""
    read: dict[str, set[str]] = {code: set() for code in CHECKS}
    for case in (case for pair in CASES.values() for case in pair):
        with TemporaryDirectory() as folder:
            machine, report = examined(case, Path(folder) / "root")
            for code, check in CHECKS.items():
                watched = Watched(machine)
                # Readiness has what it reads tested by itself.
                check.run(Request(watched, report, scene=Scene(machine)))  # type: ignore[arg-type]
                read[code].update(watched.noted)
    return read


def examined(case: Case, root: Path) -> tuple[Machine, dict[str, Any]]:
    node = case.make(root)
    complete(node)
    machine = node.machine()
    report = report_of(machine)
    for device in report["devices"]:
        if device["kind"] != "cpu":
            device.update(case.fields)
    if case.patch is not None:
        case.patch(report)
    return machine, report


@pytest.mark.heavy
def test_what_a_check_needs_is_what_it_reads() -> None:
    """One test for all: what they read of all machines is the same work for each."""
    undeclared, unread = {}, {}
    for code, paths in read_by_checks().items():
        read = {path for path in paths if not path.startswith(SHARED)}
        words = [word for word in CHECKS[code].needs if word not in (REPORT, *NO_PATHS)]
        undeclared[code] = [p for p in sorted(read) if not any(covers(word, p) for word in words)]
        own = [word for word in words if word not in ELSEWHERE and not word.startswith(SHARED)]
        unread[code] = [word for word in own if not any(covers(word, path) for path in read)]
    nothing: dict[str, list[str]] = {code: [] for code in CHECKS}
    assert undeclared == nothing
    assert unread == nothing


@pytest.fixture(scope="module")
def coverage(tmp_path_factory: pytest.TempPathFactory) -> Coverage:
    """What a recording has of a machine without any file."""
    return Coverage(Machine(str(tmp_path_factory.mktemp("empty"))), own_declarations())


@pytest.mark.parametrize("code", CHECKS)
def test_what_a_check_needs_is_recorded_or_known_to_be_missing(
    code: str, coverage: Coverage
) -> None:
    assert [word for word in CHECKS[code].needs if not is_known(word, coverage)] == []


def is_known(word: str, coverage: Coverage) -> bool:
    """Return whether a recording has what is read, or the documentation says why not."""
    if not word.startswith("/") or word.startswith("/recorded/"):
        return True
    path = word.replace("*", "1")
    is_left_out = any(path.startswith(entry.partition("*")[0].rstrip("/")) for entry in LEFT_OUT)
    return is_left_out or coverage.holds(path)


@pytest.mark.heavy
@pytest.mark.parametrize("step", READS)
def test_what_a_step_reads_is_recorded(step: str, coverage: Coverage) -> None:
    assert [word for word in READS[step] if not is_known(word, coverage)] == []


def test_the_files_of_checks_are_recorded_by_name() -> None:
    """Of `RECORDS` the part of the doctor is what its checks say, and nothing else."""
    words = {word for check in CHECKS.values() for word in check.needs}
    records = RECORDS["doctor"]
    below = [file for rule in records["pci"] for file in rule["files"]]
    for path in (*records["files"], *records["nodes"], *below):
        assert any(path == word or path.startswith(f"{word}/") for word in words), path


def read_by_steps() -> Mapping[str, set[str]]:
    """Return each step of readiness to what it reads of the machines that have its causes."""
    read: dict[str, set[str]] = {name: set() for name, _ in _JUDGES}
    makers = [make for _, make in BROKEN.values()] + list(HEALTHY.values())
    for make in makers:
        with TemporaryDirectory() as folder:
            machine = make(Path(folder) / "root").machine()
            for device in report_of(machine)["devices"]:
                if device["kind"] in ACCELERATORS:
                    for name, judge in _JUDGES:
                        watched = Watched(machine)
                        judge(device, Scene(watched))
                        read[name].update(watched.noted)
    return read


@pytest.mark.heavy
def test_what_a_step_reads_is_what_the_doctor_says_of_it() -> None:
    """One test for all, as above."""
    undeclared, unread = {}, {}
    for step, paths in read_by_steps().items():
        read = {path for path in paths if not path.startswith((*SHARED, *NAMED))}
        words = READS.get(step, ())
        undeclared[step] = [p for p in sorted(read) if not any(covers(word, p) for word in words)]
        unread[step] = [word for word in words if not any(covers(word, path) for path in read)]
    nothing: dict[str, list[str]] = {name: [] for name, _ in _JUDGES}
    assert undeclared == nothing
    assert unread == nothing


def test_without_a_log_of_the_kernel_nothing_is_known_of_it(tmp_path: Path) -> None:
    log = kernel_log(Request(Machine(str(tmp_path)), {}))  # type: ignore[arg-type]
    assert (log.text, log.reason) == (None, "the recording has no kernel log")
    (tmp_path / "var/log").mkdir(parents=True)
    (tmp_path / "var/log/dmesg").mkdir()
    (tmp_path / "var/log/messages").write_text("old\nLinux version 6.8\nnew\n")
    log = kernel_log(Request(Machine(str(tmp_path)), {}))  # type: ignore[arg-type]
    assert (log.text, log.reason) == ("Linux version 6.8\nnew\n", "")
