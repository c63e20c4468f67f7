"""What is known of a prober before it runs: who ships it, where it lies, when it may help."""

from __future__ import annotations

import os
import sys

from probe_core.jsontext import parse
from probe_core.machine.files import Budget, read_regular, text_of
from probe_core.registry.entrypoints import find_module, is_module_name
from probe_core.wording import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias, TypeGuard

    from probe_core.api import Request
    from probe_core.machine.trust import Trust
    from probe_core.model.document import Json, RecordedAnswer
    from probe_core.registry.document import When

    Builtin: TypeAlias = Callable[[Request], Any]


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

    __slots__ = ("evidence", "reason")

    def __init__(self, reason: str, evidence: str) -> None:
        self.reason = reason
        self.evidence = evidence

    def __repr__(self) -> str:
        return repr(self.reason)


class Prober:
    """One prober: identity, place and manifest.

    `target` is ``module`` or ``module:attribute``. `builtin` is a callable that runs in process.
    `when` is a list of alternative preconditions, empty when there are none. `records` is what the
    manifest says of the files that it reads, unchecked: only `probe record` reads that. `manifest`
    is the manifest's path, `problems` are the mistakes in it. `needs_site` tells that its module is
    only importable after the `site` module ran (editable installs through import hooks). `files`
    decide what runs, `distrust` says why root must not even read them: others may write one of
    them, or the way to it; what lies in their folders `distrust_of_code` asks `trust`. `origin` is
    the folder in which the module was found: the child imports it from there; None where a hook
    finds it. `answer` is what a recording has of it, which stands for running it.
    """

    __slots__ = (
        "active",
        "answer",
        "api",
        "builtin",
        "deadline_s",
        "distribution",
        "distrust",
        "files",
        "manifest",
        "name",
        "needs_site",
        "origin",
        "priority",
        "problems",
        "records",
        "rejection",
        "summary",
        "target",
        "trust",
        "version",
        "when",
    )

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

    @property
    def owner(self) -> str:
        """``probe-nvidia 1.0.0``, as shown to people."""
        return f"{self.distribution} {self.version}".strip()

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
    budget.charge(prober.owner, files=1, size=_size(path), since=since)


def _size(path: str) -> int:
    try:
        return min(os.stat(path).st_size, FILE_LIMIT)
    except OSError:
        return 0


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    return (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)


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
        hint = did_you_mean(name, list(document["probers"])[:MAX_VALUES])
        raise ValueError(f"says nothing of {name!r}: {hint}")
    return fields


def take_field(prober: Prober, key: str, value: object) -> None:
    """Take one field of a manifest into `prober`, or note the mistake in it."""
    if key not in _CHECKS:
        reason = f"unknown key {key[:80]!r}: {did_you_mean(key[:80], _CHECKS)}"
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
    alternatives = [candidate for candidate in candidates if _is_alternative(candidate)]
    # An alternative that demands nothing always holds, and so does the whole.
    return alternatives if all(alternatives) else []


def _is_alternative(value: object) -> TypeGuard[When]:
    """Return True; raises `ValueError` with the mistake when it is none."""
    if not isinstance(value, dict):
        raise ValueError("expected a table, or a list of alternative tables")
    for key, values in value.items():
        _check_values(key, values)
    return True


def _check_values(key: str, values: object) -> None:
    if key not in WHEN_KEYS:
        raise ValueError(f"unknown precondition {key[:80]!r}: {did_you_mean(key[:80], WHEN_KEYS)}")
    if not _is_texts(values):
        raise ValueError(f"{key} must be a list of texts")
    if len(values) > MAX_VALUES or any(len(value) > MAX_VALUE for value in values):
        raise ValueError(
            f"{key} holds more than {MAX_VALUES} texts, or longer than {MAX_VALUE} characters"
        )
    if key in _FORMS and not all(map(_FORMS[key][0], values)):
        raise ValueError(f"{key} must hold {_FORMS[key][1]}")


def _is_texts(values: object) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(v, str) and v for v in values)


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
