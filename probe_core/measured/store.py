"""The file of measured figures: one per user, with a part for each node and device.

A home folder may be shared by the nodes of a cluster, so the node's id is the first key. A device
is known by any of its ids together with its name: another card in the same slot has its own.
"""

from __future__ import annotations

from probe_core.jsontext import parse, write
from probe_core.machine import text_of
from probe_core.model.field import Rejected
from probe_core.model.parts import Measurement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypedDict

    from probe_core.model.document import DeviceDoc, MeasuredDoc

    class StoredDevice(TypedDict):
        """What is kept of one device."""

        ids: list[str]
        name: str | None
        measured: list[MeasuredDoc]

    class Stored(TypedDict):
        """The file: node's id to its devices."""

        schema: int
        nodes: dict[str, list[StoredDevice]]


__all__ = [
    "FILE_LIMIT",
    "SCHEMA",
    "Unusable",
    "empty",
    "figures_of",
    "parsed",
    "text",
    "with_figures",
]

SCHEMA = 1
FILE_LIMIT = 1 << 20
"""Bytes: 64 nodes with eight devices of two kilobytes each, as a cluster with one home has them."""

MAX_NODES = 64
MAX_FIGURES = 64
"""Figures of one device: the bound of a report's lists."""


class Unusable(ValueError):
    """A file that is none of this version; the message is the reason."""


def empty() -> Stored:
    """Return a file without figures."""
    return {"schema": SCHEMA, "nodes": {}}


def parsed(raw: bytes, refused: list[tuple[str, str]] | None = None) -> Stored:
    """Return the content of the file; raises `Unusable`.

    `refused` gets a node's id and the reason for each figure that cannot be true.
    """
    refused = [] if refused is None else refused
    if len(raw) > FILE_LIMIT:
        raise Unusable(f"it is longer than {FILE_LIMIT} bytes")
    try:
        document = parse(text_of(raw))
    except (ValueError, RecursionError):
        raise Unusable("it is no JSON document") from None
    # A bool is an int: true equals 1.
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or isinstance(schema, bool) or schema != SCHEMA:
        raise Unusable(f"it is not of schema {SCHEMA}")
    nodes = document.get("nodes")
    tables = nodes.items() if isinstance(nodes, dict) else ()
    listed = {name: list(_devices(entries, name, refused)) for name, entries in tables}
    return {"schema": SCHEMA, "nodes": listed}


def _devices(entries: object, node: str, refused: list[tuple[str, str]]) -> Iterator[StoredDevice]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("ids"), list):
            ids = [name for name in entry["ids"] if isinstance(name, str)]
            name = entry.get("name")
            figures = list(_figures(entry.get("measured"), node, refused))
            yield {"ids": ids, "name": name if isinstance(name, str) else None, "measured": figures}


def _figures(entries: object, node: str, refused: list[tuple[str, str]]) -> Iterator[MeasuredDoc]:
    """Yield the figures that can be true: whoever can write the file could write anything."""
    check = Measurement().check
    for entry in entries[:MAX_FIGURES] if isinstance(entries, list) else ():
        try:
            yield check(entry)  # type: ignore[misc]  # its fields are those of the table
        except Rejected as error:
            refused.append((node, str(error)))


def figures_of(content: Stored, node: str | None, device: DeviceDoc) -> list[MeasuredDoc]:
    """Return what is kept of a device of a node; `node` is the id, None where it has none."""
    for entry in content["nodes"].get(node or "", ()):
        if _is_same(entry, device):
            return entry["measured"]
    return []


def _is_same(entry: StoredDevice, device: DeviceDoc) -> bool:
    return entry["name"] == device["name"] and not set(entry["ids"]).isdisjoint(device["ids"])


def with_figures(
    content: Stored, node: str | None, device: DeviceDoc, figures: Iterable[MeasuredDoc]
) -> Stored:
    """Return the content with new figures of a device; each replaces the older one of its kind.

    But a disturbed one replaces no clean one of the same driver.
    """
    older = {key_of(figure): figure for figure in figures_of(content, node, device)}
    fresh = {
        key: figure for figure in figures if not is_worse(figure, older.get(key := key_of(figure)))
    }
    merged = list({**older, **fresh}.values())[-MAX_FIGURES:]
    entries = [e for e in content["nodes"].get(node or "", ()) if not _is_same(e, device)]
    entry: StoredDevice = {
        "ids": list(device["ids"]),
        "name": device["name"],
        "measured": merged,
    }
    nodes = {name: value for name, value in content["nodes"].items() if name != (node or "")}
    nodes[node or ""] = [*entries, entry]  # last: the longest untouched node is the first to go
    return {"schema": SCHEMA, "nodes": dict(list(nodes.items())[-MAX_NODES:])}


def is_worse(figure: MeasuredDoc, older: MeasuredDoc | None) -> bool:
    """Return whether a figure is disturbed while the one that is kept is clean and still counts."""
    if older is None or not figure["disturbed"] or older["disturbed"]:
        return False
    return older["driver"] == figure["driver"]


def key_of(figure: MeasuredDoc) -> tuple[str | None, ...]:
    """Return what two figures of one kind share: a newer version of a library replaces its own."""
    library = (figure["by"] or "").partition(" ")[0]
    return figure["figure"], figure["kind"], figure["dtype"], figure.get("accumulate"), library


def text(content: Stored) -> bytes:
    """Return the bytes of the file; raises `Unusable` where they are more than it may have."""
    raw = f"{write(content)}\n".encode()
    if len(raw) > FILE_LIMIT:
        raise Unusable(f"it would be longer than {FILE_LIMIT} bytes; remove the file")
    return raw
