"""What the words of `probe watch` mean, without a process for each."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.cli import main
from probe_core.commands import CommandError
from probe_watch.figures import NODE
from probe_watch.watch_command import (
    _commands,
    _devices,
    _interval,
    _needs_report,
    _peer,
    _picture,
    _whole,
)

REPORT: Any = {
    "devices": [
        {"id": "uuid:GPU-1", "ids": ["uuid:GPU-1", "pci:0000:01:00.0"]},
        {"id": "pci:0000:02:00.0", "ids": ["pci:0000:02:00.0"]},
    ]
}


@pytest.mark.parametrize(
    "text", ["0", "-1", "1.5", "", "\u00b2", "1000000001", "9" * 12, "0000000001234"]
)
def test_a_count_is_a_whole_number_from_one(text: str) -> None:
    with pytest.raises(CommandError, match=f"^--count {text}: expected a whole number from 1$"):
        _whole(text)


def test_a_count_is_as_it_was_written() -> None:
    assert [_whole(text) for text in ("1", "10", "01000000000")] == [1, 10, 1_000_000_000]


def test_an_interval_is_written_or_the_default() -> None:
    values = [_interval(SimpleNamespace(interval=text), 2.5) for text in (None, "0.5", "60")]
    assert values == [2.5, 0.5, 60.0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mail 'ann", "--on-alert mail 'ann: no closing quotation"),
        ("  ", "--on-alert: expected a program and its arguments"),
        (
            "no-such-program-here now",
            "--on-alert no-such-program-here: no such program; for a shell give sh -c '…'",
        ),
    ],
)
def test_a_command_that_cannot_run_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        _commands(text, SimpleNamespace(environ={}))  # type: ignore[arg-type]
    assert str(refused.value) == sentence


def test_a_command_is_split_as_a_shell_does_it() -> None:
    context: Any = SimpleNamespace(environ={})
    assert _commands(None, context) is None
    made = _commands(f"'{sys.executable}' -c 'a b'", context)
    assert made is not None
    assert made._command == [sys.executable, "-c", "a b"]


def test_a_peer_is_a_place() -> None:
    assert _peer(None, 1.0) is None
    with pytest.raises(CommandError, match=r"^--peer desk: expected HOST:PORT, such as desk:22$"):
        _peer("desk", 1.0)


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (None, None),
        ([], None),
        (["01:00.0"], ["uuid:GPU-1"]),
        ([NODE, "02:00.0", "GPU-1"], [NODE, "pci:0000:02:00.0", "uuid:GPU-1"]),
    ],
)
def test_devices_are_named_by_any_id(names: list[str] | None, ids: list[str] | None) -> None:
    assert _devices(names, REPORT) == ids
    assert _devices(names, None) is None


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        CommandError, match=r"^--device 3: no such device; there are GPU-1, 02:00.0"
    ):
        _devices(["01:00.0", "3"], REPORT)


def arguments(**given: Any) -> Any:
    from probe_core.commands import probe_options

    options = {option.dest: None for option in probe_options()}
    return SimpleNamespace(**{**options, "json": False, "plain": False, "all": False, **given})


@pytest.mark.parametrize(
    ("given", "is_needed"),
    [
        ({}, False),
        ({"device": None}, False),
        ({"device": ["0"]}, True),
        ({"all": True}, True),
        ({"disable": ["amd"]}, True),
        ({"disable": False}, False),
    ],
)
def test_a_report_is_made_where_names_or_options_need_it(
    given: dict[str, Any], is_needed: bool
) -> None:
    assert _needs_report(arguments(**given)) is is_needed


@pytest.mark.parametrize(
    ("given", "terminal", "term", "is_drawn"),
    [
        ({}, True, "xterm", True),
        ({}, False, "xterm", False),
        ({}, True, "dumb", False),
        ({}, True, "", False),
        ({}, True, None, False),
        ({"json": True}, True, "xterm", False),
        ({"plain": True}, True, "xterm", False),
    ],
)
def test_a_screen_is_drawn_on_a_terminal_that_can(
    given: dict[str, Any], terminal: bool, term: str | None, is_drawn: bool
) -> None:
    environ = {} if term is None else {"TERM": term}
    context: Any = SimpleNamespace(terminal=terminal, environ=environ)
    assert _picture(arguments(**given), context) is is_drawn


RECORDED = "a recording has no live figures; `probe watch` samples this computer"
HERE = "--json --plain --all --on-alert=x --listen=x --peer=x --count=1 --device=x"
WRONG: list[tuple[list[str], str]] = [
    (["--machine", "m.json"], f"--machine: {RECORDED}, so leave the option out"),
    (["--static", "report.json"], f"--static: {RECORDED}, so leave the option out"),
    (["--interval", "0"], "--interval 0: expected seconds, 0.1 to 3600"),
    (["--interval", "nan"], "--interval nan: expected seconds, 0.1 to 3600"),
    (["--interval", "soon"], "--interval soon: expected seconds, 0.1 to 3600"),
    (["-n", "0"], "--count 0: expected a whole number from 1"),
    (["-n", "-1"], "--count -1: expected a whole number from 1"),
    (["--all"], "--all adds fields to --json; give both"),
    (["--plain", "--json"], "--plain and --json are two forms of the same lines; give one"),
    (["--on-alert", ""], "--on-alert: expected a program and its arguments"),
    (["--on-alert", "no-such-program x"],
     "--on-alert no-such-program: no such program; for a shell give sh -c '…'"),
    (["--on-alert", "mail 'x"], "--on-alert mail 'x: no closing quotation"),
    (["--peer", "desk"], "--peer desk: expected HOST:PORT, such as desk:22"),
    (["--peer", "desk:0"], "--peer desk:0: expected HOST:PORT, such as desk:22"),
    (["--listen", "here", "-n", "1"], "--listen here: expected HOST:PORT, such as 127.0.0.1:10935"),
    *((["--hosts=a", option], f"--hosts does not go with {option.partition('=')[0]}")
      for option in (*HERE.split(), "--replay=x")),
    *((["--replay=x", option], f"--replay does not go with {option.partition('=')[0]}")
      for option in HERE.split()),
    (["--hosts=a"], "--hosts draws a screen, and this is no terminal for one"),
    (["--replay=x"], "--replay draws a screen, and this is no terminal for one"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_wrong_usage_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", *words]) == 2
    assert capsys.readouterr() == ("", f"probe watch: {sentence}\n")


def test_a_count_of_thousands_of_digits_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "-n", "1" * 5000]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
