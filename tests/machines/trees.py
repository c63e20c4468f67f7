"""A machine's files, written one by one by a test."""

from __future__ import annotations

from pathlib import Path

from probe_core import Machine


class Tree:
    """A folder that stands for a machine's root."""

    def __init__(self, root: Path, arch: str = "x86_64") -> None:
        self.root = root
        self.arch = arch

    def file(self, path: str, text: str | bytes) -> Path:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return place

    def link(self, path: str, target: str) -> None:
        """Add a relative link; `target` is the machine's own absolute path."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        there = self.root / target.lstrip("/")
        if not there.exists():
            there.mkdir(parents=True)
        up = "../" * (len(place.relative_to(self.root).parts) - 1)
        place.symlink_to(up + target.lstrip("/"))

    def machine(self) -> Machine:
        return Machine(str(self.root), arch=self.arch)
