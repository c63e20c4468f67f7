"""Judges entries field by field: a bad optional value goes, a bad identity takes the entry."""

from probe_chipdb.entry import fields
from probe_chipdb.entry.problem import Problem
from probe_chipdb.entry.spec import ListOf, Spec, Table, did_you_mean

Entry = dict[str, object]


class Data:
    """Good entries by id or key, and the problems of the bad ones."""

    __slots__ = ("archs", "chips", "problems", "sources", "where")

    def __init__(self) -> None:
        self.chips: dict[str, Entry] = {}
        self.archs: dict[str, Entry] = {}
        self.sources: dict[str, Entry] = {}
        self.problems: list[Problem] = []
        self.where: dict[str, str] = {}  # "chip:id", "arch:id", "source:key" -> file

    def add_chips(self, file: str, tables: Entry) -> None:
        """A chips file: [family], [[chip]], and optional [arch.*] and [source.*] of its own."""
        for key in tables.keys() - {"family", "chip", "arch", "source"}:
            fix = did_you_mean(key, ("family", "chip", "arch", "source"))
            self.problems.append(Problem(file, "", key, "is no known table", fix))
        defaults = self._family(file, tables)
        for kind in ("arch", "source"):
            inner = tables.get(kind, {})
            if isinstance(inner, dict):
                self.add_named(kind, file, inner)
            else:
                self.problems.append(Problem(file, "", kind, "is no table", f"write [{kind}.name]"))
        chips = tables.get("chip", [])
        if not isinstance(chips, list):
            self.problems.append(Problem(file, "", "chip", "is no list", "write [[chip]]"))
            return
        for at, entry in enumerate(chips):
            self._chip(file, at, entry, defaults)

    def add_named(self, kind: str, file: str, tables: Entry) -> None:
        """A file of architectures ("arch") or sources ("source"): one table each."""
        spec = fields.arch if kind == "arch" else fields.source
        into = self.archs if kind == "arch" else self.sources
        for name, entry in tables.items():
            shown = f"[{name}]"
            if not isinstance(entry, dict) or next(fields.source_key.faults(name, ""), None):
                self.problems.append(
                    Problem(file, shown, "", "is no entry", "write [a-lower-case-key]")
                )
            elif self._twice(file, shown, f"{kind}:{name}"):
                continue
            else:
                good, fatal = self._judge(file, shown, entry, spec)
                if not fatal:
                    into[name] = good
                    self.where[f"{kind}:{name}"] = file

    def _family(self, file: str, tables: Entry) -> Entry:
        entry = tables.get("family")
        if entry is None:
            if tables.get("chip"):
                self.problems.append(
                    Problem(file, "[family]", "", "is missing", "add title and vendor")
                )
            return {}
        if not isinstance(entry, dict):
            self.problems.append(Problem(file, "[family]", "", "is no table", "write [family]"))
            return {}
        good, _ = self._judge(file, "[family]", entry, fields.family)
        return good

    def _chip(self, file: str, at: int, entry: object, defaults: Entry) -> None:
        name = entry.get("id") if isinstance(entry, dict) else None
        shown = f"chip {name!r}" if isinstance(name, str) else f"chip number {at + 1}"
        if not isinstance(entry, dict):
            self.problems.append(Problem(file, shown, "", "is no table", "write [[chip]]"))
            return
        good, fatal = self._judge(file, shown, entry, fields.chip)
        if fatal or self._twice(file, shown, f"chip:{good['id']}"):
            return
        chip: Entry = {"kind": "gpu"}
        chip.update((key, defaults[key]) for key in ("kind", "vendor", "source") if key in defaults)
        chip["family"] = defaults.get("title", "")
        chip.update(good)
        prefix = str(chip["id"]).partition("/")[0]
        if chip.setdefault("vendor", prefix) != prefix:
            self.problems.append(
                Problem(
                    file,
                    shown,
                    "id",
                    f"begins with {prefix!r}, but the vendor is {chip['vendor']!r}",
                    "make them the same",
                )
            )
            return
        self.chips[str(chip["id"])] = chip
        self.where[f"chip:{chip['id']}"] = file

    def _twice(self, file: str, shown: str, key: str) -> bool:
        if key not in self.where:
            return False
        what = f"the id is used already in {self.where[key]}"
        self.problems.append(
            Problem(file, shown, "id", what, "give it another id, or merge the two")
        )
        return True

    def _judge(self, file: str, shown: str, entry: Entry, spec: Table) -> tuple[Entry, bool]:
        """The entry without its bad fields, and whether a required one was among them."""
        bad = set()
        for field, what, fix in spec.faults(entry, ""):
            self.problems.append(Problem(file, shown, field, what, fix))
            bad.add(_top(field))
        good = {key: value for key, value in entry.items() if key not in bad}
        for key in list(bad):
            kept = _rest(entry.get(key), spec.keys.get(key))
            if kept:
                good[key] = kept
        return good, any(key not in good for key in spec.need)


def _top(field: str) -> str:
    return field.partition(".")[0].partition("[")[0].partition('"')[0]


def _rest(value: object, spec: Spec | None) -> object:
    """What is still good of a table or list that holds something bad."""
    if spec is None:
        return None
    if isinstance(value, dict) and isinstance(spec, Table):
        good = {
            key: item
            for key, item in value.items()
            if key in spec.keys and not any(spec.keys[key].faults(item, ""))
        }
        return good if all(key in good for key in spec.need) else None
    if isinstance(value, list) and isinstance(spec, ListOf):
        return [item for item in value if not any(spec.each.faults(item, ""))]
    return None
