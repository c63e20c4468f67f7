"""Probers that a test writes as a module, to be run as a plugin's would be: in a child."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

HEAD = "from probe_core.api import Unavailable, finding, hookimpl, not_applicable\n"


class Probers:
    """Writes prober modules into a folder on the path."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.targets: dict[str, Mapping[str, Any]] = {}
        monkeypatch.syspath_prepend(str(folder))

    def add(self, name: str, body: str, **manifest: Any) -> None:
        """Add a prober whose hook has this body; keyword arguments are its manifest's."""
        hook = "@hookimpl\ndef probe_devices(request):\n"
        lines = [f"    {line}\n" for line in dedent(body).strip().splitlines()]
        (self.folder / f"fake_{name}.py").write_text(HEAD + hook + "".join(lines))
        sys.modules.pop(f"fake_{name}", None)
        self.targets[name] = {"target": f"fake_{name}", **manifest}

    def reports(self, name: str, *devices: Mapping[str, Any], **manifest: Any) -> None:
        """Add a prober that reports these devices."""
        self.add(name, f"return {[dict(device) for device in devices]!r}", **manifest)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `probe` that run these probers, and no installed plugin."""
        return {"only": list(self.targets) or "cpu", "probers": dict(self.targets)}


def gpu(number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return the sighting of an RTX 4090 at a PCI address of its own."""
    sighting: dict[str, Any] = {
        "ids": [f"pci:0000:{number:02x}:00.0"],
        "kind": "gpu",
        "vendor": "nvidia",
        "name": "NVIDIA GeForce RTX 4090",
        "pci": {"id": "10de:2684"},
        "driver": {"name": "nvidia", "version": "580.95.05"},
        "backends": ["cuda"],
        "memory": {"kind": "dedicated", "total": 25757220864, "free": 25200000000},
    }
    return sighting | fields
