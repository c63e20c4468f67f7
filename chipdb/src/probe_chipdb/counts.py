"""Which live unit counts an entry stands for that has no single count of its own.

A SoC's own entry is that of modules with several counts. The marketing name of a licensed design
depends on the number of its cores: a Mali GPU of id 0xd000 is a Mali-G725 with 6 to 9 and an
Immortalis-G925 with 10 or more (Arm's libGPUInfo).
"""

from probe_chipdb.row import CHIP, items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_chipdb.chip import Chip

_COUNTS = CHIP.index("counts")


def stated(chip: "Chip") -> tuple[int, ...]:
    """The counts that a chip may have: its own, those of its entry, or none where any fits."""
    return (chip.units,) if chip.units else _each(items(chip.raw(_COUNTS)))


def counts_text(chip: "Chip") -> str:
    """The counts of a chip's entry in words: "10, 12 to 16"."""
    return ", ".join(text.replace("-", " to ") for text in items(chip.raw(_COUNTS)))


def _each(ranges: "Iterable[str]") -> tuple[int, ...]:
    """Every count of "4" and "6-9"."""
    return tuple(
        count
        for first, _, last in (text.partition("-") for text in ranges)
        for count in range(int(first), int(last or first) + 1)
    )
