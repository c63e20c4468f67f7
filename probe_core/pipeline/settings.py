"""Settings, and the files that they name, read where a dead server cannot hang the host.

On a file system that a server answers for, stat(2) and read(2) may not return, and no signal ends
them. There a child reads, under a deadline. Elsewhere the host reads, which costs it 0.1 ms.
"""

from __future__ import annotations

import os

from probe_core.config import load_config
from probe_core.machine.files import Untrusted, read_trusted
from probe_core.machine.mounts import may_hang
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.config import Config, IgnoredSetting

__all__ = ["DEADLINE_S", "is_file", "load_settings", "on_server", "plugin_rules", "read_named"]

DEADLINE_S = 2.0
"""Seconds that a child has for a file: an automounter takes one for the first look at a server, and
a configuration file and a static report together stay below a prober's own deadline."""

_READER = "probe_core.pipeline.file_reading"


def load_settings(
    arguments: Mapping[str, object], environ: Mapping[str, str], file: str | None = None
) -> tuple[Config, list[IgnoredSetting]]:
    """Return what `load_config` returns, and raise what it raises; never hangs over a file."""
    return load_config(arguments, environ, file, read=read_named, is_file=is_file)


def plugin_rules(
    arguments: Mapping[str, object], environ: Mapping[str, str], file: str | None = None
) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the allowlist (None: all may run), and why nothing may run where it cannot be read.

    Takes what `load_settings` takes, and raises what it raises. A restriction fails closed: a file
    that cannot be used may be the one that restricts.
    """
    config, _ = load_settings(arguments, environ, file)
    if config.sealed is not None:
        return None, f"no plugin runs: {clean_text(config.sealed.reason, 400)}"
    return config.allow, None


def read_named(path: str, limit: int) -> bytes:
    """Return what `read_trusted` returns, wherever the file lies; `OSError` after the deadline."""
    return _read_elsewhere(path, limit) if on_server(path) else read_trusted(path, limit)


def on_server(path: str) -> bool:
    """Return whether looking at a path, relative ones among them, may hang."""
    try:
        return may_hang(os.path.abspath(path))
    except OSError:  # a relative path, and the working directory was deleted: nothing is there
        return False


def is_file(path: str) -> bool:
    """Return whether a file is there; raises `OSError` where its server does not answer."""
    if on_server(path):
        from probe_core.isolation.look import LOOK_S, answers

        if not answers(path):
            raise _silent(path, LOOK_S)
    return os.path.isfile(path)


def _silent(path: str, seconds: float) -> OSError:
    from errno import EIO

    return OSError(EIO, f"its server did not answer within {seconds:g} s", path)


def _read_elsewhere(path: str, limit: int) -> bytes:
    from errno import EIO

    from probe_core.isolation.launch import cannot_start, run_probers
    from probe_core.machine import Machine
    from probe_core.registry.entrypoints import locate
    from probe_core.registry.prober import Prober

    if problem := cannot_start():
        raise OSError(EIO, f"a server answers for it, and no process can read it: {problem}", path)
    prober = Prober("named-file", _READER, "probe-core")
    prober.deadline_s = DEADLINE_S
    prober.needs_site = locate("probe_core") is None
    order = {"path": os.path.abspath(path), "limit": limit}
    (run,) = run_probers([prober], Machine(environ={}), [order])
    if run.status == "timeout":
        raise _silent(path, DEADLINE_S)
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
