"""Gives each test a folder on the path where it installs commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from command_site import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A folder that comes first on the path."""
    monkeypatch.delenv("PROBE_ALLOW", raising=False)
    made = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.folder))
    return made


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Forget the modules that a test's commands were imported from."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("x_"):
            del sys.modules[name]
