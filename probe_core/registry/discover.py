"""Make probers of what is installed, built in and registered by the host."""

from __future__ import annotations

from probe_core.machine.budget import Budget
from probe_core.machine.trust import Trust
from probe_core.model.findings import finding
from probe_core.registry.entrypoints import GROUP, EntryPoint, is_module_name, scan
from probe_core.registry.prober import FALLBACK, HOST, Prober, apply_manifest, take_field
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_core.model.document import FindingDoc
    from probe_core.registry.document import Registered as Registered
    from probe_core.registry.entrypoints import Problem
    from probe_core.registry.prober import Mistake

__all__ = ["RESERVED", "discover", "manifest_problem", "over_budget"]

RESERVED = frozenset({"bus", "cpu", FALLBACK, "core", "probe", "all", "none"})
"""Names no plugin may take: the built-in probers, and words that settings give a meaning."""

_LATER = "correct prober.json; until then the default is used"


def discover(
    registered: Mapping[str, Registered],
    paths: Iterable[str] | None = None,
    mentioned: dict[str, bool] | None = None,
    budget: Budget | None = None,
) -> tuple[list[Prober], list[FindingDoc]]:
    """Return every prober that is not built in, best priority first, and what is broken.

    `registered` are the host's own: name to ``target`` and what a manifest may say. `mentioned` is
    as `scan` has it. `budget` bounds what the manifests may hold together.
    """
    budget = budget or Budget()
    entries, problems = scan(paths, mentioned=mentioned)
    findings = [_distribution_broken(problem) for problem in problems]
    trust = Trust()
    probers = [_from_host(name, fields, trust, budget) for name, fields in registered.items()]
    probers += [_from_entry(entry, trust, budget) for entry in entries]
    for prober in probers:
        findings += [manifest_problem(prober, mistake) for mistake in prober.problems]
    return sorted(probers, key=Prober.rank), findings


def _distribution_broken(problem: Problem) -> FindingDoc:
    owner = clean_text(problem.distribution)
    return finding(
        "distribution-broken",
        f"the distribution {owner} was left out",
        clean_text(problem.reason, 400),
        f"reinstall or remove {owner}",
        evidence=clean_text(problem.evidence, 800),
    )


def manifest_problem(prober: Prober, mistake: Mistake, fix: str = _LATER) -> FindingDoc:
    """Return the finding for a mistake in a prober's manifest."""
    return finding(
        "manifest-problem",
        f"{prober.owner}: the manifest of prober {prober.name!r} has a mistake",
        clean_text(mistake.reason, 400),
        fix,
        prober=prober.name,
        evidence=clean_text(mistake.evidence, 800),
    )


def over_budget(budget: Budget) -> list[FindingDoc]:
    """Return a finding for each owner whose data was not all read, or not all looked at."""
    return [
        finding(
            "budget-exceeded",
            f"not all data of {clean_text(owner)} was read",
            f"{reason}; what came later was left out, and preconditions count as met",
            "shorten its manifests, or remove it",
            evidence=reason,
        )
        for owner, reason in budget.exceeded.items()
    ]


def _from_host(name: str, fields: Registered, trust: Trust, budget: Budget) -> Prober:
    prober = Prober(name, fields["target"], HOST)
    prober.rejection = _name_problem(name) or _target_problem(prober.target)
    if prober.rejection is None:
        apply_manifest(prober, None, trust, budget)
        for key, value in fields.items():
            if key != "target":
                take_field(prober, str(key), value)
    return prober


def _from_entry(entry: EntryPoint, trust: Trust, budget: Budget) -> Prober:
    name = clean_text(entry.name, 80)
    prober = Prober(name, entry.target, clean_text(entry.distribution), clean_text(entry.version))
    prober.files = [entry.metadata + "/entry_points.txt"]
    if entry.group != GROUP:
        prober.rejection = f"needs {clean_text(entry.group)}, this core has {GROUP}"
    prober.rejection = (
        prober.rejection or _name_problem(entry.name) or _target_problem(entry.target)
    )
    if entry.distribution == HOST:
        prober.rejection = f"no distribution may be named {HOST}"
    if prober.rejection is None:
        apply_manifest(prober, entry.site, trust, budget)
    return prober


def _name_problem(name: str) -> str | None:
    plain = name.isascii() and all(c.isalnum() or c in "-_." for c in name)
    if not plain or not 0 < len(name) <= 64:
        return "its name must be 1 to 64 ASCII letters, digits, '-', '_' or '.'"
    return f"the name {name!r} is reserved by the core" if name.lower() in RESERVED else None


def _target_problem(target: str) -> str | None:
    module, _, attribute = target.partition(":")
    if is_module_name(module) and (not attribute or is_module_name(attribute)):
        return None
    return f"its entry point {clean_text(target, 80)!r} is not `module` or `module:attribute`"
