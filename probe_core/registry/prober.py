"""Probers before they run: who ships each, when it may help, and which of them run.

A prober that is skipped costs microseconds.
"""

from __future__ import annotations

import os
import sys

from probe_core.api import API_VERSION
from probe_core.config import SETTINGS
from probe_core.jsontext import parse
from probe_core.machine import Mounts, is_kernels, read_regular, text_of
from probe_core.machine.trust import Trust, allowed
from probe_core.model.findings import finding
from probe_core.model.ids import MAX_PROBER_NAME, is_prober_name
from probe_core.registry import (
    GROUP,
    Budget,
    EntryPoint,
    find_module,
    is_module_name,
    scan,
    top_level_exists,
)
from probe_core.wording import clean_text, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from probe_core.api import Request
    from probe_core.config import Config, IgnoredSetting
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc, Json, RecordedAnswer
    from probe_core.registry import Problem
    from probe_core.registry.document import Registered, When

    Builtin: TypeAlias = Callable[[Request], Any]
    Veto: TypeAlias = Callable[["Prober"], str | None]


DEFAULT_PRIORITY = 100
"""Above the built-in probers (60, 50), below every band that authors choose from (200 to 900)."""

DEFAULT_DEADLINE_S = 5.0
"""Import and call of a prober that names no deadline. A judgement: a laptop's GPU takes 2 s to
resume (btop#1831), and a host should not wait much longer for a driver that hangs."""

HOST = "(host)"
"""Stands for the distribution of a prober that the host registered itself; none can be named so."""

FALLBACK = "fallback"
"""The name of the core-owned terminal prober; nobody else may take it."""


class Mistake:
    """One mistake in a manifest: a sentence, and what was read where."""

    def __init__(self, reason: str, evidence: str) -> None:
        self.reason = reason
        self.evidence = evidence

    def __repr__(self) -> str:
        return repr(self.reason)


class Prober:
    """One prober: identity, place and manifest.

    `target` is ``module`` or ``module:attribute``. `owner` is ``probe-nvidia 1.0.0``, as shown to
    people. `builtin` is a callable that runs in process. `when` is a list of alternative
    preconditions, empty when there are none. `records` is what the manifest says of the files that
    it reads, unchecked: only `probe record` reads that. `manifest` is the manifest's path,
    `problems` are the mistakes in it. `needs_site` tells that its module is only importable after
    the `site` module ran (editable installs through import hooks). `files` decide what runs,
    `distrust` says why root must not even read them: others may write one of them, or the way to
    it; what lies in their folders `distrust_of_code` asks `trust`. `origin` is the folder in which
    the module was found: the child imports it from there; None where a hook finds it. `answer` is
    what a recording has of it, which stands for running it.
    """

    def __init__(
        self,
        name: str,
        target: str,
        distribution: str = "",
        version: str = "",
        *,
        priority: int = DEFAULT_PRIORITY,
        summary: str = "",
        builtin: Builtin | None = None,
    ) -> None:
        self.name = name
        self.target = target
        self.distribution = distribution
        self.version = version
        self.owner = f"{distribution} {version}".strip()
        self.priority = priority
        self.summary = summary
        self.builtin = builtin
        self.api = "1.0"
        self.deadline_s = DEFAULT_DEADLINE_S
        self.active = False
        self.answer: RecordedAnswer | None = None
        self.when: list[When] = []
        self.records: object = None
        self.manifest: str | None = None
        self.problems: list[Mistake] = []
        self.rejection: str | None = None
        self.needs_site = False
        self.origin: str | None = None
        self.files: list[str] = []
        self.distrust: str | None = None
        self.trust: Trust | None = None

    def distrust_of_code(self) -> str | None:
        """Return why root must not run the prober: all of its code is looked at now."""
        return self.distrust or (None if self.trust is None else self.trust.reason(self.files))

    def rank(self) -> tuple[int, bool, str, str]:
        """Sort key: highest priority first, then the host's own, then distribution and name."""
        return (-self.priority, self.distribution != HOST, self.distribution, self.name)


# Read `prober.json`: data beside a prober's module that says when and how to run it.
#
# A mistake in a manifest never stops its prober: the default is used, and a finding names it.

FILE_LIMIT = 64 << 10
"""Bytes of a manifest; the longest of ours has 3 KiB."""

MAX_DEADLINE_S = 120.0
"""The pages of the reference promise it to hosts: no prober may hold a start longer than this."""

MAX_PROBLEMS = 8
"""Mistakes of one manifest that become findings; a file of nonsense would fill the report."""

MAX_VALUES = 64
"""Values of one precondition, and alternatives: each costs a look at a file in every probe."""

MAX_VALUE = 256
"""Characters of one value of a precondition: four times the longest path of ours."""

WHEN_KEYS = (
    "os",
    "machine",
    "any_path",
    "all_path",
    "any_module",
    "any_environ",
    "pci_vendor",
)


def apply_manifest(
    prober: Prober, site: str | None, trust: Trust, budget: Budget | None = None
) -> None:
    """Find the manifest of `prober` and take what it says; note every mistake.

    Where others may write one of the prober's files or the way to it, not even the manifest is read
    as root: its texts would be shown. What else lies in its package is looked at when it is to
    run: of a hundred plugins few find their hardware. A prober whose distribution has exceeded the
    budget is rejected.
    """
    module = prober.target.partition(":")[0]
    if not is_module_name(module):
        return
    place, by_site = find_module(module, site)
    if place is None:
        return  # its import in the child fails, and the outcome says how
    # A frozen program holds its modules itself.
    frozen = getattr(sys, "frozen", False)
    # The child may need the hook set up too.
    prober.needs_site = by_site and not frozen
    if frozen:
        prober.files.append(sys.executable)
    else:
        prober.files += place.files(module, trust)
        prober.origin = None if by_site else place.root(module)
    path = place.manifest(module, "prober")
    if path is not None:
        prober.files.append(path)
    prober.trust = trust
    prober.distrust = trust.reason(prober.files, trees=False)
    if path is not None and not prober.distrust:
        prober.manifest = path
        _take_manifest(prober, path, budget or Budget())


def _take_manifest(prober: Prober, path: str, budget: Budget) -> None:
    prober.rejection = budget.refusal(prober.owner)
    if prober.rejection:
        return
    since = budget.clock()
    try:
        fields = read_manifest(path, prober.name)
    except (OSError, ValueError, RecursionError) as error:
        reason = _reason(error)
        name = os.path.basename(path)
        prober.problems.append(Mistake(f"{name}: {reason}", f"{path}: {reason}"))
        fields = {}
    for key, value in fields.items():
        if len(prober.problems) < MAX_PROBLEMS:
            take_field(prober, key, value)
    budget.charge(prober.owner, since, files=1, bytes=_size(path))


def _size(path: str) -> int:
    try:
        return min(os.stat(path).st_size, FILE_LIMIT)
    except OSError:
        return 0


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)


def _hint(name: str, known: Iterable[str]) -> str:
    from probe_core.likeness import did_you_mean  # once something is wrong

    return did_you_mean(name, known)


def _shown(value: object) -> str:
    try:
        return repr(value)[:60]
    except RecursionError:
        return "something nested too deep"


def read_manifest(path: str, name: str) -> dict[str, Json]:
    """Return one prober's table of a manifest; raises `ValueError` or `OSError` with the reason."""
    document = parse(text_of(read_regular(path, FILE_LIMIT)))
    if not isinstance(document, dict) or not isinstance(document.get("probers"), dict):
        raise ValueError('expected {"schema": 1, "probers": {NAME: {…}}}')
    if document.get("schema") != 1:
        raise ValueError(f"schema {_shown(document.get('schema'))} is not supported; expected 1")
    fields = document["probers"].get(name)
    if not isinstance(fields, dict):
        hint = _hint(name, list(document["probers"])[:MAX_VALUES])
        raise ValueError(f"says nothing of {name!r}: {hint}")
    return fields


def take_field(prober: Prober, key: str, value: object) -> None:
    """Take one field of a manifest into `prober`, or note the mistake in it."""
    if key not in _CHECKS:
        reason = f"unknown key {key[:80]!r}: {_hint(key[:80], _CHECKS)}"
    else:
        try:
            setattr(prober, key, _CHECKS[key](value))
            return
        except ValueError as error:
            reason = f"{key}: {error}, found {_shown(value)}"
    source = prober.manifest or f"registered by the host as {prober.name!r}"
    prober.problems.append(Mistake(reason, f"{source}: {key[:80]} = {_shown(value)}"))


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > 500:
        raise ValueError("expected text of at most 500 characters")
    return value


def _api(value: object) -> str:
    major, dot, minor = _text(value).partition(".")
    if not (major.isdecimal() and dot and minor.isdecimal()):
        raise ValueError('expected "major.minor"')
    return f"{int(major)}.{int(minor)}"


def _priority(value: object) -> int:
    if type(value) is not int or not 1 <= value <= 999:
        raise ValueError("expected a whole number from 1 to 999")
    return value


def _deadline(value: object) -> float:
    number = value if isinstance(value, (int, float)) and type(value) is not bool else 0
    # Compared before it is converted: `float` of an int with 400 digits raises OverflowError.
    if not 0 < number <= MAX_DEADLINE_S:
        raise ValueError(f"expected seconds above 0 and up to {MAX_DEADLINE_S:g}")
    return float(number)


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError("expected true or false")
    return value


def _unchecked(value: object) -> object:
    """`records` is read by `probe record` alone: checking it here would cost every probe."""
    return value


def _when(value: object) -> list[When]:
    candidates = value if isinstance(value, list) else [value]
    if len(candidates) > MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES} alternatives")
    alternatives = [_alternative(candidate) for candidate in candidates]
    # An alternative that demands nothing always holds, and so does the whole.
    return alternatives if all(alternatives) else []


def _alternative(value: object) -> When:
    """Return the table of an alternative; raises `ValueError` with the mistake in it."""
    if not isinstance(value, dict):
        raise ValueError("expected a table, or a list of alternative tables")
    for key, values in value.items():
        _check_values(key, values)
    return value  # type: ignore[return-value]  # of the keys and values that were checked


def _check_values(key: str, values: object) -> None:
    if key not in WHEN_KEYS:
        raise ValueError(f"unknown precondition {key[:80]!r}: {_hint(key[:80], WHEN_KEYS)}")
    if not (isinstance(values, list) and all(isinstance(v, str) and v for v in values)):
        raise ValueError(f"{key} must be a list of texts")
    if len(values) > MAX_VALUES or max(map(len, values), default=0) > MAX_VALUE:
        raise ValueError(
            f"{key} holds more than {MAX_VALUES} texts, or longer than {MAX_VALUE} characters"
        )
    if key in _FORMS and not all(map(_FORMS[key][0], values)):
        raise ValueError(f"{key} must hold {_FORMS[key][1]}")


def _is_absolute(path: str) -> bool:
    return path[0] == "/"


def _is_vendor(text: str) -> bool:
    digits = text.lower().removeprefix("0x")
    return len(digits) == 4 and all(digit in "0123456789abcdef" for digit in digits)


_FORMS: dict[str, tuple[Callable[[str], bool], str]] = {
    "any_path": (_is_absolute, "absolute paths"),
    "all_path": (_is_absolute, "absolute paths"),
    "any_module": (is_module_name, "names of modules"),
    "pci_vendor": (_is_vendor, 'vendor ids such as "10de"'),
}
"""What the values of a precondition look like, and the words for it."""

_CHECKS: dict[str, Callable[[object], object]] = {
    "summary": _text,
    "api": _api,
    "priority": _priority,
    "deadline_s": _deadline,
    "active": _flag,
    "when": _when,
    "records": _unchecked,
}
"""Key of a manifest to the function that returns its checked value, or raises `ValueError`."""


# Make probers of what is installed, built in and registered by the host.

RESERVED = frozenset({"bus", "cpu", FALLBACK, "core", "probe", "all", "none"})
"""Names no plugin may take: the built-in probers, and words that settings give a meaning."""

host_probers: dict[str, Registered] = {}
"""What `probe_core.register` added to this process, by name."""

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
    prober.rejection = _name_problem(name) or target_problem(prober.target)
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
    prober.rejection = prober.rejection or _name_problem(entry.name) or target_problem(entry.target)
    if entry.distribution == HOST:
        prober.rejection = f"no distribution may be named {HOST}"
    if prober.rejection is None:
        apply_manifest(prober, entry.site, trust, budget)
    return prober


def _name_problem(name: str) -> str | None:
    if not is_prober_name(name):
        form = f"1 to {MAX_PROBER_NAME} ASCII letters, digits, '-', '_' or '.'"
        return f"its name must be {form}, the first no '-' and no '.'"
    return f"the name {name!r} is reserved by the core" if name.lower() in RESERVED else None


def target_problem(target: str) -> str | None:
    """Return why an entry point's target cannot be used."""
    module, _, attribute = target.partition(":")
    if is_module_name(module) and (not attribute or is_module_name(attribute)):
        return None
    return f"its entry point {clean_text(target, 80)!r} is not `module` or `module:attribute`"


# Whether a prober's preconditions hold: a skipped prober costs microseconds, starts nothing.
#
# Preconditions are necessary, not sufficient, and fail open: what cannot be checked holds. So
# nobody
# looks where a dead server would hang the host, nor on beyond the budget: a child starts in vain.

MAX_NAMES = 4096
"""Names a pattern may be compared with: `/*/*/*/*` must not walk a whole disk."""


def fits(name: str, pattern: str) -> bool:
    """Return whether a name fits a pattern, in which `*` stands for anything.

    fnmatch has more signs, and brings `re`: a third of what a first probe imports.
    """
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    last = others.pop()
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in others:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _parts(pattern: str) -> list[str]:
    """Return the names with a `*` of a pattern, and in one piece those before, between and after.

    A look at a piece looks at all folders on the way.
    """
    parts: list[str] = []
    for name in pattern.strip("/").split("/"):
        if parts and "*" not in parts[-1] + name:
            parts[-1] += f"/{name}"
        else:
            parts.append(name)
    return parts


class PathCheck:
    """Looks whether paths exist, for the preconditions of the probers of `owner`.

    `mounts` tell where that could hang; the live machine's own if None. A recorded machine has
    none: somebody named its files.
    """

    def __init__(
        self, machine: Machine, budget: Budget, mounts: Mounts | None = None, owner: str = ""
    ) -> None:
        self._machine = machine
        self._budget = budget
        self._mounts = mounts
        self.owner = owner

    def exists(self, pattern: str) -> bool:
        """Return whether anything fits; True where that cannot be checked."""
        budget = self._budget
        if budget.refusal(self.owner):
            return True
        since = budget.clock()
        try:
            return self._fits(pattern) if "*" in pattern else self._is_there(pattern)
        finally:
            budget.charge(self.owner, since, names=1)

    def _fits(self, pattern: str) -> bool:
        folders, names = ["/"], MAX_NAMES
        for part in _parts(pattern):
            if len(folders) > names:
                return True  # a precondition that cannot be checked holds
            names -= len(folders)
            if any(map(self._may_hang, folders)):
                return True
            folders = self._step(folders, part)
        return bool(folders)

    def _step(self, folders: list[str], part: str) -> list[str]:
        """Return what `part`, one of `_parts`, names in these folders."""
        if "*" in part:
            pairs = ((folder, self._matching(folder, part)) for folder in folders)
            return [f"{folder.rstrip('/')}/{name}" for folder, names in pairs for name in names]
        paths = (f"{folder.rstrip('/')}/{part}" for folder in folders)
        return [path for path in paths if self._is_there(path)]

    def _matching(self, folder: str, pattern: str) -> list[str]:
        listed = self._machine.listdir(folder)
        self._budget.charge(self.owner, names=len(listed))
        return [name for name in listed if fits(name, pattern)]

    def _is_there(self, path: str) -> bool:
        return self._may_hang(path) or self._machine.exists(path)

    def _may_hang(self, path: str) -> bool:
        if not self._machine.live or is_kernels(path):
            return False
        if self._mounts is None:
            self._mounts = Mounts()
        return self._mounts.may_hang(path)


def unmet(
    when: list[When],
    machine: Machine,
    pci_vendors: Collection[str] | None,
    paths: PathCheck | None = None,
) -> str | None:
    """Return why none of the alternatives in `when` holds, or None when one does.

    `paths` counts for whose probers the paths are looked at.
    """
    if paths is None:
        paths = PathCheck(machine, Budget())
    # An alternative for another system explains something only where there is none for this one.
    here: list[str] = []
    elsewhere: list[str] = []
    for alternative in when:
        if reason := _another_system(alternative, machine):
            elsewhere.append(reason)
        elif reason := _unmet(alternative, machine, pci_vendors, paths):
            here.append(reason)
        else:
            return None
    return "; and ".join(dict.fromkeys(here or elsewhere)) or None


def _another_system(when: When, machine: Machine) -> str | None:
    for needed, own in ((when.get("os"), machine.os), (when.get("machine"), machine.arch)):
        if needed and own not in needed:
            return f"needs {joined(needed)}, this is {own}"
    return None


def _unmet(
    when: When, machine: Machine, pci_vendors: Collection[str] | None, paths: PathCheck
) -> str | None:
    vendors = when.get("pci_vendor") or []
    wanted = {vendor.lower().removeprefix("0x") for vendor in vendors}
    # None: the bus was not read, so the condition cannot be checked.
    if wanted and pci_vendors is not None and wanted.isdisjoint(pci_vendors):
        return f"no PCI device of vendor {joined(vendors)}"
    variables = when.get("any_environ")
    if variables and not any(machine.environ.get(name) for name in variables):
        return f"no environment variable {joined(variables)} is set"
    if reason := _unmet_path(when, paths):
        return reason
    modules = when.get("any_module")
    if modules and not any(top_level_exists(module) for module in modules):
        return f"no module {joined(modules)} is installed"
    return None


def _unmet_path(when: When, paths: PathCheck) -> str | None:
    any_path, all_path = when.get("any_path"), when.get("all_path")
    if any_path and not any(map(paths.exists, any_path)):
        others = f" (and {len(any_path) - 3} more)" if len(any_path) > 3 else ""
        return f"no path of {', '.join(any_path[:3])}{others} exists"
    for path in all_path or ():
        if not paths.exists(path):
            return f"the path {path} does not exist"
    return None


# Decide for each prober whether it runs, with the reason: nothing is left out in silence.


class Decision:
    """Whether one prober runs.

    `cause` is a word for scripts, `reason` a sentence; both are None when it runs. `setting` is the
    key of `config.SETTINGS` that decided, `variable` the environment variable that set it.
    """

    def __init__(
        self,
        prober: Prober,
        cause: str | None = None,
        reason: str | None = None,
        setting: str | None = None,
        variable: str | None = None,
    ) -> None:
        self.prober = prober
        self.cause = cause
        self.reason = reason
        self.setting = setting
        self.variable = variable


def select(
    probers: Sequence[Prober],
    config: Config,
    machine: Machine,
    pci_vendors: Collection[str] | None,
    veto: Veto | None = None,
    stuck: Collection[str] = (),
    budget: Budget | None = None,
) -> list[Decision]:
    """Return one decision per prober, in the order of priority.

    `budget` bounds what the preconditions look at, of one distribution and of all.
    """
    paths = PathCheck(machine, budget or Budget())
    for prober in probers:
        prober.priority = config.priority.get(prober.name, prober.priority)
        if config.timeout is not None:
            prober.deadline_s = config.timeout
    decisions = []
    # The host's own probers own their names whatever their priority.
    owners = {p.name: p for p in probers if p.distribution == HOST and not p.rejection}
    for prober in sorted(probers, key=Prober.rank):
        cause, reason, setting = _refusal(prober, config, owners)
        if cause is None:
            paths.owner = prober.owner
            problem = unmet(prober.when, machine, pci_vendors, paths)
            cause, reason, setting = _unsuited(prober, config, problem, stuck)
        if cause is None and (distrust := prober.distrust_of_code()):
            cause, reason = "trust", distrust
        if cause is None and veto is not None and (denial := veto(prober)):
            cause, reason = "veto", f"vetoed by the host: {denial}"
        # A prober that its own preconditions rule out still owns its name.
        if cause in (None, "when", "active"):
            owners.setdefault(prober.name, prober)
        variable = config.variable_of(setting) if setting else None
        decisions.append(Decision(prober, cause, reason, setting, variable))
    return decisions


def _refusal(
    prober: Prober, config: Config, owners: dict[str, Prober]
) -> tuple[str | None, str | None, str | None]:
    """Return (cause, reason, setting) of the first rule that refuses `prober`; cheap rules first.

    `setting` is None where no setting decided; all are None when it may run.
    """
    if prober.rejection:
        return "rejected", prober.rejection, None
    if config.sealed is not None and _is_sealed(prober, config.sealed):
        return "sealed", f"no plugin runs: {config.sealed.reason}", config.sealed.name
    if setting := _blocking_setting(prober.name, config):
        return "blocked", _block(setting, config), setting
    if owners.get(prober.name, prober) is not prober:
        owner = owners[prober.name].owner
        return "shadowed", f"{owner} has a prober of that name, and goes first", None
    if problem := _api_problem(prober.api):
        return "api", problem, None
    # The host's own need not be on the allowlist.
    is_plugin = prober.distribution != HOST
    if is_plugin and (problem := allowed(prober.distribution, prober.version, config.allow)):
        return "trust", problem, "allow"
    if prober.distrust:
        return "trust", prober.distrust, None
    return None, None, None


def _unsuited(
    prober: Prober, config: Config, problem: str | None, stuck: Collection[str]
) -> tuple[str | None, str | None, str | None]:
    """Return the same of the rules that come last; `problem` is an unmet precondition."""
    if problem:
        return "when", problem, None
    if prober.active and not config.active:
        return "active", "it opens devices, which needs --active (PROBE_ACTIVE=1)", "active"
    if prober.name in stuck:
        return "unkillable", "an earlier run in this process is stuck in the kernel", None
    return None, None, None


def _is_sealed(prober: Prober, restriction: IgnoredSetting) -> bool:
    """Return whether a restriction that cannot be used keeps a prober from running.

    The host's own probers need no allowlist, but a static report stands for all that would run.
    """
    return prober.distribution != HOST or restriction.name == "static"


def _blocking_setting(name: str, config: Config) -> str | None:
    if config.only is not None and name not in config.only:
        return "only"
    return "disable" if name in config.disable else None


def _block(setting: str, config: Config) -> str:
    origin = config.origins.get(setting, "the settings")
    if setting == "only":
        return f"{origin} set only {', '.join(config.only or ())}"
    return f"disabled by {origin}"


def _api_problem(needed: str) -> str | None:
    if needed == API_VERSION:
        return None
    major, minor = map(int, needed.split("."))
    own_major, own_minor = map(int, API_VERSION.split("."))
    if major == own_major and minor <= own_minor:
        return None
    return f"needs API {needed}, this core has {API_VERSION}: upgrade probe-core"


def unknown_names(config: Config, known: Collection[str]) -> list[FindingDoc]:
    """Return a finding for each name in the settings that no prober has."""
    return [
        finding(
            "unknown-prober",
            f"{config.origins[setting]} set {setting!r} to a prober {name!r}",
            "no prober of that name is installed",
            _hint(name, known),
            prober=name,
            setting=setting,
            variable=config.variable_of(setting),
        )
        for setting, declared in SETTINGS.items()
        if declared.kind in ("names", "ranks")
        for name in getattr(config, setting) or ()
        if name not in known
    ]
