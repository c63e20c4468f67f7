"""Shows people the entries that look like what they typed. Nothing here ever matches anything."""

from difflib import SequenceMatcher

from probe_chipdb.chip import Chip
from probe_chipdb.spelling import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database


def near(db: "Database", query: str, n: int) -> tuple[Chip, ...]:
    """The n nearest names: shared words first, then shared letters. Empty for an empty query."""
    wanted = normalise(query)
    words = set(wanted.split())
    best: dict[str, float] = {}
    for table in db.tables():
        for key, ids in table.index:
            if words and key.startswith("n:"):
                score = _score(wanted, words, key[2:])
                for id_ in ids.split(" ") if score > 0 else ():
                    best[id_] = max(score, best.get(id_, 0.0))
    ranked = sorted(best, key=lambda id_: (-best[id_], id_))[:n]
    return tuple(chip for id_ in ranked if (chip := db.chip(id_)))


def _score(wanted: str, words: set[str], name: str) -> float:
    here = set(name.split())
    shared = len(words & here)
    if not shared and wanted[:4] not in name:
        return 0.0
    return 2 * shared / (len(words) + len(here)) + SequenceMatcher(None, wanted, name).ratio()
