"""No file makes the prober do but what it says, or raise but `Unavailable`; see tests/fuzz."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign import CHANCES, Chance
from hypothesis import given

from probe_core.api import Machine, Unavailable
from probe_synthetic.prober import load

SCRIPT = {
    "devices": [{"ids": ["x:1"], "kind": "npu"}],
    "findings": [{"code": "x", "what": "x", "why": "y", "fix": "z"}],
    "delay_s": 0.5,
    "then": "raise",
}


@pytest.mark.heavy
@given(CHANCES)
def test_files(tmp_path: Path, chance: Chance) -> None:
    text = json.dumps(chance.alter(SCRIPT)).encode()
    (tmp_path / "script.json").write_bytes(chance.choice([text, chance.mutate(text)]))
    try:
        script = load(Machine(str(tmp_path)), "/script.json")
    except Unavailable:
        return
    assert isinstance(script["devices"], list)
    assert 0 <= script["delay_s"] <= 3600
