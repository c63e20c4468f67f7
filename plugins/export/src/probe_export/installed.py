"""Find the formats that installed distributions bring, this one among them, without an import.

A format is an entry point of the group `probe_core.exporters.v1`: a function from a report's
document to text. `exporter.json` beside its module says what `probe export --list` shows. Only the
format that was asked for is imported.
"""

from __future__ import annotations

from probe_core.machine.trust import Trust
from probe_core.registry import is_module_name, scan
from probe_core.registry.extensions import (
    Extension,
    locate_extension,
    manifest_table,
    name_rejection,
    rejections,
    texts,
)
from probe_core.wording import clean_text, error_text
from probe_export import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from probe_core.model.document import ReportDoc
    from probe_core.registry import EntryPoint

    Exporter = Callable[[ReportDoc], str]
    """From a report's document to the text of the format."""

GROUP = "probe_core.exporters.v1"
_STEM = "probe_core.exporters.v"

BROUGHT_BY = {"exo": "probe-exo"}
"""Formats that another distribution of this project brings, to name it where it is missing."""

MAX_FORMATS = 64
"""Formats of all distributions together, as of commands: their manifests are read for --list."""

_KEYS = (("summary", 200), ("content_type", 100), ("expiry", 100))

Rules = tuple[tuple[str, ...] | None, str | None]
"""The allowlist of distributions, None for all; and why nothing may run, None where it may."""


class Format(Extension):
    """One format: whose it is, and what its manifest says. `problem` is why it cannot be used.

    `content_type` is that of HTTP; with one it can be served by `--listen`. `expiry` is the line
    that `--watch` puts first, with the time at which the text counts no more in place of {time}.
    """

    def __init__(self, entry: EntryPoint) -> None:
        super().__init__(entry)
        self.summary = ""
        self.content_type = ""
        self.expiry = ""
        self.problem: str | None = None


def format_names() -> list[str]:
    """Return the names that a person may write. Neither manifests nor rights are looked at."""
    names = {entry.name for entry in scan(None, _STEM)[0] if name_rejection(entry, GROUP) is None}
    return sorted(names | set(BROUGHT_BY))


def installed_formats(
    rules: Rules = (None, None), name: str | None = None, paths: Iterable[str] | None = None
) -> tuple[dict[str, Format], list[str]]:
    """Return the formats by name, and a sentence about each mistake that costs a format nothing.

    With a `name` only formats of that name are looked at. Of two formats with one name the first
    on the path that can be used counts.
    """
    entries, broken = scan(paths, _STEM)
    notes = [
        f"{clean_text(b.distribution)}: its formats are left out: {clean_text(b.reason, 400)}"
        for b in broken
    ]
    wanted = [entry for entry in entries[:MAX_FORMATS] if name is None or entry.name == name]
    candidates = [Format(entry) for entry in wanted]
    _judge(candidates, wanted, rules)
    formats: dict[str, Format] = {}
    for candidate in candidates:
        first = formats.setdefault(candidate.name, candidate)
        if first.problem is not None and candidate.problem is None:
            formats[candidate.name] = candidate
        elif first is not candidate and candidate.problem is None:
            reason = f"{first.owner} has a format of that name and goes first; remove one of them"
            notes.append(_left_out(candidate, reason))
    tables: dict[str, dict[str, Any]] = {}
    for candidate in formats.values():
        _describe(candidate, tables, notes)
    return dict(sorted(formats.items())), notes


def _judge(candidates: list[Format], entries: list[EntryPoint], rules: Rules) -> None:
    """Set `problem` of the formats that cannot be used."""
    allow, sealed = rules
    trust = Trust()  # one for all, because they share the folders above them
    for candidate, entry in zip(candidates, entries, strict=True):
        candidate.problem = (
            _rejection(entry) or sealed or locate_extension(candidate, "exporter", trust)
        )
    sound = [candidate for candidate in candidates if candidate.problem is None]
    for candidate, reason in zip(sound, rejections(sound, allow, trust), strict=True):
        candidate.problem = reason


def _rejection(entry: EntryPoint) -> str | None:
    if reason := name_rejection(entry, GROUP):
        return reason
    module, _, function = entry.target.partition(":")
    if is_module_name(module) and is_module_name(function):
        return None
    return f"its entry point {clean_text(entry.target, 80)!r} is not `module:function`"


def _left_out(candidate: Format, reason: str) -> str:
    return f"{candidate.owner}: the format {clean_text(candidate.name, 80)!r} is left out: {reason}"


def _describe(candidate: Format, tables: dict[str, dict[str, Any]], notes: list[str]) -> None:
    """Take the summary and the content type out of the manifest; a mistake there is a note."""
    path = candidate.manifest
    if candidate.problem is not None:
        notes.append(_left_out(candidate, candidate.problem))
    if path is None or candidate.problem is not None:
        return
    try:
        if path not in tables:
            tables[path] = manifest_table(path, "exporters")
        fields = texts(tables[path], candidate.name, _KEYS)
    except ValueError as error:
        name, reason = path.rpartition("/")[2], clean_text(str(error), 400)
        sentence = f"{candidate.owner}: the format {candidate.name!r} has a mistake in {name}"
        notes.append(f"{sentence}: {reason}; its author can correct it")
        return
    candidate.summary = clean_text(fields.get("summary", ""))
    kind = fields.get("content_type", "")
    # It becomes a header: a line end in it would begin another.
    candidate.content_type = kind if kind.isascii() and kind.isprintable() else ""
    candidate.expiry = clean_text(fields.get("expiry", ""))


def load(name: str, formats: dict[str, Format]) -> Exporter:
    """Import a format; returns a function that gives text or raises `ExportError`."""
    chosen = formats.get(name)
    if chosen is None:
        raise ExportError(_unknown(name), 2)
    if chosen.problem is not None:
        raise ExportError(_left_out(chosen, chosen.problem))
    export = _imported(chosen)

    def checked(report: ReportDoc) -> str:
        try:
            text = export(report)
        except ExportError:
            raise
        except Exception as error:
            raise _broken(chosen, f"failed: {error_text(error)}{_place(error)}") from None
        if not isinstance(text, str):
            raise _broken(chosen, f"returned {type(text).__name__}, no text")
        # A lone surrogate of a name has no bytes in UTF-8, which all readers expect.
        return text.encode("utf-8", "replace").decode()

    return checked


def _unknown(name: str) -> str:
    from probe_core.likeness import suggestion

    typed = clean_text(name, 60)
    if name in BROUGHT_BY:
        owner = BROUGHT_BY[name]
        return f"the format {typed} comes with {owner}, which is not installed: pip install {owner}"
    hint = suggestion(typed, format_names()) or " `probe export --list` prints the formats."
    return f"{typed}: no such format.{hint}"


def _imported(chosen: Format) -> Any:
    module, _, function = chosen.target.partition(":")
    try:
        # Not by importlib, which would be imported for this alone.
        place: Any = __import__(module, fromlist=["__name__"])
        for part in function.split("."):
            place = getattr(place, part)
    except Exception as error:
        failure = f"cannot be imported: {error_text(error)}{_place(error)}"
        raise _broken(chosen, failure) from None
    if not callable(place):
        raise _broken(chosen, f"is no function: {function} of {module}")
    return place


def _broken(chosen: Format, failure: str) -> ExportError:
    step = f"update or remove {chosen.distribution}, or report it to its author"
    return ExportError(f"{chosen.owner}: the format {chosen.name!r} {failure}; {step}")


def _place(error: BaseException) -> str:
    """Return the innermost file and line that raised, for the author."""
    place, trace = "", error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith("<") and path != __file__:
            place = f" ({path.rpartition('/')[2]}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place
