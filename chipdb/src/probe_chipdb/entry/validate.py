"""Validates entries field by field: a bad optional value goes, a bad identity takes the entry."""

from typing import cast

from probe_chipdb.entry import fields
from probe_chipdb.entry.formats import FormatFiles
from probe_chipdb.entry.name_rules import RuleFiles
from probe_chipdb.entry.spec import ListOf, Problem, Spec, Table, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.entry.fields import ArchEntry, ChipEntry, FamilyEntry, NameEntry, SourceEntry
    from probe_chipdb.rules import Rules

Raw = dict[str, object]
"""A table as TOML gives it."""

_TABLES = ("family", "chip", "arch", "source", "publishers")
MAX_FAULTS = 100
"""Mistakes of one file that are listed: a file with more is no chip file, and takes long."""
_INHERITED = ("kind", "vendor", "source", "unknown", "form_factor")  # from a file's [family]


class Data:
    """Good entries by id or key, and the problems of the bad ones.

    where: "chip:id", "arch:id" or "source:key" to the file that has it.
    names: "amazon/p5" to the chips for which Amazon's p5 stands.
    publishers: distribution to the vendors whose namespaces it may add to.
    rules: how names are read. formats: which number formats architectures have.
    unnamed: ids of chips whose own name means another chip: their names find nothing.
    """

    __slots__ = (
        "archs", "chips", "formats", "names", "problems", "publishers", "rules", "sources",
        "unnamed", "where",
    )  # fmt: skip

    def __init__(self, base: "Rules | None" = None) -> None:
        """base: the rules of names to which these add; None for the project's own data."""
        self.chips: dict[str, ChipEntry] = {}
        self.archs: dict[str, ArchEntry] = {}
        self.sources: dict[str, SourceEntry] = {}
        self.names: dict[str, NameEntry] = {}
        self.rules = RuleFiles(base)
        self.formats = FormatFiles()
        self.problems: list[Problem] = []
        self.publishers: dict[str, list[str]] = {}
        self.unnamed: set[str] = set()
        self.where: dict[str, str] = {}

    def add_chips(self, file: str, tables: Raw) -> None:
        """A chips file: [family], [[chip]], and optional [arch.*] and [source.*] of its own."""
        for key in tables:
            if key not in _TABLES:
                self._report(file, "", key, "is no known table", did_you_mean(key, _TABLES))
        publishers = tables.get("publishers", {})
        if isinstance(publishers, dict):
            self.add_publishers(file, publishers)
        else:
            self._report(file, "", "publishers", "is no table", "write [publishers]")
        defaults = self._family(file, tables)
        for kind in ("arch", "source"):
            inner = tables.get(kind, {})
            if isinstance(inner, dict):
                self.add_named(kind, file, inner)
            else:
                self._report(file, "", kind, "is no table", f"write [{kind}.name]")
        chips = tables.get("chip", [])
        if not isinstance(chips, list):
            self._report(file, "", "chip", "is no list", "write [[chip]]")
            return
        before = len(self.problems)
        for at, entry in enumerate(chips):
            self._add_chip(file, at, entry, defaults)
            if len(self.problems) - before > MAX_FAULTS:
                fault = f"has more than {MAX_FAULTS} mistakes: what follows is left out"
                self._report(file, "", "", fault, "correct these first")
                return

    def add_named(self, kind: str, file: str, tables: Raw) -> None:
        """A file of architectures ("arch") or sources ("source"): one table each."""
        spec = fields.arch if kind == "arch" else fields.source
        before = len(self.problems)
        for name, entry in tables.items():
            if len(self.problems) - before > MAX_FAULTS:
                return
            label, key = f"[{name}]", f"{kind}:{name}"
            if not isinstance(entry, dict) or any(fields.source_key.faults(name, "")):
                self._report(file, label, "", "is no entry", "write [a-lower-case-key]")
                continue
            if self._is_taken(file, label, key):
                continue
            good = self._validated(file, label, entry, spec)
            if good is not None:
                self._add_entry(kind, name, good)
                self.where[key] = file

    def add_names(self, file: str, scheme: str, tables: Raw) -> None:
        """A file of names that others write: one table each. scheme: who writes them."""
        for text, entry in tables.items():
            label, key = f"[{text}]", f"name:{scheme}/{text}"
            if not isinstance(entry, dict) or any(fields.name_key.faults(text, "")):
                self._report(file, label, "", "is no entry", "write [a-lower-case-name]")
            elif good := self._validated(file, label, entry, fields.name):
                self.names[f"{scheme}/{text}"] = cast("NameEntry", good)
                self.where[key] = file

    def add_rules(self, file: str, tables: Raw) -> None:
        """A file of rules: groups of kinds, sets of words, and a list of rows for each stage."""
        for key, value in tables.items():
            faults = list(fields.RULES[key].faults(value, key)) if key in fields.RULES else []
            for field, fault, fix in faults:
                self._report(file, "", field, fault, fix)
            if key not in fields.RULES:
                self._report(file, "", key, "is no stage", did_you_mean(key, fields.RULES))
            elif not faults:
                self.rules.add(key, value, file)

    def check_rows(self) -> None:
        """Report rows that cannot be compiled: once all files, and with them all sets, are read."""
        for (stage, row), file in zip(self.rules.rows, self.rules.files, strict=True):
            if fault := self.rules.fault(row):
                self._report(file, f"{stage} {row['pattern']!r}", "pattern", fault, "correct it")

    def add_formats(self, file: str, tables: Raw) -> None:
        """A file of number formats: groups of architectures, reasons, and a list of rows."""
        for key, value in tables.items():
            spec = fields.FORMAT_TABLES.get(key)
            faults = list(spec.faults(value, key)) if spec else []
            for field, fault, fix in faults:
                self._report(file, "", field, fault, fix)
            if spec is None:
                self._report(file, "", key, "is no table", did_you_mean(key, fields.FORMAT_TABLES))
            elif not faults:
                self.formats.add(key, value)

    def add_publishers(self, file: str, tables: Raw) -> None:
        """A list of publishers: `distribution = ["vendor", ...]`."""
        for name, vendors in list(tables.items())[:MAX_FAULTS]:
            for field, fault, fix in fields.publisher.faults(vendors, name):
                self._report(file, "[publishers]", field, fault, fix)
                break
            else:
                self.publishers[distribution_name(name)] = cast("list[str]", vendors)

    def _add_entry(self, kind: str, name: str, good: Raw) -> None:
        # The specification has checked each key and type of the TypedDict.
        if kind == "arch":
            self.archs[name] = cast("ArchEntry", good)
        else:
            self.sources[name] = cast("SourceEntry", good)

    def _family(self, file: str, tables: Raw) -> "FamilyEntry":
        entry = tables.get("family")
        if entry is None:
            if tables.get("chip"):
                self._report(file, "[family]", "", "is missing", "add title and vendor")
            return {}
        if not isinstance(entry, dict):
            self._report(file, "[family]", "", "is no table", "write [family]")
            return {}
        good, _ = self._good_fields(file, "[family]", entry, fields.family)
        return cast("FamilyEntry", good)

    def _add_chip(self, file: str, at: int, entry: object, defaults: "FamilyEntry") -> None:
        name = entry.get("id") if isinstance(entry, dict) else None
        label = f"chip {name!r}" if isinstance(name, str) else f"chip number {at + 1}"
        if not isinstance(entry, dict):
            self._report(file, label, "", "is no table", "write [[chip]]")
            return
        good = self._validated(file, label, entry, fields.chip)
        if good is None or self._is_taken(file, label, f"chip:{good['id']}"):
            return
        chip = _with_defaults(good, defaults)
        prefix = chip["id"].partition("/")[0]
        if chip["vendor"] != prefix:
            fault = f"begins with {prefix!r}, but the vendor is {chip['vendor']!r}"
            self._report(file, label, "id", fault, "make them the same")
            return
        self.chips[chip["id"]] = chip
        self.where[f"chip:{chip['id']}"] = file

    def _is_taken(self, file: str, label: str, key: str) -> bool:
        if key not in self.where:
            return False
        fault = f"the id is used already in {self.where[key]}"
        self._report(file, label, "id", fault, "give it another id, or merge the two")
        return True

    def _validated(self, file: str, label: str, entry: Raw, spec: Table) -> Raw | None:
        """The entry without its bad fields; None when a required one was among them."""
        good, complete = self._good_fields(file, label, entry, spec)
        return good if complete else None

    def _good_fields(self, file: str, label: str, entry: Raw, spec: Table) -> tuple[Raw, bool]:
        """The entry without its bad fields, and whether it has all that are required."""
        bad = set()
        for at, (field, fault, fix) in enumerate(spec.faults(entry, "")):
            if at >= MAX_FAULTS:
                return {}, False
            self._report(file, label, field, fault, fix)
            bad.add(_top(field))
        good = {key: value for key, value in entry.items() if key not in bad}
        for key in bad:
            value = _good_part(entry.get(key), spec.keys.get(key))
            if value:
                good[key] = value
        return good, all(key in good for key in spec.need)

    def _report(self, file: str, label: str, field: str, fault: str, fix: str) -> None:
        self.problems.append(Problem(file, label, field, fault, fix))


def distribution_name(text: str) -> str:
    """The one spelling of a distribution's name: `Acme_Chips 1.2` is `acme-chips`."""
    name = text.partition(" ")[0].lower()
    for mark in "_.":
        name = name.replace(mark, "-")
    return "-".join(filter(None, name.split("-")))


def _with_defaults(good: Raw, defaults: "FamilyEntry") -> "ChipEntry":
    """The chip with the values of its file's [family], where it has none of its own."""
    inherited = {key: value for key, value in defaults.items() if key in _INHERITED}
    vendor = str(good["id"]).partition("/")[0]
    family = defaults.get("title", "")
    return cast(
        "ChipEntry", {"kind": "gpu", "vendor": vendor, **inherited, "family": family, **good}
    )


def _top(field: str) -> str:
    """`clock` of `clock.boost`, `pci` of `pci[2]`, `explain` of `explain."fp32"`."""
    return field.partition(".")[0].partition("[")[0].partition('"')[0]


def _good_part(value: object, spec: Spec | None) -> object:
    """What is still good of a table or list that holds something bad; None of anything else."""
    if isinstance(value, list) and isinstance(spec, ListOf):
        return [item for item in value[: spec.most] if _is_good(item, spec.each)]
    if not (isinstance(value, dict) and isinstance(spec, Table)):
        return None
    good = {key: item for key, item in value.items() if _is_good(item, spec.keys.get(key))}
    return good if all(key in good for key in spec.need) else None


def _is_good(value: object, spec: Spec | None) -> bool:
    return spec is not None and not any(spec.faults(value, ""))
