"""What probers that succeeded printed, where the setting `verbose` keeps it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_core.model.document import OutcomeDoc

__all__ = ["printed_lines"]


def printed_lines(outcomes: Iterable[OutcomeDoc]) -> Iterator[str]:
    """Yield the output of each run that succeeded, under the prober's name.

    That of a run that failed has its place beside the failure, and is not repeated.
    """
    from probe_core.model.statuses import FAILURES

    for outcome in outcomes:
        output = outcome.get("stderr")
        if output and outcome["status"] not in FAILURES and not outcome.get("phase"):
            yield f"{outcome['prober']} printed:"
            yield from (f"  | {line}" for line in output)
