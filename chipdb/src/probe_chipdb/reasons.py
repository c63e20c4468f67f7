"""Sentences on why a device is no certain chip, and on what would decide."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.query import Query

_MOST_NAMED = 8  # ids in one sentence; "Intel Graphics" alone is the name of 69 chips


def ambiguous(by: str, chips: "list[Chip]", query: "Query") -> str:
    """The products that it may be, what they share, and what would decide among them."""
    ids = ", ".join(sorted({chip.id for chip in chips})[:_MOST_NAMED])
    uncounted = f" and {len(chips) - _MOST_NAMED} more" if len(chips) > _MOST_NAMED else ""
    reason = f"ambiguous: {ids}{uncounted} share the {_key(by, query)}"
    missing = " or ".join(_deciding_facts(chips, query))
    return f"{reason}; the {missing} would decide" if missing else reason


def disagreement(by: str, chips: "list[Chip]", named: "list[Chip]", query: "Query") -> str:
    """Which products the stronger key and the name mean, where they mean different ones."""
    by_key, by_name = (", ".join(chip.id for chip in side[:4]) for side in (chips, named))
    return f"the {_key(by, query)} means {by_key}, but the name {query.name!r} means {by_name}"


def refutation(by: str, chips: "list[Chip]", query: "Query", reported: str | None) -> str:
    """Why a hardware id does not count: its products cannot be what the driver reports."""
    ids = ", ".join(chip.id for chip in chips[:4])
    archs = ", ".join(dict.fromkeys(chip.arch for chip in chips if chip.arch))
    return f"the {_key(by, query)} means {ids} ({archs}), but the driver reports {reported}"


def _key(by: str, query: "Query") -> str:
    return {
        "name": f"name {query.name!r}",
        "dt": "device-tree compatible",
        "gpu-id": f"id {query.gpu_id}",
        "arch-units": "architecture and unit count",
    }.get(by, f"PCI id {query.pci}")


def _deciding_facts(chips: "list[Chip]", query: "Query") -> list[str]:
    """The live facts that are missing and in which the products differ."""
    facts = []
    if not query.units and len({chip.units for chip in chips}) > 1:
        facts.append("unit count")
    if not query.memory and len({chip.memory.gib for chip in chips}) > 1:
        facts.append("memory size")
    return facts


def unknown(db: "Database", query: "Query") -> str:
    """Every key that was looked up and did not find a chip."""
    failures = []
    if query.pci:
        failures.append(f"no chip has PCI id {query.pci}")
    if query.gpu_id:
        failures.append(f"no chip has the id {query.gpu_id}")
    if query.dt:
        failures.append(f"no chip is compatible with {', '.join(query.dt)}")
    if query.gfx and not query.name_key:
        failures.append(f"{query.gfx} is an architecture, not a product: the unit count decides")
    if query.name_key:
        failures += _unknown_name(db, query)
    return "; ".join(failures) or "nothing that identifies a chip was given"


def _unknown_name(db: "Database", query: "Query") -> list[str]:
    ids = db.ids(f"n:{query.name_key}")
    other = f" that fits the vendor and architecture ({', '.join(ids[:4])})" if ids else ""
    failures = [f"no chip is named {query.name!r}{other}"]
    if query.generic_name:
        failures.append(
            "the name names no product: a PCI id, or architecture and units, would decide"
        )
    return failures
