"""The coverage-guided fuzzers take any bytes; how long they run is for people to say."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import guided_data
import pytest

SPEC = importlib.util.spec_from_file_location("guided", Path(__file__).with_name("guided.py"))
assert SPEC is not None
assert SPEC.loader is not None
GUIDED = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(GUIDED)
PARSERS: dict[str, Callable[[bytes], None]] = GUIDED.PARSERS
SEEDS = [b"", b"\xff\x00", b"[" * 5000, b'{"kind": "end"}', b"acme = x:y\n", b"pci:0:0.0", b"1e999"]


@pytest.mark.parametrize("parser", PARSERS)
def test_seeds(parser: str) -> None:
    for seed in SEEDS:
        PARSERS[parser](seed)


@pytest.mark.parametrize("parser", PARSERS)
def test_good_inputs(parser: str) -> None:
    for seed in guided_data.seeds(parser):
        PARSERS[parser](seed)


def test_an_unknown_parser_is_told() -> None:
    with pytest.raises(SystemExit, match="name a parser: all, frames"):
        GUIDED.main(["dance"])
