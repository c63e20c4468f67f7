"""What is known of one device, brought to one spelling before anything is looked up."""

from probe_chipdb.spelling import claimed_vendor, is_generic, normalise


class Question:
    """The arguments of `Database.match`, cleaned; absent texts are empty."""

    __slots__ = (
        "arch",
        "compute_capability",
        "dt",
        "generic",
        "gfx",
        "gpu_id",
        "key",
        "memory",
        "name",
        "pci",
        "revision",
        "subsystem",
        "units",
        "vendor",
    )

    def __init__(
        self,
        pci: str | None,
        subsystem: str | None,
        revision: str | None,
        gpu_id: str | None,
        dt: tuple[str, ...],
        arch: str | None,
        compute_capability: str | None,
        gfx: str | None,
        vendor: str | None,
        units: int | None,
        memory: int | None,
        name: str | None,
        name_kind: str,
    ) -> None:
        self.pci = _hex(pci) or pci_in(name)
        self.subsystem = _hex(subsystem)
        self.revision = _hex(revision).rjust(2, "0") if revision else ""
        self.gpu_id = gpu_id.lower() if gpu_id else ""
        self.dt = dt
        self.arch = arch
        self.compute_capability = compute_capability
        self.gfx = (gfx or "").partition(":")[0]  # ROCm appends ":sramecc+:xnack-"
        # "Intel GeForce" is no product of NVIDIA: what a name claims rules out as a vendor does.
        self.vendor = (vendor or claimed_vendor(name or "")).lower()
        self.units = units
        self.memory = memory
        self.name = name
        self.key = normalise(name, name_kind) if name else ""
        if not self.gfx and self.key.startswith("gfx") and self.key.isalnum():
            self.gfx, self.key = self.key, ""  # OpenCL and HIP name AMD devices so
        if name_kind == "dt" and self.key:
            self.dt, self.key = (self.key, *dt), ""
        self.generic = is_generic(self.key)


def pci_in(name: str | None) -> str:
    """`10de:2684` alone, inside `... [10de:2684] (rev a1)`, or `Intel(R) Graphics [0x56a0]`."""
    text = name.lower() if name else ""
    if len(text) == 9 and text[4] == ":" and _is_hex(text[:4] + text[5:]):
        return text
    for part in text.split("[")[1:]:
        inside = part.partition("]")[0]
        vendor, _, device = inside.partition(":")
        if inside.startswith("0x") and "intel" in text:
            vendor, device = "8086", inside[2:]
        if len(vendor) == len(device) == 4 and _is_hex(vendor + device):
            return f"{vendor}:{device}"
    return ""


def _hex(text: str | None) -> str:
    return text.strip().lower().replace("0x", "") if text else ""


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)
