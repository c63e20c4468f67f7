"""Reading chip files of sites and vendors, much of them in a process of its own.

TOML takes a second and more for each MiB that it is read and checked. In the host that time is
nobody's to end; a child has a deadline, and what it has not read then is left out and named.
"""

from __future__ import annotations

from probe_core.api import Request, hookimpl
from probe_core.resolve.tables import read_in_pieces, refused_of, size_of_all, tables_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_chipdb.database import Added
    from probe_core.isolation.run import Run
    from probe_core.model.document import FindingDoc

__all__ = ["probe_devices", "read_elsewhere"]

HOST_BYTES = 32 << 10
"""Bytes of chip files that the host reads itself: they take 35 ms, about what a child does."""

CHIPS_S = 5.0
"""Seconds for reading more, where no setting says otherwise: as long as a prober has."""

_READER = "probe_core.pipeline.chip_reading"


def read_elsewhere(
    extra: Sequence[str], packages: bool, timeout: float | None, wake_fd: int
) -> tuple[Added | None, Mapping[str, str], list[FindingDoc]]:
    """Have a child read what is too much for the host, or could hang it.

    None when the host reads it itself. The mapping has the files that cannot be used, and why.
    """
    from probe_core.pipeline.settings import on_server

    may_hang = any(map(on_server, extra))
    size = HOST_BYTES + 1 if may_hang else size_of_all(extra, packages, HOST_BYTES)
    if size <= HOST_BYTES:
        return None, {}, []
    run = _run(extra, packages, timeout or CHIPS_S, wake_fd)
    if not isinstance(run, str) and run.status == "ok":
        return tables_of(run.sightings), refused_of(run.sightings), []
    problem = run if isinstance(run, str) else f"reading them failed: {run.reason}"
    nothing: Added = ((), (), ())
    if may_hang:
        return nothing, dict.fromkeys(extra, f"a server answers for it, and {problem}"), []
    return nothing, {}, [_unread(size, problem)]


def _unread(size: int, reason: str) -> FindingDoc:
    from probe_core.model.findings import finding

    return finding(
        "budget-exceeded",
        f"chip files of more than {size - 1:,} bytes were left out",
        reason,
        "ship fewer chips, or raise the deadline (PROBE_TIMEOUT=30)",
        setting="timeout",
        evidence=reason,
    )


def _run(extra: Sequence[str], packages: bool, deadline_s: float, wake_fd: int) -> Run | str:
    """Return the run of a child that reads everything, or why there can be none."""
    from probe_core.isolation.launch import cannot_start, run_probers
    from probe_core.machine import Machine
    from probe_core.registry import locate
    from probe_core.registry.prober import Prober

    if problem := cannot_start():
        return problem
    prober = Prober("chip-files", _READER, "probe-core")
    prober.deadline_s = deadline_s
    prober.needs_site = locate("probe_chipdb") is None
    order = {"files": list(extra), "packages": packages}
    (run,) = run_probers([prober], Machine(environ={}), [order], wake_fd=wake_fd)
    return run


# In the child. It is no prober: it has the hook because that is what a child runs.


@hookimpl
def probe_devices(request: Request) -> Iterator[dict[str, object]]:
    """Yield the tables of the files and packages that the host has ordered, in pieces."""
    (order,) = request.bus
    return read_in_pieces(order["files"], order["packages"])
