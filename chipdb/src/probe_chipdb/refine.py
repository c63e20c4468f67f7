"""Lets the SoC's own entry stand where the GPU's id register names only the licensed design.

Arm's register says "Mali-G610"; how many cores, at which clock, belongs to the SoC, which the
device tree names (rockchip,rk3588-mali). Both are right, so neither is a conflict. Nor is the name
of a developer kit, which is the board's, and the module in it, which the device tree names.
"""

from probe_chipdb.counts import stated
from probe_chipdb.spelling import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database


_KIT = " developer kit"


def refines(chip: "Chip", design: "Chip") -> bool:
    """Whether a chip is one SoC's implementation of a design that another entry describes.

    Its name holds the design's name word by word ("Rockchip RK3588 Mali-G610 MP4" holds
    "Mali-G610"), in the same vendor's architecture family; counts do not disagree. Or it is the
    module of a developer kit ("Jetson AGX Orin 64GB"), whatever the kit was first sold with.
    """
    if chip.vendor != design.vendor or chip.family != design.family or chip == design:
        return False
    name, design_name = normalise(chip.name), normalise(design.name)
    if design_name.endswith(_KIT):
        return f"{name} ".startswith(f"{design_name.removesuffix(_KIT)} ")
    if chip.units and (counts := stated(design)) and chip.units not in counts:
        return False
    return f" {design_name} " in f" {name} "


def refinements(
    db: "Database", designs: "list[Chip]", compatibles: tuple[str, ...]
) -> "list[Chip]":
    """The chips that the device tree names, where they refine one of the designs; else none."""
    for compatible in compatibles:
        ids = db.ids(f"d:{normalise(compatible, 'dt')}")
        named = [chip for id_ in ids if (chip := db.chip(id_))]
        closer = [chip for chip in named if any(refines(chip, design) for design in designs)]
        if closer:
            return closer
    return []
