"""`probe doctor --next-boot` and `--if`, `probe journal` and `probe since`, as users start them."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from boot_cases import BROKEN, no_module
from boot_machines import NEXT, Computer

from probe_changes.chain import read_chain
from probe_changes.journal_command import _show
from probe_changes.since import history
from probe_changes.since_command import _headline
from probe_core.commands import Context

Run = Any


def probe(*words: str, home: Path | None = None, **variables: str) -> Run:
    """Run `probe` with no variable but these, so that no journal of the user's is touched."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(home or "/nonexistent"), **variables}
    command = [sys.executable, "-m", "probe_core", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("computer")
    no_module(Computer(root))
    return str(root)


def test_the_next_boot_is_the_doctors_answer(machine: str) -> None:
    done = probe("doctor", "--next-boot", "--json", "--machine", machine)
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "")
    codes = [finding["code"] for finding in document["findings"]]
    assert (document["healthy"], codes) == (False, ["module-missing-for-kernel", "next-kernel"])
    ran = {check["code"]: check["status"] for check in document["checks"]}
    assert ran["next-boot"] == "failed"
    assert "module-missing-for-kernel" not in ran


def test_the_text_names_the_kernel_and_the_repair(machine: str) -> None:
    text = probe("doctor", "--next-boot", "--machine", machine).stdout
    for words in (f"Once Linux {NEXT} runs", f"linux-headers-{NEXT}", f"Linux {NEXT} boots next"):
        assert words in " ".join(text.split())


def test_without_the_option_nothing_of_it_is_told(machine: str) -> None:
    document = json.loads(probe("doctor", "--json", "--machine", machine).stdout)
    assert "module-missing-for-kernel" not in [f["code"] for f in document["findings"]]
    assert "next-boot" not in [check["code"] for check in document["checks"]]


def test_a_supposed_driver(tmp_path: Path) -> None:
    Computer(tmp_path, ids="10de:1b80")
    done = probe("doctor", "--if", "driver=595", "--machine", str(tmp_path))
    assert done.returncode == 1
    assert "legacy-branch" in done.stdout
    assert "With the driver 595" in done.stdout
    done = probe("doctor", "--if", "driver=595", "--json", "--machine", str(tmp_path))
    # The devices are shown as they are now: what is assumed is in the findings.
    drivers = [device["driver"] for device in json.loads(done.stdout)["devices"]]
    assert drivers == ["nvidia 580.95.05"]


WRONG = {
    ("--if", "drver=595"): "--if drver=595: no such assumption; did you mean 'driver'?",
    ("--if", "driver"): "--if driver: no version; write it as driver=595",
    ("--if", "driver=new"): "--if driver=new: no version; write driver=595",
    ("--if", "kernel=../x"): "--if kernel=../x: no version; write it as kernel=6.8.0-62-generic",
    ("--if", ""): "--if : no such assumption",
    ("--next-boot", "--save"): "--next-boot and --if look at another state; leave out --save",
    ("--next-boot", "--only", "next-boot"): "--next-boot and --if look at another state",
}


@pytest.mark.parametrize("words", WRONG)
def test_a_mistake_is_one_sentence(words: tuple[str, ...]) -> None:
    done = probe("doctor", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("probe doctor: ") or done.stderr.startswith("probe: ")
    assert WRONG[words] in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_journal_begins_and_is_whole(tmp_path: Path) -> None:
    first = probe("journal", home=tmp_path)
    path = tmp_path / ".local/state/probe-core/journal.jsonl"
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith(f"{path} begins, with ")
    again = probe("journal", home=tmp_path)
    assert again.stdout == f"Nothing changed; {path} stays as it is.\n"
    changed = probe("journal", "--json", home=tmp_path, DRI_PRIME="1")
    assert json.loads(changed.stdout)["entry"]["facts"] == {"variable/DRI_PRIME": "1"}
    verified = probe("journal", "verify", home=tmp_path)
    assert verified.returncode == 0
    assert verified.stdout == (
        "whole to entry 2; its end is proven by no signature; --sign KEY makes one\n"
    )
    since = probe("since", home=tmp_path, DRI_PRIME="1")
    assert "No device stopped working. Changed since the journal began:" in since.stdout
    assert "variable DRI_PRIME: none → 1" in since.stdout
    lines = path.read_text().splitlines()
    path.write_text(f"{lines[0]}\n")
    cut = probe("journal", "verify", home=tmp_path)
    assert (cut.returncode, cut.stdout) == (
        1,
        "not whole:\n  its end is cut: 1 of 2 entries are gone\n",
    )
    told = probe("since", "2d", home=tmp_path)
    assert told.returncode == 0
    assert told.stderr == "probe since: its end is cut: 1 of 2 entries are gone\n"


ENTRIES = [
    {"n": 1, "kind": "start", "time": "2026-11-23T10:00:00Z", "facts": {"kernel": "6.8"}},
    {
        "n": 2,
        "kind": "change",
        "time": "2026-11-23T11:00:00Z",
        "facts": {"kernel": "6.9", "driver": None},
        "broken": {"pci:0000:01:00.0": "driver:no-driver", "pci:0000:02:00.0": None},
        "clock": -7,
    },
    {"n": 3, "kind": "alive", "time": "2026-11-23T12:00:00Z"},
    {"n": 4, "kind": "anchor", "time": "2026-11-23T13:00:00Z", "facts": {"a": "1", "b": "2"}},
]


def test_each_entry_of_a_journal_has_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    journal: Any = SimpleNamespace(
        entries=ENTRIES, problems=[SimpleNamespace(at=3, text="entry 3 was changed")]
    )
    context = Context(environ={"COLUMNS": "100"})
    _show(journal, argparse.Namespace(json=False), context)
    shown = capsys.readouterr()
    assert [line.rstrip() for line in shown.out.splitlines()] == [
        "N  TIME (UTC)           WHAT",
        "1  2026-11-23 10:00:00  begins: 1 facts",
        "2  2026-11-23 11:00:00  kernel: 6.9",
        "                        driver: none",
        "                        pci:0000:01:00.0: driver is broken: no-driver",
        "                        pci:0000:02:00.0: works again",
        "                        the clock jumped by -7 s",
        "3  2026-11-23 12:00:00  nothing changed",
        "4  2026-11-23 13:00:00  stands for 4 older entries: 2 facts",
    ]
    assert shown.err == "probe journal: entry 3 was changed\n"
    _show(journal, argparse.Namespace(json=True), context)
    document = json.loads(capsys.readouterr().out)
    problems = [{"at": 3, "text": "entry 3 was changed"}]
    assert document == {"entries": ENTRIES, "problems": problems}


def test_saving_the_state_is_noted(tmp_path: Path) -> None:
    done = probe("doctor", "--save", home=tmp_path)
    assert done.returncode in (0, 1)
    entries = (tmp_path / ".local/state/probe-core/journal.jsonl").read_text().splitlines()
    assert json.loads(entries[0])["kind"] == "start"


NO_JOURNAL = {
    ("journal", "verify"): "there is no journal yet; `probe journal` begins one",
    ("since", "soon"): "soon is no time; write 12h, 3d or 2w",
    ("journal", "--machine", "/tmp"): "a journal is of this computer; leave out --machine",
    ("journal", "--signers", "x"): "--signers and --identity are for `probe journal verify`",
}


@pytest.mark.parametrize("words", NO_JOURNAL)
def test_what_cannot_be_answered_is_a_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    done = probe(*words, home=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stderr == f"probe {words[0]}: {NO_JOURNAL[words]}\n"


def test_without_a_journal_nothing_is_known_of_before(tmp_path: Path) -> None:
    done = probe("since", home=tmp_path)
    reason = "there is no journal yet; `probe journal` begins one"
    assert (done.returncode, done.stdout) == (0, f"Nothing is known of before: {reason}.\n")
    document = json.loads(probe("since", "--json", home=tmp_path).stdout)
    assert (document["changes"], document["problems"]) == ([], [reason])


@pytest.mark.parametrize(
    ("since", "words"),
    [
        ("2026-11-23T11:30:00Z", "2026-11-23 11:30:00"),
        ("2026-11-23T10:00:00Z", "2026-11-23 10:00:00"),
        ("2026-11-22T10:00:00Z", "the journal's oldest entry, 2026-11-23 10:00:00"),
    ],
)
def test_nothing_is_said_of_the_time_before_the_journal(since: str, words: str) -> None:
    document = history(ENTRIES[:1], read_chain(""), since=since)  # type: ignore[arg-type]
    assert document["began"] == "2026-11-23T10:00:00Z"
    assert _headline(document, since) == f"Nothing changed since {words}."
    changed: Any = {**document, "changes": [{}]}
    assert _headline(changed, since) == f"Changed since {words}:"


def test_the_unit_is_two_files() -> None:
    text = probe("journal", "unit").stdout
    for words in ("ExecStart=probe journal", "OnUnitActiveSec=1h", "WantedBy=timers.target"):
        assert words in text


def test_every_broken_case_has_a_name() -> None:
    assert len(BROKEN) >= 25
