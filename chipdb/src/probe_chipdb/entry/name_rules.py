"""Compiles the rules of names: rows of `data/rules` to the lines that `rules.Rules` reads."""

from typing import TypedDict, cast

from probe_chipdb.patterns import BadPattern, Pattern
from probe_chipdb.rules import Rules
from probe_chipdb.table import escape, rules_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping
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
    """What all files say: groups of kinds, sets of words, and each stage's rows in their order.

    words: tables of words and what each means. files: of each row, the file that has it.
    base: the rules to which a package adds its own; None for the project's.
    """

    __slots__ = ("base", "files", "groups", "none", "rows", "sets", "words")

    def __init__(self, base: Rules | None = None) -> None:
        self.base = base
        self.groups: dict[str, list[str]] = dict(base.groups) if base else {}
        self.sets: dict[str, list[str]] = {}
        self.words: dict[str, dict[str, str]] = {}
        self.none: list[NoneRow] = []
        self.rows: list[tuple[str, RuleRow]] = []
        self.files: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.rows or self.none or self.sets or self.words)

    def add(self, key: str, value: object, file: str = "") -> None:
        """One table of a file that the specification has checked."""
        if key == "group":
            self.groups.update(cast("dict[str, list[str]]", value))
        elif key == "set":
            self.sets.update(cast("dict[str, list[str]]", value))
        elif key == "word":
            self.words.update(cast("dict[str, dict[str, str]]", value))
        elif key == "none":
            self.none += cast("list[NoneRow]", value)
        else:
            rows = cast("list[RuleRow]", value)
            self.rows += [(key, row) for row in rows]
            self.files += [file] * len(rows)

    def fault(self, row: RuleRow) -> str:
        """Why a row cannot be compiled, or the empty text."""
        if row.get("of", "") not in ("", *self.groups):
            return f"the group {row['of']!r} is not in [group]"
        try:
            list(_columns(row, self))
        except BadPattern as error:
            return str(error)
        return ""

    def _head_lines(self) -> list[str]:
        """The lines of groups, words and refusals."""
        groups = () if self.base else self.groups.items()
        kinds = [("group", name, _listed(kinds)) for name, kinds in groups]
        sets = [("set", name, _listed(words)) for name, words in self.sets.items()]
        words = [
            ("word", name, _listed([*meanings]), _listed([*meanings.values()]))
            for name, meanings in self.words.items()
        ]
        none = [_of_none(row) for row in self.none]
        return [*map(_line, (*kinds, *sets, *words, *none))]

    def _row_lines(self) -> list[str]:
        """Of each row its line, empty for one that has a fault."""
        return [
            "" if self.fault(row) else _line((stage, *_columns(row, self)))
            for stage, row in self.rows
        ]

    def compiled(self) -> str:
        """The text of the built table, without the rows that have a fault."""
        return "".join((*self._head_lines(), *self._row_lines()))

    def without_each(self) -> "Iterator[Rules]":
        """Yield for each row the rules but for it."""
        base = rules_text() if self.base else ""
        head, rows = "".join(self._head_lines()), self._row_lines()
        for at in range(len(rows)):
            yield Rules(base, head, *rows[:at], *rows[at + 1 :])

    def read(self) -> Rules:
        """The rules, behind those to which they add."""
        return Rules(*([rules_text()] if self.base else []), self.compiled())

    def remove(self, at: int) -> None:
        """Leave out the row at a place."""
        del self.rows[at], self.files[at]

    def texts(self) -> "dict[str, Mapping[str, str]]":
        """What a field of a pattern may be: see `Rules.texts`."""
        texts = self.base.texts() if self.base else {}
        sets = {name: dict(zip(words, words, strict=True)) for name, words in self.sets.items()}
        for name, meanings in (*sets.items(), *self.words.items()):
            texts[name] = {**texts.get(name, {}), **meanings, **texts.get(name, {})}
        return texts


def foreign(rules: RuleFiles, known: "Container[str]") -> "Iterator[tuple[int, str]]":
    """Yield each row that has no text of its own, by its place, and what is wrong.

    known: words of the names that others have. Such a row would be held against names of others.
    """
    for at, (_, row) in enumerate(rules.rows):
        if rules.fault(row):
            continue
        runs = [texts for _, texts in Pattern(row["pattern"], rules.texts()).runs()]
        if not any(all(_own(text, known) for text in texts) for texts in runs):
            words = sorted({word for texts in runs for text in texts for word in _words(text)})
            named = ", ".join(words[:_MOST_NAMED])
            yield (
                at,
                f"its text ({named}) is others', too" if named else "it has no text of its own",
            )


def named_words(rules: RuleFiles) -> "Iterator[tuple[int, list[str]]]":
    """Yield each row's place, and the words that its pattern names."""
    for at, (_, row) in enumerate(rules.rows):
        if not rules.fault(row):
            runs = Pattern(row["pattern"], rules.texts()).runs()
            texts = [text for _, run in runs for text in run]
            yield at, sorted({word for text in texts for word in _words(text)})


_MOST_NAMED = 4  # words in one sentence
_LEAST = 3  # letters of a word that names somebody


def _own(text: str, known: "Container[str]") -> bool:
    return any(len(word) >= _LEAST and word not in known for word in _words(text))


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text).split()


def _columns(row: RuleRow, rules: RuleFiles) -> "Iterator[str]":
    sets = rules.texts()
    pattern, unless, of = Pattern(row["pattern"], sets), row.get("unless", ""), row.get("of", "")
    if any(mark in text for mark in "\t\n" for text in (row["pattern"], unless, row.get("to", ""))):
        raise BadPattern("it has a tab or a second line")
    if unless:
        Pattern(unless, sets)
    where, gate = pattern.gate()
    yield of
    yield ",".join(rules.groups[of]) if of else ""  # without a group, for every kind
    yield where
    yield _listed(gate)
    yield row["pattern"]
    yield row.get("to", "") or pattern.usual()
    yield unless


def _of_none(row: NoneRow) -> tuple[str, ...]:
    """A row of the stage "none": any text with one of the words, and what it becomes."""
    words = row["words"]
    pattern = f"{{*}}{{word@{'|'.join((*words, words[0]))}}}{{*}}"  # two, where there is one
    reason = f"'{{word}}' {' '.join(row['reason'].split())}"
    return "none", row["of"], "", "any", _listed(words), pattern, reason, ""


def _line(columns: "Iterable[str]") -> str:
    return "\t".join(columns) + "\n"


def _listed(words: "list[str] | tuple[str, ...]") -> str:
    return "|".join(map(escape, words))
