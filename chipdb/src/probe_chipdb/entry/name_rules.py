"""Compiles the rules of names: rows of `data/rules` to the lines that `rules.Rules` reads."""

from collections import Counter
from typing import TypedDict, cast

from probe_chipdb.patterns import BadPattern, Pattern
from probe_chipdb.rules import Rules, keys_of
from probe_chipdb.table import ALL_OF, EDGE, INDEX, ONE_OF, RULES, built_text, escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Required


class RuleRow(TypedDict, total=False):
    """One row of a stage. of: a group of kinds of names; without, the row is for every kind."""

    of: str
    pattern: "Required[str]"
    to: str
    unless: str
    example: "Required[str]"
    expect: "Required[str]"


class NoneRow(TypedDict):
    """Words of names that are no chip's, and why. of: the group of the words."""

    of: str
    words: list[str]
    reason: str
    example: str


class RuleFiles:
    """What all files say: groups of kinds, words, and each stage's rows in their order.

    words: sets and tables of words, and what each word means. files: of each row, the file that
    has it. base: the rules to which a package adds its own; None for the project's.
    """

    __slots__ = ("base", "files", "groups", "none", "rows", "words")

    def __init__(self, base: Rules | None = None) -> None:
        self.base = base
        self.groups: dict[str, list[str]] = dict(base.groups) if base else {}
        self.words: dict[str, dict[str, str]] = {}
        self.none: list[NoneRow] = []
        self.rows: list[tuple[str, RuleRow]] = []
        self.files: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.rows or self.none or self.words)

    def add(self, key: str, value: object, file: str = "") -> None:
        """One table of a file that the specification has checked."""
        if key == "group":
            self.groups.update(cast("dict[str, list[str]]", value))
        elif key == "set":
            for name, words in cast("dict[str, list[str]]", value).items():
                self.words[name] = dict(zip(words, words, strict=True))
        elif key == "word":
            self.words.update(cast("dict[str, dict[str, str]]", value))
        elif key == "none":
            self.none += cast("list[NoneRow]", value)
        else:
            for row in cast("list[RuleRow]", value):
                self.rows.append((key, row))
                self.files.append(file)

    def remove(self, at: int) -> None:
        """Leave out the row at a place."""
        del self.rows[at], self.files[at]

    def fault(self, row: RuleRow) -> str:
        """Why a row cannot be compiled, or the empty text."""
        if row.get("of", "") not in ("", *self.groups):
            return f"the group {row['of']!r} is not in [group]"
        try:
            self._columns(row)
        except BadPattern as error:
            return str(error)
        return ""

    def compiled(self) -> str:
        """The text of the built table, without the rows that have a fault."""
        return "".join((*self._head_lines(), *(line for _, line in self._row_lines())))

    def read(self) -> Rules:
        """The rules, behind those to which they add."""
        return Rules(built_text(RULES) if self.base else "", self.compiled())

    def without_each(self) -> "Iterator[Rules]":
        """Yield for each row the rules but for it."""
        base = built_text(RULES) if self.base else ""
        head, lines = "".join(self._head_lines()), [*self._row_lines()]
        for at in range(len(self.rows)):
            own = (_idle(line) if row == at else line for row, line in lines)
            yield Rules(base, "".join((head, *own)))

    def pattern(self, row: RuleRow) -> Pattern:
        """The pattern of a row, whose fields may be words of these files and of the base."""
        return Pattern(row["pattern"], self)

    def get(self, name: str, default: "Mapping[str, str]") -> "Mapping[str, str]":
        """What a field of a pattern may be, and means; `default` for an unknown name."""
        own = self.base.words(name) if self.base else {}
        return {**own, **self.words.get(name, {}), **own} or default

    def _head_lines(self) -> "Iterator[str]":
        """Yield the lines of groups and words."""
        for name, kinds in () if self.base else self.groups.items():
            yield _line("group", name, _listed(kinds))
        for name, meanings in self.words.items():
            both = (_listed(meanings), _listed(meanings.values()))
            yield _line("word", name, *dict.fromkeys(both))

    def _row_lines(self) -> "Iterator[tuple[int, str]]":
        """Yield the lines of each stage's rows and index, each with its row's place or -1."""
        stages: dict[str, list[tuple[int, list[str]]]] = {}
        for none in self.none:  # any text with one of the words, and what it becomes
            words = none["words"]
            pattern = f"{{*}}{{word@{'|'.join((*words, words[0]))}}}{{*}}"  # two, where one is
            to = f"none/{none['of']}='{{word}}' {' '.join(none['reason'].split())}"
            stages.setdefault("fact", []).append((-1, ["", "", pattern, to, ""]))
        for at, (stage, row) in enumerate(self.rows):
            if not self.fault(row):
                group, *columns = self._columns(row, stage)
                stages.setdefault(group, []).append((at, columns))
        index = _Index([f"{EDGE}{row['example'].lower()}{EDGE}" for _, row in self.rows])
        for stage, rows in stages.items():
            yield from index.lines(stage, rows, self)

    def _columns(self, row: RuleRow, stage: str = "") -> tuple[str, ...]:
        pattern, of = self.pattern(row), row.get("of", "")
        to, unless = row.get("to", ""), row.get("unless", "")
        if any(mark in text for mark in _TAKEN for text in (row["pattern"], unless, to)):
            raise BadPattern("it has a tab or a second line, or a control character")
        Pattern(unless, self)
        kinds = ",".join(self.groups[of]) if of else ""  # without a group, for every kind
        to = to or pattern.usual()
        if stage in ("share", "host"):  # told of a device beside the product
            stage, to = "fact", f"{stage}={to}"
        return stage, of, kinds, row["pattern"], to, unless


_TAKEN = ("\t", "\n", EDGE, ONE_OF, ALL_OF, INDEX)


class _Index:
    """Which texts a row is found by: those that fewest names hold, and that cost least to look for.

    samples: names between edges, for the shares of names that hold a text.
    """

    def __init__(self, samples: list[str]) -> None:
        self._samples = samples
        self._keys = Counter(key for sample in samples for key in keys_of(sample))
        self._holding: dict[str, int] = {}

    def lines(
        self, stage: str, rows: "list[tuple[int, list[str]]]", words: RuleFiles
    ) -> "Iterator[tuple[int, str]]":
        """Yield the lines of a stage's rows, with the other texts they need, and its index."""
        index: dict[str, dict[str, list[int]]] = {}
        for at, (place, (of, kinds, pattern, to, unless)) in enumerate(rows):
            needs = sorted(_needs(Pattern(pattern, words)), key=self._cost)
            for text in needs[0] if needs else ("",):
                index.setdefault(self._key(text), {}).setdefault(text, []).append(at)
            others = ALL_OF.join(map(ONE_OF.join, sorted(needs[1:], key=len)))
            yield place, _line(stage, of, kinds, others, pattern, to, unless)
        columns = []
        for key, texts in index.items():
            entries = (f"{text}{ALL_OF}{' '.join(map(str, at))}" for text, at in texts.items())
            columns += [key, ONE_OF.join(entries)]
        yield -1, _line("index", stage, INDEX.join(columns))

    def _cost(self, texts: tuple[str, ...]) -> float:
        """What a name costs: a try of the row where it holds a text, else a tenth for a look."""
        return sum(self._names(text) + self._keys[self._key(text)] / 10 for text in texts)

    def _names(self, text: str) -> int:
        """How many samples hold a text."""
        if text not in self._holding:
            self._holding[text] = sum(text in sample for sample in self._samples)
        return self._holding[text]

    def _key(self, text: str) -> str:
        """The key of a text that fewest samples have; empty for no text."""
        edge = {key for key in keys_of(text) if EDGE in key and len(key) > 1}
        return min(sorted(edge or text), key=self._keys.__getitem__, default="")


def _needs(pattern: Pattern) -> "Iterator[tuple[str, ...]]":
    """Yield groups of texts of each of which a name between edges holds one, if it fits."""
    for texts in dict.fromkeys(pattern.runs()):
        if "" not in texts and EDGE not in texts:
            yield tuple(text for text in texts if not any(_is_within(own, text) for own in texts))


def _is_within(text: str, other: str) -> bool:
    return text != other and text in other


def _idle(line: str) -> str:
    """The line of a row that needs what no name holds, in the place of another."""
    return _line(line.partition("\t")[0], "", "", INDEX, "", "", "")


def _line(*columns: str) -> str:
    return "\t".join(columns) + "\n"


def _listed(words: "Iterable[str]") -> str:
    return "|".join(map(escape, words))
