"""What `probe leases --end` asks before it ends anything, and the words for what it leaves."""

from __future__ import annotations

import io
import os
import sys
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.cli.leases import _confirmed, _obstacle, _row, _unrecorded, _whole, run
from probe_core.commands import CommandError, Context

OWN, OTHER = os.geteuid(), 4_000_000_001  # a number of no user
NOBODY = 4_000_000_000  # and of no process


def proof(members: dict[int, int | None], foreign: dict[int, int | None] | None = None) -> Any:
    return SimpleNamespace(members=members, foreign=foreign or {})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


QUESTION = "End these 1 processes of other users? [y/N]\n"
REFUSAL = "probe leases: these are other users' processes: --yes ends them, too\n"


@pytest.mark.parametrize(
    ("stdin", "confirmed", "users", "asked"),
    [
        (io.StringIO("y\n"), False, set(), REFUSAL),  # a pipe is nobody who was asked
        (io.StringIO(), True, {OTHER}, ""),
        (Terminal("y\n"), False, {OTHER}, QUESTION),
        (Terminal(" YES \n"), False, {OTHER}, QUESTION),
        (Terminal("n\n"), False, set(), QUESTION),
        (Terminal("\n"), False, set(), QUESTION),
        (Terminal(""), False, set(), QUESTION),
    ],
)
def test_other_users_processes_are_ended_only_when_somebody_said_so(
    stdin: Any,
    confirmed: bool,
    users: set[int],
    asked: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    found = _confirmed([proof({NOBODY: OTHER, 1: 0})], Context(environ={}), confirmed)
    assert found == users
    shown = f"process {NOBODY} of {OTHER}: ?\n" if asked else ""
    assert capsys.readouterr().err == shown + asked


@pytest.mark.parametrize("members", [{}, {1: 0}])
def test_roots_own_need_no_word(
    members: dict[int, int | None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _confirmed([proof(members)], Context(environ={}), False) == set()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            proof({1: OWN}, {9: OTHER, 7: OTHER}),
            f"process 7 of {OTHER} holds it, and is not proven to be the lease's",
        ),
        (proof({}), "held, and its holder cannot be seen from here"),
        (
            proof({NOBODY: OTHER, 1: OWN}),
            f"its processes are {OTHER}'s; root ends them by the device's name",
        ),
        (proof({1: OWN}), "its processes are stuck in the kernel"),
    ],
)
def test_why_a_lease_is_left(found: Any, words: str) -> None:
    assert _obstacle(found) == words


def test_what_all_leaves_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    first: Any = SimpleNamespace(doc={"device": "a:1", "pid": 7})
    second: Any = SimpleNamespace(doc={"device": "a:2", "pid": None})
    context = Context(environ={})
    assert _unrecorded("a:1,a:2", [first, second], [], context) == 0
    assert capsys.readouterr().err == ""
    assert _unrecorded("x,all", [first, second], [first], context) == 1
    assert capsys.readouterr().err == (
        "probe leases: lock of a:2 by process ? is not ended: no record says whose it is\n"
    )


ENTRY: Any = {
    "device": "pci:0000:01:00.0",
    "state": "held",
    "pid": 7,
    "uid": OTHER,
    "since": None,
    "share": False,
    "command": "train",
    "kept_by": [],
    "proven": True,
}


@pytest.mark.parametrize(
    ("facts", "cells"),
    [
        ({}, {}),
        ({"pid": None, "uid": None, "since": None}, {1: "?", 2: "?", 3: "?"}),
        ({"since": -1e30}, {3: "?"}),
        ({"since": 1e30}, {3: "?"}),
        ({"since": 1e9}, {3: time.strftime("%Y-%m-%d %H:%M", time.localtime(1e9))}),
        ({"share": True}, {4: "shared"}),
        ({"share": None}, {4: "?"}),
        ({"kept_by": [8, 9]}, {5: "held by 8, 9"}),
        ({"proven": False}, {6: "train (as its record says)"}),
        ({"proven": False, "command": ""}, {6: "?"}),
    ],
)
def test_a_row_of_the_list(facts: dict[str, Any], cells: dict[int, str]) -> None:
    now = time.time()
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    whole = ["01:00.0", "7", str(OTHER), clock, "exclusive", "held", "train"]
    for place, cell in cells.items():
        whole[place] = cell
    row = _row({**ENTRY, "since": now, **facts}, {ENTRY["device"]: "01:00.0"})
    assert list(row) == whole


def test_short_ids_of_what_is_ended_are_made_whole() -> None:
    entries: Any = [{"device": f"pci:0000:0{n}:00.0"} for n in (1, 2, 2)]
    assert _whole("01:00.0, x:1", entries) == "pci:0000:01:00.0, x:1"
    assert _whole("all", entries) == "all"
    others: Any = [{"device": f"pci:000{n}:01:00.0"} for n in (1, 2)]
    with pytest.raises(CommandError) as raised:
        _whole("01:00.0", others)
    assert str(raised.value) == (
        "leases: '01:00.0' names several devices; write one of pci:0001:01:00.0, pci:0002:01:00.0"
    )


def test_without_a_folder_of_leases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = Context(environ={"PROBE_LEASES": str(tmp_path / "none")})

    def status(**options: Any) -> int:
        return run(Namespace(**{"kill": None, "yes": False, "json": False} | options), context)

    assert status() == 0
    assert capsys.readouterr() == ("", "no device is leased (there is no folder of leases yet)\n")
    assert status(json=True) == 0
    assert capsys.readouterr() == ('{"folder": null, "leases": []}\n', "")
    assert [status(kill=which) for which in ("", "all", "a:1")] == [0, 0, 3]
    line = "probe leases: no such lease: there is no folder of leases yet\n"
    assert capsys.readouterr() == ("", 3 * line)


def test_a_folder_without_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "leases"
    folder.mkdir(mode=0o700)
    context = Context(environ={"PROBE_LEASES": str(folder)})

    def status(**options: Any) -> int:
        return run(Namespace(**{"kill": None, "yes": False, "json": False} | options), context)

    assert status(json=True) == 0
    assert capsys.readouterr().out == f'{{"folder": "{folder}", "leases": []}}\n'
    assert [status(kill=which) for which in ("", "all", "a:1", "a:1,all")] == [0, 0, 3, 3]
    line = f"probe leases: no such lease ({folder})\n"
    assert capsys.readouterr() == ("", 4 * line)
