"""Why a figure is missing, and what moves a clock within its range.

The data has keys, and their sentences are here: on a thousand entries they would be a seventh of
the table.
"""

REASONS = {
    "vgpu": "a virtual GPU is a share of a card, and its profile or host decides which",
    "design": "the maker of the SoC sets core count and clock of a licensed design",
    "clock": "no clock was read in a document, driver or device tree that the table cites",
    "counts": "neither unit count nor clock was read in a source that the table cites",
    "units": "no unit count was read in a source that the table cites",
    "rates": "no operations per clock were read, neither the vendor's nor measured ones",
    "limited": "the vendor limits the arithmetic in firmware, and no measurement was read",
    "unbuilt": "no SoC with this core count of the design was read",
    "unsold": "a sample, a prototype or a board's name, of which nothing is published",
    "bound": "the vendor publishes a lower bound alone",
    "nothing": "no figure was read in a source that the table cites",
    "graphics": "graphics pipelines without a compute interface; published rates contradict",
}

RANGES = {
    "laptop": "the maker of the laptop sets clock and power within the vendor's range",
    "mode": "the power mode of the module or board sets the clock",
    "model": "the model of the processor sets the clock",
    "soc": "the maker of the SoC sets the clock",
}

OF_SOCS = "the maker of the SoC sets core count and clock; the range is that of the known SoCs"
OF_CLOCKS = "the maker of the SoC sets the clock; the range is that of the known SoCs"


def why(key: str | None, has_rates: bool, has_units: bool, has_clock: bool) -> str:
    """The recorded reason, else the one that follows from what is there."""
    if key in REASONS:
        return REASONS[key]
    if not has_rates:
        return REASONS["rates" if has_units or has_clock else "nothing"]
    if not has_units:
        return REASONS["units" if has_clock else "counts"]
    return REASONS["clock"]


def condition(key: str) -> str | None:
    """What a figure of a range depends on; None for a key of a newer table."""
    return OF_SOCS if key == "design" else RANGES.get(key)
