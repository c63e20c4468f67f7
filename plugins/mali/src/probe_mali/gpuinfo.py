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
        tokens = text.removeprefix(UNKNOWN).split()
        named = bool(tokens) and not text.startswith(UNKNOWN)
        self.model: str | None = tokens.pop(0) if named else None
        self.cores: int | None = None
        self.revision: str | None = None
        self.product: int | None = None
        # A line that is not what it should be is not believed at all; the driver's own tokens have
        # at most a dozen characters.
        if any(len(token) > 80 for token in tokens) or not (self.model or "Mali").startswith(
            "Mali"
        ):
            self.model = None
            return
        for place, token in enumerate(tokens):
            self._take(token, tokens[place + 1 : place + 2])

    def _take(self, token: str, following: list[str]) -> None:
        if token.startswith("MP") and token[2:].isdecimal():
            self.cores = int(token[2:]) or None
        elif token.isdecimal() and following and following[0] in ("core", "cores"):
            self.cores = int(token) or None
        elif token[:1] == "r" and token[1:].replace("p", "", 1).isdecimal():
            self.revision = token
        elif token[:2].lower() == "0x":
            self.product = _hexadecimal(token)

    @property
    def gpu_id(self) -> str | None:
        """The product id as chipdb's key: "arm:0xa867"."""
        return f"arm:{self.product:#06x}" if self.product else None


def _hexadecimal(digits: str) -> int | None:
    try:
        return int(digits, 16)
    except ValueError:
        return None
