"""The check behind the first line of `probe doctor`: what changed since a blocked device worked."""

from __future__ import annotations

from time import time

from probe_changes.since import entries_until_now, history, sentence
from probe_changes.store import Store
from probe_core.commands import CommandError
from probe_core.model.findings import NO_FIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.commands import Request

CODE = "changed-since"


class SinceCheck:
    """The check; see `probe_core.doctor.check.Check`. Its finding is a hint, never a fault."""

    code = CODE
    step = ""
    needs = ("report", "XDG_STATE_HOME/probe-core/journal.jsonl")
    summary = "Whether the journal shows what changed since a blocked device worked."

    def run(self, request: Request) -> dict[str, Any]:
        """Return the likeliest cause as a hint."""
        if not request.machine.live:
            return _none("a journal is of this computer, not of a recording")
        try:
            store = Store.of_user(request.machine.environ)
            return hint(store, request, time())
        except FileNotFoundError:
            return _none("no journal is kept: `probe journal` begins one")
        except (OSError, CommandError) as error:
            return _none(str(error))


def hint(store: Store, request: Request, now: float) -> dict[str, Any]:
    """Return the likeliest cause that a journal has; raises `OSError` and `CommandError`."""
    entries, journal = entries_until_now(store, request, now)
    document = history(entries, journal, device=request.device)
    if document["device"] is None or not document["changes"]:
        return _none("the journal has no change before a device stopped working")
    first, rest = document["changes"][0], len(document["changes"]) - 1
    more = f"; {rest} more: `probe since`" if rest else ""
    finding = {
        "code": CODE,
        "severity": "info",
        "what": sentence(first),
        "why": f"{document['device']} worked on {(document['worked'] or '')[:10]}{more}",
        "fix": NO_FIX,
        "device": document["device"],
        "evidence": first["fact"],
    }
    return {"status": "passed", "findings": [finding], "reason": None}


def _none(reason: str) -> dict[str, Any]:
    return {"status": "not_applicable", "findings": [], "reason": reason}


CHECKS = [SinceCheck()]
