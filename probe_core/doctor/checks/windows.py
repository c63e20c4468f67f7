"""Windows: what only its event log has."""

from __future__ import annotations

from probe_core.doctor.check import check, not_applicable, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request, ResultDoc

__all__ = ["CHECKS"]

_COMMAND = "Get-WinEvent -FilterHashtable @{LogName='System'; Id=4101,153} -MaxEvents 5"


@check("tdr", step="responding", needs=("the event log",))
def resets(request: Request) -> ResultDoc:
    """Whether Windows had to reset the display driver."""
    gpus = [device for device in request.report["devices"] if device["kind"] == "gpu"]
    if request.machine.os != "windows" or not gpus:
        return not_applicable("this is not Windows with a GPU")
    return unknown("the event log is not read", _COMMAND)


CHECKS = [resets]
