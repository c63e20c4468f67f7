"""Makes what lies beside the recorded machines importable, and fake probers a fixture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "machines"))

from fake_probers import Probers
from trees import Tree


@pytest.fixture
def probers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Probers:
    """Probers written by the test; nothing is installed."""
    folder = tmp_path / "probers"
    folder.mkdir()
    return Probers(folder, monkeypatch)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A machine's root without any file."""
    return Tree(tmp_path / "root")
