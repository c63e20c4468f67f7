"""Parts of a gather without a process: collectors that end early, signals, and its folder."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from probe_cluster.computer.model import _meanings
from probe_cluster.computer.text import _matrix
from probe_cluster.fronts import front
from probe_cluster.gathering.answers import _last_end
from probe_cluster.gathering.document import document_lines
from probe_cluster.gathering.folder import JOURNAL, Folder
from probe_cluster.gathering.gathered import Gathered, Node, gather
from probe_cluster.gathering.launching import lost_sentence
from probe_cluster.gathering.model import Answer, Limits, Sink, Target
from probe_cluster.gathering.process import Ended
from probe_cluster.gathering.stopping import stopped_by_signals
from probe_cluster.shared import ClusterError

REPORT = b'{"schema": 1, "devices": []}'


class Engine:
    """An engine of three nodes, of which `deed` says what they do."""

    name = "acme"

    def __init__(self, deed: Callable[[Sink], Awaitable[None]], *listed: str) -> None:
        self._deed = deed
        self._listed = [Target(name) for name in listed]

    async def targets(self) -> Sequence[Target]:
        return self._listed

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        await self._deed(sink)


async def first_alone(sink: Sink) -> None:
    sink.target(Target("a", name="alpha"))
    sink.answer(Answer("a", "failed", "no answer"))
    sink.answer(Answer("a", "ok", text=REPORT))  # the first counts


async def first_and_wait(sink: Sink) -> None:
    await first_alone(sink)
    await asyncio.sleep(60)


async def break_off(sink: Sink) -> None:
    await first_alone(sink)
    raise ClusterError("its door is shut")


async def end_it(sink: Sink) -> None:
    raise OverflowError("9")


def rows(gathered: Gathered) -> list[tuple[str, str | None, str | None]]:
    return [(node.name, node.status, node.reason) for node in gathered.nodes.values()]


@pytest.mark.parametrize(
    ("deed", "status", "reason", "problem"),
    [
        (first_alone, "missing", "acme ended without an answer of it", None),
        (break_off, "failed", "acme failed: acme: its door is shut", "acme: its door is shut"),
        (first_and_wait, "timeout", "it gave no answer within the 0.01 s for all nodes", None),
    ],
)
def test_a_node_without_an_answer_has_its_reason(
    deed: Any, status: str, reason: str, problem: str | None
) -> None:
    arrived: list[tuple[str, str | None]] = []
    gathered = asyncio.run(
        gather(
            Engine(deed, "a", "b"),
            limits=Limits(overall=0.01),
            arrived=lambda node: arrived.append((node.id, node.status)),
        )
    )
    assert rows(gathered) == [("a", "failed", "no answer"), ("b", status, reason)]
    assert gathered.problem == problem
    assert arrived == [("a", None), ("b", None), ("a", "failed"), ("b", status)]


def test_a_gather_that_is_stopped_ends_its_engine_and_says_who_had_answered() -> None:
    ended: list[str] = []

    async def stopped(sink: Sink, first: Callable[[Sink], Awaitable[None]] | None) -> None:
        if first is not None:
            await first(sink)
        stop.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("engine")

    stop = asyncio.Event()
    found = asyncio.run(gather(Engine(lambda sink: stopped(sink, first_alone), "b"), stop=stop))
    assert found.nodes["b"].fix == "ask those that are missing: --output DIR --resume"
    reason = "the gather was interrupted before it answered"
    assert rows(found) == [("b", "interrupted", reason), ("alpha", "failed", "no answer")]
    assert (found.problem, ended) == ("interrupted: 1 of 2 nodes had answered", ["engine"])
    stop = asyncio.Event()
    with pytest.raises(ClusterError, match=r"^interrupted before acme listed a node$"):
        asyncio.run(gather(Engine(lambda sink: stopped(sink, None)), stop=stop))


def test_an_engine_that_lists_no_node_in_time_has_a_queue() -> None:
    async def wait(sink: Sink) -> None:
        await asyncio.sleep(60)

    queue = r"none started within 0\.01 s; look into its queue, or give it more time: --overall SEC"
    with pytest.raises(ClusterError, match=f"^acme lists no node: {queue}ONDS$"):
        asyncio.run(gather(Engine(wait), limits=Limits(overall=0.01)))
    with pytest.raises(ClusterError, match=r"^acme lists no node$"):
        asyncio.run(gather(Engine(nothing)))


async def nothing(sink: Sink) -> None:
    pass


def test_an_engine_that_lists_no_node_says_why() -> None:
    async def closed(sink: Sink) -> None:
        raise ClusterError("its door is shut")

    with pytest.raises(ClusterError, match="its door is shut"):
        asyncio.run(gather(Engine(closed)))
    with pytest.raises(ClusterError, match=r"^acme: OverflowError: 9$"):
        asyncio.run(gather(Engine(end_it)))


def test_who_waits_for_nodes_is_told_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probe_cluster.gathering.gathered._BEAT_S", 0.01)
    told: list[list[str]] = []

    async def slowly(sink: Sink) -> None:
        while len(told) < 5:
            await asyncio.sleep(0.005)
        sink.answer(Answer("a", "ok", text=REPORT))

    def tell(gathered: Gathered) -> None:
        told.append([node.id for node in gathered.waiting])

    found = asyncio.run(gather(Engine(slowly, "a"), limits=Limits(overall=20.0), progress=tell))
    assert told[:4] == [["a"]] * 4
    assert found.nodes["a"].status == "invalid"  # a report without devices


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("is_told", [False, True])
def test_texts_are_kept_or_handed_over(texts: bool, is_told: bool) -> None:
    report = b'{"schema": 1, "devices": [{"id": "cpu:0", "kind": "cpu", "name": "Xeon"}]}'
    told: list[bytes | None] = []

    async def give(sink: Sink) -> None:
        sink.answer(Answer("a", "ok", text=report))

    def arrived(node: Node) -> None:
        if node.status is not None:
            told.append(node.text)

    taker = arrived if is_told else None
    node = asyncio.run(gather(Engine(give), texts=texts, arrived=taker)).nodes["a"]
    assert (node.status, node.summary and node.summary.cpu) == ("ok", "Xeon")
    assert (node.text is not None) is texts
    assert [text is not None for text in told] == [True] * is_told


def test_what_an_engine_counts_later_is_in_the_folder_too(tmp_path: Path) -> None:
    folder, node = Folder(str(tmp_path), "acme"), answered("a", REPORT)
    for each in (node, Node("b", "b")):
        folder.take(each)
        each.engine = {"source": "s", "gpus": 8, "cpus": None, "memory": None, "state": None}
    gathered = Gathered("acme")
    gathered.nodes = {"a": node, "b": Node("b", "b", engine=node.engine)}
    folder.close(gathered)
    known = Folder(str(tmp_path), "acme", resume=True).known
    counts = {id_: target.engine and target.engine["gpus"] for id_, (target, _) in known.items()}
    assert counts == {"a": 8, "b": None}


def test_nodes_that_are_known_are_not_asked_again() -> None:
    asked = []

    async def ask(sink: Sink) -> None:
        asked.append([target.id for target in sink.open_targets()])

    known = {
        "a": (Target("a", name="alpha"), Answer("a", "failed", "as before")),
        "c": (Target("c"), None),
    }
    gathered = asyncio.run(gather(Engine(ask, "a", "b"), known=known))
    assert [node.id for node in gathered.nodes.values()] == ["a", "b"]
    assert asked == [["b"]]
    only = {"a": known["a"]}
    gathered = asyncio.run(gather(Engine(ask), known=only))
    assert (rows(gathered), asked) == ([("alpha", "failed", "as before")], [["b"]])


def test_a_signal_that_is_ignored_stays_so_and_the_second_ends_the_command() -> None:
    ended: list[int] = []

    async def body() -> None:
        stop = asyncio.Event()
        with stopped_by_signals(stop, ended):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(stop.wait(), 10)
            handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
            assert handlers == [signal.default_int_handler, signal.SIG_DFL]
        stop = asyncio.Event()
        with stopped_by_signals(stop, ended):
            pass
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        asyncio.run(body())
    finally:
        signal.signal(signal.SIGHUP, old)
    assert ended == [signal.SIGTERM]


@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        (Ended(None, "", unstarted="no such program"), "no such program"),
        (Ended(None, "killed"), "its agent was ended"),
        (Ended(3, "Traceback\nKeyError: a\n--\n"), "its agent ended with 3: KeyError: a"),
        (Ended(3, "\n"), "its agent ended with 3"),
    ],
)
def test_why_an_agent_is_gone(ended: Ended, sentence: str) -> None:
    assert lost_sentence(ended) == sentence


@pytest.mark.parametrize(
    ("text", "end"), [(b"", 0), (b"a\nb", 0), (b"{}", 2), (b"{}\nafter\n", 2), (b"x\n{} \r\ny", 6)]
)
def test_where_the_last_line_with_a_brace_ends(text: bytes, end: int) -> None:
    assert _last_end(text) == end


def answered(name: str, text: bytes | None) -> Node:
    node = Node(name, name)
    node.status, node.text, node.seconds = "failed" if text is None else "ok", text, 1.23456
    return node


def test_a_folder_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path), "acme")
    for node in (Node("a", "a"), Node("c", "c"), answered("a", REPORT), answered("A", REPORT)):
        folder.take(node)
    folder.take(answered("b", None))
    again = Folder(str(tmp_path), "acme", resume=True)
    assert {id_: (target.name, answer and answer.text) for id_, (target, answer) in
            again.known.items()} == {
        "a": ("a", REPORT + b"\n"), "c": ("c", None), "A": ("A", REPORT + b"\n"), "b": ("b", None)
    }  # fmt: skip
    before = (tmp_path / JOURNAL).read_bytes()
    again.take(answered("a", REPORT))  # it is known
    again.take(Node("b", "b"))
    assert (tmp_path / JOURNAL).read_bytes() == before
    again.take(answered("a-2", REPORT))
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "A-2.json", "a-2-2.json", "a.json"
    ]  # fmt: skip


def test_rows_of_a_journal_that_name_no_file_of_its_folder_have_no_report(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    Folder(str(folder), "acme")
    (folder / "good.json").write_bytes(REPORT)
    (tmp_path / "other.json").write_bytes(REPORT)
    lines: list[dict[str, Any]] = [
        {"id": "a", "status": "ok", "file": "../other.json"},
        {"id": "b", "status": "ok", "file": "good.json", "sent": True},
        {"id": "c", "status": "failed", "file": "good.json"},
        {"id": "d", "status": "ok", "file": "none.json"},
        {"id": "", "status": "ok", "file": "good.json"},
        {"id": "f", "status": "ok", "file": None},
    ]
    with open(folder / JOURNAL, "a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
        file.write("{cut")
    known = Folder(str(folder), "acme", resume=True).known
    assert [*known] == ["a", "b", "c", "d", "f"]
    assert [id_ for id_, (_, answer) in known.items() if answer] == ["b"]
    assert (known["b"][1] or Answer("b", "")).sent is True
    with pytest.raises(ClusterError, match=f"^--resume: .*{JOURNAL} is of acme, not of other$"):
        Folder(str(folder), "other", resume=True)


def test_seconds_are_written_to_the_millisecond() -> None:
    gathered = Gathered("acme")
    gathered.seconds = 1.23456
    gathered.nodes = {"a": answered("a", REPORT)}
    document = json.loads("".join(document_lines(gathered)))
    assert (document["seconds"], document["nodes"]["a"]["seconds"]) == (1.235, 1.235)


@pytest.mark.parametrize(("width", "blocks"), [(20, 1), (18, 1), (17, 2), (10, 2), (9, 4), (1, 4)])
def test_columns_that_do_not_fit_follow_in_a_block_of_their_own(width: int, blocks: int) -> None:
    labels = ["g0", "g1", "g2", "g3"]
    devices = [SimpleNamespace(label=label) for label in labels]
    topology: Any = SimpleNamespace(devices=devices, rows=[["X"] * 4] * 4)
    lines = [*_matrix(topology, width)]
    assert lines.count("") == blocks - 1
    assert all(len(line) <= width for line in lines) or blocks == 4
    assert [label for line in lines if line.startswith(" ") for label in line.split()] == labels


def test_what_links_the_packages_stands_at_the_words_between_them() -> None:
    rows = [["X", "SYS"], ["PIX", "X"]]
    plain = _meanings(rows, None, True)
    linked = _meanings(rows, "UPI", False)
    assert len(plain) == len(linked) > 1
    assert [(old, new.removeprefix(old)) for old, new in zip(plain, linked, strict=True)] == [
        (text, "; between packages over UPI" if text.startswith("SYS") else "") for text in plain
    ]
    assert any(text.endswith(", over UPI") for text in _meanings(rows, "UPI", True))


def test_a_front_has_the_names_of_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = ModuleType("acme_front"), ModuleType("acme_front.part")
    module.__dict__["answer"] = 42
    monkeypatch.setitem(sys.modules, "acme_front", package)
    monkeypatch.setitem(sys.modules, "acme_front.part", module)
    look_up = front("acme_front", {"part": "answer"})
    assert look_up("answer") == 42
    assert package.__dict__["answer"] == 42
    with pytest.raises(AttributeError, match=r"^module 'acme_front' has no attribute 'other'$"):
        look_up("other")
