"""The judge of faults says of each whether a test notices it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TEST = """
import pytest
from probe_core.sizes import parse_size

def test_sizes():
    assert parse_size("20GB") == 20_000_000_000
    with pytest.raises(ValueError):
        parse_size("lots")
"""
FAULTS = {
    (13, "1000", "1001"): "noticed",  # of a value of the module
    (36, "0.0", "1.0"): "noticed",  # of code
    (27, "1", "2"): "NOT noticed",  # no test asks for a byte
    (57, "40", "41"): "not judged",  # none executes it
}


@pytest.mark.heavy
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for a fork as Linux does")
def test_what_a_test_asserts_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from mutate import all_faults
    from mutate_in_process import in_fork, run

    (tmp_path / "test_it.py").write_text(TEST)
    faults = [
        fault
        for fault in all_faults("probe_core/sizes.py")
        if (fault.line, fault.before, fault.after) in FAULTS
    ]
    done = in_fork(lambda: run(faults, [str(tmp_path)], 8.0), 60)
    assert {judged.fault[1:2] + judged.fault[4:]: judged.mark for judged in done} == FAULTS
