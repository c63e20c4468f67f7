"""Compiles the rules of names: rows of `data/rules` to the lines that `rules.Rules` reads."""

from typing import TypedDict, cast

from probe_chipdb.patterns import BadPattern, Pattern
from probe_chipdb.rules import Rules, is_plain
from probe_chipdb.spelling import KINDS
from probe_chipdb.table import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
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
    """

    __slots__ = ("files", "groups", "none", "rows", "sets", "words")

    def __init__(self) -> None:
        self.groups: dict[str, list[str]] = {}
        self.sets: dict[str, list[str]] = {}
        self.words: dict[str, dict[str, str]] = {}
        self.none: list[NoneRow] = []
        self.rows: list[tuple[str, RuleRow]] = []
        self.files: list[str] = []

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

    def compiled(self) -> str:
        """The text of the built table, without the rows that have a fault."""
        sets = [("set", name, _listed(words)) for name, words in self.sets.items()]
        words = [
            ("word", name, _listed([*meanings]), _listed([*meanings.values()]))
            for name, meanings in self.words.items()
        ]
        rows = [(stage, *_columns(row, self)) for stage, row in self.rows if not self.fault(row)]
        none = [("none", row["of"], row["reason"], _listed(row["words"])) for row in self.none]
        return "".join("\t".join(line) + "\n" for line in (*sets, *words, *none, *rows))

    def without(self, at: int) -> Rules:
        """The rules but for one row."""
        fewer = RuleFiles()
        fewer.groups, fewer.sets, fewer.none = self.groups, self.sets, self.none
        fewer.words = self.words
        fewer.rows = [*self.rows[:at], *self.rows[at + 1 :]]
        return Rules(fewer.compiled())


def _columns(row: RuleRow, rules: RuleFiles) -> "Iterator[str]":
    sets = rules.words | {name: tuple(words) for name, words in rules.sets.items()}
    pattern, unless, of = Pattern(row["pattern"], sets), row.get("unless", ""), row.get("of", "")
    if unless:
        Pattern(unless, sets)
    gate = pattern.gate()
    yield of
    yield ",".join(rules.groups[of] if of else KINDS)
    yield "1" if all(any(map(is_plain, texts)) for texts in pattern.texts()) else ""
    yield gate.where
    yield _listed(gate.texts)
    yield row["pattern"]
    yield row.get("to", "") or pattern.usual()
    yield unless


def _listed(words: "list[str] | tuple[str, ...]") -> str:
    return "|".join(map(escape, words))
