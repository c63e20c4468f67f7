"""Why a figure is missing, and what moves a clock within its range: keys in the data, sentences here.

Keys keep the table small: a sentence each on a thousand entries would be a seventh of it.
"""

REASONS = {
    "vgpu": "a virtual GPU is a share of a card, and its profile decides which",
    "design": "a licensed design: the maker of the SoC sets core count and clock",
    "clock": "the vendor publishes no clock, and no driver's or board's reading is known",
    "counts": "the vendor publishes neither unit count nor clock",
    "units": "the vendor publishes no unit count",
    "rates": "the vendor publishes no operations per clock, and nobody measured them",
    "limited": "the vendor limits the arithmetic in firmware and publishes no figure",
    "unsold": "a sample, prototype or board name: nothing is published of it",
    "nothing": "the vendor publishes no figure of it",
    "graphics": "fixed or fp16-only graphics pipelines without a compute interface",
}

RANGES = {
    "laptop": "the maker of the laptop sets clock and power within the vendor's range",
    "mode": "the power mode of the module or board sets the clock",
    "model": "the model of the processor sets the clock",
    "soc": "the maker of the SoC sets the clock",
}


def why(key: str) -> str | None:
    """The sentence of a reason's key; None for a key of a newer table."""
    return REASONS.get(key)


def condition(key: str) -> str | None:
    """What a figure of a range depends on; None for a key of a newer table."""
    return RANGES.get(key)
