"""Install fake distributions: folders with metadata and modules, as an installer leaves them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GROUP = "probe_core.probers.v1"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return an empty folder that stands for site-packages."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def install(site: Path) -> Callable[..., Path]:
    """Return a function that installs one distribution with one prober; returns its metadata."""

    def put(
        name: str = "acme",
        *,
        version: str = "1.0",
        entries: str | None = None,
        manifest: dict[str, Any] | str | None = None,
        source: str = "",
        where: Path | None = None,
    ) -> Path:
        folder = where or site
        metadata = folder / f"probe_{name}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Name: probe-{name}\nVersion: {version}\n")
        text = f"[{GROUP}]\n{name} = x_{name}\n" if entries is None else entries
        (metadata / "entry_points.txt").write_text(text, encoding="utf-8")
        (folder / f"x_{name}.py").write_text(source)
        if isinstance(manifest, dict):
            manifest = json.dumps({"schema": 1, "probers": {name: manifest}})
        if manifest is not None:
            (folder / f"x_{name}.prober.json").write_text(manifest)
        return metadata

    return put
