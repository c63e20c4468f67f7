"""Compiles the rules of names: rows of `data/rules` to the lines that `rules.Rules` reads."""

from typing import TypedDict, cast

from probe_chipdb.patterns import BadPattern, Pattern
from probe_chipdb.rules import Rules
from probe_chipdb.table import RULES, built_text, escape

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
        return "".join((*self._head_lines(), *self._row_lines()))

    def read(self) -> Rules:
        """The rules, behind those to which they add."""
        return Rules(built_text(RULES) if self.base else "", self.compiled())

    def without_each(self) -> "Iterator[Rules]":
        """Yield for each row the rules but for it."""
        head, rows = "".join(self._head_lines()), self._row_lines()
        for at in range(len(rows)):
            yield Rules(built_text(RULES) if self.base else "", head, *rows[:at], *rows[at + 1 :])

    def pattern(self, row: RuleRow) -> Pattern:
        """The pattern of a row, whose fields may be words of these files and of the base."""
        return Pattern(row["pattern"], self)

    def get(self, name: str, default: "Mapping[str, str]") -> "Mapping[str, str]":
        """What a field of a pattern may be, and means; `default` for an unknown name."""
        own = self.base.words(name) if self.base else {}
        return {**own, **self.words.get(name, {}), **own} or default

    def _head_lines(self) -> "Iterator[str]":
        """Yield the lines of groups, words and refusals."""
        for name, kinds in () if self.base else self.groups.items():
            yield _line("group", name, _listed(kinds))
        for name, meanings in self.words.items():
            both = (_listed(meanings), _listed(meanings.values()))
            yield _line("word", name, *dict.fromkeys(both))
        for row in self.none:  # any text with one of the words, and what it becomes
            words = row["words"]
            pattern = f"{{*}}{{word@{'|'.join((*words, words[0]))}}}{{*}}"  # two, where one is
            fact = f"none/{row['of']}='{{word}}' {' '.join(row['reason'].split())}"
            yield _line("fact", "", "", _listed(words), pattern, fact, "")

    def _row_lines(self) -> list[str]:
        """Of each row its line, empty for one that has a fault."""
        return [
            "" if self.fault(row) else _line(*self._columns(row, stage)) for stage, row in self.rows
        ]

    def _columns(self, row: RuleRow, stage: str = "") -> tuple[str, ...]:
        pattern, of = self.pattern(row), row.get("of", "")
        to, unless = row.get("to", ""), row.get("unless", "")
        if any(mark in text for mark in "\t\n" for text in (row["pattern"], unless, to)):
            raise BadPattern("it has a tab or a second line")
        Pattern(unless, self)
        kinds = ",".join(self.groups[of]) if of else ""  # without a group, for every kind
        gate = _listed(pattern.gate())
        to = to or pattern.usual()
        if stage in ("share", "host"):  # told of a device beside the product
            stage, to = "fact", f"{stage}={to}"
        return stage, of, kinds, gate, row["pattern"], to, unless


def _line(*columns: str) -> str:
    return "\t".join(columns) + "\n"


def _listed(words: "Iterable[str]") -> str:
    return "|".join(map(escape, words))
