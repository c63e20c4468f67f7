"""Files of reports: which one is a saved cluster, and what its node is called."""

from __future__ import annotations

import os

from probe_cluster.errors import ClusterError
from probe_core.commands import parse_json
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.model.document import Json

_MOST_BYTES = 512 << 20
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
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
        document = parse_json(text)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ClusterError(f"{path} is no document of `probe cluster`: {error}") from None
    schema = table(document).get("schema")
    if schema != 1:
        raise ClusterError(f"{path} has schema {clean_text(str(schema), 40)}; this version reads 1")
    return table(document)


def table(value: Json) -> Mapping[str, Json]:
    """Return a table of JSON, an empty one where there is none."""
    return value if isinstance(value, dict) else {}
