"""The types find the mistakes that they are there for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_mypy_refuses_misspelt_keys_and_words(tmp_path: Path) -> None:
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *options, str(HERE / "slips.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    errors = re.findall(r"slips\.py:\d+: error: (.*)", ran.stdout)
    assert len(errors) == 3, ran.stdout + ran.stderr
    assert 'TypedDict "DeviceDoc" has no key "unkown"' in errors[0]
    assert 'TypedDict "MemoryDoc" has no key "knid"' in errors[1]
    assert "Literal['warnign']" in errors[2]
    assert ran.returncode == 1
