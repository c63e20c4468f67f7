"""The benchmark of the reader asks the table that it made."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "bench"))

import lookup


@pytest.mark.heavy
def test_a_synthetic_chip_is_found_in_fresh_interpreters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "RUNS", 1)
    assert lookup.cold(str(lookup.synthetic(10, tmp_path)), f"pci={lookup.pci(5)!r}") > 0
