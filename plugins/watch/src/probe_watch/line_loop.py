"""The loop of `probe watch` without a screen: rounds come in, lines go out.

It runs in the main thread and imports no event loop, whose 30 ms a script would wait for.
"""

from __future__ import annotations

from probe_watch.signals import ENDINGS, Ended, Signals, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from probe_core.sampling import Rounds
    from probe_watch.intake import Intake
    from probe_watch.outputs import Lines

__all__ = ["run_lines"]


def run_lines(samples: Callable[[], Rounds], intake: Intake, lines: Lines) -> int:
    """Run until the last round or a signal; returns the exit status.

    Raises `KeyboardInterrupt` for Ctrl-C and `OSError` for an output that takes nothing any more,
    when all that was started has ended.
    """
    ended = 0

    def end(number: int) -> None:
        nonlocal ended
        # A second signal must not strike while the processes are ended because of the first.
        if not ended:
            ended = number
            raise Ended(number)

    try:
        with Signals(dict.fromkeys(ENDINGS, end)), intake, samples() as rounds:
            for current in rounds:
                lines.take(intake.take(current))
    except Ended as signal:
        return status_of(signal.number)
    return 0
