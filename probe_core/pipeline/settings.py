"""Settings and the files that they name: neither a dead server nor much data hangs the host."""

from __future__ import annotations

import os

from probe_core.config import load_config
from probe_core.machine import Untrusted, may_hang, read_trusted
from probe_core.model.findings import finding
from probe_core.registry import CHIPS
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from probe_chipdb import Database
    from probe_chipdb.database import Added
    from probe_core.config import Config, IgnoredSetting
    from probe_core.isolation.run import Run
    from probe_core.model.document import FindingDoc


# Settings, and the files that they name, read where a dead server cannot hang the host.
#
# On a file system that a server answers for, stat(2) and read(2) may not return, and no signal
# ends
# them. There a child reads, under a deadline. Elsewhere the host reads, which costs it 0.1 ms.

DEADLINE_S = 2.0
"""Seconds that a child has for a file: an automounter takes one for the first look at a server, and
a configuration file and a static report together stay below a prober's own deadline."""

_READER = "probe_core.pipeline.file_reading"


def load_settings(
    arguments: Mapping[str, object],
    environ: Mapping[str, str],
    file: str | None = None,
    load: Callable[[str], object] = bool,
) -> tuple[Config, list[IgnoredSetting]]:
    """Return what `load_config` returns, and raise what it raises; never hangs over a file.

    `load` is called with the part of `gate` that a file needs.
    """

    def read(path: str, limit: int) -> bytes:
        load("settings")
        return read_named(path, limit)

    return load_config(arguments, environ, file, read=read, is_file=is_file)


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


# Open the chip database; read much data of sites and vendors in a process of its own.
#
# TOML takes a second and more for each MiB that it is read and checked. In the host that time is
# nobody's to end; a child has a deadline, and what it has not read then is left out and named.

HOST_BYTES = 32 << 10
"""Bytes of chip files that the host reads itself: they take 35 ms, about what a child does."""

CHIPS_S = 5.0
"""Seconds for reading more, where no setting says otherwise: as long as a prober has."""

_CHIPS_READER = "probe_core.pipeline.chip_reading"


class Chips:
    """The chip database, opened at most once in a probe.

    `mentioned` says whether a vendor's package may be installed, as `Found` has it. `wake_fd`
    is as `run_pipeline` has it.
    """

    __slots__ = ("_config", "_database", "_mentioned", "_wake_fd", "findings")

    def __init__(self, config: Config, mentioned: Mapping[str, bool], wake_fd: int) -> None:
        self._config = config
        self._mentioned = mentioned
        self._wake_fd = wake_fd
        self._database: Database | None = None
        self.findings: list[FindingDoc] = []

    def open(self) -> Database | None:
        """Return the database, or None with the reason among `findings`."""
        if self._database is None and not self.findings:
            from probe_core.resolve import open_chipdb  # no child waits for it

            extra = [_absolute(self._config.chipdb)] if self._config.chipdb else []
            packages = self._mentioned[CHIPS]
            added, refused, left_out = self._read_elsewhere(extra, packages)
            self._database, self.findings = open_chipdb(extra, packages, added, refused)
            self.findings += left_out
        return self._database

    def version(self) -> str | None:
        """Return the version of its data; None without a database."""
        database = self.open()
        return database.version if database is not None else None

    def _read_elsewhere(
        self, extra: Sequence[str], packages: bool
    ) -> tuple[Added | None, Mapping[str, str], list[FindingDoc]]:
        """Have a child read what is too much for the host, or could hang it.

        None when the host reads it itself. The mapping has the files that cannot be used, and why.
        """
        if not (extra or packages):
            return None, {}, []
        from probe_core.resolve.tables import refused_of, size_of_all, tables_of

        may_hang = any(map(on_server, extra))
        size = HOST_BYTES + 1 if may_hang else size_of_all(extra, packages, HOST_BYTES)
        if size <= HOST_BYTES:
            return None, {}, []
        run = _read(extra, packages, self._config.timeout or CHIPS_S, self._wake_fd)
        if not isinstance(run, str) and run.status == "ok":
            return tables_of(run.sightings), refused_of(run.sightings), []
        problem = run if isinstance(run, str) else f"reading them failed: {run.reason}"
        nothing: Added = ((), (), ())
        if may_hang:
            return nothing, dict.fromkeys(extra, f"a server answers for it, and {problem}"), []
        return nothing, {}, [_left_out(size, problem)]


def _absolute(path: str) -> str:
    """Return the path by which a child finds the file, too."""
    try:
        return os.path.abspath(path)
    except OSError:  # the working directory was deleted
        return path


def _left_out(size: int, reason: str) -> FindingDoc:
    return finding(
        "budget-exceeded",
        f"chip files of more than {size - 1:,} bytes were left out",
        reason,
        "ship fewer chips, or raise the deadline (PROBE_TIMEOUT=30)",
        setting="timeout",
        evidence=reason,
    )


def _read(extra: Sequence[str], packages: bool, deadline_s: float, wake_fd: int) -> Run | str:
    """Return the run of a child that reads everything, or why there can be none."""
    from probe_core.isolation.launch import cannot_start, run_probers
    from probe_core.machine import Machine
    from probe_core.registry import locate
    from probe_core.registry.prober import Prober

    if problem := cannot_start():
        return problem
    prober = Prober("chip-files", _CHIPS_READER, "probe-core")
    prober.deadline_s = deadline_s
    prober.needs_site = locate("probe_chipdb") is None
    order = {"files": list(extra), "packages": packages}
    (run,) = run_probers([prober], Machine(environ={}), [order], wake_fd=wake_fd)
    return run
