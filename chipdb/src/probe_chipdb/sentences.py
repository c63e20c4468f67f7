"""Says why a device is no certain chip, and what would tell: for people who read reports."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.question import Question


def one_of(by: str, chips: "list[Chip]", asked: "Question") -> str:
    """The products that it may be, what they share, and what would choose among them."""
    names = ", ".join(sorted({chip.id for chip in chips})[:8])
    more = f" and {len(chips) - 8} more" if len(chips) > 8 else ""
    reason = f"one of {names}{more}: the {_words(by, asked)} is shared"
    missing = _would_tell(chips, asked)
    return f"{reason}; the {missing} would tell" if missing else reason


def _words(by: str, asked: "Question") -> str:
    return {
        "name": f"name {asked.name!r}",
        "dt": "device-tree compatible",
        "gpu-id": f"id {asked.gpu_id}",
        "arch-units": "architecture and unit count",
    }.get(by, f"PCI id {asked.pci}")


def _would_tell(chips: "list[Chip]", asked: "Question") -> str:
    ways = []
    if not asked.units and len({chip.units for chip in chips}) > 1:
        ways.append("unit count")
    if not asked.memory and len({chip.memory.gib for chip in chips}) > 1:
        ways.append("memory size")
    return " or ".join(ways)


def unknown(db: "Database", asked: "Question") -> str:
    """Everything that was tried and did not find a chip."""
    tried = []
    if asked.pci:
        tried.append(f"no chip has PCI id {asked.pci}")
    if asked.gpu_id:
        tried.append(f"no chip has the id {asked.gpu_id}")
    if asked.dt:
        tried.append(f"no chip is compatible with {', '.join(asked.dt)}")
    if asked.gfx and not asked.key:
        tried.append(f"{asked.gfx} is an architecture, not a product: the unit count would tell")
    if asked.key:
        known = db.ids(f"n:{asked.key}")
        other = f" that fits the vendor and architecture ({', '.join(known[:4])})" if known else ""
        tried.append(f"no chip is named {asked.name!r}{other}")
        if asked.generic:
            tried.append(
                "the name names no product: a PCI id, or architecture and units, would tell"
            )
    return "; ".join(tried) or "nothing that identifies a chip was given"
