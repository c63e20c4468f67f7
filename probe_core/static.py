"""Give a recorded report instead of probing: for hosts that may not run anything at start-up."""

from __future__ import annotations

import os

from probe_core.findings import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.findings import Finding

__all__ = ["load_static", "read_document"]

FILE_LIMIT = 16 << 20


def load_static(path: str) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return (the report's document, nothing), or (None, a finding that says why not)."""
    from probe_core.registry.trust import untrusted

    try:
        reason = untrusted([path]) if os.path.exists(path) else None
        if reason:
            raise ValueError(reason)
        return read_document(path), []
    except (OSError, ValueError, RecursionError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        what = f"the static report {path} cannot be used, so the node was probed"
        fix = "give a file that `probe --json` wrote"
        return None, [finding("static-unusable", what, why or "nested too deep", fix)]


def read_document(path: str) -> dict[str, Any]:
    """Return the document in a report file; raises `OSError` or `ValueError` with the reason."""
    import json

    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:
        raw = file.read(FILE_LIMIT + 1)
    if len(raw) > FILE_LIMIT:
        raise ValueError(f"longer than {FILE_LIMIT >> 20} MiB")
    document = json.loads(raw)
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise ValueError("it is no report of schema 1")
    devices = document.get("devices")
    if not isinstance(devices, list) or not devices:
        raise ValueError("it has no devices")
    if not all(isinstance(d, dict) and isinstance(d.get("id"), str) for d in devices):
        raise ValueError("a device in it has no id")
    return document
