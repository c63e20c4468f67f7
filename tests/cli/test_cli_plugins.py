"""`probe plugins`: its groups, its table, its verdicts and why one did not run, whole."""

from __future__ import annotations

import io
from typing import Any

import pytest

from probe_core.cli.plugins import _explanation, _verdicts, grouped_lines, long_lines
from probe_core.commands import Context


def context(*, terminal: bool = False, **environ: str) -> Context:
    class Output(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return terminal

    return Context(environ={"COLUMNS": "100", "TERM": "xterm", **environ}, stdout=Output())


def decision(name: str, **facts: Any) -> dict[str, Any]:
    made = {"prober": name, "distribution": f"probe-{name} 1.2", "selected": True, "reason": None}
    return {**made, "cause": None, "priority": 500, "deadline_s": 5.0, **facts}


def outcome(name: str, status: str = "ok", **facts: Any) -> dict[str, Any]:
    ended = {"prober": name, "distribution": f"probe-{name} 1.2", "status": status, "reason": None}
    return {**ended, "elapsed_ms": 31.4, "devices": 2, "partial": False, **facts}


DECISIONS: Any = [
    decision("ran"),
    decision("running"),
    decision("lost"),
    decision("silent"),
    decision("none"),
    decision("other", selected=False, cause="when", reason="no PCI device of vendor 1ac0"),
    decision("off", selected=False, cause="disabled", reason="--disable", distribution=""),
]
OUTCOMES: Any = [
    outcome("ran"),
    outcome("lost", "unavailable", reason="locked"),
    outcome("silent", "call_error"),
    outcome("none", "not_applicable", reason="no card"),
]
REPORT: Any = {"decisions": DECISIONS, "outcomes": OUTCOMES}


GROUPS = """\
Failed here:
  lost 1.2    unavailable: locked
  silent 1.2  call error

Run here:
  ran 1.2                       ok, 31 ms
  running 1.2
  bus, cpu, fallback  built in  ok

Not needed here:
  none 1.2   no card
  other 1.2  no PCI device of vendor 1ac0

Not run:
  off  --disable"""


def test_groups() -> None:
    shown = "\n".join(grouped_lines(REPORT, DECISIONS, context()))
    assert shown == GROUPS
    some = list(grouped_lines(REPORT, DECISIONS[:1], context(terminal=True, NO_COLOR="1")))
    assert some == [
        "Run here:",
        "  ran 1.2  ok, 31 ms",
        "",
        "`probe plugins why-not NAME` tells more · `--long`: priority, deadline, package",
    ]


def test_a_long_reason_is_wrapped_in_its_column() -> None:
    shown = list(grouped_lines(REPORT, DECISIONS[5:6], context(COLUMNS="36")))
    assert shown == [
        "Not needed here:",
        "  other 1.2  no PCI device of vendor",
        "             1ac0",
    ]


def test_colours_of_groups() -> None:
    shown = list(grouped_lines(REPORT, DECISIONS[2:6], context(FORCE_COLOR="1")))
    assert shown == [
        "\x1b[1mFailed here:\x1b[0m",
        "  lost 1.2    \x1b[31munavailable: locked\x1b[0m",
        "  silent 1.2  \x1b[31mcall error\x1b[0m",
        "",
        "\x1b[1mNot needed here:\x1b[0m",
        "\x1b[2m  none 1.2   no card\x1b[0m",
        "\x1b[2m  other 1.2  no PCI device of vendor 1ac0\x1b[0m",
    ]


TABLE = """\
PLUGIN    PACKAGE            PRIORITY  DEADLINE  RUNS      WHY NOT
ran       probe-ran 1.2           500       5 s  yes
running   probe-running 1.2       500       5 s  yes
lost      probe-lost 1.2          500       5 s  yes
silent    probe-silent 1.2        500       5 s  yes
none      probe-none 1.2          500       5 s  yes
other     probe-other 1.2         500       5 s  no        no PCI device of vendor 1ac0
off                               500       5 s  no        --disable
bus       probe-core                             built in
cpu       probe-core                             built in
fallback  probe-core                             built in"""


def test_a_table() -> None:
    assert "\n".join(long_lines(REPORT, DECISIONS, context())) == TABLE
    assert len(long_lines(REPORT, DECISIONS[:2], context())) == 3


def test_verdicts() -> None:
    outcomes: Any = [
        outcome("ran", stderr=["a line"]),
        outcome("lost", "unavailable", reason="locked"),
        outcome("bad", "crashed", reason="it ended"),
        outcome("off", "skipped"),
    ]
    mistake: Any = {"what": "a manifest", "why": "no JSON", "fix": "mend it"}
    assert list(_verdicts(outcomes, [mistake])) == [
        ("ok   ", "ran (probe-ran 1.2) ok, 2 devices in 31 ms"),
        ("     | ", "a line"),
        ("ok   ", "lost (probe-lost 1.2) unavailable in 31 ms: locked"),
        ("FAIL ", "bad (probe-bad 1.2) crashed in 31 ms: it ended"),
        ("ok   ", "off (probe-off 1.2) skipped"),
        ("FAIL ", "a manifest: no JSON; mend it"),
    ]


PARTIAL = "What it had reported before is in the report: 2 devices."


@pytest.mark.parametrize(
    ("given", "skipped", "words"),
    [
        (outcome("a", "skipped", reason="r"), "--disable.", "was not run: --disable."),
        (outcome("a", "skipped", reason="r"), None, "was not run: r."),
        (outcome("a"), None, "ran, and reported 2 devices: nothing is wrong with it."),
        (
            outcome("a", "not_applicable", reason="no card"),
            None,
            "ran, and detected nothing of its own: no card.",
        ),
        (outcome("a", "crashed", reason="r"), None, "was run and ended as crashed: r."),
        (
            outcome("a", "timeout", reason="r", partial=True, fix="do it"),
            None,
            f"was run and ended as timeout: r. {PARTIAL} What would help: do it.",
        ),
    ],
)
def test_why_a_plugin_did_not_run(given: Any, skipped: str | None, words: str) -> None:
    assert " ".join(_explanation(given, skipped)) == f"The plugin 'a' of probe-a 1.2 {words}"
    given["distribution"] = ""
    assert next(_explanation(given, skipped)) == "The plugin 'a' of the host"
