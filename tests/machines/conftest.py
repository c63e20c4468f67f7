"""Makes the loader of recorded machines importable; pytest's importlib mode adds no folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "machines"))
