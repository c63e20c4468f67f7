"""Builds the /sys of boards with Mali GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe_core import testing
from probe_core.api import NotApplicable, Request
from probe_mali.prober import probe_devices


class Board(testing.Tree):
    """A board that grows Mali GPUs."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, arch="aarch64")
        self.release("6.12.9")
        self.memory(16_000_000, 12_000_000)

    def soc(self, *compatibles: str) -> None:
        self.node("", *compatibles)

    def gpu(
        self,
        name: str,
        node: str | None = None,
        driver: str | None = None,
        *,
        misc: int | None = None,
        render: int | None = None,
        **files: str,
    ) -> str:
        """Add a platform device; returns its folder."""
        folder = self.platform(name, node, driver=driver, render=render, **files)
        if driver:
            # What else a driver's folder holds.
            self.file(f"/sys/bus/platform/drivers/{driver}/bind", "")
            self.link(f"/sys/bus/platform/drivers/{driver}/module", f"/sys/module/{driver}")
        if misc is not None:
            self.file(f"{folder}/misc/mali{misc}/dev", "10:124\n")
            self.link(f"{folder}/misc/mali{misc}/device", folder)
            self.link(f"/sys/class/misc/mali{misc}", f"{folder}/misc/mali{misc}")
        return folder

    def probe(self, bus: tuple[dict[str, Any], ...] = (), avoid: tuple[str, ...] = ()) -> list[Any]:
        answer = probe_devices(Request(self.machine(), bus, avoid=avoid))
        return [answer] if isinstance(answer, NotApplicable) else list(answer)


@pytest.fixture(scope="session")
def new_board() -> type[Board]:
    """Return the builder of a board, for those that a test places itself."""
    return Board


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path)
