"""Make the typed views of parts of a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from probe_core.model.frozen import FrozenTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.model.field import Field

__all__ = ["view"]

View = TypeVar("View")


def view(cls: type[View], table: FrozenTable, fields: Mapping[str, Field]) -> View:
    """Return `cls` with the keys of `table` that it has; what a newer core added is left out.

    The view holds the document's own frozen tables, not copies. Keys that an older core did not
    write get the stand-in that the table of fields names.
    """
    values: dict[str, Any] = {}
    for attribute in attrs.fields(cls):  # type: ignore[arg-type]
        value = table.get(attribute.name)
        if value is not None:
            values[attribute.name] = value
        elif attribute.default is attrs.NOTHING:
            values[attribute.name] = fields[attribute.name].empty
    return cls(**values)
