"""Reading a file that a setting names, also where a server answers for it and may be dead.

On such a file system stat(2) and read(2) may not return, and no signal ends them. There a child
reads, under a deadline. Elsewhere the host reads, which costs it 0.1 ms.
"""

from __future__ import annotations

import os
from errno import EIO

from probe_core.api import Request, hookimpl
from probe_core.machine import Machine, Untrusted, read_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["probe_devices", "read_named"]

DEADLINE_S = 2.0
"""Seconds that a child has for a file: an automounter takes one for the first look at a server, and
a configuration file and a static report together stay below a prober's own deadline."""

_READER = "probe_core.pipeline.file_reading"

_TEXT = 4000
"""Characters of one piece: a frame cuts longer texts."""

_PIECES = 40
"""Pieces of one frame: 960 kB where each byte is escaped, within the megabyte of a frame."""


def read_named(path: str, limit: int) -> bytes:
    """Return what `read_trusted` returns, wherever the file lies; `OSError` after the deadline."""
    from probe_core.pipeline.settings import on_server  # the child has no use for settings

    return _read_elsewhere(path, limit) if on_server(path) else read_trusted(path, limit)


def _read_elsewhere(path: str, limit: int) -> bytes:
    from probe_core.isolation.launch import cannot_start, run_probers
    from probe_core.registry import locate
    from probe_core.registry.prober import Prober

    if problem := cannot_start():
        raise OSError(EIO, f"a server answers for it, and no process can read it: {problem}", path)
    prober = Prober("named-file", _READER, "probe-core")
    prober.deadline_s = DEADLINE_S
    prober.needs_site = locate("probe_core") is None
    order = {"path": os.path.abspath(path), "limit": limit}
    (run,) = run_probers([prober], Machine(environ={}), [order])
    if run.status == "timeout":
        from probe_core.pipeline.settings import silent

        raise silent(path, DEADLINE_S)
    if run.status != "ok":
        raise OSError(EIO, f"reading it in another process failed: {run.reason}", path)
    return _content(run.sightings, path)


def _content(pieces: Sequence[object], path: str) -> bytes:
    """Return the bytes that the child sent, or raise what it met."""
    data = []
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        if piece.get("distrust"):
            raise Untrusted(str(piece["distrust"]))
        if piece.get("error"):
            raise OSError(int(piece.get("number") or 0), str(piece["error"]), path)
        data += [text for text in piece.get("text") or () if isinstance(text, str)]
    return "".join(data).encode("latin-1")


# In the child. It is no prober: it has the hook because that is what a child runs.


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
