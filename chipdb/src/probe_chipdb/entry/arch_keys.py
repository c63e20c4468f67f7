"""Takes off a package's architecture the keys by which drivers name other vendors' hardware."""

from probe_chipdb.entry.pack import arch_index_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.entry.types import ArchEntry, MatchEntry
    from probe_chipdb.table import Table

# Whose numbers a key counts.
_COUNTED_BY = {"compute_capability": "nvidia", "gfx": "amd", "metal_family": "apple"}


def foreign_keys(
    arch: "ArchEntry", built: "Table", vendors: frozenset[str]
) -> "Iterator[tuple[str, str]]":
    """Remove each key of `match` that is another vendor's; (field, what is wrong) of each.

    vendors: whose namespaces the package may add to.
    """
    match = arch.get("match", {})
    vendor = arch["vendor"]
    own = vendor in vendors or not built.ids(f"v:{vendor}")
    for field in list(match):
        if fault := _fault(field, match, vendor if own else "", built):
            del match[field]  # type: ignore[misc]  # one of its own keys
            yield field, fault


def is_foreign(owner: str, vendor: str, built: "Table") -> bool:
    """Whether the owner of a register or compatible is another vendor that the table has."""
    return owner != vendor and bool(built.ids(f"v:{owner}"))


def _fault(field: str, match: "MatchEntry", vendor: str, built: "Table") -> str:
    """vendor: the package's, or empty where it may add nothing to that vendor's namespace."""
    counter = _COUNTED_BY.get(field)
    if counter and counter != vendor:
        return f"{field} is a number of {counter}"
    for pci in match.get("pci", ()) if field == "pci" else ():
        owners = built.ids(f"pv:{pci[:4]}")
        if owners and vendor not in owners:
            return f"the PCI vendor id {pci[:4]} is that of {', '.join(owners)}"
    for mark, listed in ((":", "gpu_id"), (",", "dt")):
        for text in match.get(listed, ()) if field == listed else ():  # type: ignore[attr-defined]
            owner = text.partition(mark)[0]
            if is_foreign(owner, vendor, built):
                return f"{text!r} is hardware of {owner}"
    alone: MatchEntry = {field: match[field]}  # type: ignore[misc]
    for key in arch_index_keys(alone):
        if others := built.ids(key):
            return f"{key!r} already means {', '.join(others[:4])}"
    return ""
