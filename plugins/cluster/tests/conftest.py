"""Makes the home's nodes importable: pytest's importlib mode puts no test folder on the path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "machines"))

from fake_engines import Engines
from home_nodes import NODES, report_of


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Reports of a home's nodes, each made by the whole pipeline from what its prober says."""
    folder = tmp_path_factory.mktemp("home")
    return {name: report_of(name, folder) for name in NODES}


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engines:
    """A folder of fake engines, first on PATH."""
    folder = tmp_path / "engines"
    folder.mkdir()
    return Engines(folder, monkeypatch)
