"""Which cases of a long list run with the fast tests; the others are `heavy`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_heavy(values: Iterable[Any], every: int) -> list[Any]:
    """Return parameters of which each `every`th, from the first on, is not marked as heavy."""
    return [
        value if number % every == 0 else pytest.param(value, marks=pytest.mark.heavy)
        for number, value in enumerate(values)
    ]


def mostly_heavy_rows(rows: Iterable[tuple[Any, ...]], every: int) -> list[Any]:
    """Return rows of several parameters of which each `every`th is not marked as heavy."""
    return [
        row if number % every == 0 else pytest.param(*row, marks=pytest.mark.heavy)
        for number, row in enumerate(rows)
    ]
