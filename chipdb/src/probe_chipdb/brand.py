"""Reads a processor's brand string by the vendors' published numbering, as data holds it.

A rule is an exact shape, never a likeness: `#` stands for one digit, `?` for one digit or letter,
a final `*` for what follows if that does not begin with a digit ("8480c", "8480+"). Of several
rules that fit, the one with the most literal letters is the closer.
"""

from itertools import pairwise

from probe_chipdb.spelling import normalise

_DROPPED = frozenset(("cpu", "processor", "apu"))
# AMD spells core counts out: "AMD FX(tm)-8350 Eight-Core Processor".
_COUNTS = frozenset(("dual", "triple", "quad", "six", "eight", "twelve", "sixteen"))


def brand_key(name: str) -> str:
    """A brand string without what does not identify the core: trademarks, clocks, core counts.

    >>> brand_key("Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz")
    'xeon e5 2686 v4'
    >>> brand_key("AMD Ryzen Threadripper PRO 5995WX 64-Cores")
    'ryzen threadripper pro 5995wx'
    """
    tokens = normalise(name, "cpuinfo").split()
    if tokens[1:2] == ["gen"]:
        tokens = [token for token in tokens[2:] if token != "intel"]  # "13th Gen Intel(R) Core ..."
    tokens = _without_count(tokens)
    if tokens[-1:] == ["0"]:
        del tokens[-1]  # "Xeon(R) CPU E5-2670 0": the first version, counted from nothing
    return " ".join(token for token in tokens if token not in _DROPPED)


def _without_count(tokens: list[str]) -> list[str]:
    """Without "16 core processor", "eight core processor", "64 cores", and all behind that."""
    for at, (count, noun) in enumerate(pairwise(tokens)):
        if noun in ("core", "cores") and (count.isdecimal() or count in _COUNTS):
            return tokens[:at]
    return tokens


def fits(pattern: str, key: str) -> bool:
    """Whether a brand key has the shape of a rule."""
    open_end = pattern.endswith("*")
    shape = pattern[:-1] if open_end else pattern
    if len(key) < len(shape) or (len(key) > len(shape) and not open_end):
        return False
    if key[len(shape) : len(shape) + 1].isdecimal():
        return False
    return all(_same(mark, letter) for mark, letter in zip(shape, key, strict=False))


def _same(mark: str, letter: str) -> bool:
    if mark == "#":
        return letter.isdecimal()
    return letter.isalnum() if mark == "?" else mark == letter


def weight(pattern: str) -> int:
    """How many letters of a rule are literal: the closer of two rules has more."""
    return sum(mark not in "#?*" for mark in pattern)
