"""From a request to a `Lease`: leases devices, and says how to confine a process to them."""

from __future__ import annotations

import os

from probe_core.leasing import Lease
from probe_core.leasing.keys import OUTER_LEASE, outer_lease_value
from probe_core.leasing.plan import obtain
from probe_core.leasing.records import MARK, marks
from probe_core.selection.candidates import candidates
from probe_core.selection.environment import confine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.leasing.memory import Measure
    from probe_core.leasing.plan import Request
    from probe_core.model.document import DeviceDoc, ReportDoc


def hand_out(
    document: ReportDoc,
    request: Request,
    environ: Mapping[str, str],
    *,
    wait: float | None = 0,
    command: Sequence[str] = (),
    measure: Measure | None = None,
    versions: Mapping[str, str] | None = None,
    style: str,
) -> Lease:
    """Lease what `request` asks for; see `lease`. `document` is a complete report, not checked."""
    mark = os.urandom(8).hex()
    leased, occupied, depths = obtain(
        document, request, environ, wait=wait, command=command, measure=measure, mark=mark
    )

    def changes_for(devices: Sequence[DeviceDoc]) -> dict[str, str | None]:
        changes = confine(
            document, devices, environ, versions=versions, style=style, command=command
        )
        changes[OUTER_LEASE] = outer_lease_value(environ if depths else {}, devices)
        changes[MARK] = marks(environ, depths, mark)
        return changes

    try:
        excluded = candidates(document, request.runtime).excluded() | occupied
        return Lease(leased, changes_for, environ, excluded)
    except BaseException:
        leased.release()
        raise
