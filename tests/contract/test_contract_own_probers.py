"""Every prober of this repository keeps the contract, on a machine with its hardware.

Its test lies beside its source and is found here by its text, so nothing is run twice.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


def probers() -> set[str]:
    manifests = (json.loads(path.read_text()) for path in PLUGINS.glob("*/src/*/prober.json"))
    return {name for manifest in manifests for name in manifest["probers"]}


def contracts() -> dict[str, set[str]]:
    """Return what the test classes of each contract test define, by their prober's name."""
    found: dict[str, set[str]] = {}
    for path in PLUGINS.glob("*/tests/test_*_contract.py"):
        classes = [one for one in ast.parse(path.read_text()).body if isinstance(one, ast.ClassDef)]
        body = [line for one in classes for line in one.body]
        names = {line.name for line in body if isinstance(line, ast.FunctionDef)}
        values = {t.id: line.value for line in body if isinstance(line, ast.Assign)
                  for t in line.targets if isinstance(t, ast.Name)}  # fmt: skip
        found[ast.literal_eval(values["name"])] = names | set(values)
    return found


def test_each_prober_has_a_contract_test_with_hardware_sound_and_broken() -> None:
    written = contracts()
    assert written.keys() == probers()
    for name, defined in written.items():
        assert defined >= {"project", "hardware", "broken"}, name
