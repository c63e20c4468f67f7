"""Close names: what somebody who mistyped one probably meant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["closest", "did_you_mean", "suggestion"]

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
