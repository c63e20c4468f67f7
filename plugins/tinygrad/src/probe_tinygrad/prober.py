"""Reports, when asked to open devices, which backend tinygrad would really execute on."""

from __future__ import annotations

import os
import sys
from time import monotonic

from probe_core.api import Unavailable, hookimpl, not_applicable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_core.api import NotApplicable, Request, Sighting
    from probe_tinygrad.session import Answers

_MARGIN_S = 0.7
"""Of the deadline, for ending the process (0.5 s at most) and sending the answer."""
_LEAST_S = 0.2
"""Where imports have used the deadline up: enough to say that there was no answer in time."""


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[Sighting | dict[str, Any]]:
    """Answer with the devices that tinygrad's backends execute on, and findings about its choice.

    Opens devices and runs a kernel on each: only on the live machine and only when asked.
    """
    if not request.machine.live:
        return not_applicable("a recorded machine cannot execute anything")
    if not request.active:
        return not_applicable("tinygrad opens devices to find them: ask with --active")
    if getattr(sys, "frozen", False):
        raise Unavailable(
            "tinygrad needs a Python process of its own, which a frozen application cannot start",
            code="frozen",
            fix="probe with an installed Python",
        )
    return _answer(request, monotonic())


def _answer(request: Request, start: float) -> Iterator[Sighting | dict[str, Any]]:
    from probe_tinygrad import report

    answers = _ask(request, start)
    if answers.about is None:
        raise Unavailable(
            f"tinygrad could not be imported: {answers.problem}",
            code="import-failed",
            fix="run `python -c 'import tinygrad'` with the same Python",
        )
    yield from report.lines(answers, answers.about, request)


def _ask(request: Request, start: float) -> Answers:
    """Ask tinygrad, with all that it stores in a folder that is removed afterwards."""
    import tempfile

    from probe_tinygrad import choice, session

    environ = request.machine.environ
    targets_style = _reads_targets()
    try:
        dev, refused = choice.safe_targets(choice.parse_targets(environ.get("DEV", "")))
    except ValueError:
        dev, refused = choice.safe_targets([])
    try:
        folder = tempfile.TemporaryDirectory(prefix="probe-tinygrad-", ignore_cleanup_errors=True)
    except OSError as error:
        raise Unavailable(
            f"there is no folder for tinygrad's temporary files: {error}",
            code="no-temporary-folder",
            fix="set TMPDIR to a folder that this user may write to",
        ) from None
    with folder as path:
        safe = session.child_environ(environ, path, dev if targets_style else None)
        seconds = max(_LEAST_S, request.deadline_s - _MARGIN_S - (monotonic() - start))
        return session.ask(safe, choice.named(environ), refused if targets_style else {}, seconds)


def _reads_targets() -> bool:
    """Return whether the installed tinygrad reads targets in ``DEV`` (since 0.13).

    Read from its text, because the variables must be right before it is imported, and older
    versions take no version number from anywhere else in a checkout.
    """
    for folder in sys.path:
        try:
            with open(os.path.join(folder, "tinygrad", "helpers.py"), "rb") as file:
                return b"class Target" in file.read()
        except OSError:
            continue
    return True
