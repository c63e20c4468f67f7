"""One device's facts as a program has them, each brought to one spelling for the look-up."""

_MOST_TEXT = 4096
"""Letters of a name or id that are read: lines of logs are shorter."""
_MOST_UNITS, _MOST_BYTES = 10**6, 2**60
"""Bounds of live counts: fifty times the largest chip's cores, and a million TiB."""
DRIVERS = ("name", "nvml", "amdgpu")
"""Kinds of names that are a product's alone, as drivers print it."""
# No row of data: a look-up by an id alone reads no rules, which is half of what a cold one costs.
DISPLAY_VENDORS = {
    "1a03": "ASPEED (a server's BMC display)",
    "102b": "Matrox",
    "1234": "Bochs/QEMU",
    "1013": "Cirrus Logic",
    "1af4": "virtio",
    "1b36": "QEMU (QXL)",
    "15ad": "VMware",
    "80ee": "VirtualBox",
    "1414": "Microsoft Hyper-V",
    "1ab8": "Parallels",
    "5853": "Xen",
}
"""Vendors of PCI devices that show pictures, and compute nothing."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_chipdb.database import Database


class Query:
    """What `Database.match` is told of one device. Absent texts are empty; absent numbers are None.

    pci, subsystem: "vvvv:dddd" in lower-case hexadecimal digits. revision: two of them.
    gpu_id: an id register, "arm:0xa867". dt: compatibles, most specific first.
    arch: an architecture's id or family. compute_capability: "8.9". gfx: "gfx1100".
    vendor: the short name, as given or as the name claims it.
    units: SMs, CUs or cores that the driver counts, else the name. named_units: those that the
    name counts, or 0. memory: the live total in bytes.
    name: as a tool printed it. name_kind: which tool. name_key: the name, normalised. die_key: the
    same with its die, where the name is one of pci.ids. generic_name: whether it names no product.
    name_facts: what else the name tells, by kind; see `name_facts.facts_in`.

    What follows from the name alone is absent until `read_name`.
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
        "name_facts",
        "name_key",
        "name_kind",
        "named_units",
        "pci",
        "revision",
        "subsystem",
        "units",
        "vendor",
    )

    def __init__(
        self,
        pci: "str | None" = None,
        subsystem: "str | None" = None,
        revision: "str | None" = None,
        gpu_id: "str | None" = None,
        dt: "Sequence[str]" = (),
        arch: "str | None" = None,
        compute_capability: "str | None" = None,
        gfx: "str | None" = None,
        vendor: "str | None" = None,
        units: "int | None" = None,
        memory: "int | None" = None,
        name: "str | None" = None,
        name_kind: str = "name",
    ) -> None:
        self.arch = arch[:_MOST_TEXT] if arch else None
        self.compute_capability = compute_capability[:_MOST_TEXT] if compute_capability else None
        self.name = name[:_MOST_TEXT] if name else None
        self.name_kind = name_kind
        self.pci = _digits(pci) if pci else ""
        self.subsystem = _digits(subsystem) if subsystem else ""
        self.revision = _digits(revision).rjust(2, "0") if revision else ""
        self.gpu_id = gpu_id[:_MOST_TEXT].lower() if gpu_id else ""
        self.dt = tuple([text[:_MOST_TEXT] for text in dt[:_MOST_TEXT]]) if dt else ()
        # ROCm appends features of the target: "gfx90a:sramecc+:xnack-".
        self.gfx = gfx[:_MOST_TEXT].partition(":")[0] if gfx else ""
        self.vendor = vendor[:_MOST_TEXT].lower() if vendor else ""
        self.units = units if units and 0 < units <= _MOST_UNITS else None
        self.memory = memory if memory and 0 < memory <= _MOST_BYTES else None
        self.name_key = self.die_key = ""
        self.generic_name = True
        self.named_units = 0
        self.name_facts: dict[str, str] = {}

    def read_name(self, db: "Database") -> "Query":
        """Add what the name tells, by the rules of names; raises ValueError for an unknown kind.

        Of a chip's own name the table has that already: to read the rules takes half of a first
        look-up, and most drivers print such names.
        """
        own = db.own_name(self.name) if self.name and self.name_kind in DRIVERS else None
        if own:
            claimed, _, self.name_key = own.partition(" ")
            self.vendor = self.vendor or claimed
            self.generic_name = False
        elif self.name:
            from probe_chipdb.name_facts import add_name_facts

            may_hold_ids = not self.pci and self.name_kind != "dt"
            add_name_facts(self, self.name, self.name_kind, may_hold_ids=may_hold_ids)
        return self


def _digits(text: str) -> str:
    return text[:_MOST_TEXT].strip().lower().replace("0x", "")
