"""Which number formats an architecture computes in, and which release of a program can use them.

Read only when it is asked for: no look-up of a chip pays for it.
"""

from probe_chipdb.table import items, unescape

FORMATS = (
    "fp64", "fp32", "tf32", "fp16", "bf16", "fp8-e4m3", "fp8-e5m2", "fp8-e4m3fnuz", "fp8-e5m2fnuz",
    "fp6", "fp4", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "int8", "int4",
)  # fmt: skip
"""fp8-e4m3 and -e5m2 are those of OCP, fnuz those of AMD; mx and nv have scales for blocks."""
HARDWARE = "hardware"
BY = (HARDWARE, "pytorch", "vllm", "llama.cpp", "mlx", "tinygrad")
STATES = ("native", "emulated", "none")
"""emulated: a program stores the format, or computes it, with instructions for another."""
COLUMNS = ("by", "archs", "formats", "is", "since", "seen", "source", "at", "quote", "unknown")
"""Of a line of the built table. Without archs: why a cell is unknown for which there is no row."""


class Cell:
    """One format of an architecture: what the hardware does, or what a program does with it.

    state: one of STATES, or None where it is unknown, and `reason` says why. since: the first
    release that has it; seen: a release that has it, where the first is not known.
    """

    __slots__ = ("at", "by", "format", "quote", "reason", "seen", "since", "source", "state")

    def __init__(self, by: str, format_: str, row: "list[str]") -> None:
        self.by = by
        self.format = format_
        state, self.since, self.seen, self.source, self.at, self.quote, self.reason = row
        self.state = state or None

    @property
    def release(self) -> str:
        """`since 0.12.0`, `in 0.6.4`, or the empty text."""
        return f"since {self.since}" if self.since else f"in {self.seen}" if self.seen else ""

    def as_json(self) -> dict[str, str]:
        """The members that are known."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value}

    def __repr__(self) -> str:
        return f"<Cell {self.by} {self.format} {self.state or 'unknown'}>"


def cells(arch: str, text: str) -> tuple[Cell, ...]:
    """Every format of an architecture by the hardware and by each program, in their order.

    arch: an id, ids joined by "+", of which the answer is what they share, or the empty text where
    it is not known. text: what `Database.formats` has.
    """
    rows = [line.split("\t") for line in text.splitlines()]
    found = [_of_arch(part, rows) for part in arch.split("+")]
    return tuple(_shared([each[key] for each in found]) for key in found[0])


def _of_arch(arch: str, rows: list[list[str]]) -> dict[tuple[str, str], Cell]:
    own: dict[tuple[str, str], Cell] = {}
    reasons: dict[str, str] = {}
    for by, archs, formats, *others in rows:
        row = [unescape(text) for text in others]
        if not archs:
            reasons[by] = row[-1]
        elif arch in items(archs):
            for name in items(formats):
                own.setdefault((by, name), Cell(by, name, row))
    for by in BY:
        reason = reasons.get(by, "") if arch else "the architecture is not known"
        for name in FORMATS:
            own.setdefault((by, name), Cell(by, name, ["", "", "", "", "", "", reason]))
    return {(by, name): own[by, name] for by in BY for name in FORMATS}


def _shared(found: list[Cell]) -> Cell:
    if len({cell.state for cell in found}) == 1:
        return found[0]
    reason = "it differs among the architectures"
    return Cell(found[0].by, found[0].format, ["", "", "", "", "", "", reason])
