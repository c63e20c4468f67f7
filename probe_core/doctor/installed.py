"""Find the checks that installed distributions bring, without importing any of them.

A set of checks is an entry point in the group `probe_core.checks.v1`. The rules are those of
probers and commands: a broken distribution costs only itself, the allowlist counts, and as root
nothing is used that somebody other than root could have written.
"""

from __future__ import annotations

from probe_core.doctor.check import GROUP
from probe_core.machine.trust import Trust, allowed
from probe_core.registry import find_module, scan
from probe_core.registry.extensions import manifest_table
from probe_core.registry.prober import Prober, target_problem
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.model.document import Json
    from probe_core.registry import EntryPoint

_STEM = "probe_core.checks.v"
MAX_SETS = 16
"""Sets of checks that are started: each is a process. A judgement: one a vendor, and some more."""

MAX_WORDS = 256
"""Codes that a manifest may list, as many as findings of one check."""

DEADLINE_S = 10.0
"""Seconds that the checks of a set have, import and all, unless their manifest says otherwise."""

MAX_DEADLINE_S = 120.0
"""As for a prober: nothing may hold an answer longer than this."""


class CheckSet:
    """The checks of one entry point: whose they are, and what their process needs.

    `needs` are the words of `Request` that all of them need, and `codes` those of its checks, both
    by the manifest. `variables` are the variables that their answers depend on, None where nobody
    knows: then none is remembered. `problem` says why they cannot run.
    """

    def __init__(self, entry: EntryPoint) -> None:
        name = clean_text(entry.name, 80)
        distribution, version = clean_text(entry.distribution), clean_text(entry.version)
        self.prober = Prober(name, entry.target, distribution, version)
        self.prober.deadline_s = DEADLINE_S
        self.prober.files = [f"{entry.metadata}/entry_points.txt"]
        self.needs: tuple[str, ...] = ()
        self.codes: tuple[str, ...] = ()
        self.variables: tuple[str, ...] | None = None
        self.problem = _rejection(entry)

    @property
    def owner(self) -> str:
        """``probe-wheels 1.0.0``, as shown to people."""
        return self.prober.owner


def installed_checks(
    allow: tuple[str, ...] | None, sealed: str | None = None, paths: Iterable[str] | None = None
) -> list[CheckSet]:
    """Return the sets of checks on the path, those that cannot run with their `problem`.

    `allow` is the allowlist, None for all. `sealed` says why no plugin runs at all.
    """
    entries, _ = scan(paths, _STEM)  # a broken distribution is a finding of the report already
    sets = [CheckSet(entry) for entry in entries[:MAX_SETS]]
    trust = Trust()
    for check_set, entry in zip(sets, entries, strict=False):
        prober = check_set.prober
        check_set.problem = (
            check_set.problem
            or sealed
            or allowed(prober.distribution, prober.version, allow)
            or _located(check_set, entry, trust)
            or trust.reason(prober.files)
        )
    return sets


def _rejection(entry: EntryPoint) -> str | None:
    if entry.group != GROUP:
        group = clean_text(entry.group, 80)
        return f"it needs {group}, this core has {GROUP}; upgrade probe-core"
    return target_problem(entry.target)


def _located(check_set: CheckSet, entry: EntryPoint, trust: Trust) -> str | None:
    """Find the module and its manifest; return why the checks cannot be used."""
    prober, module = check_set.prober, entry.target.partition(":")[0]
    place, prober.needs_site = find_module(module, entry.site)
    if place is None:
        return f"its module {module!r} does not exist; reinstall {prober.distribution}"
    prober.files += place.files(module, trust)
    prober.origin = None if prober.needs_site else place.root(module)
    path = place.manifest(module, "check")
    if path is None:
        return None
    prober.files.append(path)
    try:
        _take_manifest(check_set, path)
    except ValueError as error:
        mistake = clean_text(str(error), 200)
        return f"{path.rpartition('/')[2]}: {mistake}; its author can correct it"
    return None


def _take_manifest(check_set: CheckSet, path: str) -> None:
    """Take what ``{"schema": 1, "checks": {NAME: {…}}}`` says of the set."""
    table = manifest_table(path, "checks").get(check_set.prober.name)
    if not isinstance(table, dict):
        raise ValueError(f"it has no entry {check_set.prober.name!r}")
    needs, codes = _words(table, "needs"), _words(table, "codes")
    variables = _words(table, "variables") if table.get("variables") is not None else None
    deadline = table.get("deadline_s", DEADLINE_S)
    if type(deadline) not in (int, float) or not 0 < deadline <= MAX_DEADLINE_S:
        raise ValueError(f"deadline_s is no number of seconds up to {MAX_DEADLINE_S:g}")
    check_set.needs, check_set.codes, check_set.variables = needs, codes, variables
    check_set.prober.deadline_s = float(deadline)


def _words(table: dict[str, Json], name: str) -> tuple[str, ...]:
    words = table.get(name, [])
    texts = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
    if not isinstance(words, list) or len(texts) != len(words) or len(words) > MAX_WORDS:
        raise ValueError(f"{name} is no list of up to {MAX_WORDS} words")
    return tuple(clean_text(word, 80) for word in texts)
