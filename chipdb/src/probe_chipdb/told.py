"""Reads what a driver's name tells beside the product: how many cores, and the id register."""

from probe_chipdb.decoration import MALI


def units_in(name: str | None) -> int | None:
    """The GPU cores that a Mali driver or a Mac program counts in the name, or None.

    Mesa prints `MC4`, Arm's own driver `4 cores`. `MP4` is a word of marketing and is not read:
    it counts engines in some products and cores in others.

    >>> units_in("Mali-G610 MC4 (Panfrost)"), units_in("Mali-G610 4 cores r0p0 0xA867")
    (4, 4)
    >>> units_in("Apple M1 Max (GPU - 32 cores)"), units_in("NVIDIA GeForce RTX 4090")
    (32, None)
    """
    words = _words(name)
    if words[:1] == ["apple"]:
        words = " ".join(words).partition("(")[2].replace("-", " ").replace(")", " ").split()
    for at, word in enumerate(words):
        if word.startswith("mc") and word[2:].isdecimal():
            return int(word[2:]) or None
        if word in ("cores", "core") and at and words[at - 1].isdecimal():
            return int(words[at - 1]) or None
    return None


def register_in(name: str | None) -> str:
    """The id register that Arm's driver prints after the name, or the empty text.

    >>> register_in("Mali-G610 4 cores r0p0 0xA867")
    'arm:0xa867'
    """
    for word in _words(name):
        digits = word.removeprefix("0x")
        if word != digits and 3 <= len(digits) <= 8 and _is_hex(digits):
            return f"arm:{word}"
    return ""


def _words(name: str | None) -> list[str]:
    low = (name or "").lower()
    return low.split() if len(low) <= 256 and low.startswith((*MALI, "apple ")) else []


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)
