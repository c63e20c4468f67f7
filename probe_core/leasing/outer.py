"""What an outer lease gave to this process, as far as it is proven and not only claimed.

The variable alone proves nothing: it is copied with an environment, and outlives the lease. Proof
is the lock's own file, open here since it was inherited, or the owner or its keeper among this
process's ancestors.
"""

from __future__ import annotations

import os

from probe_core.leasing.errors import LeaseError
from probe_core.leasing.keys import level_file, outer_lease
from probe_core.leasing.locks import try_take
from probe_core.leasing.owners import read_owners
from probe_core.leasing.processes import ancestors, pid_namespace, started
from probe_core.leasing.wire import open_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_core.leasing.folder import Folder
    from probe_core.leasing.owners import Owner

__all__ = ["proven"]


def proven(environ: Mapping[str, str], folder: Folder) -> dict[str, int]:
    """Return the devices that an outer lease surely gave to this process, with its depth."""
    claims = outer_lease(environ)
    return {name: depth for name, depth in claims.items() if _is_under(folder, name, depth)}


def _is_under(folder: Folder, name: str, depth: int) -> bool:
    try:
        handle = folder.open(level_file(name, depth - 1), create=False)
    except LeaseError:
        return False
    try:
        if try_take(handle):  # nobody's: the lease has ended
            return False
        return _inherited(handle) or _descends(read_owners(handle))
    finally:
        os.close(handle)


def _inherited(handle: int) -> bool:
    """Return whether this process has the same file open under another number."""
    own = os.fstat(handle)
    for number in open_files():
        try:
            status = os.fstat(number)
        except OSError:
            continue
        if number != handle and (status.st_dev, status.st_ino) == (own.st_dev, own.st_ino):
            return True
    return False


def _descends(owners: Iterable[Owner]) -> bool:
    namespace = pid_namespace()
    began: dict[int, int | None] = {}
    for owner in owners:
        if owner.pidns == namespace and namespace is not None:
            began |= {
                pid: begin
                for pid, begin in (
                    (owner.pid, owner.started),
                    (owner.keeper, owner.keeper_started),
                )
                if pid is not None
            }
    return any(pid in began and began[pid] == started(pid) for pid in ancestors() if began)
