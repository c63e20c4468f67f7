"""A recording as one readable JSON document: read with bounds, and written."""

from __future__ import annotations

import json
import re

from probe_core.recording.limits import MAX_NESTING, MAX_TABLES, BadRecording, shown
from probe_core.recording.paths import check_target
from probe_core.recording.recording import Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Json

__all__ = ["SCHEMA", "load_table", "parse", "write"]

SCHEMA = 1

# A string, or what is left of one at the end of the text: each start is tried once, so the time
# is linear whatever the text is. Then all that is no bracket.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]+")


def parse(raw: bytes) -> Recording:
    """Return the recording that a JSON document holds; raises `BadRecording`."""
    data = load_table(raw)
    if data.get("schema") != SCHEMA:
        raise BadRecording(f"it is no recording of schema {SCHEMA}")
    files, links = data.get("files"), data.get("links", {})
    if not isinstance(files, dict) or not isinstance(links, dict):
        raise BadRecording("its 'files' or 'links' is no table")
    if data.get("origin") is None:
        raise BadRecording("it has no origin, which begins with 'recorded' or 'invented'")
    return Recording(
        {path: _bytes(path, value) for path, value in files.items()},
        {path: check_target(path, target) for path, target in links.items()},
        data,
    )


def load_table(raw: bytes) -> dict[str, Json]:
    """Return the table in a JSON text, nested at most 32 levels deep; raises `BadRecording`."""
    try:
        text = raw.decode("utf-8")
        # Before `loads`, which may recurse in C as deep as the host's recursion limit allows.
        _check_nesting(text)
        data = json.loads(text, object_pairs_hook=_without_duplicates)
    except BadRecording:
        raise
    except (ValueError, RecursionError) as error:
        raise BadRecording(f"it is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadRecording("it is JSON, but no table")
    return data


def _check_nesting(text: str) -> None:
    """Bound depth and number before the parser sees them: it recurses in C where a host allows it,
    and makes 64 bytes of each empty list.
    """
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    if len(brackets) > 2 * MAX_TABLES:
        raise BadRecording(f"it has more than {MAX_TABLES} lists and tables")
    for _ in range(MAX_NESTING):
        if not brackets:
            return
        brackets = brackets.replace("[]", "").replace("{}", "")
    if brackets:
        raise BadRecording(
            f"it is nested deeper than {MAX_NESTING} levels, or its brackets do not match"
        )


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    table: dict[str, Json] = {}
    for name, value in pairs:
        # JSON parsers differ on which of two equal keys counts; a reviewer reads one of them.
        if name in table:
            raise BadRecording(f"{shown(name)} is there twice")
        table[name] = value
    return table


def _bytes(path: str, value: object) -> bytes:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(f"{line}\n" for line in value)
    if not isinstance(value, str):
        raise BadRecording(f"{shown(path)} is neither text nor a list of lines")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise BadRecording(f"the text of {shown(path)} cannot be written in UTF-8") from None


def write(recording: Recording) -> str:
    """Return the JSON document of a recording, a file's lines apart so that a person can read it.

    Bytes that are not UTF-8 become replacement characters, as they do when a machine reads them.
    """
    files = {path: _text(content) for path, content in sorted(recording.files.items())}
    data = {"schema": SCHEMA, **recording.about(), "files": files}
    data["links"] = dict(sorted(recording.links.items()))
    if recording.answers:
        data["answers"] = recording.answers
    return json.dumps(data, indent=1) + "\n"


def _text(content: bytes) -> str | list[str]:
    text = content.decode("utf-8", "replace")
    # A list of lines loses the difference to a file whose last line has no end.
    if text.endswith("\n") and text.count("\n") > 1:
        return text[:-1].split("\n")
    return text
