"""Open the chip database; read much data of sites and vendors in a process of its own.

TOML takes a second and more for each MiB that it is read and checked. In the host that time is
nobody's to end; a child has a deadline, and what it has not read then is left out and named.
"""

from __future__ import annotations

import os

from probe_core.model.findings import finding
from probe_core.pipeline.settings import on_server
from probe_core.registry.entrypoints import CHIPS
from probe_core.resolve import open_chipdb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_chipdb import Database
    from probe_chipdb.database import Added
    from probe_core.config import Config
    from probe_core.isolation.run import Run
    from probe_core.model.document import FindingDoc

__all__ = ["HOST_BYTES", "Chips"]

HOST_BYTES = 32 << 10
"""Bytes of chip files that the host reads itself: they take 35 ms, about what a child does."""

DEADLINE_S = 5.0
"""Seconds for reading more, where no setting says otherwise: as long as a prober has."""

_READER = "probe_core.pipeline.chip_reading"


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
        run = _read(extra, packages, self._config.timeout or DEADLINE_S, self._wake_fd)
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
    from probe_core.registry.entrypoints import locate
    from probe_core.registry.prober import Prober

    if problem := cannot_start():
        return problem
    prober = Prober("chip-files", _READER, "probe-core")
    prober.deadline_s = deadline_s
    prober.needs_site = locate("probe_chipdb") is None
    order = {"files": list(extra), "packages": packages}
    (run,) = run_probers([prober], Machine(environ={}), [order], wake_fd=wake_fd)
    return run
