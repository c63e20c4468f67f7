"""The tables of `data`, which people edit as TOML.

A wheel has them as JSON beside it, made by its build hook: to read TOML takes 15 ms of each start.
A checkout has no JSON, so that what is edited counts at once.
"""

from __future__ import annotations

from pathlib import Path

from probe_core.jsontext import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_wheels.documents import DriversDoc, FrameworkDoc, TorchDoc

__all__ = ["DRIVERS", "FOLDER", "FRAMEWORKS", "TORCH"]

FOLDER = Path(__file__).with_name("data")


def _table(name: str) -> Any:
    made = FOLDER / f"{name}.json"
    if made.exists():
        return parse(made.read_bytes())
    import tomllib

    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


DRIVERS: DriversDoc = _table("drivers")
FRAMEWORKS: dict[str, FrameworkDoc] = _table("frameworks")
TORCH: TorchDoc = _table("torch")
