"""Hands devices out: exclusive or shared leases that the kernel ends with their owner.

::

    from probe_core.leasing import lease

    with lease(2, memory="20GiB", wait=60) as held:
        subprocess.run(command, env=held.environ)
"""

from __future__ import annotations

import os

from probe_core.leasing.errors import LeaseError
from probe_core.selection.errors import SelectionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from probe_core.leasing.acquire import Leased
    from probe_core.model import Report

__all__ = ["Lease", "LeaseError", "SelectionError", "lease"]


class Lease:
    """Devices leased by this process until `release`, the end of the ``with``, or its own end.

    `devices`: the devices, as in the report, in the runtime's order. `changes`: what confines a
    process to them (None: to be unset); `environ`: a whole environment with the changes applied.
    `excluded`: ids of devices that this process cannot use, whatever the variables are, with why.
    """

    __slots__ = ("_leased", "changes", "devices", "environ", "excluded")

    def __init__(
        self,
        leased: Leased,
        changes: Mapping[str, str | None],
        environ: Mapping[str, str],
        excluded: Mapping[str, str] | None = None,
    ) -> None:
        self._leased = leased
        self.devices = list(leased.devices)
        self.changes = dict(changes)
        self.environ = changed(environ, changes)
        self.excluded = dict(excluded or {})

    @property
    def ids(self) -> list[str]:
        """Ids of the devices."""
        return [device["id"] for device in self.devices]

    def release(self) -> None:
        """Give the devices back. Can be called again."""
        self._leased.release()

    def keep_on_exec(self) -> None:
        """Let the lease outlive ``os.execve`` in this process; it then ends with the command."""
        self._leased.keep_on_exec()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Lease({self.ids!r})"


def changed(environ: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return a copy of an environment with variables set, or for None unset."""
    result = {name: value for name, value in environ.items() if changes.get(name, "") is not None}
    return result | {name: value for name, value in changes.items() if value is not None}


def lease(
    count: int | None = None,
    wanted: str | None = None,
    *,
    index: int | None = None,
    memory: str | int | None = None,
    share: bool = False,
    wait: float | bool = False,
    runtime: str | None = None,
    report: Report | Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
    measure: Callable[[], Report | Mapping[str, Any]] | None = None,
    versions: Mapping[str, str] | None = None,
) -> Lease:
    """Lease devices that nobody else leases, and say how to confine a process to them.

    `count` devices (1 when nothing else is said), or those that `wanted` names: numbers, UUIDs,
    ids as `select` reads them, or with `index` one group of a layout such as ``4x2``. Each must
    have `memory` (bytes or ``20GiB``) free. With `share`, others that share may use them too.
    `wait`: False to fail at once, True to wait for ever, or seconds. `runtime` is whose numbers
    count (``cuda``). `report` and `environ` are those of this process unless given; what `environ`
    hides is never handed out. `command` is shown to others. After a wait for devices with `memory`,
    `measure` is called for a fresh report, once a second until they have it; unless given it
    probes again where `report` was not given. `versions` are versions that change what to set
    (``{"tinygrad": "0.12.0"}``). This process's own environment is not changed.

    Raises `SelectionError` (code ``busy`` when others lease the devices) and `LeaseError`;
    `TypeError` or `ValueError` for a `report` that is none.
    """
    if os.name != "posix":
        raise LeaseError("leases need the file locks of Linux or macOS", variable=None)
    from probe_core.leasing.keys import OUTER_LEASE, outer_lease_value
    from probe_core.leasing.plan import Request, obtain
    from probe_core.selection.candidates import candidates
    from probe_core.selection.document import report_document
    from probe_core.selection.environment import confine

    if report is None:
        from probe_core.probing import probe

        report = probe()
        measure = measure or (lambda: probe(refresh=True))
    own = dict(os.environ if environ is None else environ)
    document = report_document(report)
    request = Request(count, wanted, index=index, memory=memory, share=share, runtime=runtime)
    seconds = None if wait is True else float(wait)
    leased = obtain(document, request, own, wait=seconds, command=command, measure=measure)
    changes = confine(document, leased.devices, own, versions=versions)
    changes[OUTER_LEASE] = outer_lease_value(own, leased.devices)
    return Lease(leased, changes, own, candidates(document, runtime).excluded())
