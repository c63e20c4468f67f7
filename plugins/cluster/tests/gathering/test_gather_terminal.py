"""What a terminal shows while nodes are gathered, and the table behind it, line by line."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from probe_cluster.gathering import terminal
from probe_cluster.gathering.gathered import Gathered, Node
from probe_cluster.gathering.kubectl import _counts
from probe_cluster.gathering.summaries import Gpu, Summary
from probe_cluster.gathering.terminal import ProgressLine, progress_line, table
from probe_core.commands import Context, paint

CLEAR = "\r\033[K"
GIB = 1 << 30
CARD = Gpu("g0", "gpu", "H100", "nvidia 580", 80 * GIB, False, None, None, None, 16, 18, None)
BOX = Summary("linux", "6.8", "x86_64", "DGX", None, "1.0", "1.0", 64 * GIB, "Xeon", (CARD,), ())


def node(name: str, status: str | None = "ok", **fields: Any) -> Node:
    return Node(name, name, status, **fields)


def gathered(*nodes: Node, seconds: float = 2.04, problem: str | None = None) -> Gathered:
    found = Gathered("acme")
    found.seconds, found.problem = seconds, problem
    found.nodes = {one.id: one for one in nodes}
    return found


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=5.0)
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_the_line_is_drawn_five_times_a_second(at: SimpleNamespace) -> None:
    stream = Terminal()
    line = ProgressLine(stream)
    nodes = gathered(node("a"), node("b", None), node("c", None))
    line(nodes)
    at.now = 5.1875
    line(nodes)
    assert stream.getvalue() == f"{CLEAR}1 of 3 nodes, 2 s, waiting for b, c"
    at.now = 5.25
    line(gathered(node("a"), seconds=0.6))
    at.now = 5.375
    line.pairs(1, 1, 1.6)
    at.now = 5.5
    line.pairs(2, 3, 1.6)
    line.erase()
    assert stream.getvalue().split(CLEAR)[2:] == ["1 of 1 node, 1 s", "2 of 3 pairs, 2 s", ""]


def test_a_line_that_nobody_drew_is_not_erased() -> None:
    stream = Terminal()
    ProgressLine(stream).erase()
    assert stream.getvalue() == ""
    line = ProgressLine(stream)
    line.arrived(node("a"))
    line.erase()
    assert stream.getvalue() == f"{CLEAR}a: ok: None\n{CLEAR}"


def test_what_came_of_a_node_fits_the_narrowest_terminal() -> None:
    stream = Terminal()
    line = ProgressLine(stream)
    line.arrived(node("a", None))
    line.arrived(node("b", summary=BOX, seconds=1.26))
    line.arrived(node("c", "failed", reason="x" * 90, seconds=12.0))
    first, second, rest = stream.getvalue().split("\n")
    assert (first, rest) == (f"{CLEAR}b: ok: H100 (1.3 s)", "")
    assert second == f"{CLEAR}c: failed: {'x' * (79 - len('c: failed: … (12.0 s)'))}… (12.0 s)"
    for number in range(40):
        line.arrived(node(f"n{number}"))
    line.arrived(node("late", "timeout", reason="r"))
    rows = stream.getvalue().split("\n")[2:-1]
    assert (len(rows), rows[-2:]) == (39, [f"{CLEAR}n37: ok: None", f"{CLEAR}late: timeout: r"])


def test_a_terminal_that_is_gone_or_has_few_letters_does_no_harm() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(5, "gone")

    ProgressLine(Gone())(gathered(node("a")))
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    ProgressLine(stream).arrived(node("é"))
    assert raw.getvalue() == f"{CLEAR}?: ok: None\n".encode()


@pytest.mark.parametrize(
    ("environ", "shown"),
    [({}, True), ({"CI": "1"}, False), ({"TERM": "dumb"}, False), ({"CI": "", "TERM": "x"}, True)],
)
def test_where_the_line_is_drawn(
    environ: dict[str, str], shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    assert (progress_line(environ) is not None) is shown
    for stream in (None, io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        assert progress_line(environ) is None
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    monkeypatch.setattr("sys.stderr", closed)
    assert progress_line(environ) is None


def shown(*nodes: Node, **fields: Any) -> list[str]:
    context = Context(environ={}, stdout=io.StringIO())
    context.width = 120
    return [" ".join(line.split()) for line in table(gathered(*nodes, **fields), context)]


def test_the_table_of_a_few_nodes() -> None:
    two = replace(BOX, gpus=(CARD, replace(CARD, id="g1", driver="nvidia 570", unknown=True)))
    part = replace(CARD, id="p", parent="g0", driver=None)
    nodes = (
        node("a", summary=two, engine=cast(Any, {"source": "ray", "gpus": 1.0})),
        node("b", summary=replace(BOX, gpus=(replace(CARD, unknown=True), part))),
        node("c", summary=replace(BOX, gpus=(), cpu=None)),
        node("d", "missing", reason="off", fix="switch it on"),
        node("e", "missing", reason="off", fix="switch it on"),
        node("f", "failed", reason="it broke"),
    )
    lines = shown(*nodes, problem="ray: gone")
    assert lines[:7] == [
        "NODE STATUS GPUS USABLE ENGINE MEMORY DRIVER DEVICES",
        "a ok 2 1 1 64.0 GiB nvidia 570, nvidia 580 2 x H100",
        "b ok 1 1 64.0 GiB nvidia 580 H100",
        "c ok 0 0 64.0 GiB unknown CPU",
        "d missing",
        "e missing",
        "f failed",
    ]
    assert lines[7:12] == [
        "",
        "3 of 6 nodes answered in 2.0 s: 3 GPUs, 2 usable, 1 unknown, partitions counted",
        "ray: gone",
        "d, e: missing: off; switch it on",
        "f: failed: it broke",
    ]
    assert shown(nodes[2])[-1] == "1 of 1 node answered in 2.0 s: no GPU"


def test_a_row_without_a_report_is_red() -> None:
    context = Context(environ={}, stdout=io.StringIO())
    context.width, context.colour = 120, True
    head, good, bad, *_ = table(gathered(node("a", summary=BOX), node("b", "failed")), context)
    assert head.startswith("\033[")
    assert good.startswith("a ")
    red = paint("x", "red", True).partition("x")[0]
    assert bad.startswith(f"{red}b ")


@pytest.mark.parametrize(
    ("links", "problem", "measured"),
    [
        ([], None, True),
        ([(1e9, 1e-3)], None, True),
        ([(1e9, 1e-3), (None, 1e-3)], None, False),
        ([(1e9, None)], None, False),
        ([], "there is one node", False),
    ],
    ids=range(5),
)
def test_whether_each_pair_is_measured(
    links: list[tuple[float | None, float | None]], problem: str | None, measured: bool
) -> None:
    found = gathered(node("a"))
    found.network_problem = problem
    found.links = [cast(Any, {"bandwidth": rate, "round_trip": trip}) for rate, trip in links]
    assert found.all_measured is measured


def test_a_difference_that_is_no_fault_has_no_fix() -> None:
    other = replace(BOX, kernel="6.5", version="0.9")
    fix = "install one version on all: pip install -U probe-core"
    assert shown(node("a", summary=BOX), node("b", summary=other))[-2:] == [
        f"warning: probe-core: 0.9 on b, 1.0 on a; {fix}",
        "info: kernel: 6.5 on b, 6.8 on a",
    ]


@pytest.mark.parametrize(("count", "rows"), [(40, 40), (41, 2)])
def test_alike_nodes_share_a_row_beyond_a_screen(count: int, rows: int) -> None:
    nodes = [node(f"n{at:02d}", summary=BOX) for at in range(1, count)]
    lines = shown(node("odd", "timeout", reason="r"), *nodes)
    assert lines.index("") == 1 + rows
    if rows == 2:
        assert lines[1].startswith("n01, ")
        assert lines[2] == "odd timeout"


@pytest.mark.parametrize(
    ("amounts", "gpus", "cpus", "memory"),
    [
        ({}, 0, None, None),
        ({"nvidia.com/gpu": "2", "amd.com/gpu": "x", "gpu.intel.com/xe": "1"}, 3, None, None),
        ({"nvidia.com/mig-1g.10gb": "7", "example.com/gpu": "9"}, 7, None, None),
        ({"cpu": "1500m", "memory": "1.5Ki", "nvidia.com/gpu": 8}, 0, 1.5, 1536),
    ],
    ids=range(4),
)
def test_what_the_api_server_counts(
    amounts: dict[str, Any], gpus: float, cpus: float | None, memory: int | None
) -> None:
    for spec, state in (({}, None), ({"unschedulable": True}, "cordoned")):
        found: Any = {"spec": spec, "status": {"allocatable": amounts}}
        assert _counts(found) == {
            "source": "kubectl get nodes, allocatable",
            "gpus": gpus,
            "cpus": cpus,
            "memory": memory,
            "state": state,
        }
