"""Reads figures of a foreign config.json, each within bounds that real models stay far within."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe_cluster.errors import ClusterError

__all__ = ["MOST_LAYERS", "ConfigTable"]

# Far above the largest open model (vocabulary 262,208; context 10,485,760), below what overflows.
_MOST = 1 << 27
MOST_LAYERS = 4096
"""Layers of a model at most: planning takes time for each. The largest open ones have 126."""


class ConfigTable:
    """The table that describes the text model, and the name by which errors call its file."""

    __slots__ = ("_table", "label", "outer")

    def __init__(self, config: Mapping[str, Any], label: str) -> None:
        # Models with text and vision keep the text's shape under text_config.
        inner = config.get("text_config")
        self._table: Mapping[str, Any] = inner if isinstance(inner, Mapping) else config
        self.outer = config
        self.label = label

    def whole(self, *names: str) -> int | None:
        """Return the first of the named figures that is there, None where none is.

        A list that has the same figure for each layer is that figure. Raises `ClusterError` for one
        that is no whole number of 0 to 134,217,728. 0 is None.
        """
        for name in names:
            value = self._table.get(name)
            if isinstance(value, list) and value and value == value[:1] * len(value):
                value = value[0]
            if value is None:
                continue
            most = MOST_LAYERS if name == "num_hidden_layers" else _MOST
            if type(value) is not int or not 0 <= value <= most:
                shown = repr(value)[:40]
                raise ClusterError(
                    f"{self.label}: {name} is {shown}; it must be a whole number up to {most}"
                )
            return value or None
        return None

    def flag(self, name: str) -> bool:
        """Return whether a switch is on, in the text's table or in the outer one."""
        return self._table.get(name) is True or self.outer.get(name) is True

    def choice(self, name: str) -> bool | None:
        """Return a switch as the file has it, in the text's table or the outer one; else None."""
        for table in (self._table, self.outer):
            value = table.get(name)
            if isinstance(value, bool):
                return value
        return None

    def wholes(self, name: str) -> list[int]:
        """Return a list of whole numbers, empty where there is none."""
        value = self._table.get(name)
        if not isinstance(value, list) or any(type(entry) is not int for entry in value):
            return []
        return value[:MOST_LAYERS]

    def table(self, name: str) -> ConfigTable:
        """Return the table of a name, an empty one where there is none."""
        value = self._table.get(name)
        return ConfigTable(value if isinstance(value, Mapping) else {}, self.label)

    def tables(self, name: str) -> list[ConfigTable]:
        """Return a list of tables, empty where there is none."""
        value = self._table.get(name)
        if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
            return []
        return [ConfigTable(entry, self.label) for entry in value[:MOST_LAYERS]]

    def number(self, name: str) -> float | None:
        """Return a number of 0 to 1,000; None for anything else."""
        value = self._table.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if 0 <= value <= 1000 else None

    def text(self, name: str) -> str:
        """Return a text, empty where there is none."""
        value = self._table.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, empty where there is none."""
        value = self._table.get(name)
        return [str(entry) for entry in value[:MOST_LAYERS]] if isinstance(value, list) else []

    def has(self, *names: str) -> bool:
        """Return whether one of these keys is there with a value."""
        return any(self._table.get(name) not in (None, 0, False, []) for name in names)

    def quantization(self) -> Mapping[str, Any]:
        """Return how the published weights are quantised, empty where they are not."""
        for table in (self.outer, self._table):
            for name in ("quantization_config", "quantization"):
                value = table.get(name)
                if isinstance(value, Mapping):
                    return value
        return {}
