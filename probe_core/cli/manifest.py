"""Read `command.json`: data beside a command's module that says what `probe --help` shows.

A mistake in a manifest never stops its command: the help then shows less, and says what is wrong.
"""

from __future__ import annotations

from probe_core.registry.extensions import manifest_table, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["read_entry", "read_manifest"]

MAX_GROUP = 40
MAX_SUMMARY = 200
"""Characters: a heading, and a summary of two lines at 100 columns. A judgement."""


def read_manifest(path: str) -> dict[str, Any]:
    """Return the table of commands in a manifest; raises `ValueError` with the reason."""
    return manifest_table(path, "commands")


def read_entry(commands: dict[str, Any], name: str) -> dict[str, str]:
    """Return the `group` and `summary` of a command, as far as given; raises `ValueError`."""
    return texts(commands, name, (("group", MAX_GROUP), ("summary", MAX_SUMMARY)))
