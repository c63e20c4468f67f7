"""Sentences for people: close names, safe text, joined lists. Written once, used by all errors."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


TEXT_LIMIT = 256
"""Characters of foreign text shown at most in a name; reasons may be four times as long."""


INVALID = "\x00invalid"
"""Key of the object that stands for a value which JSON cannot hold: ``{INVALID: reason}``.

The encoder in a prober's process writes it, validation in the host rejects the field that has it. A
NUL cannot begin a key that an author wrote: no hardware field is named so. Here and not in a module
of its own, because each prober's process imports this one anyway: a file more costs 60 µs.
"""

_LIKENESS = 0.6
"""difflib's own default: `nvidai` is 0.83 like `nvidia`, `zzz` is like nothing."""


def did_you_mean(name: str, candidates: Iterable[str], prefix: str = "") -> str:
    """Return ``did you mean 'x'?`` for the closest known name, else the list of them.

    `prefix` is what all names begin with: it makes no two of them alike.
    """
    names = sorted(candidates)
    if (match := closest(name, names, prefix)) is not None:
        return f"did you mean {match!r}?"
    return f"known: {', '.join(names)}" if names else "none is known"


def closest(name: str, candidates: Iterable[str], prefix: str = "") -> str | None:
    """Return the candidate that `name` was probably meant to be; None where none is near.

    What all names begin with (``--``, ``PROBE_``) goes into `prefix`: it counts as no likeness.
    """
    import difflib  # slow to import, and only needed once something is already wrong

    names = {candidate.removeprefix(prefix): candidate for candidate in sorted(candidates)}
    name = name.removeprefix(prefix)
    folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), sorted(folded), n=1, cutoff=_LIKENESS)
    if not close and len(name) > 2:  # an abbreviation: `--anon`
        close = [candidate for candidate in sorted(folded) if candidate.startswith(name)][:1]
    return names[folded[close[0]]] if close else None


def suggestion(name: str, candidates: Iterable[str], prefix: str = "") -> str:
    """Return `` Did you mean x?``, to follow a sentence; "" where no candidate is near."""
    match = closest(name, candidates, prefix)
    return f" Did you mean {match}?" if match is not None else ""


def clean_text(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return foreign text fit for one line of a terminal or a document.

    Control characters (ANSI escapes among them), bidirectional overrides, zero-width characters
    and lone surrogates become the replacement character; long text is cut with an ellipsis.
    """
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    elif text.isascii() and text.isprintable():
        return text
    return "".join(map(_safe, text))


def _safe(char: str) -> str:
    code = ord(char)
    if char == "\t" or char == "\n":
        return " "
    if not char.isprintable() and char != " ":
        return "\ufffd"
    if 0x200B <= code <= 0x200F or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069:
        return "\ufffd"
    return char


def error_text(error: BaseException, limit: int = 4 * TEXT_LIMIT) -> str:
    """Return ``Type: message`` of an exception, whatever its own `str` does."""
    name = type(error).__name__
    try:
        message = str(error)
    except BaseException:
        message = "(its message cannot be printed)"
    return clean_text(f"{name}: {message}" if message else name, limit)


def joined(items: Iterable[str], last: str = "or") -> str:
    """Return ``a, b or c``."""
    listed = list(items)
    return f" {last} ".join(filter(None, [", ".join(listed[:-1]), *listed[-1:]]))


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 device`` or ``2 devices``; `plural` is that of a noun that needs more than s."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def gib(count: float) -> str:
    """Return bytes for a sentence, rounded to a tenth: ``79.6 GiB``, ``80 GiB``, ``0 B``."""
    whole = count % (1 << 30) == 0 and count < 1 << 40
    return format_size(count, decimals=0 if whole else 1)


# Amounts of memory as people write and read them: 20GiB, 512MiB, 80e9. One rule for each.

_LARGEST = 1 << 62
"""Bytes: half of what a signed 64-bit number holds, so that sums of two still fit."""

# 20GiB and 20G count in 1024, as `docker run --memory` and `free -h` do; 20GB in 1000 (SI).
_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    _UNITS |= {_letter: 1024**_power, f"{_letter}ib": 1024**_power, f"{_letter}b": 1000**_power}


def parse_size(text: str | int) -> int:
    """Return bytes: ``20GiB`` and ``20G`` count in 1024, ``20GB`` in 1000, a bare number in bytes.

    Raises `ValueError` for anything else, and for less than a byte.
    """
    if isinstance(text, int):
        number, unit = float(text), ""
    else:
        plain = text.strip().lower()
        end = len(plain.rstrip("bikmgtp"))
        number, unit = _number(plain[:end]), plain[end:]
    if unit not in _UNITS or not 1 <= number * _UNITS[unit] < _LARGEST:
        raise ValueError(f"{text!r} is no amount of memory; write it as 20GiB, 512MiB or 80e9")
    return int(number * _UNITS[unit])


def _number(digits: str) -> float:
    try:
        return float(digits)
    except ValueError:
        return 0.0  # no amount of memory either


def format_size(count: float, *, decimals: int | None = None) -> str:
    """Return bytes in the largest binary unit that leaves at least one: ``79.6 GiB``.

    Cut to a tenth, and without ``.0``: what is said to be free can be asked for. With `decimals`
    rounded and padded to as many digits, for columns of figures: ``80.0 GiB``.
    """
    step, unit = 1, "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if count < step << 10:
            break
        step, unit = step << 10, larger
    if decimals is None or unit == "B":
        return f"{int(count) * 10 // step / 10:g} {unit}"
    return f"{count / step:.{decimals}f} {unit}"
