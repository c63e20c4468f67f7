"""Hands devices out: exclusive or shared leases, held as long as anything runs under them.

::

    with lease(2, memory="20GiB", wait=60) as held:
        subprocess.run(command, env=held.environ)

`LeaseError` is about the folder of leases; a busy device is a `SelectionError` of code ``busy``.

Who holds a device is what the kernel proves: locks on ranges of bytes of one file (`ranges`), which
`holders` finds in /proc. Records inform (`records`). A look takes nothing, so that there is no door
to wait at; the queue needs no files, claims no dates, a lease no scope of systemd's; which devices
do is `selection`'s question, and whether they work that of ``probe exec`` (`cli.trial`).
"""

from __future__ import annotations

import os
import sys

from probe_core.selection import SelectionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from probe_core.leasing.acquire import Leased
    from probe_core.model import Report
    from probe_core.model.document import DeviceDoc


VARIABLE = "PROBE_LEASES"
"""Names the folder for leases."""


class LeaseError(OSError):
    """Leases cannot be kept: no folder for them, or what lies there cannot be trusted.

    The message is for people. For code: `path` is the folder or file that the failure is about,
    `variable` the environment variable that names another folder (each None where there is none).
    """

    def __init__(
        self, message: str, *, path: str | None = None, variable: str | None = VARIABLE
    ) -> None:
        super().__init__(message)
        self.path = path
        self.variable = variable


def require_locks() -> None:
    """Raise `LeaseError` on a system without POSIX file locks: on Windows, and in WebAssembly.

    Called before the modules that need them are imported, for fcntl is missing there.
    """
    try:
        import fcntl  # noqa: F401  # what the locks are made with
    except ImportError:
        system = {"win32": "Windows"}.get(sys.platform, f"{sys.platform} without fcntl")
        remedy = "Set CUDA_VISIBLE_DEVICES yourself, or use WSL 2."
        message = f"leases need Linux or macOS: this is {system}. {remedy}"
        raise LeaseError(message, variable=None) from None


__all__ = ["Lease", "LeaseError", "SelectionError", "lease"]


class Lease:
    """Devices leased by this process until `release`, the end of the ``with``, or its own end.

    `devices`: the devices, as in the report, in the runtime's order. `changes`: what confines a
    process to them (None: to be unset); `environ`: a whole environment with the changes applied.
    `excluded`: ids of devices that this process cannot use, that processes outside any lease
    occupy, or in whose place a count got a processor's graphics or an NPU, with why.

    Processes that run with `environ` keep the devices also when this process is killed. `release`
    gives them back all the same, and in a forked child it ends nothing of its parent's.
    """

    def __init__(
        self,
        leased: Leased,
        confine: Callable[[Sequence[DeviceDoc]], Mapping[str, str | None]],
        environ: Mapping[str, str],
        excluded: Mapping[str, str] | None = None,
    ) -> None:
        self.kept = leased  # what holds the locks
        self._confine = confine
        self._own = environ
        self.devices = list(leased.devices)
        self.changes = dict(confine(leased.devices))
        self.environ = changed(environ, self.changes)
        self.excluded = dict(excluded or {})

    @property
    def ids(self) -> list[str]:
        """Ids of the devices."""
        return [device["id"] for device in self.devices]

    def environ_of(self, devices: Sequence[DeviceDoc]) -> dict[str, str]:
        """Return a whole environment for a process that uses only these of the devices."""
        return changed(self._own, self._confine(devices))

    def release(self) -> None:
        """Give the devices back. Can be called again."""
        self.kept.release()

    def keep_on_exec(self) -> None:
        """Let the lease outlive ``os.execve`` in this process; it then ends with the command."""
        self.kept.keep_on_exec()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *error: object) -> None:
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
    index: int | str | None = None,
    memory: str | int | None = None,
    share: bool = False,
    reserve: str | int | None = None,
    avoid_occupied: bool = False,
    wait: float | bool = False,
    runtime: str | None = None,
    style: str = "uuid",
    report: Report | Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
    measure: Callable[[], Report | Mapping[str, Any]] | None = None,
    versions: Mapping[str, str] | None = None,
) -> Lease:
    """Lease devices that nobody else leases, and say how to confine a process to them.

    `count` devices (1 when nothing else is said), or those that `wanted` names: numbers, UUIDs,
    ids as `select` reads them, or with `index` one group of a layout such as ``4x2``
    (``next``: the first that is free). Each must have `memory` (bytes or ``20GiB``) free. With
    `share`, others that share may use them too; with `reserve` (bytes or ``20GiB``) others may
    lease what remains of each device's memory. `avoid_occupied` passes over devices that
    processes outside any lease use, unless shared.
    `wait`: False to fail at once, True to wait for ever, or seconds. `runtime` is whose numbers
    count (``cuda``); `style` how devices are named to it: ``uuid``, ``index``, or ``auto``, which
    goes by what the program in `command` can read. `report` and `environ` are those of this
    process unless given; what `environ` hides is never handed out. `command` stands in the lease's
    record, while `probe leases` shows what the kernel has.
    After a wait for devices with `memory`, `measure` is called for a fresh report, once a second
    until they have it; unless given it probes again where `report` was not given. `versions` are
    versions that change what to set (``{"tinygrad": "0.12.0"}``). This process's own environment is
    not changed.

    Raises `SelectionError` (code ``busy`` when others lease the devices) and `LeaseError`;
    `TypeError` or `ValueError` for a `report` that is none.
    """
    require_locks()
    from probe_core.leasing.obtain import hand_out
    from probe_core.selection.candidates import report_document
    from probe_core.selection.request import Request

    if report is None:
        from probe_core.probing import probe

        report = probe()
        measure = measure or (lambda: probe(refresh=True))
    request = Request(
        count,
        wanted,
        index=index,
        memory=memory,
        share=share,
        reserve=reserve,
        avoids=avoid_occupied and not share,
        runtime=runtime,
    )
    return hand_out(
        report_document(report),
        request,
        dict(os.environ if environ is None else environ),
        wait=float("inf") if wait is True else float(wait),
        command=command,
        measure=measure,
        versions=versions,
        style=style,
    )
