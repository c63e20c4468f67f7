"""Makes what lies beside the recorded machines importable, and fake probers a fixture."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "machines"))

from fake_probers import Probers
from trees import Tree

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def probers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Probers:
    """Probers written by the test; nothing is installed."""
    folder = tmp_path / "probers"
    folder.mkdir()
    return Probers(folder, monkeypatch)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A machine's root without any file; /sys is there, as on every Linux."""
    (tmp_path / "root" / "sys" / "devices").mkdir(parents=True)
    return Tree(tmp_path / "root")


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """What returns a page of the reference as the site has it, by its name."""
    monkeypatch.syspath_prepend(str(DOCS))
    import regions

    return lambda name: regions.filled((DOCS / f"reference/{name}.md").read_text("utf-8"))
