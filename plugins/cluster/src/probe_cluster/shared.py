"""What all three share: the error, figures of documents and of people, and files of reports."""

from __future__ import annotations

import os
from collections.abc import Mapping

from probe_core.commands import CommandError, parse_json
from probe_core.model.verdict import native_runtime, usable_here
from probe_core.wording import TEXT_LIMIT, clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from probe_core.model.document import Json
    from probe_core.model.verdict import Answer


class ClusterError(CommandError, ValueError):
    """The one error of this package: a sentence that names the node or figure, and what would do.

    `node` is the id of the node it is about, where it is about one.
    """

    def __init__(self, message: str, *, node: str | None = None) -> None:
        super().__init__(message)
        self.node = node


# Read one figure of a foreign report: what is no sane number is unknown, whatever it is.

# An exbibyte, sixteen thousand times the largest memory that a report may have (64 TiB).
_MOST_BYTES = 1 << 60


def amount(value: Any) -> int | None:
    """Return bytes, or None for what cannot be a memory's size."""
    if type(value) not in (int, float) or not 0 <= value <= _MOST_BYTES:
        return None
    return int(value)


def rate(value: Any) -> float | None:
    """Return a positive, finite number, or None."""
    if type(value) not in (int, float) or not 0 < value < 1e18:
        return None
    return float(value)


def text(value: Any) -> str | None:
    """Return non-empty text, or None."""
    return value if isinstance(value, str) and value else None


def plain(value: Any, most: int = TEXT_LIMIT) -> str | None:
    """Return non-empty text that is fit for one line of a terminal, or None."""
    return clean_text(value, most) if isinstance(value, str) and value else None


def sentence(value: Any) -> str | None:
    """Return a sentence of a document or of an engine, or None."""
    return plain(value, 600)


def table(value: Json) -> Mapping[str, Json]:
    """Return a table of JSON, an empty one where there is none."""
    return value if isinstance(value, dict) else {}


def tables(value: Json) -> list[Mapping[str, Json]]:
    """Return a list of tables of JSON, an empty one where there is no list."""
    return [table(entry) for entry in value] if isinstance(value, list) else []


def verdict(device: Mapping[str, Json]) -> Answer:
    """Return whether the process that made a report may use a device of it, whatever its shape."""
    readiness = table(device.get("readiness"))
    state = plain(readiness.get("state")) or "unknown"
    # Of a ready device no step is asked for, and most devices of a cluster are ready.
    steps = tables(readiness.get("steps")) if state != "ready" else []
    document: Any = {
        "vendor": plain(device.get("vendor")),
        "readiness": {
            "state": state,
            "broken": plain(readiness.get("broken")),
            "steps": [_step(step) for step in steps],
        },
    }
    runtime = native_runtime(document)
    views = table(device.get("visibility"))
    document["visibility"] = {runtime: _view(table(views[runtime]))} if runtime in views else {}
    return usable_here(document)


def _view(view: Mapping[str, Json]) -> Mapping[str, Json]:
    visible = view.get("visible")
    if visible is True:  # no reason is asked for
        return {"visible": True}
    texts = {name: plain(view.get(name)) for name in ("step", "code", "reason")}
    return {"visible": visible if isinstance(visible, bool) else None, **texts}


def _step(step: Mapping[str, Json]) -> Mapping[str, Json]:
    names = ("step", "status", "evidence", "code", "severity")
    return {name: plain(step.get(name)) for name in names}


_SUFFIXES = {"m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SUFFIXES |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", 1)}


def quantity(text: str) -> float | None:
    """Return the number of a Kubernetes quantity: ``3920m``, ``64``, ``527956Ki``; else None."""
    number = text.rstrip("KMGTPikm")
    scale = _SUFFIXES.get(text[len(number) :])
    if scale is None or not number.replace(".", "", 1).isdecimal() or len(number) > 30:
        return None
    return float(number) * scale


# Figures as people write them.

_SIZES = {"gb/s": 1e9, "mb/s": 1e6, "gbit/s": 1e9 / 8, "mbit/s": 1e6 / 8}
_AMOUNTS = {"gib": 1 << 30, "mib": 1 << 20, "tib": 1 << 40, "gb": 1e9, "mb": 1e6, "tb": 1e12}


def parse_speed(text: str) -> float | None:
    """Return bytes per second of ``10GB/s``, ``400 Mbit/s``; None for anything else."""
    return figure_of(text.strip().lower().replace(" ", ""), _SIZES)


def parse_bytes(text: str) -> int | None:
    """Return the bytes of ``96GiB`` or ``16 GB``; None for anything else."""
    value = figure_of(text.strip().lower().replace(" ", ""), _AMOUNTS)
    return None if value is None else int(value)


def figure_of(text: str, units: Mapping[str, float]) -> float | None:
    """Return a figure with one of `units`, such as ``50us``; None for anything else."""
    for unit, scale in units.items():
        if text.endswith(unit):
            try:
                value = float(text.removesuffix(unit)) * scale
            except ValueError:
                return None
            return value if 0 < value < 1e15 else None
    return None


# Figures of links as people read them.


def bits(rate: float) -> str:
    """Return bytes per second as people buy them: 9.41 Gbit/s."""
    value = rate * 8
    for unit, scale in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if value >= scale:
            # 999.6 would be 1e+03 with three digits.
            digits = ".3g" if value < 999.5 * scale else ".0f"
            return f"{value / scale:{digits}} {unit}"
    return f"{value:.0f} bit/s"


def milliseconds(seconds: float) -> str:
    """Return seconds as milliseconds: 0.214 ms."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds * 1e3:.0f} ms"


# Names of nodes in sentences.

_NAMED = 5
"""Nodes that a sentence names: the document has all of them."""


def names(ids: Sequence[str]) -> str:
    """Return ``a, b and 3 more nodes``, for a sentence."""
    if len(ids) <= _NAMED:
        return ", ".join(ids)
    return f"{', '.join(ids[: _NAMED - 1])} and {counted(len(ids) - _NAMED + 1, 'more node')}"


def sharing(texts: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    """Return the ids that share each text, in their order, without those that have none."""
    ids: dict[str, list[str]] = {}
    for identity, text in texts:
        if text:
            ids.setdefault(text, []).append(identity)
    return ids


# Files of reports: which one is a saved cluster, and what its node is called.

_MOST_DOCUMENT = 512 << 20
"""Of a document: some 6,000 nodes of eight GPUs, 80 kB each."""

_HEAD_BYTES = 4096
"""Of the file's head: schema, collector and the sentence of a problem come before the nodes."""


def is_cluster_file(path: str) -> bool:
    """Return whether a file is a document of `probe cluster --json`, by its first keys."""
    if not os.path.isfile(path):  # a pipe could not be read a second time
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return b'"collector"' in head and b'"probe_core"' not in head.partition(b'"nodes"')[0]


def split_id(argument: str) -> tuple[str, str]:
    """Return the node's id and the path of ``desk=FILE`` or FILE."""
    id_, equals, path = argument.partition("=")
    # A path with a folder, or a file whose own name has "=" in it, gives no id.
    if equals and id_ and path and "/" not in id_ and not os.path.exists(argument):
        return id_, path
    return os.path.basename(argument).rpartition(".")[0] or os.path.basename(argument), argument


def read_document(path: str) -> Mapping[str, Json]:
    """Return a saved document, its parts unchecked. Raises `ClusterError` for what is none."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_DOCUMENT + 1)
        if len(text) > _MOST_DOCUMENT:
            raise ValueError(f"it is larger than {_MOST_DOCUMENT >> 20} MiB")
        document = parse_json(text)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ClusterError(f"{path} is no document of `probe cluster`: {error}") from None
    schema = table(document).get("schema")
    if schema != 1:
        raise ClusterError(f"{path} has schema {clean_text(str(schema), 40)}; this version reads 1")
    return table(document)
