"""`stale FILE...`: what drivers, id lists and compilers know that the table does not.

The files are given: nothing is fetched. A list may itself be old, so that each result names it.
"""

import os
from collections.abc import Iterator

from probe_chipdb.candidates import register_keys
from probe_chipdb.database import Database
from probe_chipdb.exclusions import exclusion
from probe_chipdb.spelling import normalise
from probe_chipdb.tools import driver_lists
from probe_chipdb.tools.text_file import Refused, read_text

_MOST = 32 * 2**20  # bytes; pci.ids has 1.6 MB, the longest list


def report(db: Database, paths: list[str]) -> Iterator[str]:
    """Lines of what is newer than the table; a last line with the counts. Raises OSError."""
    missing = 0
    for path in paths:
        name = os.path.basename(path)
        try:
            listed = driver_lists.read(read_text(path, _MOST))
        except Refused as refusal:
            yield str(refusal)
            continue
        if listed is None:
            yield f"{name}: no list of a known form; docs/format.md names the forms"
            continue
        lines = list(dict.fromkeys(_newer(db, listed)))
        missing += len(lines)
        yield f"{name}: {len(listed)} entries, {len(lines)} not in the table"
        yield from (f"  {line}" for line in lines)
    yield f"{missing} entries are newer than chipdb {db.version or 'unreleased'}"


def newer(db: Database, text: str) -> list[str]:
    """The entries of one list that the table does not have."""
    return list(dict.fromkeys(_newer(db, driver_lists.read(text) or [])))


def _newer(db: Database, listed: "list[driver_lists.Listed]") -> Iterator[str]:
    for kind, key, name in listed:
        if not _known(db, kind, key, name):
            yield f"{kind} {key}: {name}"


def _known(db: Database, kind: str, key: str, name: str) -> bool:
    if kind == "pci":
        return _known_pci(db, key, name)
    if kind == "gpu_id":
        return _known_register(db, key)
    return bool(db.ids({"gfx": "x", "compute capability": "c"}[kind] + f":{key}"))


def _known_pci(db: Database, key: str, name: str) -> bool:
    """By its whole key. A subsystem or revision that is not filed may be another product: then
    one of the products of the plain id must have the name.
    """
    plain = key.partition("/")[0].partition("@")[0]
    if db.ids(f"p:{key}") or exclusion(None, plain):
        return True
    same_id = set(db.ids(f"p:{plain}"))
    return not same_id.isdisjoint(db.ids(f"n:{normalise(name)}"))


def _known_register(db: Database, key: str) -> bool:
    vendor, _, value = key.partition(":")
    plain, _, mask = value.partition("/")
    if mask and db.ids(f"g:{vendor}:{int(plain, 16) & int(mask, 16):#x}/{int(mask, 16):#x}"):
        return True
    return any(db.ids(f"g:{key}") for key in register_keys(db, f"{vendor}:{plain}", "gm"))
