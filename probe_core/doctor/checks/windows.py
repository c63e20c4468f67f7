"""Windows: what only its event log has.

The log is read through an interface of the system alone (wevtapi, PowerShell), and no program is
started to look: on Windows itself the command is named. Its output, kept in a recorded machine's
/recorded/events.txt, is judged.
"""

from __future__ import annotations

from probe_core.doctor.causes import of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.doctor.check import Request, ResultDoc

_RECORDED = "/recorded/events.txt"

# Event 153 is the disk driver's, too ("the IO operation was retried"): the provider tells.
_FILTER = "*[System[EventID=4101 or (Provider[@Name='nvlddmkm'] and EventID=153)]]"
_COMMAND = (
    f'Get-WinEvent -LogName System -MaxEvents 9 -FilterXPath "{_FILTER}"'
    " | Format-List TimeCreated, ProviderName, Id"
)
_RESETS = {("display", "4101"), ("nvlddmkm", "153")}
_SEVERAL = 2
"""One reset in the whole log may be a program's, or an update of the driver. A judgement."""


@check("tdr", step="responding", needs=("the event log", _RECORDED))
def resets(request: Request) -> ResultDoc:
    """Whether Windows had to reset the display driver."""
    gpus = [device for device in request.report["devices"] if device["kind"] == "gpu"]
    if request.machine.os != "windows" or not gpus:
        return not_applicable("this is not Windows with a GPU")
    if request.machine.live:
        return unknown("only the event log has it, and no program is started to read it", _COMMAND)
    text = request.machine.read(_RECORDED)
    if text is None:
        return unknown(
            f"the recording has no event log; {_RECORDED} may hold what the command prints"
        )
    times = [event.get("timecreated", "") for event in _events(text) if _is_reset(event)]
    if len(times) < _SEVERAL:
        return passed()
    evidence = f"{len(times)} resets in the event log, the last {times[0][:40]}"
    finding = of_cause(request, "tdr", evidence, gpus)
    finding["severity"] = "warning"
    return failed(finding)


def _events(text: str) -> Iterator[dict[str, str]]:
    """Yield the blocks of "Name : value" that Format-List prints, the latest first."""
    event: dict[str, str] = {}
    for line in [*text.splitlines(), ""]:
        name, colon, value = line.partition(":")
        if colon:
            event[name.strip().lower()] = value.strip()
        elif event:
            yield event
            event = {}


def _is_reset(event: dict[str, str]) -> bool:
    return (event.get("providername", "").lower(), event.get("id", "")) in _RESETS


CHECKS = [resets]
