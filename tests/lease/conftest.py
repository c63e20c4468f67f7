"""Makes the lease tests' helpers importable, and gives each test its own folder and node."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def node(tmp_path: Path) -> object:
    """A node of two H100 with leases in the test's own folder."""
    from lease_node import Node

    return Node(tmp_path, 2)
