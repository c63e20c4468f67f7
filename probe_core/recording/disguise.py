"""Replaces identities in what libraries answered, by the same ones as in the files.

PCI addresses, names and figures stay: they say what the machine is, and not whose.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from probe_core.model.recorded import RecordedAnswer
    from probe_core.recording.anonymise import Anonymiser

__all__ = ["OMITTED", "Disguise", "disguised"]

_PERSONAL = frozenset(
    "user users username uid process processes command cmdline host hostname".split()
)
"""Words of keys in free data (`extra`) whose text may name a person, a program or a computer."""


def disguised(
    answers: Mapping[str, RecordedAnswer], anonymiser: Anonymiser, home: str | None
) -> dict[str, RecordedAnswer]:
    """Return the answers without identities; `home` is the user's own folder."""
    disguise = Disguise(anonymiser, home)
    return {name: disguise.value(answer) for name, answer in answers.items()}


class Disguise:
    """Replaces the text of JSON data by what its keys and its form say that it is."""

    def __init__(self, anonymiser: Anonymiser, home: str | None) -> None:
        self.anonymiser = anonymiser
        self._folders = [(f"{folder}/", "") for folder in _import_folders()]
        if home and home != "/":
            self._folders.append((home.rstrip("/"), "/home"))

    def value(self, value: Any) -> Any:
        """Return JSON data with every text replaced by the rule for it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            pairs = ((key, self.named(key, item)) for key, item in value.items())
            return {self.text(key): item for key, item in pairs if item is not OMITTED}
        return value

    def named(self, key: str, value: Any) -> Any:
        """Return the value of a key, or `OMITTED` for what is nobody's business."""
        name = key.lower()
        if isinstance(value, str) and "serial" in name:
            return self.anonymiser.serial(value)
        if type(value) is int and "serial" in name:
            return self.anonymiser.number(value)
        words = name.replace("-", "_").split("_")
        if not isinstance(value, (int, float)) and not _PERSONAL.isdisjoint(words):
            return OMITTED
        return self.value(value)

    def text(self, text: str) -> str:
        """Return a text with its folders and identities replaced."""
        for folder, replacement in self._folders:
            text = text.replace(folder, replacement)
        plain = self.anonymiser.uuids(text)
        kind, colon, rest = text.partition(":")
        # Vulkan's and others' own UUIDs have neither prefix nor dashes.
        if kind == "uuid" and colon and plain == text:
            return f"uuid:{self.anonymiser.digits(rest)}"
        return plain


OMITTED: Any = object()


def _import_folders() -> Iterable[str]:
    """Return the folders that modules come from, the longest first: `stuck_at` names modules.

    They lie in somebody's home, or hold the name of a project.
    """
    folders = {path.rstrip("/") for path in (*sys.path, os.path.dirname(os.__file__)) if path}
    return sorted((path for path in folders if path.count("/") > 1), key=len, reverse=True)
