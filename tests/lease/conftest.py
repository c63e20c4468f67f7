"""Makes the lease tests' helpers importable, and gives each test its own folder and node."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def node(tmp_path: Path) -> object:
    """A node of two H100 with leases in the test's own folder."""
    from lease_node import Node

    return Node(tmp_path, 2)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that a test adds here are killed at its end."""
    running: list[subprocess.Popen[str]] = []
    yield running
    for process in running:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
