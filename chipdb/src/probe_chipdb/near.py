"""Shows people the entries that look like what they typed. Nothing here ever matches anything."""

from probe_chipdb.spelling import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database


def near(db: "Database", query: str, n: int) -> "tuple[Chip, ...]":
    """The n nearest names: shared words first, then shared letters. Empty for an empty query."""
    typed = normalise(query)
    if not typed:
        return ()
    scores: dict[str, float] = {}
    for table in db.tables():
        for key, ids in table.index:
            if key.startswith("n:") and (score := _score(typed, key[2:])):
                for id_ in ids.split(" "):
                    scores[id_] = max(score, scores.get(id_, 0.0))
    ranked = sorted(scores, key=lambda id_: (-scores[id_], id_))[:n]
    return tuple(chip for id_ in ranked if (chip := db.chip(id_)))


def _score(typed: str, name: str) -> float:
    """0 (nothing alike) to 3: twice the share of common words, and the share of common letters."""
    tokens, name_tokens = set(typed.split()), set(name.split())
    common = len(tokens & name_tokens)
    # Letters alone count only from a common beginning: comparing all of a big table takes seconds.
    if not common and typed[:4] not in name:
        return 0.0
    from difflib import SequenceMatcher

    share = 2 * common / (len(tokens) + len(name_tokens))
    return share + SequenceMatcher(None, typed, name).ratio()
