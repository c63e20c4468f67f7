"""What the probers reported: checked field by field, and collected with outcomes and findings.

A bad value becomes unknown, with the reason, and the device stays: one wrong number must not hide
a GPU, nor one wrong id beside a sound one. Only a device without a usable id or kind is refused.
"""

from __future__ import annotations

from probe_core.model.device import FIELDS
from probe_core.model.field import MAX_ITEMS, Ids, Items, Rejected, TableOf, show
from probe_core.model.ids import FAILURES, fits_kind, single, strength
from probe_core.pipeline.merge import Observation
from probe_core.wording import INVALID, clean_text, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from probe_core.isolation.launch import Unresponsive
    from probe_core.isolation.run import Run
    from probe_core.model.document import DeviceDoc, FindingDoc, Json, OutcomeDoc, Sighting
    from probe_core.model.field import Field, Value
    from probe_core.registry.prober import Decision, Prober

    Key = tuple[object, ...]
    Load = Callable[[str], object]

__all__ = [
    "Checking",
    "Collected",
    "Repeats",
    "check_sighting",
    "checked",
    "failed",
]

_REQUIRED = ("ids", "kind")
_UNKNOWN_LIMIT = 400
"""Characters of a reason that a prober gives: two lines of a terminal, as in its sentences."""

_FLAT = frozenset((str, int, float, bool, type(None)))
"""Types of plain data that hold no other."""


class Repeats(dict["Key | None", dict[str, "Json"]]):
    """Accepted tables of one prober's sightings: equal devices repeat most of their links.

    Only flat ones, of which a shallow copy shares nothing. The key has the types beside the values,
    as True, 1 and 1.0 are equal. It refers to the raw values, so it needs no bound of its own.
    """

    __slots__ = ()

    def key(self, owner: object, value: object) -> Key | None:
        """Return the key of a flat table that `owner` checks; None for what cannot be kept."""
        if type(value) is not dict:
            return None
        items = value.values()
        types = [type(item) for item in items]  # faster than `map`, which cannot be specialised
        if not _FLAT.issuperset(types):
            return None
        # 0.0 and -0.0 are equal, of one type, and different JSON.
        if float in types and any(type(item) is float and not item for item in items):
            return None
        return (owner, *value, *items, *types)


def check_sighting(
    raw: object, repeats: Repeats | None = None
) -> tuple[Sighting | None, list[str]]:
    """Return (sighting with checked fields, sentences about rejected values).

    The sighting is None when it has no id, or no known kind, to be merged by. `repeats` keeps what
    was accepted of the same prober's earlier sightings.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        text = str(raw[INVALID]) if isinstance(raw, dict) else type(raw).__name__
        return None, [f"a device must be a mapping, found {clean_text(text)}"]
    checker = _Checker(repeats if repeats is not None else Repeats())
    fields = _expanded(raw) if "memory_bytes" in raw else raw
    for name, value in fields.items():
        if value is not None and name != "unknown":
            checker.take(name, value)
    if reasons := raw.get("unknown"):
        checker.unknown.update(_reasons(reasons))
    checker.take_fitting_ids()
    missing = next((name for name in _REQUIRED if not checker.fields.get(name)), None)
    if missing is not None:
        checker.problems.append(f"a device has no usable {missing!r}, so it was left out")
        return None, checker.problems
    # The table of fields has made sure of every key and type.
    sighting: Any = checker.fields
    sighting["unknown"] = checker.unknown
    return sighting, checker.problems


def _expanded(raw: dict[str, object]) -> dict[str, object]:
    """Return the sighting with its one shorthand, `memory_bytes`, written out."""
    memory = raw.get("memory")
    table = dict(memory) if isinstance(memory, dict) else {}
    table.setdefault("total", raw["memory_bytes"])
    return {name: value for name, value in raw.items() if name != "memory_bytes"} | {
        "memory": table
    }


class _Checker:
    """One sighting while it is checked."""

    __slots__ = ("_repeats", "fields", "problems", "unknown")

    def __init__(self, repeats: Repeats) -> None:
        self._repeats = repeats
        self.fields: dict[str, Json] = {}
        self.unknown: dict[str, str] = {}
        self.problems: list[str] = []

    def take(self, name: str, value: object) -> None:
        """Check one field and keep it, or note why not."""
        field = FIELDS.get(name)
        if field is None or not field.reported:
            self.problems.append(f"the field {clean_text(name, 60)!r} is not one of a device's")
        elif field.is_table:
            self._take_table(field, value)
        elif isinstance(field.value, Ids):
            # Those that can be used: a device is known as surely by one as by several. The others
            # are not noted in `unknown`, which is for fields that have no value.
            ids, problems = field.value.usable(value)
            self.problems += [f"ids: {problem}" for problem in problems]
            if ids:
                self.fields["ids"] = [*ids]
        else:
            try:
                # Nearly all fields are single values, which pay for no second call.
                if field.nested:
                    self.fields[name] = self._checked_tables(field.value, value)
                else:
                    self.fields[name] = field.value.check(value)
            except Rejected as error:
                self._reject(name, str(error))

    def _checked_tables(self, kind: Value, value: object) -> Json:
        """Check a list of tables: links and steps, of which few differ between equal devices."""
        if not (isinstance(kind, Items) and isinstance(value, list) and len(value) <= kind.limit):
            return kind.check(value)
        tables: list[Json] = []
        for item in value:
            key = self._repeats.key(kind.item, item)
            known = self._repeats.get(key)
            if known is not None:
                tables.append(known.copy())
                continue
            table = kind.item.check(item)
            tables.append(table)
            if key is not None and isinstance(table, dict):
                self._repeats[key] = table.copy()
        return tables

    def _take_table(self, field: Field, value: object) -> None:
        """Take a table as it was accepted before, else name by name."""
        key = self._repeats.key(field, value)
        known = self._repeats.get(key)
        if known is not None:
            self.fields[field.name] = known.copy()
            return
        problems = len(self.problems)
        table = self._checked_table(field, value)
        if table:
            self.fields[field.name] = table
            if key is not None and len(self.problems) == problems:
                self._repeats[key] = table.copy()

    def _checked_table(self, field: Field, value: object) -> dict[str, Json]:
        """Check a table name by name; each is kept or rejected on its own."""
        table: dict[str, Json] = {}
        if not isinstance(value, dict) or INVALID in value:
            self._reject(field.name, f"expected a table, found {show(value)}")
            return table
        if len(value) > MAX_ITEMS:
            self.problems.append(f"{field.name}: only the first {MAX_ITEMS} names were kept")
        fields = field.fields or {}
        other = field.value.value if isinstance(field.value, TableOf) else None
        for key, item in list(value.items())[:MAX_ITEMS]:
            declared = fields.get(key)
            try:
                if declared is not None:
                    if item is not None:
                        table[key] = declared.value.check(item)
                elif other is None:
                    raise Rejected("is not a field of it")
                elif item is not None:
                    table[clean_text(key, 40)] = other.check(item)
            except Rejected as error:
                self._reject(f"{field.name}.{clean_text(key, 40)}", str(error))
        return table

    def take_fitting_ids(self) -> None:
        """Leave out ids that no device of this kind has: they would join it to another's."""
        ids, kind = self.fields.get("ids"), self.fields.get("kind")
        if isinstance(ids, list) and isinstance(kind, str):
            for identity in [*ids]:
                if not fits_kind(str(identity), kind):
                    self.problems.append(f"ids: {identity} is no id of a {kind}")
                    ids.remove(identity)

    def _reject(self, path: str, reason: str) -> None:
        self.unknown[path] = reason
        self.problems.append(f"{path}: {reason}")


def _reasons(raw: object) -> dict[str, str]:
    """Return a prober's own reasons for what it does not know, with safe text."""
    if not isinstance(raw, dict):
        return {}
    return {
        clean_text(field, 80): clean_text(reason, _UNKNOWN_LIMIT)
        for field, reason in list(raw.items())[:MAX_ITEMS]
        if isinstance(reason, str)
    }


# From runs to what the report says: sightings to merge, outcomes, and findings about probers.


MAX_REJECTIONS = 4
"""Rejected values that a sentence lists: a wrong unit is rejected of every device alike."""


def failed(outcome: OutcomeDoc) -> bool:
    """Return whether an outcome may hide an accelerator: a failure, or hardware not queried.

    What was only in part queried is a failure too: a device that a prober had to go around.
    """
    status = outcome["status"]
    return status in FAILURES or status == "unavailable" or bool(outcome.get("avoided"))


class Collected:
    """Everything the probers reported, checked, in the order in which it came in.

    `unresponsive` are pairs of a prober's name and a device that it had to go around. With
    `verbose` the outcome of a child keeps what it printed also where it succeeded. `load` is called
    with the part of `gate` that is needed where something went wrong.
    """

    __slots__ = (
        "_early",
        "_load",
        "_runs",
        "findings",
        "observations",
        "outcomes",
        "unresponsive",
        "verbose",
    )

    def __init__(self, verbose: bool = False, load: Load = bool) -> None:
        self.verbose = verbose
        self._load = load
        self._early: dict[Run, Checking] = {}
        self._runs: list[tuple[int, Run, OutcomeDoc]] = []  # behind how many findings each came
        self.observations: list[Observation] = []
        self.outcomes: list[OutcomeDoc] = []
        self.findings: list[FindingDoc] = []
        self.unresponsive: list[tuple[str, Unresponsive]] = []

    def add(
        self,
        prober: Prober,
        sightings: Sequence[object],
        findings: Sequence[object] = (),
        *,
        early: Checking | None = None,
        status: str = "ok",
        reason: str | None = None,
        elapsed_ms: float = 0.0,
        stderr: Iterable[str] = (),
        rejected: Iterable[str] = (),
    ) -> None:
        """Check one prober's sightings and findings, and note its outcome.

        `rejected` are sentences about values that were rejected before; `early` has checked some of
        the sightings.
        """
        good, problems = checked(sightings, early)
        problems = [*problems, *rejected]
        self.observations += [Observation(prober.name, prober.priority, each) for each in good]
        is_invalid = status == "ok" and bool(problems) and not good
        if findings or (problems and not is_invalid):
            self._load("failures")
            from probe_core.pipeline.failures import reported

            self.findings += reported(prober, findings, [] if is_invalid else problems)
        if is_invalid:
            status, reason = "invalid", "; ".join(problems[:MAX_REJECTIONS])
        partial = bool(good) and status in FAILURES | {"unavailable"}
        self._note(prober, status, reason, partial, len(good), elapsed_ms, stderr)

    def add_builtin(
        self,
        prober: Prober,
        sightings: Sequence[Sighting],
        details: Mapping[str, str | None],
        *,
        status: str,
        reason: str | None,
        elapsed_ms: float,
    ) -> None:
        """Take a built-in prober's answer, and what it lacks; `details` go into its outcome."""
        self.add(prober, sightings, status=status, reason=reason, elapsed_ms=elapsed_ms)
        outcome = self.outcomes[-1]
        outcome.update(details)  # type: ignore[typeddict-item]
        if failed(outcome):
            self._load("failures")
            from probe_core.pipeline.failures import without_answer

            self.findings += without_answer(prober, outcome)

    def check(self, run: Run, device: object) -> Sighting | None:
        """Check a device while others are still asked: a library takes as long for the next one."""
        if run not in self._early:
            self._early[run] = Checking()
        return self._early[run].take(device)[0]

    def add_all(self, runs: Iterable[Run], decisions: Iterable[Decision]) -> None:
        """Take the runs of children and of recorded answers, and note what was not run."""
        for run in runs:
            self.add_run(run, self._early.get(run))
        for decision in decisions:
            if decision.cause is not None:
                self._note(decision.prober, "skipped", decision.reason, False, 0, 0.0, ())
                self.outcomes[-1]["code"] = decision.cause

    def add_run(self, run: Run, early: Checking | None = None) -> None:
        """Take the run of a child, of which `early` may have checked what came first."""
        # Of several processes together, or recorded: `Run` bounds what one process sends.
        from probe_core.isolation import MAX_DEVICES, MAX_FINDINGS

        status = run.status or "protocol"
        keeps_output = self.verbose or status in FAILURES or "phase" in run.details
        if len(run.sightings) > MAX_DEVICES:
            run.rejected.append(f"more than {MAX_DEVICES} devices; the first were kept")
        self.add(
            run.prober,
            run.sightings[:MAX_DEVICES],
            run.findings[:MAX_FINDINGS],
            early=early,
            status=status,
            reason=run.reason,
            elapsed_ms=(run.ended - run.started) * 1000,
            rejected=run.rejected,
            stderr=run.stderr_tail() if keeps_output else (),
        )
        outcome = self.outcomes[-1]
        outcome.update(run.details)  # type: ignore[typeddict-item]
        self._runs.append((len(self.findings), run, outcome))
        if run.unresponsive:
            self._load("failures")
            from probe_core.pipeline.failures import mark_unresponsive

            self.unresponsive += mark_unresponsive(run, outcome, self.observations)

    def add_failures(self, devices: Sequence[DeviceDoc]) -> None:
        """Add what is to say of failed runs, behind each one's own, once the processes were ended.

        Not before: of a process that cannot be ended the finding says that alone. `devices` are
        the report's: those over which a prober hung or died are told by name.
        """
        for place, run, outcome in reversed(self._runs):
            # If only over one device, or after the last.
            if run.stuck or "phase" in outcome or failed(outcome):
                self._load("failures")
                from probe_core.pipeline.failures import findings_about

                self.findings[place:place] = findings_about(run, outcome)
        if self.unresponsive:
            from probe_core.pipeline.failures import unresponsive_findings

            self.findings += unresponsive_findings(self.unresponsive, devices)

    def has_devices(self) -> bool:
        """Return whether anything else than processors was reported."""
        return any(each.sighting["kind"] != "cpu" for each in self.observations)

    def _note(
        self,
        prober: Prober,
        status: str,
        reason: str | None,
        partial: bool,
        devices: int,
        elapsed_ms: float,
        stderr: Iterable[str],
    ) -> None:
        outcome: OutcomeDoc = {
            "prober": prober.name,
            "distribution": prober.owner,
            "status": status,
            "reason": reason,
            "partial": partial,
            "devices": devices,
            "elapsed_ms": round(elapsed_ms, 3),
        }
        tail = list(stderr)
        if tail:
            outcome["stderr"] = tail
        self.outcomes.append(outcome)


class Checking:
    """Sightings of one prober while they are checked, each after those before it."""

    __slots__ = ("_known", "_repeats", "good", "problems", "raw")

    def __init__(self) -> None:
        self.good: list[Sighting] = []
        self.problems: list[str] = []
        self.raw: list[object] = []
        self._known: dict[str, Sighting] = {}
        self._repeats = Repeats()

    def take(self, raw: object) -> tuple[Sighting | None, list[str]]:
        """Check the next one; return it and what is wrong: of two that are one device the first."""
        sighting, problems = check_sighting(raw, self._repeats)
        self.raw.append(raw)
        if sighting is not None and (repeated := sorted(self._known.keys() & sighting["ids"])):
            sighting = self._apart(sighting, repeated, problems)
        if sighting is not None:
            self._known.update(dict.fromkeys(sighting["ids"], sighting))
            self.good.append(sighting)
        self.problems += problems
        return sighting, problems

    def _apart(
        self, sighting: Sighting, repeated: Sequence[str], problems: list[str]
    ) -> Sighting | None:
        """Return a device without the `repeated` ids, which others have; None where it is those."""
        others = [self._known[identity] for identity in repeated]
        if not _is_another(sighting, others):
            problems.append(f"two devices have the id {joined(repeated)}; the first was kept")
            return None
        for identity, other in zip(repeated, others, strict=True):
            first = min(other["ids"], key=strength)
            problems.append(f"ids: {identity} is the id of {first}, which came first")
        return {**sighting, "ids": [i for i in sighting["ids"] if i not in self._known]}


def checked(
    sightings: Sequence[object], early: Checking | None = None
) -> tuple[list[Sighting], list[str]]:
    """Check sightings, of which `early` may have checked the first ones already."""
    checking = early or Checking()
    pairs = zip(checking.raw, sightings, strict=False)
    if len(checking.raw) > len(sightings) or any(ours is not theirs for ours, theirs in pairs):
        checking = Checking()  # a prober's several processes are sorted by device
    for raw in sightings[len(checking.raw) :]:
        checking.take(raw)
    return checking.good, checking.problems


def _is_another(sighting: Sighting, others: Iterable[Sighting]) -> bool:
    """Return whether an id proves that a device is none of `others`, with which it shares one.

    Firmware may give two cards one UUID; two PCI addresses are two cards all the same. The order of
    the proof is that of `merge`: the strongest id decides.
    """
    strongest = min(sighting["ids"], key=strength)
    kind = single(strongest)
    return kind is not None and all(
        strongest not in other["ids"] and kind in map(single, other["ids"]) for other in others
    )
