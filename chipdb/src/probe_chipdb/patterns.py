"""Patterns of names: literal text with fields, as the rows of `data/rules` have them.

`{any}, compute capability{*}` fits "geforce rtx 4090, compute capability 8.9", with the field any.

A field is a kind of text (KINDS below), a named set of words, or words with `|` between; the empty
word makes it optional. `{label@kind}` gives it another label. Fields take as little as they can,
numbers all their digits. A word of a table of words becomes what it means.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Protocol

    Gate = tuple[str, tuple[str, ...]]

    class Words(Protocol):
        """Words and what each means, by the name of their set or table."""

        def get(self, name: str, default: Mapping[str, str], /) -> Mapping[str, str]: ...


_HEX = frozenset("0123456789abcdef")


def _is_balanced(text: str) -> bool:
    """Whether each parenthesis and bracket that opens closes, and the reverse."""
    opening = text.count("(") + text.count("[")
    if opening != text.count(")") + text.count("]"):
        return False
    depth = 0
    for letter in text if opening else "":
        if letter in "()[]":
            depth += 1 if letter in "([" else -1
            if depth < 0:
                return False
    return True


def _is_part(text: str) -> bool:
    """Whether a text is balanced, and no comma is outside of its parentheses."""
    if "," not in text:
        return text != "" and _is_balanced(text)
    heads = (text[:at] for at, letter in enumerate(text) if letter == ",")
    return _is_balanced(text) and not any(map(_is_balanced, heads))


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and text[:1] != "."


def _is_hex(text: str) -> bool:
    return bool(text) and _HEX.issuperset(text)


def _is_version(text: str) -> bool:
    return "." in text and text.replace(".", "").isdecimal()


_APART = " ,()/"
"""Letters that may stand between two words."""


def _is_before(text: str) -> bool:
    return text[-1:] in _APART


def _is_after(text: str) -> bool:
    return text[:1] in _APART


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))


def _is_slice(text: str) -> bool:
    """A profile of MIG: `1g.10gb`, `1c.3g.40gb`, `1g.10gb+me`."""
    slices, dot, memory = text.partition("+")[0].rpartition(".")
    units = slices.rpartition(".")[2]
    digits = memory.removesuffix("gb")
    counted = units.endswith("g") and units[:-1].isdecimal()
    return bool(dot) and counted and digits != memory and digits.isdecimal()


def _is_vgpu(text: str) -> bool:
    """A profile of NVIDIA's virtual GPUs: `8q`, `40c`, `2b4`."""
    kind = text.lstrip("0123456789")
    version = kind[1:]
    return (
        text[:1].isdecimal() and kind[:1] in tuple("qcba") and (not version or version.isdecimal())
    )


KINDS: "dict[str, Callable[[str], bool]]" = {
    "*": lambda text: True,
    "any": bool,
    "name": lambda text: text != "" and _is_balanced(text),
    "in": _is_balanced,
    "part": _is_part,
    "w": lambda text: text != "" and " " not in text,
    "quoted": lambda text: text != "" and '"' not in text and "'" not in text,
    "alnum": lambda text: text.isalnum(),
    "before": _is_before,
    "after": _is_after,
    "numbered": lambda text: " " not in text and _has_digit(text),
    "model": lambda text: _has_digit(text.rpartition(" ")[2]),
    "number": _is_number,
    "version": _is_version,
    "slice": _is_slice,
    "vgpu": _is_vgpu,
}
"""Each kind of field: whether a text is one."""
_NUMERALS = frozenset("0123456789")
_DIGITS = {
    "letter": (frozenset("abcdefghijklmnopqrstuvwxyz"), 1, 1),
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


class BadPattern(ValueError):
    """A pattern that is none, and why."""


_MOST_GATES = 70


_MOST_STEPS = 500
"""Ends of fields that are tried: what fits takes some dozens, junk would take millions."""


class Pattern:
    """A pattern that was read."""

    __slots__ = ("_literals", "_nodes", "_words")

    def __init__(self, text: str, sets: "Words") -> None:
        """Read a pattern. Raises BadPattern for an unknown kind or an unclosed field."""
        self._nodes = tuple(_nodes(text, sets))
        self._literals = tuple(node for node in self._nodes if isinstance(node, str))
        words = (node.words for node in self._nodes if isinstance(node, _Field))
        self._words = tuple(own for own in words if own and "" not in own)

    def fields(self, text: str) -> "dict[str, str] | None":
        """The fields of a text that fits as a whole, by label; None where it does not."""
        for literal in self._literals:  # in C, and most texts lack one
            if literal not in text:
                return None
        for words in self._words:
            if not any(map(text.__contains__, words)):
                return None
        found: dict[str, str] = {}
        return found if _fit(self._nodes, 0, text, 0, found, [_MOST_STEPS]) else None

    def usual(self) -> str:
        """What a row makes of a text without saying so: its field any, name or part."""
        labels = [node.label for node in self._nodes if isinstance(node, _Field)]
        usual = next((label for label in ("any", "name", "part") if label in labels), "")
        if not usual:
            raise BadPattern("it has no field any, name or part; write what the text becomes")
        return f"{{{usual}}}"

    def gate(self) -> "Gate":
        """The texts that say most: of which few names hold one."""
        return max(self.runs(), key=_rarity)

    def runs(self) -> "Iterator[Gate]":
        """Yield texts of which a name holds at least one where the pattern fits: where, and which.

        "head" or "tail", where the name begins or ends with one, else "any".
        """
        first = self._nodes[0]
        if not isinstance(first, str) and first.digits and first.digits[0] is _NUMERALS:
            yield "head", tuple(sorted(_NUMERALS))
        at = 0
        while at < len(self._nodes):
            texts: tuple[str, ...] = ("",)
            end = at
            while end < len(self._nodes) and (own := _own_texts(self._nodes[end])):
                longer = tuple(text + more for text in texts for more in own)
                if len(longer) > _MOST_GATES:
                    break
                texts, end = longer, end + 1
            where = "head" if not at else "tail" if end == len(self._nodes) else "any"
            yield where if all(texts) else "any", tuple(dict.fromkeys(texts))
            at = max(end, at + 1)


def _rarity(gate: "Gate") -> tuple[int, ...]:
    """How few names pass a gate: by letters, by an end, by a mark in each text."""
    where, texts = gate
    shortest = min(len(text.strip()) for text in texts)
    marked = all(not text.replace(" ", "").isalnum() for text in texts)
    at_end = where != "any" and shortest > 0
    return (min(shortest, 3), at_end, marked, -len(texts), shortest)


class _Field:
    """A field. words: what it may be, or empty. kind: what it is, where any text may be it."""

    __slots__ = ("by_letter", "digits", "empty", "is_kind", "label", "meanings", "words")

    def __init__(self, label: str, kind: str, meanings: "Mapping[str, str]") -> None:
        words = tuple(meanings)
        self.label = label
        self.meanings = meanings
        of_words = _OF_WORDS.get(kind[:1]) if "|" not in kind else None
        self.words = () if of_words else words
        self.empty = ("",) if "" in words else ()
        self.by_letter = {
            word[0]: tuple(other for other in words if other[:1] in ("", word[0]))
            for word in words
            if word
        }
        self.is_kind = KINDS.get(kind) or (of_words(words) if of_words and words else None)
        self.digits = _DIGITS.get(kind)
        if not (words or self.is_kind or self.digits):
            raise BadPattern(f"{{{kind}}} is no kind of field and no set of words")


def _own_texts(node: "str | _Field") -> tuple[str, ...]:
    """What a literal or a field of words may be; nothing for a field of any other kind."""
    return (node,) if isinstance(node, str) else node.words


def _holding(words: tuple[str, ...]) -> "Callable[[str], bool]":
    return lambda text: any(map(text.__contains__, words)) and _is_balanced(text)


def _other(words: tuple[str, ...]) -> "Callable[[str], bool]":
    return lambda text: text.isalpha() and text not in words


_OF_WORDS = {"+": _holding, "-": _other}
"""`{+set}` is any text with a word of the set in it, `{-set}` a word of letters that is none."""


def _nodes(text: str, sets: "Words") -> "Iterator[str | _Field]":
    literal, opened, rest = text.partition("{")
    while True:
        if literal:
            yield literal
        if not opened:
            return
        field, closed, rest = rest.partition("}")
        if not closed:
            raise BadPattern(f"{text!r} has a field that does not end")
        label, _, kind = field.rpartition("@")
        words = kind.split("|") if "|" in kind else ()
        meanings = dict(zip(words, words, strict=True)) or sets.get(kind.lstrip("+-"), {})
        yield _Field(label or kind, kind, meanings)
        literal, opened, rest = rest.partition("{")


def _fit(
    nodes: "tuple[str | _Field, ...]",
    at: int,
    text: str,
    start: int,
    found: dict[str, str],
    steps: list[int],
) -> bool:
    """Whether the nodes from `at` on fit the text from `start` on; `found` gets the fields."""
    while at < len(nodes):
        node = nodes[at]
        at += 1
        if isinstance(node, str):
            if not text.startswith(node, start):
                return False
            start += len(node)
        elif node.digits:
            end = _end_of_digits(node.digits, text, start)
            if end < 0 or not _fit(nodes, at, text, end, found, steps):
                return False
            found[node.label] = text[start:end]
            return True
        else:
            for end in _ends(node, nodes, at, text, start, steps):
                if _fit(nodes, at, text, end, found, steps):
                    found[node.label] = node.meanings.get(text[start:end], text[start:end])
                    return True
            return False
    return start == len(text)


def _end_of_digits(digits: "tuple[frozenset[str], int, int]", text: str, start: int) -> int:
    """Where digits that begin at `start` end, or -1 where there are too few."""
    letters, least, most = digits
    end = start
    while end - start < most and text[end : end + 1] in letters:
        end += 1
    return end if end - start >= least else -1


def _ends(
    node: _Field,
    nodes: "tuple[str | _Field, ...]",
    at: int,
    text: str,
    start: int,
    steps: list[int],
) -> "Iterator[int]":
    """Where a field that begins at `start` may end, the nearest first. at: of the next node."""
    if node.words:
        for word in node.by_letter.get(text[start : start + 1], node.empty):
            steps[0] -= 1
            if steps[0] >= 0 and text.startswith(word, start):
                yield start + len(word)
    elif is_kind := node.is_kind:
        for end in _stops(nodes[at], text, start) if at < len(nodes) else (len(text),):
            steps[0] -= 1
            if steps[0] < 0:
                return
            if is_kind(text[start:end]):
                yield end


def _stops(following: "str | _Field", text: str, start: int) -> "Iterable[int]":
    """Where what follows a field may begin."""
    if isinstance(following, str):
        return _found(following, text, start)
    if following.words and "" not in following.words:
        return sorted({at for word in following.words for at in _found(word, text, start)})
    return range(start, len(text) + 1)


def _found(word: str, text: str, start: int) -> "Iterator[int]":
    at = text.find(word, start)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)
