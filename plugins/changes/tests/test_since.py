"""The cause of a scripted history comes first, and what was undone is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from boot_machines import NEXT, NOW, Computer
from histories import (
    DAY,
    HISTORIES,
    OTHER_KERNEL,
    START,
    WORKS,
    Recorder,
    bios,
    facts,
    libraries,
    variable,
    without,
    without_module,
)
from weights import mostly_heavy

from probe_changes.since import history, sentence
from probe_changes.since_check import CHECKS, hint
from probe_core.cli.doctor_text import lines
from probe_core.commands import Context
from probe_core.doctor.examine import examine
from probe_core.doctor.remote import RemoteCheck, checked_result


@pytest.mark.parametrize("name", mostly_heavy(HISTORIES, 3))
def test_the_cause_comes_first(name: str, tmp_path: Path) -> None:
    story = HISTORIES[name]
    journal = story.play(tmp_path).store.read()
    document = history(journal.entries, journal)
    assert document["device"] is not None, document
    assert facts(document["changes"])[0].replace("//", "/") == story.cause
    assert document["problems"] == []


def test_a_quiet_computer_has_no_cause(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    bios("2")(recorder.computer)
    recorder.note()
    journal = recorder.store.read()
    document = history(journal.entries, journal)
    assert document["device"] is None
    assert [sentence(change) for change in document["changes"]] == ["firmware BIOS: none → 2"]


def test_what_works_again_has_no_cause(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    without_module(recorder.computer)
    OTHER_KERNEL(recorder.computer)
    recorder.boot()
    recorder.note()
    recorder.computer.nvidia(NEXT)
    WORKS(recorder.computer)
    recorder.boot()
    recorder.note()
    journal = recorder.store.read()
    assert history(journal.entries, journal)["device"] is None


def test_a_time_bounds_the_changes(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    for text in ("2", "3", "4"):
        bios(text)(recorder.computer)
        recorder.note()
    journal = recorder.store.read()
    since = journal.entries[-2]["time"]
    changes = history(journal.entries, journal, since=since)["changes"]
    assert [(c["before"], c["now"], c["entry"]) for c in changes] == [("2", "4", 4)]


def test_what_was_undone_is_no_change(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    for change in (variable("DRI_PRIME", "1"), libraries("570.1"), without("DRI_PRIME"),
                   libraries("580.95.05")):  # fmt: skip
        change(recorder.computer)
        recorder.note()
    journal = recorder.store.read()
    assert history(journal.entries, journal, since="2000")["changes"] == []


def test_an_idle_day_costs_little(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    before = Path(recorder.store.path).stat().st_size
    for _ in range(8):
        recorder.note(3 * 3600)
    assert 0 < Path(recorder.store.path).stat().st_size - before < 300


def test_an_identity_is_not_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.computer.file("/proc/sys/kernel/hostname", "gpu-box-7\n")
    recorder.computer.environ.update({
        "HOME": "/home/erika", "USER": "erika",
        "LD_LIBRARY_PATH": "/home/erika/lib:/srv/gpu-box-7/erika",
        "CUDA_VISIBLE_DEVICES": "GPU-12345678-9abc-def0-1234-56789abcdef0",
    })  # fmt: skip
    recorder.computer.file("/proc/cmdline", "root=UUID=1 ro quiet luks.key=erika nvidia.x=1\n")
    recorder.note()
    text = Path(recorder.store.path).read_text()
    for private in ("erika", "gpu-box-7", "12345678-9abc", "luks"):
        assert private not in text
    assert '"setting/nvidia.x":"1"' in text


@pytest.mark.parametrize("jump", [-7200, 90_000])
def test_a_clock_that_jumped_is_told(tmp_path: Path, jump: int) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    recorder.now += jump
    entry = recorder.note(60)
    assert entry["clock"] == jump
    journal = recorder.store.read()
    document = history(journal.entries, journal)
    assert document["problems"] == [
        f"the clock jumped by {jump} s before entry 2: times before and after it do not compare"
    ]


def test_a_long_sleep_is_no_jump(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    assert "clock" not in recorder.note(3 * DAY)
    assert recorder.now == START + 4 * DAY


def test_the_journal_says_kernels_by_number(tmp_path: Path) -> None:
    recorder = HISTORIES["a kernel without the module"].play(tmp_path)
    journal = recorder.store.read()
    first = history(journal.entries, journal)["changes"][0]
    assert sentence(first) == f"kernel: {NOW} → {NEXT}"


def test_the_doctors_first_line_names_the_cause(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    without_module(recorder.computer)
    OTHER_KERNEL(recorder.computer)
    request = recorder.request()
    own = RemoteCheck("changed-since", "probe-changes 0")
    own.result = checked_result(hint(recorder.store, request, recorder.now + DAY))  # type: ignore[assignment]  # no mistake
    document = examine(request, remote=[own])
    text = [*lines(document, Context())]
    first = " ".join(part.strip() for part in text[: text.index("")])
    assert first.endswith(f"changed since it worked: kernel: {NOW} → {NEXT}")
    assert "hint" not in first
    assert not any("changed-since" in line for line in text)
    # Nothing was written: the journal has the day before alone.
    assert recorder.store.read().count == 1


def test_a_recording_has_no_journal(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    answer = CHECKS[0].run(recorder.request())
    assert (answer["status"], answer["findings"]) == ("not_applicable", [])
