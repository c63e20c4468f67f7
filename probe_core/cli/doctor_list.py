"""`probe doctor --list`: every check, whose it is, its step, and what it needs to look."""

from __future__ import annotations

from probe_core.commands import grid, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypedDict

    from probe_core.commands import Context
    from probe_core.doctor.answers import RemoteCheck
    from probe_core.doctor.check import Check
    from probe_core.doctor.installed import CheckSet

    class EntryDoc(TypedDict):
        """One check in the list."""

        code: str
        step: str | None
        needs: list[str]
        summary: str
        distribution: str


__all__ = ["listed", "table"]


def listed(sets: Sequence[CheckSet], context: Context) -> list[EntryDoc]:
    """Return all checks; those of other distributions are asked for in their own processes."""
    from probe_core import __version__
    from probe_core.doctor.examine import all_checks

    entries = [_entry(check, f"probe-core {__version__}") for check in all_checks()]
    if sets:
        entries += [_entry(check, check.distribution) for check in _installed(sets, context)]
    return entries


def _installed(sets: Sequence[CheckSet], context: Context) -> Iterable[RemoteCheck]:
    from probe_core.doctor.check import Request
    from probe_core.doctor.remote import run_installed
    from probe_core.machine import Machine

    empty: dict[str, object] = {"devices": [], "findings": [], "outcomes": []}
    request = Request(Machine(environ=context.environ), empty)  # type: ignore[arg-type]  # unread
    remote = run_installed(sets, request, list_only=True)
    for owner, problem in remote.problems:
        context.err(f"probe: the checks of {owner} are not listed: {problem}")
    return remote.checks


def _entry(check: Check | RemoteCheck, distribution: str) -> EntryDoc:
    return {
        "code": check.code,
        "step": check.step or None,
        "needs": list(check.needs),
        "summary": check.summary,
        "distribution": distribution,
    }


def table(entries: Sequence[EntryDoc], context: Context) -> Iterator[str]:
    """Yield a row a check with what it needs of its own, then what the report's steps read."""
    from probe_core.doctor.causes import READS

    rows = [("CHECK", "STEP", "LOOKS WHETHER")]
    rows += [(entry["code"], entry["step"] or "", _sentence(entry)) for entry in entries]
    yield from grid(rows, context.width, wrap="LOOKS WHETHER", leaving=("STEP",))
    yield ""
    yield from text.wrapped("Every check needs the report, whose steps read:", context.width)
    for step, paths in READS.items():
        yield from text.wrapped(f"{step}: {', '.join(paths)}", context.width, "  ")


def _sentence(entry: EntryDoc) -> str:
    """Return "a CDI specification is stale. Needs: /etc/cdi, /run/cdi"."""
    from probe_core.doctor.causes import READS

    common = ("report", *READS.get(entry["step"] or "", ()))
    own = [word for word in entry["needs"] if word not in common]
    needs = f" Needs: {', '.join(own)}" if own else ""
    return f"{entry['summary'].removeprefix('Whether ')}{needs}"
