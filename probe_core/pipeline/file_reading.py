"""The child that reads a file on a file system that a server answers for.

It is no prober: it has the hook because that is what a child runs.
"""

from __future__ import annotations

from probe_core.api import Request, hookimpl
from probe_core.machine import Untrusted, read_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["probe_devices"]

_TEXT = 4000
"""Characters of one piece: a frame cuts longer texts."""

_PIECES = 40
"""Pieces of one frame: 960 kB where each byte is escaped, within the megabyte of a frame."""


@hookimpl
def probe_devices(request: Request) -> Iterator[dict[str, object]]:
    """Yield the bytes of the file that the host has ordered, or why it cannot be read."""
    (order,) = request.bus
    try:
        text = read_trusted(order["path"], order["limit"]).decode("latin-1")
    except Untrusted as refusal:
        yield {"distrust": str(refusal)}
        return
    except OSError as error:
        yield {"error": error.strerror or str(error), "number": error.errno}
        return
    parts = [text[at : at + _TEXT] for at in range(0, len(text), _TEXT)]
    for at in range(0, max(1, len(parts)), _PIECES):
        yield {"text": parts[at : at + _PIECES]}
