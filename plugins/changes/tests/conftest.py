"""Makes the builders of machines importable: pytest's importlib mode puts no test folder on the
path.
"""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[3] / "tests"
sys.path[:0] = [str(Path(__file__).parent), str(_TESTS / "readiness"), str(_TESTS / "machines")]
