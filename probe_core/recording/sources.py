"""Who declares what a recording keeps: the core's own probers, and the installed plugins."""

from __future__ import annotations

from probe_core.machine.trust import allowed
from probe_core.probers.records import RECORDS
from probe_core.recording.declared import check_records
from probe_core.registry.discover import discover, manifest_problem
from probe_core.registry.prober import Mistake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.model.document import FindingDoc
    from probe_core.recording.declared import Declared
    from probe_core.registry.prober import Prober

__all__ = ["Sources", "declared_by", "own_declarations"]

_FIX = "correct `records` in prober.json; until then a recording lacks these files"


class Sources:
    """The declarations of every prober that is installed.

    `covered` names the plugins' probers that declare files, `silent` those whose manifest does not
    say; `refused` are sentences about those that may not declare any: who may not run, because
    `allow`, the allowlist, leaves him out, or because somebody else could have written his code.
    `findings` are about mistakes in manifests and broken distributions.
    """

    def __init__(
        self, allow: tuple[str, ...] | None = None, paths: Iterable[str] | None = None
    ) -> None:
        self.declarations = own_declarations()
        self.covered: list[str] = []
        self.silent: list[str] = []
        self.refused: list[str] = []
        probers, self.findings = discover({}, paths)
        for prober in probers:
            self._add(prober, allow)

    def _add(self, prober: Prober, allow: tuple[str, ...] | None) -> None:
        label = f"{prober.name} ({prober.owner})"
        if reason := _refusal(prober, allow):
            self.refused.append(f"{label}: {reason}")
        elif prober.records is None:
            self.silent.append(label)
        else:
            declaration, findings = declared_by(prober)
            self.declarations.append(declaration)
            self.findings += findings
            if not declaration.is_empty:
                self.covered.append(label)


def own_declarations() -> list[Declared]:
    """Return what the core's own probers declare."""
    return [check_records(records)[0] for records in RECORDS.values()]


def declared_by(prober: Prober) -> tuple[Declared, list[FindingDoc]]:
    """Return what a prober's manifest declares, and a finding for each mistake in it."""
    declaration, mistakes = check_records(prober.records)
    return declaration, [
        manifest_problem(prober, Mistake(mistake, f"{prober.manifest}: {mistake}"), _FIX)
        for mistake in mistakes
    ]


def _refusal(prober: Prober, allow: tuple[str, ...] | None) -> str | None:
    """Return why a prober's manifest counts for nothing: by the rules for its code."""
    return (
        prober.rejection or allowed(prober.distribution, prober.version, allow) or prober.distrust
    )
