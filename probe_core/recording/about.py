"""Checks what a recording holds beside the machine's files: system, environment and origin."""

from __future__ import annotations

from probe_core.recording.answers import check_access, check_answers
from probe_core.recording.architecture import UNKNOWN, architecture, is_word
from probe_core.recording.errors import BadRecording, shown
from probe_core.recording.limits import MAX_ABOUT, MAX_ENVIRON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.recording.architecture import Read

__all__ = ["About"]

MAX_ORIGIN = 1024
"""Characters of an origin: a sentence or two, shown on one line."""


class About:
    """The checked `os`, `arch`, `environ`, `origin`, `access` and `answers`.

    Other keys are the author's own.

    `read` reads the machine's own files: what they say stands in for an `arch` that is not given,
    which else is ``unknown``.
    """

    __slots__ = ("access", "answers", "arch", "environ", "origin", "os")

    def __init__(self, table: Mapping[str, object], read: Read | None = None) -> None:
        self.os = _name("os", table.get("os", "linux"))
        arch = table.get("arch")
        self.arch = _name("arch", arch) if arch is not None else _of_files(read)
        self.environ = _environ(table.get("environ", {}))
        self.origin = _origin(table.get("origin"))
        self.access = check_access(table.get("access", {}))
        self.answers = check_answers(table.get("answers", {}))


def _name(key: str, value: object) -> str:
    if isinstance(value, str) and is_word(value):
        return value
    raise BadRecording(f"its {key} {shown(value)} is not one word, such as linux or x86_64")


def _of_files(read: Read | None) -> str:
    return architecture(read) if read else UNKNOWN


def _environ(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MAX_ENVIRON:
        raise BadRecording(f"its environ is no table of at most {MAX_ENVIRON} variables")
    size = 0
    for name, text in value.items():
        if not (isinstance(name, str) and isinstance(text, str)) or not name or "=" in name:
            raise BadRecording(f"its environ holds {shown(name)}, which is no variable with a text")
        try:
            raw = f"{name}={text}".encode()
        except UnicodeEncodeError:
            raise BadRecording(f"the variable {shown(name)} cannot be written in UTF-8") from None
        size += len(raw)
        if b"\0" in raw or size > MAX_ABOUT:
            raise BadRecording(
                f"the variable {shown(name)} holds a NUL, or its environ is too long"
            )
    return dict(value)


def _origin(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith(("recorded", "invented")):
        raise BadRecording("its origin must begin with 'recorded' or 'invented'")
    if len(value) > MAX_ORIGIN:
        raise BadRecording(f"its origin is longer than {MAX_ORIGIN} characters")
    return value
