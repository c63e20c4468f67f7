"""Samplers from source, and rounds whose rhythm a test decides."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from probe_core.machine import Machine
from probe_core.pipeline.settings import load_settings
from probe_core.sampling.engine import Engine
from probe_core.sampling.rounds import Rhythm, Rounds

HEAD = """
import os, time
from probe_core.api import *
NAMES = [f"pci:0000:0{n}:00.0" for n in range(1, 9)]
"""


class Clock:
    """Time that passes when a test lets it: one second with each round."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Stage:
    """A folder of modules, a machine, and rounds over both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.machine = Machine(str(folder / "root"), environ={})
        (folder / "root").mkdir()
        self.targets: dict[str, Any] = {}
        self.opened: list[Rounds] = []

    def add(self, source: str, name: str = "acme", deadline_s: float = 10.0) -> None:
        """Write a module; `source` is what follows the imports."""
        module = f"stage_{name}"
        (self.folder / f"{module}.py").write_text(HEAD + textwrap.dedent(source))
        self.targets[name] = {"target": module, "deadline_s": deadline_s}

    def rounds(self, count: int | None = None, **options: Any) -> Rounds:
        """Return an iterator in the stage's time, over the stage's samplers alone."""
        only = list(options.pop("only", self.targets)) or ["none"]
        config, _ = load_settings({"only": ["bus", "cpu", *only]}, {})
        rhythm = Rhythm(1.0, self.clock, self.clock.sleep)

        def make() -> Engine:
            machine = options.pop("machine", self.machine)
            return Engine(machine, config, extra=self.targets, clock=self.clock, **options)

        rounds = Rounds(make, rhythm, count)
        self.opened.append(rounds)
        return rounds


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.syspath_prepend(str(tmp_path))
    stage = Stage(tmp_path)
    yield stage
    for rounds in stage.opened:
        rounds.close()


@pytest.fixture
def children() -> Callable[[], list[int]]:
    """Return a function that lists this process's children that live, zombies too."""

    def listed() -> list[int]:
        pids = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
                pids.append(int(name))
        return pids

    return listed
