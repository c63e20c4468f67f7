"""The rules of names: rows of `data/rules` as the build has compiled them, and how they apply."""

from probe_chipdb.table import items, rules_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from probe_chipdb.patterns import Pattern, Words


_MOST_LETTERS = 1024
"""Of what a row makes of a text: one that doubles it would double it again."""
_MOST = 32
"""Rewritings of one text: five times what the longest line of a log takes."""


class Rule:
    """One row: what a text must be, and what it becomes."""

    __slots__ = ("_parts", "_pattern", "_sets", "_unless", "of")

    def __init__(self, of: str, pattern: str, to: str, unless: str, sets: "Words") -> None:
        self.of = of
        self._parts = (pattern, to, unless)
        self._sets = sets
        self._pattern: Pattern | None = None
        self._unless: Pattern | None = None

    def applied(self, text: str) -> str:
        """What the text becomes; empty where the row does not fit."""
        fields = self.fields(text)
        return "" if fields is None else self._filled(fields)

    def fields(self, text: str) -> "dict[str, str] | None":
        """The fields of a text that the row fits, or None."""
        if self._pattern is None:  # read late: a process asks a few names, and has 150 rows
            from probe_chipdb.patterns import Pattern

            pattern, _, unless = self._parts
            self._pattern = Pattern(pattern, self._sets)
            self._unless = Pattern(unless, self._sets) if unless else None
        fields = self._pattern.fields(text)
        if fields is None or (self._unless and self._unless.fields(text) is not None):
            return None
        return fields

    def _filled(self, fields: "dict[str, str]") -> str:
        text = self._parts[1]
        for label, value in fields.items():
            if label != "*":
                text = text.replace("{" + label + "}", value)
        return " ".join(text.split())[:_MOST_LETTERS]


class Rules:
    """Rules of names: sets of words, and rows by stage, each stage in its order."""

    __slots__ = (
        "_chosen", "_meanings", "_roles", "_rows", "_sets", "_written", "groups",
    )  # fmt: skip

    def __init__(self, *texts: str) -> None:
        """Read texts that `entry.name_rules` writes: a later one adds behind those before."""
        self.groups: dict[str, list[str]] = {}
        self._written: dict[str, list[list[str]]] = {}  # sets and tables of words, unread
        self._sets: dict[str, tuple[str, ...]] = {}
        self._meanings: dict[str, dict[str, str]] = {}
        self._rows: dict[str, list[tuple[str, ...]]] = {}
        self._roles: dict[str, tuple[str, str]] | None = None
        self._chosen: dict[tuple[str, str, str], _Stage] = {}
        # Not splitlines(): a pattern may hold a separator that only Unicode takes for a line's end.
        for line in filter(None, "".join(texts).split("\n")):
            stage, *columns = line.split("\t")
            if stage in ("set", "word"):
                self._written.setdefault(columns[0], []).append(columns[1:])
            elif stage == "group":
                self.groups[columns[0]] = items(columns[1])
            else:
                self._rows.setdefault(stage, []).append(tuple(columns))

    def set(self, name: str) -> tuple[str, ...]:
        """The words of a set, in the order of the data; none of an unknown one."""
        words = self._sets.get(name)
        if words is None:
            words = self._sets[name] = tuple(self.words(name))
        return words

    def words(self, name: str) -> "dict[str, str]":
        """The words of a table and what each means; those of a set mean themselves."""
        meanings = self._meanings.get(name)
        if meanings is None:
            meanings = self._meanings[name] = {}
            for columns in self._written.get(name, ()):
                for word, meaning in zip(items(columns[0]), items(columns[-1]), strict=True):
                    meanings.setdefault(word, meaning)
        return meanings

    def roles(self) -> "dict[str, tuple[str, str]]":
        """What each word beside a product is: the table that has it, and its meaning there."""
        if self._roles is None:
            self._roles = {
                word: (table, meaning)
                for table in ("factor", "memory", "edition", "beside", "silent")
                for word, meaning in self.words(table).items()
            }
        return self._roles

    def rewritten(self, text: str, stage: str, kind: str = "", but: str = "") -> str:
        """The text when no row fits it any more.

        kind: of which texts the rows are. but: a group of rows that is left out.
        """
        chosen = self._chosen.get((stage, kind, but)) or self._choose(stage, kind, but)
        for _ in range(_MOST):
            for rule in chosen.gated(text):
                if (rewritten := rule.applied(text)) and rewritten != text:
                    text = rewritten
                    break
            else:
                break
        return text

    def every(self, text: str, stage: str, but: str = "") -> "Iterator[str]":
        """Yield what each row of a stage makes of a text that fits it, but for a group's rows."""
        chosen = self._chosen.get((stage, "", but)) or self._choose(stage, "", but)
        return filter(None, (rule.applied(text) for rule in chosen.gated(text)))

    def none(self, name: str, but: str = "") -> str:
        """Why a name in lower case is no chip's, by a word in it; empty where none is.

        but: a group of words that say nothing here.
        """
        return next(self.every(name, "none", but), "")

    def _choose(self, stage: str, kind: str, but: str) -> "_Stage":
        rows = (
            row
            for row in self._rows.get(stage, ())
            if (not (kind and row[1]) or kind in row[1].split(",")) and (not but or row[0] != but)
        )
        chosen = _Stage(list(rows), self)
        self._chosen[stage, kind, but] = chosen
        return chosen

    def get(self, name: str, default: "Mapping[str, str]") -> "Mapping[str, str]":
        """What a field of a pattern may be, and means; `default` for an unknown name."""
        return self.words(name) if name in self._written else default

    def texts(self) -> "dict[str, Mapping[str, str]]":
        """All that a field of a pattern may be, by the name of the set or table of words."""
        return {name: self.words(name) for name in self._written}


class _Stage:
    """The rules of one stage and kind, behind the texts without which they do not fit."""

    __slots__ = ("_any", "_heads", "_tails", "rules")

    def __init__(self, rows: "list[tuple[str, ...]]", sets: "Words") -> None:
        self.rules = [Rule(row[0], row[4], row[5], row[6], sets) for row in rows]
        groups: dict[str, dict[str, dict[str, list[int]]]] = {"head": {}, "tail": {}, "any": {}}
        for at, row in enumerate(rows):
            where = row[2]
            for gate in items(row[3]) or [""]:
                mark = {"head": gate[:1], "tail": gate[-1:]}.get(where) or _mark(gate)
                groups[where].setdefault(mark, {}).setdefault(gate, []).append(at)
        self._heads, self._tails, self._any = (
            {mark: (tuple(gates), gates) for mark, gates in own.items()} for own in groups.values()
        )

    def gated(self, text: str) -> "Iterable[Rule]":
        """The rules whose gate a text holds, in their order."""
        found: list[int] = []
        # Loops, for most of a look-up is spent here: a comprehension each costs a call.
        texts, gates = self._heads.get(text[:1], _NO_GATES)
        if texts and text.startswith(texts):
            for gate, rules in gates.items():
                if text.startswith(gate):
                    found += rules
        texts, gates = self._tails.get(text[-1:], _NO_GATES)
        if texts and text.endswith(texts):
            for gate, rules in gates.items():
                if text.endswith(gate):
                    found += rules
        for mark, (_, gates) in self._any.items():
            if mark in text:
                for gate, rules in gates.items():
                    if gate in text:
                        found += rules
        return [self.rules[at] for at in sorted(set(found))] if found else ()


_NO_GATES: "tuple[tuple[str, ...], dict[str, list[int]]]" = ((), {})
_MARKS = "\"[(|=@,:/'_-.qzjwkyvxbhfcpu"
"""Letters by which gates are grouped, those first that few names hold."""


def _mark(gate: str) -> str:
    return next((mark for mark in _MARKS if mark in gate), "")


_built: Rules | None = None


def built() -> Rules:
    """The rules that ship in this package. Raises OSError where the table was not built."""
    global _built
    if _built is None:
        _built = Rules(rules_text())
    return _built


def use(rules: Rules) -> None:
    """Take other rules for the built ones: a build makes those that it needs itself."""
    global _built
    _built = rules
