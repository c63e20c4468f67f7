"""The rules of names: rows of `data/rules` as the build has compiled them, and how they apply."""

from probe_chipdb.table import RULES, built_text, items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_chipdb.patterns import Pattern, Words


_MOST_LETTERS = 1024
"""Of what a row makes of a text: one that doubles it would double it again."""
_MOST = 32
"""Rewritings of one text: five times what the longest line of a log takes."""


class Rule:
    """One row: what a text must be, and what it becomes."""

    __slots__ = ("_parts", "_pattern", "_sets", "_unless")

    def __init__(self, pattern: str, to: str, unless: str, sets: "Words") -> None:
        self._parts = (pattern, to, unless)
        self._sets = sets
        self._pattern: Pattern | None = None
        self._unless: Pattern | None = None

    def applied(self, text: str) -> str:
        """What the text becomes; empty where the row does not fit."""
        if self._pattern is None:  # read late: a process asks a few names, and has 350 rows
            from probe_chipdb.patterns import Pattern

            pattern, _, unless = self._parts
            self._pattern = Pattern(pattern, self._sets)
            self._unless = Pattern(unless, self._sets) if unless else None
        fields = self._pattern.fields(text)
        if fields is None or (self._unless and self._unless.fits(text)):
            return ""
        text = self._parts[1]
        for label, value in fields.items():
            if label != "*":
                text = text.replace("{" + label + "}", value)
        return " ".join(text.split())[:_MOST_LETTERS]


class Rules:
    """Rules of names: sets of words, and rows by stage, each stage in its order."""

    __slots__ = ("_chosen", "_roles", "_rows", "_sets", "_words", "_written", "groups")

    def __init__(self, *texts: str) -> None:
        """Read texts that `entry.name_rules` writes: a later one adds behind those before."""
        self.groups: dict[str, list[str]] = {}
        self._written: dict[str, list[str]] = {}  # words and meanings, unread
        self._words: dict[str, dict[str, str]] = {}
        self._sets: dict[str, tuple[str, ...]] = {}
        self._rows: dict[str, list[str]] = {}
        self._roles: dict[str, tuple[str, str]] = {}
        self._chosen: dict[tuple[str, str, str], _Stage] = {}
        # Not splitlines(): a pattern may hold a separator that only Unicode takes for a line's end.
        for line in filter(None, "".join(texts).split("\n")):
            stage, _, columns = line.partition("\t")
            if stage == "word":
                name, _, columns = columns.partition("\t")
                self._written.setdefault(name, []).append(columns)
            elif stage == "group":
                name, _, columns = columns.partition("\t")
                self.groups[name] = items(columns)
            else:
                self._rows.setdefault(stage, []).append(columns)

    def set(self, name: str) -> tuple[str, ...]:
        """The words of a set, in the order of the data; none of an unknown one."""
        words = self._sets.get(name)
        if words is None:
            words = self._sets[name] = tuple(self.words(name))
        return words

    def words(self, name: str) -> "dict[str, str]":
        """The words of a table and what each means; those of a set mean themselves."""
        meanings = self._words.get(name)
        if meanings is None:
            meanings = self._words[name] = {}
            for line in self._written.get(name, ()):
                columns = line.split("\t")
                for word, meaning in zip(items(columns[0]), items(columns[-1]), strict=True):
                    meanings.setdefault(word, meaning)
        return meanings

    def get(self, name: str, default: "Mapping[str, str]") -> "Mapping[str, str]":
        """What a field of a pattern may be, and means; `default` for an unknown name."""
        return self.words(name) if name in self._written else default

    def roles(self) -> "dict[str, tuple[str, str]]":
        """What each word beside a product is: the table that has it, and its meaning there."""
        if not self._roles:
            for table in ("factor", "memory", "edition", "beside", "silent"):
                for word, meaning in self.words(table).items():
                    self._roles[word] = (table, meaning)
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

    def every(self, text: str, stage: str) -> "Iterator[str]":
        """Yield what each row of a stage makes of a text that fits it."""
        chosen = self._chosen.get((stage, "", "")) or self._choose(stage, "", "")
        return filter(None, (rule.applied(text) for rule in chosen.gated(text)))

    def _choose(self, stage: str, kind: str, but: str) -> "_Stage":
        chosen = self._chosen[stage, kind, but] = _Stage(self)
        for line in self._rows.get(stage, ()):
            of, kinds, *row = line.split("\t")
            if (not (kind and kinds) or kind in kinds.split(",")) and (not but or of != but):
                chosen.add(*row)
        return chosen


class _Stage:
    """The rules of one stage and kind, behind the texts without which they do not fit.

    The first texts are compared with all gates: most processes ask a few names, and sorting the
    gates took half of such a look-up.
    """

    __slots__ = ("_edges", "_gates", "_inside", "_looks", "_rules", "_sets", "_wide", "rows")

    def __init__(self, sets: "Words") -> None:
        self.rows: list[tuple[str, str, str]] = []
        self._rules: dict[int, Rule] = {}  # those of rows whose gate some text held
        self._sets = sets
        self._gates: list[list[str]] = []
        self._looks = 0
        # Gates by a part of theirs: up to two letters at an edge, the rarest letter of others.
        self._edges: dict[str, dict[str, list[int]]] = {}
        self._inside: dict[str, dict[str, list[int]]] = {}
        self._wide: dict[str, list[int]] = {}  # those that no ASCII text holds

    def add(self, gates: str, pattern: str, to: str, unless: str) -> None:
        """Add a row behind the others."""
        edged = gates.replace("\\n", _EDGE)  # all that `items` does for nearly every row
        self._gates.append(items(gates) if "\\" in edged else edged.split("|"))
        self.rows.append((pattern, to, unless))

    def gated(self, text: str) -> "Sequence[Rule]":
        """The rules whose gate a text holds, in their order."""
        self._looks += 1
        if self._looks == _FEW:
            self.sort()
        text = f"{_EDGE}{text}{_EDGE}"
        found = self.compared(text) if self._looks < _FEW else self.sorted(text)
        return [self.rule(at) for at in found]

    def rule(self, at: int) -> Rule:
        """The rule of a row."""
        rule = self._rules.get(at)
        if rule is None:
            rule = self._rules[at] = Rule(*self.rows[at], self._sets)
        return rule

    def compared(self, text: str) -> "Sequence[int]":
        """The places of the rows of which a text holds a gate, by a look at each."""
        found = []
        for at, gates in enumerate(self._gates):  # loops: `any` costs a call for each row
            for gate in gates:
                if gate in text:
                    found.append(at)
                    break
        return found

    def sort(self) -> None:
        """Sort the gates, once and for all: no row comes after that."""
        for at, gates in enumerate(self._gates):
            for gate in gates:
                if not gate.isascii():
                    self._wide.setdefault(gate, []).append(at)
                    continue
                part = min(gate, key=_COMMON.find, default="")
                groups = self._inside
                if _EDGE in gate and gate != _EDGE:
                    part = gate[:3] if gate[0] == _EDGE else gate[-3:]
                    groups = self._edges
                groups.setdefault(part, {}).setdefault(gate, []).append(at)

    def sorted(self, text: str) -> "Sequence[int]":
        """What `compared` returns, by the sorted gates."""
        ends = (text[:2], text[:3], text[-2:], text[-3:])
        groups = [self._edges[part] for part in ends if part in self._edges]
        for part, gates in self._inside.items():
            if part in text:
                groups.append(gates)
        if not text.isascii():
            groups.append(self._wide)
        found: list[int] = []
        for gates in groups:  # loops: a comprehension costs a call, and this is most of a look-up
            for gate, rows in gates.items():
                if gate in text:
                    found += rows
        return sorted({*found}) if found else ()


_FEW = 64
"""Texts that are compared with all gates of a stage: 60 to 150 of them take as long as sorting, in
the stages that have many gates (CPython 3.11)."""

_EDGE = "\n"  # of a name in a gate: see `patterns.EDGE`, whose module few names need
_COMMON = "jzwyk97h5f83642b1uxvlsmocpdtgnie0ra "
"""Letters that many names hold, those that most do last."""


_built: Rules | None = None


def built() -> Rules:
    """The rules that ship in this package. Raises OSError where the table was not built."""
    global _built
    if _built is None:
        _built = Rules(built_text(RULES))
    return _built


def use(rules: Rules) -> None:
    """Take other rules for the built ones: a build makes those that it needs itself."""
    global _built
    _built = rules
