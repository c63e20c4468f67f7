"""Lets the SoC's own entry stand where the GPU's id register tells only the licensed design.

Arm's register says "Mali-G610"; how many cores, at which clock, belongs to the SoC, which the
device tree names (rockchip,rk3588-mali). Both are right, so neither is a conflict.
"""

from probe_chipdb.spelling import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.chip import Chip
    from probe_chipdb.database import Database
    from probe_chipdb.question import Question


def refines(chip: "Chip", model: "Chip") -> bool:
    """Whether a chip is one SoC's implementation of a design that another entry describes.

    Its name holds the design's name word by word ("Rockchip RK3588 Mali-G610 MP4" holds
    "Mali-G610"), in the same vendor's architecture family; counts do not disagree.
    """
    if chip.vendor != model.vendor or chip.family != model.family or chip == model:
        return False
    if model.units and chip.units and model.units != chip.units:
        return False
    return f" {normalise(model.name)} " in f" {normalise(chip.name)} "


def refined(
    db: "Database", by: str, models: "list[Chip]", asked: "Question"
) -> "tuple[str, list[Chip]]":
    """The entries that the device tree names, where they refine what the register says."""
    for compatible in asked.dt:
        found = [db.chip(id_) for id_ in db.ids(f"d:{normalise(compatible, 'dt')}")]
        closer = [chip for chip in found if chip and any(refines(chip, model) for model in models)]
        if closer:
            return "dt", closer
    return by, models
