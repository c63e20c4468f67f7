"""One device's facts, each brought to one spelling before anything is looked up."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    Arguments = tuple[
        str | None,  # pci
        str | None,  # subsystem
        str | None,  # revision
        str | None,  # gpu_id
        tuple[str, ...],  # dt
        str | None,  # arch
        str | None,  # compute_capability
        str | None,  # gfx
        str | None,  # vendor
        int | None,  # units
        int | None,  # memory
        str | None,  # name
        str,  # name_kind
    ]
    """The arguments of `Database.match`, in its order."""


_MOST_TEXT = 4096
"""Letters of a name or id that are read: lines of logs are shorter."""
_MOST_UNITS, _MOST_BYTES = 10**6, 2**60
"""Bounds of live counts: fifty times the largest chip's cores, and a million TiB."""


class Query:
    """What is known of one device. Absent texts are empty; absent numbers are None.

    pci, subsystem: "vvvv:dddd" in lower-case hexadecimal digits. revision: two of them.
    gpu_id: an id register, "arm:0xa867". dt: compatibles, most specific first.
    arch: an architecture's id or family. compute_capability: "8.9". gfx: "gfx1100".
    vendor: the short name, as given or as the name claims it.
    units: SMs, CUs or cores that the driver counts. memory: the live total in bytes.
    name: as a tool printed it. name_kind: which tool. name_key: the name, normalised. die_key: the
    same with its die, where the name is one of pci.ids. generic_name: whether it names no product.
    """

    __slots__ = (
        "arch",
        "compute_capability",
        "die_key",
        "dt",
        "generic_name",
        "gfx",
        "gpu_id",
        "memory",
        "name",
        "name_key",
        "name_kind",
        "pci",
        "revision",
        "subsystem",
        "units",
        "vendor",
    )

    def __init__(self, arguments: "Arguments") -> None:
        (
            pci, subsystem, revision, gpu_id, dt, self.arch, self.compute_capability, gfx, vendor,
            units, self.memory, self.name, self.name_kind,
        ) = arguments  # fmt: skip
        self.arch = self.arch[:_MOST_TEXT] if self.arch else None
        capability = self.compute_capability
        self.compute_capability = capability[:_MOST_TEXT] if capability else None
        self.name = self.name[:_MOST_TEXT] if self.name else None
        self.pci = _digits(pci) if pci else ""
        self.subsystem = _digits(subsystem) if subsystem else ""
        self.revision = _digits(revision).rjust(2, "0") if revision else ""
        self.gpu_id = gpu_id[:_MOST_TEXT].lower() if gpu_id else ""
        self.dt = tuple(text[:_MOST_TEXT] for text in dt[:_MOST_TEXT]) if dt else ()
        # ROCm appends features of the target: "gfx90a:sramecc+:xnack-".
        self.gfx = gfx[:_MOST_TEXT].partition(":")[0] if gfx else ""
        self.vendor = vendor[:_MOST_TEXT].lower() if vendor else ""
        self.units = units if units and 0 < units <= _MOST_UNITS else None
        self.memory = self.memory if self.memory and 0 < self.memory <= _MOST_BYTES else None
        self.name_key = self.die_key = ""
        self.generic_name = True
        if self.name:
            from probe_chipdb.name_facts import add_name_facts

            may_hold_ids = not pci and self.name_kind != "dt"
            add_name_facts(self, self.name, self.name_kind, may_hold_ids=may_hold_ids)


def _digits(text: str) -> str:
    return text[:_MOST_TEXT].strip().lower().replace("0x", "")
