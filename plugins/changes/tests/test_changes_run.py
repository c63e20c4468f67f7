"""What `probe journal` and `probe since` write and return for journals that are made by hand."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest
from boot_machines import Computer
from histories import Recorder

from probe_changes import signing
from probe_changes.chain import digest, head_of, line_of, read_chain
from probe_changes.journal_command import ELSEWHERE, refuse_others
from probe_changes.signing import proven_until, sign, verify_signature
from probe_changes.since_check import CHECKS
from probe_changes.store import Store, _jump, _seconds, entry_for
from probe_core.cli import main
from probe_core.commands import CommandError
from probe_core.doctor.check import Request
from probe_core.machine import Machine

ID = "pci:0000:01:00.0"
Captured = pytest.CaptureFixture[str]


def chained(*changes: dict[str, Any]) -> list[Any]:
    """Return entries that follow on each other, an hour apart."""
    entries: list[Any] = []
    for n, change in enumerate(changes, 1):
        prev = digest(line_of(entries[-1])) if entries else "0" * 64
        entry: Any = {"n": n, "kind": "change" if entries else "start", "boot": "b", "up": n}
        entry |= {"time": f"2026-11-23T{n:02}:00:00Z", "prev": prev, "node": "m", **change}
        entries.append(entry)
    return entries


def written(folder: Path, *changes: dict[str, Any]) -> Store:
    """Write a journal, and the head beside it."""
    store = Store(str(folder / "probe-core/journal.jsonl"))
    lines = [line_of(entry) for entry in chained(*changes)]
    Path(store.path).parent.mkdir(parents=True, exist_ok=True)
    Path(store.path).write_text("".join(f"{line}\n" for line in lines))
    Path(store.head_path).write_text(head_of(lines))
    return store


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


FELL = (
    {"facts": {f"device/{ID}": "RTX 4090", "kernel/release": "6.8.0-60", "driver/nvidia": "580"}},
    {"facts": {"kernel/release": "6.8.0-62", "driver/nvidia": None}},
    {"broken": {ID: "driver:module-missing-for-kernel"}},
)


def test_the_likely_cause_is_marked(state: Path, capsys: Captured) -> None:
    written(state, *FELL)
    assert main(["since"]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        f"{ID} worked last at 2026-11-23 02:00:00 (driver, module-missing-for-kernel since then);",
        "changed before it fell:",
        "        CHANGE                        NOTED (UTC)",
        "likely  kernel: 6.8.0-60 → 6.8.0-62   2026-11-23 02:00:00",
        "        driver of NVIDIA: 580 → none  2026-11-23 02:00:00",
    ]
    assert main(["since", "--json", "--device", ID]) == 0
    document = json.loads(capsys.readouterr().out)
    change = {"fact": "kernel/release", "before": "6.8.0-60", "now": "6.8.0-62", "entry": 2}
    assert document["changes"][0] == {**change, "time": "2026-11-23T02:00:00Z"}
    del document["changes"]
    assert document == {
        "began": "2026-11-23T01:00:00Z", "worked": "2026-11-23T02:00:00Z",
        "fell": "2026-11-23T03:00:00Z", "device": ID, "broken": "driver:module-missing-for-kernel",
        "problems": [],
    }  # fmt: skip
    written(state, FELL[0], FELL[2])
    assert main(["since"]) == 0
    assert capsys.readouterr().out.endswith("nothing that is watched changed:\n")


@pytest.mark.parametrize(("count", "rest"), [(20, []), (21, ["and 1 more: `probe since --json`"])])
def test_twenty_changes_are_shown(
    count: int, rest: list[str], state: Path, capsys: Captured
) -> None:
    written(state, {}, {"facts": {f"setting/{n}": "on" for n in range(count)}})
    assert main(["since"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "No device stopped working. Changed since the journal began:"
    assert [line[:6] for line in lines[1:3]] == ["CHANGE", "settin"]
    assert (len(lines[2:22]), lines[22:]) == (20, rest)


def test_nothing_changed_since_the_journal_began(state: Path, capsys: Captured) -> None:
    written(state, {"facts": {"kernel/release": "6.8"}})
    assert main(["since"]) == 0
    told = "No device stopped working, and nothing changed since the journal began.\n"
    assert capsys.readouterr().out == told


@pytest.mark.parametrize("age", ["x", "3", "3y", "-3d", "1234567d", "d", "3.5h", "0" * 50 + "d"])
def test_an_age_that_is_none_is_refused(age: str, state: Path, capsys: Captured) -> None:
    assert main(["since", "--", age]) == 2
    told = f"probe since: {age[:40]} is no time; write 12h, 3d or 2w\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["journal", "verify"], 1, "there is no journal yet; `probe journal` begins one"),
        (["journal", "show"], 1, "there is no journal yet; `probe journal` begins one"),
        (["journal", "--machine", "x"], 2, "a journal is of this computer; leave out --machine"),
        (["since", "--machine", "x"], 2, "a journal is of this computer; leave out --machine"),
        (["journal", "--identity", "x"], 2,
         "--signers and --identity are for `probe journal verify`"),
    ],
)  # fmt: skip
def test_the_exit_status_says_whose_mistake_it_is(
    words: list[str], status: int, told: str, state: Path, capsys: Captured
) -> None:
    assert main(words) == status
    assert capsys.readouterr().err == f"probe {words[0]}: {told}\n"


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_a_journal_is_for_linux_alone(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", platform)
    with pytest.raises(CommandError) as raised:
        refuse_others(argparse.Namespace(machine=None))
    assert (str(raised.value), raised.value.status) == (ELSEWHERE, 2)


def test_a_journal_that_is_closed_is_named(state: Path, capsys: Captured) -> None:
    path = state / "probe-core/journal.jsonl"
    path.mkdir(parents=True)
    reason = f"{path}: Is a directory"
    for words in (["journal", "show"], ["since"]):
        assert main(words) == 1
        assert capsys.readouterr().err == f"probe {words[0]}: {reason}\n"
    assert main(["journal"]) == 1
    told = f"probe journal: {reason}; name another folder in XDG_STATE_HOME\n"
    assert capsys.readouterr().err == told


def test_what_was_noted_is_told(
    state: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = state / "probe-core/journal.jsonl"
    assert main(["journal", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    told = {("DRI_PRIME",): "1 change", ("DRI_PRIME", "ZE_AFFINITY_MASK"): "2 changes"}
    for n, (names, count) in enumerate(told.items(), 2):
        for name in names:
            monkeypatch.setenv(name, str(n))
        assert main(["journal"]) == 0
        assert capsys.readouterr().out == f"Entry {n} of {path}: {count}.\n"
    assert main(["journal", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {"path": str(path), "entry": None, "signed": False}


def test_whole_or_not_as_a_document(state: Path, capsys: Captured) -> None:
    store = written(state, *FELL)
    assert main(["journal", "verify", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    proof = "its end is proven by no signature; --sign KEY makes one"
    head = digest(Path(store.path).read_text().splitlines()[-1])
    assert document == {"count": 3, "head": head, "problems": [], "proof": proof}
    Path(store.signature_path).write_text("x")
    assert main(["journal", "verify"]) == 0
    signed = "whole to entry 3; signed; --signers FILE --identity WHO proves by whom\n"
    assert capsys.readouterr().out == signed
    assert main(["journal", "verify", "--signers", "x"]) == 2
    told = "probe journal: --signers and --identity belong together\n"
    assert capsys.readouterr().err == told
    assert main(["journal", "verify", "--signers", "x", "--identity", "ops", "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    reason = f"{store.signed_path}: No such file or directory"
    assert problem == {"at": 0, "text": reason}
    assert main(["journal", "show"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def fake_ssh_keygen(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "ssh-keygen").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "ssh-keygen").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


SIGNED = "printf '%s\\n' '-----BEGIN SSH SIGNATURE-----'"


def test_a_signature_is_kept_for_the_user_alone(
    state: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ssh_keygen(state / "bin", monkeypatch, SIGNED)
    assert main(["journal", "--sign", "key"]) == 0
    path = state / "probe-core/journal.jsonl"
    assert capsys.readouterr().out.splitlines()[1] == f"It is signed: {path}.signed.sig"
    for name in (f"{path}.signed", f"{path}.signed.sig"):
        assert Path(name).stat().st_mode & 0o777 == 0o600
    assert main(["journal", "--sign", "key", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["signed"] is True
    assert main(["journal", "verify", "--signers", "x", "--identity", "ops"]) == 0
    assert capsys.readouterr().out == "whole to entry 1; signed by ops up to entry 1\n"
    Path(f"{path}.signed").write_text("1 x y\n")
    assert main(["journal", "verify", "--signers", "x", "--identity", "ops"]) == 1
    assert capsys.readouterr().out == "not whole:\n  entry 1 is not the one that was signed\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"{SIGNED}; echo no such key >&2; exit 1", "no such key"),
        ("echo first; echo second", "first"),
        ("exit 3", "it ended with 3"),
        (f"echo {'x' * 201} >&2; exit 1", "x" * 200),
    ],
)
def test_why_nothing_is_signed(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = written(tmp_path, {})
    fake_ssh_keygen(tmp_path / "bin", monkeypatch, script)
    with pytest.raises(CommandError) as raised:
        sign(store, "key")
    told = (str(raised.value), raised.value.status)
    assert told == (f"ssh-keygen did not sign: {reason}", 1)
    assert not os.path.exists(store.signature_path)


def test_ssh_keygen_that_is_missing_or_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = written(tmp_path, {})
    monkeypatch.setattr(signing, "_WAIT_S", 0.01)
    fake_ssh_keygen(tmp_path / "bin", monkeypatch, "exec sleep 5")
    told = []
    for path in (os.environ["PATH"], str(tmp_path / "none")):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(CommandError) as raised:
            sign(store, "key")
        told.append((str(raised.value), raised.value.status))
    assert told == [
        ("ssh-keygen did not end within 0.01 s", 1),
        ("ssh-keygen is not here; install OpenSSH's client (openssh-client)", 1),
    ]


def test_a_signed_head_that_is_gone_is_named(tmp_path: Path) -> None:
    store = written(tmp_path, {})
    told = verify_signature(store, "signers", "ops")
    assert told == f"{store.signed_path}: No such file or directory"


DROPPED = "entry {}, which was signed, is dropped by now: sign again"


@pytest.mark.parametrize(
    ("signed", "kind", "expected"),
    [
        ("{n} {last} {first}", "start", (3, "")),
        ("{n} {last}", "start", (0, "{path} is no head of a journal")),
        ("x {last} {first}", "start", (0, "{path} is no head of a journal")),
        ("1234567890 {last} {first}", "start", (0, "{path} is no head of a journal")),
        ("999999999 {last} {first}", "start", (0, "entry 999999999, which was signed, is gone")),
        ("{n} {last} other", "start", (0, "the first entry is not the one that was signed")),
        ("{n} {first} {first}", "start", (0, "entry 3 is not the one that was signed")),
        # The older entries were dropped: an anchor stands for them, itself no longer what was
        # signed.
        ("{n} {last} other", "anchor", (3, "")),
        ("1 {first} {first}", "anchor", (1, "")),
        ("1 {first} other", "anchor", (0, DROPPED.format(1))),
        ("0 {first} {first}", "anchor", (0, DROPPED.format(0))),
    ],
)
def test_up_to_which_entry_a_signature_counts(
    signed: str, kind: str, expected: tuple[int, str], tmp_path: Path
) -> None:
    store = written(tmp_path, {"kind": kind}, {}, {})
    journal = store.read()
    facts = {"n": journal.count, "last": journal.head, "first": journal.first}
    Path(store.signed_path).write_text(signed.format(**facts))
    until, problem = expected
    assert proven_until(store, journal) == (until, problem.format(path=store.signed_path))


def test_an_entry_of_another_number_is_told(tmp_path: Path) -> None:
    text = "".join(f"{line_of(entry)}\n" for entry in chained({}, {"n": 3}))
    told = [(problem.at, problem.text) for problem in read_chain(text).problems]
    assert told == [(3, "entry 3 stands where 2 belongs")]


@pytest.mark.parametrize("head", ["", "x\n", "1 a\n", None])
def test_a_head_that_is_gone_or_damaged_is_told(head: str | None, tmp_path: Path) -> None:
    store = written(tmp_path, {}, {})
    if head is None:
        Path(store.head_path).unlink()
    else:
        Path(store.head_path).write_text(head)
    assert [problem.text for problem in store.read().problems] == [
        "its beginning is not the one that was written",
        "entry 2 is not the last that was written, or was changed",
    ]


def test_an_entry_whose_head_was_not_written_any_more_is_whole(tmp_path: Path) -> None:
    store = written(tmp_path, {}, {})
    lines = Path(store.path).read_text().splitlines()
    Path(store.head_path).write_text(head_of(lines[:1]))
    assert store.read().problems == []
    Path(store.head_path).write_text(f"1 {'0' * 64} {digest(lines[0])}\n")
    assert [problem.text for problem in store.read().problems] == [
        "entry 2 is not the last that was written, or was changed"
    ]


@pytest.mark.parametrize(
    ("change", "is_entry"),
    [
        ({}, True),
        ({"clock": 3, "damaged": "x"}, True),
        ({"facts": {"a": "x" * 300, "b": None}, "broken": {}}, True),
        ({"facts": {"a": "x" * 301}}, False),
        ({"facts": {"a": 1}}, False),
        ({"broken": ["a"]}, False),
        ({"n": True}, False),
        ({"n": "1"}, False),
        ({"up": 1.5}, False),
        ({"kind": "other"}, False),
        ({"time": None}, False),
        ({"node": 1}, False),
        ({"clock": "3"}, False),
        ({"damaged": None}, False),
    ],
)
def test_what_an_entry_may_hold(change: dict[str, Any], is_entry: bool) -> None:
    journal = read_chain("".join(f"{line_of(entry)}\n" for entry in chained(change)))
    assert len(journal.entries) == is_entry
    assert ("line 1 is no entry" in [problem.text for problem in journal.problems]) != is_entry


@pytest.mark.parametrize("secret", ["", "00" * 15, "00" * 17, "x" * 32, None])
def test_a_secret_that_is_damaged_is_made_anew(secret: str | None, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    path = Path(f"{recorder.store.path}.secret")
    path.parent.mkdir(parents=True)
    if secret is not None:
        path.write_text(secret)
    assert recorder.store.secret is None
    assert len(recorder.store._secret()) == 16
    assert recorder.store.secret == bytes.fromhex(path.read_text())
    assert recorder.store._secret() == recorder.store.secret


def test_a_sign_of_life_each_day(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    store, request = recorder.store, recorder.request()
    kinds = []
    for seconds in (86_399, 86_400):
        recorder.computer.file("/proc/uptime", f"{recorder.up + seconds}.00 1.00\n")
        entry = entry_for(store.read(), request, store.secret or b"", recorder.now + seconds)
        kinds.append(entry and entry["kind"])
    assert kinds == [None, "alive"]


@pytest.mark.parametrize(
    ("boot", "passed", "up", "jump"),
    [
        ("b", 120 + 60, 61, 0),
        ("b", 121 + 60, 61, 121),
        ("b", -120 + 60, 61, 0),
        ("b", -121 + 60, 61, -121),
        # Of another boot the uptime says nothing: a clock that is ahead is time that passed.
        ("c", 9999, 61, 0),
        ("c", -120, 61, 0),
        ("c", -121, 61, -121),
        ("", -121, 61, -121),
    ],
)
def test_by_how_much_the_clock_may_run_apart(boot: str, passed: int, up: int, jump: int) -> None:
    (last,) = chained({"time": "1970-01-02T00:00:00Z", "boot": boot and "b"})
    assert _jump(last, boot, up, 86_400 + passed) == jump


def test_a_time_that_is_none_is_long_ago() -> None:
    assert [_seconds(text) for text in ("1970-01-01T00:01:00Z", "soon", "")] == [60.0, 0.0, 0.0]


def test_without_a_home_a_folder_is_asked_for() -> None:
    with pytest.raises(CommandError) as raised:
        Store.of_user({})
    told = (str(raised.value), raised.value.status)
    assert told == ("HOME is not set; name a folder in XDG_STATE_HOME", 1)


def test_why_the_check_has_no_journal(tmp_path: Path) -> None:
    def reason(**environ: str) -> str:
        report: Any = {"devices": []}
        answer = CHECKS[0].run(Request(Machine(environ=environ), report))
        assert (answer["status"], answer["findings"]) == ("not_applicable", [])
        return str(answer["reason"])

    assert reason(XDG_STATE_HOME=str(tmp_path)) == "no journal is kept: `probe journal` begins one"
    assert reason() == "HOME is not set; name a folder in XDG_STATE_HOME"
    (tmp_path / "probe-core/journal.jsonl").mkdir(parents=True)
    path = tmp_path / "probe-core/journal.jsonl"
    told = f"[Errno 21] Is a directory: '{path}'"
    assert reason(XDG_STATE_HOME=str(tmp_path)) == told
