"""The rules of names: rows of `data/rules` as the build has compiled them, and how they apply."""

from probe_chipdb.table import ALL_OF, EDGE, INDEX, ONE_OF, RULES, built_text, items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_chipdb.patterns import Pattern, Words


_MOST_LETTERS = 1024
"""Of what a row makes of a text: one that doubles it would double it again."""
_MOST = 32
"""Rewritings of one text: five times what the longest line of a log takes."""


class Rule:
    """One row: what a text must hold and be, and what it becomes.

    of, kinds: the group of kinds of names whose row it is, and the kinds; empty for every kind.
    needs: groups of texts, of each of which a text between edges holds one where the row fits.
    """

    __slots__ = ("_pattern", "_row", "_sets", "_unless", "kinds", "needs", "of")

    def __init__(self, line: str, sets: "Words") -> None:
        self.of, kinds, needs, *self._row = line.split("\t")
        self.kinds = kinds.split(",") if kinds else ()
        self.needs = [texts.split(ONE_OF) for texts in needs.split(ALL_OF)] if needs else []
        self._sets = sets
        self._pattern: Pattern | None = None
        self._unless: Pattern | None = None

    def applied(self, text: str) -> str:
        """What the text becomes; empty where the row does not fit."""
        pattern, to, unless = self._row
        if self._pattern is None:  # read late: a process asks a few names, and has 350 rows
            from probe_chipdb.patterns import Pattern

            self._pattern = Pattern(pattern, self._sets)
            self._unless = Pattern(unless, self._sets) if unless else None
        fields = self._pattern.fields(text)
        if fields is None or (self._unless and self._unless.fields(text) is not None):
            return ""
        for label, value in fields.items():
            if label != "*":
                to = to.replace("{" + label + "}", value)
        return " ".join(to.split())[:_MOST_LETTERS]


class Rules:
    """Rules of names: sets of words, and rows by stage, each stage in its order."""

    __slots__ = ("_roles", "_sets", "_stages", "_words", "_written", "groups")

    def __init__(self, *texts: str) -> None:
        """Read texts that `entry.name_rules` writes: a later one adds behind those before."""
        self.groups: dict[str, list[str]] = {}
        self._written: dict[str, list[str]] = {}  # words and meanings, unread
        self._words: dict[str, dict[str, str]] = {}
        self._sets: dict[str, tuple[str, ...]] = {}
        self._stages: dict[str, list[_Rows]] = {}
        self._roles: dict[str, tuple[str, str]] = {}
        # Not splitlines(): a pattern may hold a separator that only Unicode takes for a line's end.
        for text in texts:
            rows: dict[str, list[str]] = {}
            for line in filter(None, text.split("\n")):
                stage, _, columns = line.partition("\t")
                name, _, rest = columns.partition("\t")
                if stage == "word":
                    self._written.setdefault(name, []).append(rest)
                elif stage == "group":
                    self.groups[name] = items(rest)
                elif stage == "index":  # behind the rows of its stage
                    self._stages.setdefault(name, []).append(_Rows(rows[name], rest, self))
                else:
                    rows.setdefault(stage, []).append(columns)

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
        for _ in range(_MOST):
            for rule in self._passing(text, stage):
                own = not (kind and rule.kinds) or kind in rule.kinds
                if own and (not but or rule.of != but):
                    rewritten = rule.applied(text)
                    if rewritten and rewritten != text:
                        text = rewritten
                        break
            else:
                break
        return text

    def every(self, text: str, stage: str) -> "Iterator[str]":
        """Yield what each row of a stage makes of a text that fits it."""
        return filter(None, (rule.applied(text) for rule in self._passing(text, stage)))

    def _passing(self, text: str, stage: str) -> "Iterator[Rule]":
        """Yield the rules of a stage whose needs a text holds, in their order."""
        text = f"{EDGE}{text}{EDGE}"
        for rows in self._stages.get(stage, ()):
            for at in rows.found(text):
                rule = rows.rule(at)
                for texts in rule.needs:  # loops: `any` costs a call for each row
                    for need in texts:
                        if need in text:
                            break
                    else:
                        break
                else:
                    yield rule


class _Rows:
    """The rows of one stage in one text, found by letters of a text that each needs.

    Lines and index are read as far as texts ask: a process asks a few names.
    """

    __slots__ = ("_index", "_lines", "_read", "_rules", "_sets")

    def __init__(self, lines: list[str], index: str, sets: "Words") -> None:
        self._lines = lines
        columns = index.split(INDEX)
        self._index = dict(zip(columns[::2], columns[1::2], strict=True))
        self._read: dict[str, list[tuple[str, list[int]]]] = {}
        self._rules: dict[int, Rule] = {}
        self._sets = sets

    def found(self, text: str) -> "list[int]":
        """The places of the rows that a text between edges may fit, in their order."""
        found: list[int] = []
        read = self._read
        for key in keys_of(text) & self._index.keys():
            for need, rows in read.get(key) or self._entries(key):
                if need in text:
                    found += rows
        return sorted({*found}) if found else found

    def rule(self, at: int) -> Rule:
        """The rule of a row."""
        rule = self._rules.get(at)
        if rule is None:
            rule = self._rules[at] = Rule(self._lines[at], self._sets)
        return rule

    def _entries(self, key: str) -> "list[tuple[str, list[int]]]":
        entries = [entry.split(ALL_OF) for entry in self._index[key].split(ONE_OF)]
        self._read[key] = read = [(need, [*map(int, rows.split())]) for need, rows in entries]
        return read


def keys_of(text: str) -> "set[str]":
    """What the texts in a text may stand under in an index: a letter, up to three at an edge."""
    return {"", *text, text[:2], text[:3], text[-2:], text[-3:]}


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
