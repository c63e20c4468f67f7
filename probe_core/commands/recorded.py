"""The recorded machine that `--machine` names, for the time of a command."""

from __future__ import annotations

from contextlib import contextmanager

from probe_core.commands.context import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine


@contextmanager
def opened(path: str) -> Iterator[Machine]:
    """Yield the machine; raises `CommandError` when it cannot be opened."""
    from probe_core.recording.opening import open_machine
    from probe_core.recording.paths import BadRecording

    _check_answers(path)
    is_open = False
    try:
        with open_machine(path) as machine:
            is_open = True
            yield machine
    except (BadRecording, OSError) as error:
        if is_open:  # an error of the command itself
            raise
        raise CommandError(_problem(path, error)) from None


def _problem(path: str, error: Exception) -> str:
    if not isinstance(error, OSError):
        return f"--machine: {error}"
    # An error about another path is about a file inside the recording.
    missing = isinstance(error, FileNotFoundError) and error.filename == path
    if missing and not path:
        return "--machine: the path is empty; name a recording or a folder"
    problem = "no such file or folder" if missing else error.strerror or str(error)
    return f"--machine {path}: {problem}"


def _check_answers(path: str) -> None:
    """Refuse a path on a dead server, where a look at it would not return."""
    from probe_core.pipeline.settings import on_server

    if on_server(path):
        from probe_core.isolation.look import LOOK_S, answers

        if not answers(path):
            problem = f"its server did not answer within {LOOK_S:g} s"
            raise CommandError(f"--machine {path}: {problem}")
