"""Reads the one line in which Arm's own driver (mali_kbase) describes the GPU.

    Mali-G610 4 cores r0p0 0xA867        drivers from about r20 on
    Mali-T60x MP4 r0p0 0x6956            older ones
    (Unknown Mali GPU) 7 cores r0p1 0xC870

The driver writes it from what it read at start (mali_kbase_core_linux.c), so it wakes nothing.
"""

from __future__ import annotations

UNKNOWN = "(Unknown Mali GPU)"


class GpuInfo:
    """What the line says: model, shader cores, revision ("r0p0") and product id; each or None."""

    __slots__ = ("cores", "model", "product", "revision")

    def __init__(self, text: str) -> None:
        known = not text.startswith(UNKNOWN)
        words = text.removeprefix(UNKNOWN).split()
        self.model: str | None = words.pop(0) if known and words else None
        self.cores: int | None = None
        self.revision: str | None = None
        self.product: int | None = None
        if any(len(word) > 80 for word in words) or not (self.model or "Mali").startswith("Mali"):
            self.model = None  # the file is not what it should be: believe none of it
            return
        for place, word in enumerate(words):
            self._take(word, words[place + 1 : place + 2])

    def _take(self, word: str, following: list[str]) -> None:
        if word.startswith("MP") and word[2:].isdecimal():
            self.cores = int(word[2:]) or None
        elif word.isdecimal() and following and following[0] in ("core", "cores"):
            self.cores = int(word) or None
        elif word[:1] == "r" and word[1:].replace("p", "", 1).isdecimal():
            self.revision = word
        elif word[:2].lower() == "0x":
            self.product = _hexadecimal(word)

    @property
    def gpu_id(self) -> str | None:
        """The product id as chipdb's key: "arm:0xa867"."""
        return f"arm:{self.product:#06x}" if self.product else None


def _hexadecimal(word: str) -> int | None:
    try:
        return int(word, 16)
    except ValueError:
        return None
