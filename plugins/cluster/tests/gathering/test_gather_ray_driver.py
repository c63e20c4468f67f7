"""The program beside Ray, with a Ray made of dictionaries: whom it asks, and what it prints."""

from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from probe_cluster.gathering import ray_driver


class FakeRay:
    """Nodes a and b that are alive, c that died, d that was stopped; each agent prints a line."""

    def __init__(self) -> None:
        self.asked: dict[str, list[str]] = {}
        self.killed: list[str] = []
        self.gifts: list[bytes] = []
        self.is_over = False

    def nodes(self) -> list[dict[str, Any]]:
        ends = {"a": None, "b": None, "c": 2, "d": 1}
        return [
            {"NodeID": id_, "NodeName": "ab"[id_ > "b"], "Alive": end is None, "DeathReason": end,
             "DeathReasonMessage": "no power", "Resources": {"GPU": 8}}
            for id_, end in ends.items()
        ]  # fmt: skip

    def remote(self, **options: Any) -> Any:
        assert options == {"num_cpus": 0, "num_gpus": 0, "max_concurrency": 2}
        return lambda kind: SimpleNamespace(options=self._placed)

    def _placed(self, scheduling_strategy: str) -> Any:
        return SimpleNamespace(remote=lambda words, gift: self._started(scheduling_strategy, words))

    def _started(self, node: str, words: list[str]) -> Any:
        self.asked[node] = words
        return SimpleNamespace(node=node, lines=SimpleNamespace(remote=lambda: node))

    def put(self, gift: bytes) -> bytes:
        self.gifts.append(gift)
        return gift

    def wait(self, waiting: list[str], num_returns: int, timeout: float) -> tuple[list[str], None]:
        return waiting[:num_returns], None

    def get(self, node: str, timeout: float) -> list[bytes | None]:
        if node == "b":
            raise MemoryError("much\nmore")
        return [b"line of a\n", None]

    def kill(self, actor: Any, no_restart: bool) -> None:
        self.killed.append(actor.node)

    def shutdown(self) -> None:
        self.is_over = True


@pytest.mark.parametrize(
    ("only", "asked", "listed"),
    [("", ["a", "b"], ["a", "b", "c"]), ("a", ["a"], ["a"]), ("b,d", ["b"], ["b"])],
)
def test_the_nodes_that_are_meant_are_listed_and_asked(
    monkeypatch: pytest.MonkeyPatch, only: str, asked: list[str], listed: list[str]
) -> None:
    strategies: Any = ModuleType("ray.util.scheduling_strategies")
    strategies.NodeAffinitySchedulingStrategy = lambda node, soft: node
    for name in ("ray", "ray.util"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    ray = FakeRay()
    reader, writer = os.pipe()
    words = [only, "python", ray_driver.NODE]
    ray_driver._report(ray, ray_driver.Printer(writer), 5.0, words, b"gift")
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read().decode()
    assert ray.asked == {node: ["python", node] for node in asked}
    assert (ray.gifts, ray.killed, ray.is_over) == ([b"gift"], asked, True)
    rows = [line.split()[1] for line in text.splitlines() if '"kind": "node"' in line]
    assert rows == listed
    assert ("line of a\n" in text) is ("a" in asked)
    assert ('"reason": "its agent ended"' in text) is ("a" in asked)
    assert ('"reason": "MemoryError: much"' in text) is ("b" in asked)
    assert ('"reason": "Ray calls it dead: no power"' in text) is ("c" in listed)


@pytest.mark.parametrize(("length", "pieces"), [(0, 1), (351, 1), (352, 2), (711, 2), (712, 3)])
def test_a_message_is_printed_in_lines_of_one_length(length: int, pieces: int) -> None:
    reader, writer = os.pipe()
    printer = ray_driver.Printer(writer)
    for _ in range(2):
        printer.send("a", {"k": "x" * length})
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    assert {len(line) for line in lines} == {512}
    words = [line.rstrip(b" \n").removesuffix(b"|").split(b" ", 4) for line in lines]
    assert {(mark, node) for mark, node, *_ in words} == {(b"#probe-cluster", b"a")}
    for number in (b"1", b"2"):
        *own, end = [rest for _, _, tag, *rest in words if tag == number]
        assert [int(at) for at, _ in own] == list(range(pieces))
        assert b"".join(piece for _, piece in own) == b'{"k": "%s"}' % (b"x" * length)
        assert end == [b"end", b"0 %d" % pieces]
