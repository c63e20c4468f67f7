"""Answer a shell at Tab: the words that can be typed next, in the form that its script reads."""

from __future__ import annotations

from probe_core.cli.candidates import WORDS, candidates
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["answer", "split"]


def answer(shell: str, words: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each word that can be typed next, then what kind of answer it is.

    `words` are what was typed: for bash the line and the characters at which bash itself breaks
    words, for the others each word, with the one that is being typed last.
    """
    if shell == "bash":
        line, breaks = [*words, "", ""][:2]
        words = split(line)
        typed = words[-1]
        # bash replaces only what follows the last of these: `--only=nv`, `pci:0000`.
        replaced = max((typed.rfind(char) + 1 for char in breaks if char in "=:"), default=0)
    else:
        replaced = 0
    kind, offered = candidates(list(words[1:]) or [""], environ)
    for value, about in offered:
        text = clean_text(value[replaced:])
        yield f"{text}\t{clean_text(about)}" if about and shell != "bash" else text
    yield kind if offered or kind != "nospace" else WORDS


def split(line: str) -> list[str]:
    """Return the words of an unfinished line as bash reads them; the last may be empty."""
    import shlex

    if (len(line) - len(line.rstrip("\\"))) % 2:  # it ends in the middle of an escape
        line = line[:-1]
    for ending in ("", "'", '"'):
        try:
            words = shlex.split(line + ending)
        except ValueError:  # inside of a quotation
            continue
        open_word = bool(ending) or not line[-1:].isspace()
        return words if open_word and words else [*words, ""]
    return [line]
