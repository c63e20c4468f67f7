"""Replaces a file as one step, so that no collector ever reads half of it.

The temporary file lies in the same folder under a name that neither collector takes: nfd-worker
skips a leading dot, node_exporter takes whatever ends in ``.prom``, a leading dot or not.
"""

from __future__ import annotations

import os

from probe_export.errors import ExportError

__all__ = ["replace"]

_MODE = 0o644
"""node_exporter runs as a user of its own; `mkstemp` alone would make 0600."""


def replace(path: str, text: str) -> None:
    """Write `text` to `path`; raises `ExportError`. What was there stays until the new is whole."""
    from tempfile import mkstemp

    folder, name = os.path.split(os.path.abspath(path))
    temporary = None
    try:
        handle, temporary = mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _MODE)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            _remove(temporary)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
