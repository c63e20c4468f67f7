"""An environment's changes as lines for a POSIX shell."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["lines"]

_PLAIN = "@%+=:,./-_"


def lines(changes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield ``export NAME=value`` and ``unset NAME``, fit for ``eval``, sorted by name."""
    for name, value in sorted(changes.items()):
        yield f"unset {name}" if value is None else f"export {name}={_quoted(value)}"


def _quoted(value: str) -> str:
    if value and all(char.isascii() and (char.isalnum() or char in _PLAIN) for char in value):
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"
