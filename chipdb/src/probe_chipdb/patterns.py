"""Patterns of names: literal text with fields, as the rows of `data/rules` have them.

`{any}, compute capability{*}` fits "geforce rtx 4090, compute capability 8.9", with the field any.

A field is a kind of text (KINDS below), a named set of words, or words with `|` between; the empty
word makes it optional. `{label@kind}` gives it another label. Fields take as little as they can,
numbers all their digits. A word of a table of words becomes what it means.
"""

from probe_chipdb.table import EDGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Protocol

    class Words(Protocol):
        """Words and what each means, by the name of their set or table."""

        def get(self, name: str, default: Mapping[str, str], /) -> Mapping[str, str]: ...


_MOST_TEXTS = 70  # of one run
_MOST_TAILS = 12  # texts with which a pattern may end
_MANY = 8  # words of a field, from which on their first letters choose among them
_MOST_STEPS = 500
"""Ends of fields that are tried: what fits takes some dozens, junk would take millions."""


class BadPattern(ValueError):
    """A pattern that is none, and why."""


class Pattern:
    """A pattern that was read."""

    __slots__ = ("_first", "_nodes")

    def __init__(self, text: str, sets: "Words") -> None:
        """Read a pattern. Raises BadPattern for an unknown kind or an unclosed field."""
        self._nodes = tuple(_nodes(text, sets))
        tails: tuple[str, ...] = ("",)
        following: _Node | None = None
        for node in reversed(self._nodes):
            node.next, node.tails = following, tails
            tails = tuple(own + tail for own in node.words for tail in tails)
            tails = tails if len(tails) <= _MOST_TAILS else ()
            following = node
        self._first = self._nodes[0] if self._nodes else None

    def fields(self, text: str) -> "dict[str, str] | None":
        """The fields of a text that fits as a whole, by label; None where it does not."""
        found: dict[str, str] = {}
        return found if _fit(self._first, text, 0, found, [_MOST_STEPS]) else None

    def usual(self) -> str:
        """What a row makes of a text without saying so: its field any, name or part."""
        labels = [node.label for node in self._nodes]
        usual = next((label for label in ("any", "name", "part") if label in labels), "")
        if not usual:
            raise BadPattern("it has no field any, name or part; write what the text becomes")
        return f"{{{usual}}}"

    def runs(self) -> "Iterator[tuple[str, ...]]":
        """Yield texts of which a name between edges holds at least one where the pattern fits."""
        texts: tuple[str, ...] = (EDGE,)
        for node in self._nodes:
            longer = tuple(text + own for text in texts for own in node.words)
            if 0 < len(longer) <= _MOST_TEXTS:
                texts = longer
                continue
            digits = node.digits[0] if node.digits and EDGE in texts else ""
            begun = tuple(text + digit for text in texts for digit in digits)
            yield begun if 0 < len(begun) <= _MOST_TEXTS else texts
            yield node.held
            texts = node.words or ("",)
        yield tuple(text + EDGE for text in texts)


class _Node:
    """A literal or a field. words: what it may be, or empty. is_kind: whether a text is one.

    held: words of which a text of its kind holds at least one. begun: many words by their first
    letters. tails: the texts that may follow it up to the end, where they are few.
    """

    __slots__ = (
        "begun", "digits", "held", "is_kind", "label", "literal", "meanings", "next", "tails",
        "words",
    )  # fmt: skip

    def __init__(self, label: str, kind: str, meanings: "Mapping[str, str]") -> None:
        self.label = label
        self.meanings = meanings
        self.words = tuple(meanings)
        self.literal = "" if label else self.words[0]
        self.digits = _DIGITS.get(kind)
        self.is_kind = None if meanings else KINDS.get(kind)
        # `{+set}` is any text with a word of the set in it, `{-set}` letters that are none.
        self.next: _Node | None = None
        self.tails: tuple[str, ...] = ()
        self.held: tuple[str, ...] = ("",)
        if meanings and kind[:1] in ("+", "-") and "|" not in kind:
            words, self.words = self.words, ()
            self.is_kind = _holding(words) if kind[0] == "+" else _other(words)
            self.held = words if kind[0] == "+" else ("",)
        self.begun: dict[str, list[str]] = {}
        if len(self.words) > _MANY and "" not in self.words:
            for word in self.words:
                self.begun.setdefault(word[0], []).append(word)
        if not (self.words or self.is_kind or self.digits):
            raise BadPattern(f"{{{kind}}} is no kind of field and no set of words")

    def ends(self, text: str, start: int) -> "Iterable[int]":
        """Where it may end in a text in which it begins at `start`, the nearest first."""
        if self.words:
            if not text.startswith(self.words, start):
                return ()
            words = self.begun[text[start]] if self.begun else self.words
            return [start + len(word) for word in words if text.startswith(word, start)]
        if self.digits:
            letters, least, most = self.digits
            part = text[start : start + most]
            count = len(part) - len(part.lstrip(letters))
            return (start + count,) if count >= least else ()
        if self.tails:
            ends = {len(text) - len(tail) for tail in self.tails if text.endswith(tail)}
            return sorted(end for end in ends if end >= start)
        return self.next.starts(text, start) if self.next else ()

    def starts(self, text: str, start: int) -> "Iterable[int]":
        """Where it may begin in a text from `start` on, the nearest first."""
        if not self.words or "" in self.words:
            return range(start, len(text) + 1)
        found = []
        for word in self.words:
            at = text.find(word, start)
            while at >= 0:
                found.append(at)
                at = text.find(word, at + 1)
        return sorted(found) if len(self.words) > 1 else found


def _nodes(text: str, sets: "Words") -> "Iterator[_Node]":
    while text:
        literal, opened, text = text.partition("{")
        if literal:
            yield _Node("", "", {literal: literal})
        if opened:
            field, closed, text = text.partition("}")
            if not closed:
                raise BadPattern(f"'{{{field}' has a field that does not end")
            label, _, kind = field.rpartition("@")
            words = kind.split("|") if "|" in kind else ()
            meanings = dict(zip(words, words, strict=True)) or sets.get(kind.lstrip("+-"), {})
            yield _Node(label or kind, kind, meanings)


def _fit(
    node: _Node | None, text: str, start: int, found: dict[str, str], steps: list[int]
) -> bool:
    """Whether a node and those behind it fit the text from `start` on; `found` gets the fields."""
    while node and node.literal:
        if not text.startswith(node.literal, start):
            return False
        start += len(node.literal)
        node = node.next
    if node is None:
        return start == len(text)
    for end in node.ends(text, start):
        steps[0] -= 1
        if steps[0] < 0:
            return False
        if node.is_kind and not node.is_kind(text[start:end]):
            continue
        if _fit(node.next, text, end, found, steps):
            if node.label:
                found[node.label] = node.meanings.get(text[start:end], text[start:end])
            return True
    return False


_NUMERALS = "0123456789"
_HEX = "0123456789abcdef"
_BRACKETS = frozenset("()[]")
_APART = " ,()/"
"""Letters that may stand between two words."""
_DIGITS = {
    "letter": ("abcdefghijklmnopqrstuvwxyz", 1, 1),
    "n": (_NUMERALS, 1, 9),
    "n2": (_NUMERALS, 1, 2),
    "n3": (_NUMERALS, 1, 3),
    "n5": (_NUMERALS, 1, 5),
    "n4": (_NUMERALS, 4, 4),
    "d1": (_NUMERALS, 1, 1),
    "d2": (_NUMERALS, 2, 2),
    "d3": (_NUMERALS, 3, 3),
    "hex": (_HEX, 1, 16),
    "hex1": (_HEX, 1, 1),
    "hex2": (_HEX, 2, 2),
    "hex4": (_HEX, 4, 4),
}
"""Fields that take all such letters that there are: which, the least and the most."""


def _is_balanced(text: str) -> bool:
    """Whether each parenthesis and bracket that opens closes, and the reverse."""
    depth = 0
    for letter in "" if _BRACKETS.isdisjoint(text) else text:
        depth += (letter in "([") - (letter in ")]")
        if depth < 0:
            return False
    return depth == 0


def _is_part(text: str) -> bool:
    """Whether a text is balanced, and no comma is outside of its parentheses."""
    heads = (text[:at] for at, letter in enumerate(text) if letter == ",")
    return text != "" and _is_balanced(text) and not any(map(_is_balanced, heads))


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))


def _fitting(pattern: str) -> "Callable[[str], bool]":
    own = Pattern(pattern, {})
    return lambda text: own.fields(text) is not None


def _holding(words: tuple[str, ...]) -> "Callable[[str], bool]":
    return lambda text: any(map(text.__contains__, words)) and _is_balanced(text)


def _other(words: tuple[str, ...]) -> "Callable[[str], bool]":
    return lambda text: text.isalpha() and text not in words


KINDS: "dict[str, Callable[[str], bool]]" = {
    "*": lambda text: True,
    "any": bool,
    "name": lambda text: text != "" and _is_balanced(text),
    "in": _is_balanced,
    "part": _is_part,
    "w": lambda text: text != "" and " " not in text,
    "quoted": lambda text: text != "" and '"' not in text and "'" not in text,
    "alnum": str.isalnum,
    "before": lambda text: text[-1:] in _APART,
    "after": lambda text: text[:1] in _APART,
    "numbered": lambda text: " " not in text and _has_digit(text),
    "model": lambda text: _has_digit(text.rpartition(" ")[2]),
    "number": lambda text: text.replace(".", "", 1).isdecimal() and text[:1] != ".",
    "version": lambda text: "." in text and text.replace(".", "").isdecimal(),
}
"""Each kind of field: whether a text is one."""
KINDS["slice"] = _fitting("{|1c.|2c.|3c.|4c.|7c.}{n}g.{n}gb{|+me|+gfx|+me.all}")
KINDS["vgpu"] = _fitting("{n}{q|c|b|a}{|1|2|3|4|5|6|7|8|9}")
