"""What is known of one device, brought to one spelling before anything is looked up."""

from probe_chipdb.pci_text import NONE, ids_in, revision_in
from probe_chipdb.spelling import claimed_vendor, is_generic, normalise, with_die


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
        "whole",
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
        told = NONE if pci or name_kind == "dt" else ids_in(name, name_kind == "pci")
        self.pci = _hex(pci) or told[0]
        self.subsystem = _hex(subsystem) or told[1]
        self.revision = _hex(revision).rjust(2, "0") if revision else told[2] or revision_in(name)
        count, register = _told(name)
        self.gpu_id = gpu_id.lower() if gpu_id else register
        self.dt = dt
        self.arch = arch
        self.compute_capability = compute_capability
        self.gfx = (gfx or "").partition(":")[0]  # ROCm appends ":sramecc+:xnack-"
        # "Intel GeForce" is no product of NVIDIA: what a name claims rules out as a vendor does.
        self.vendor = (vendor or claimed_vendor(name or "")).lower()
        self.units = units or count
        self.memory = memory
        self.name = name
        only_ids = bool(told[0]) and name is not None and not ("[" in name or "(0x" in name)
        self.key = normalise(name, name_kind) if name and not only_ids else ""
        self.whole = with_die(name, name_kind) if self.key and name else ""
        target = self.key.partition(":")[0] if self.key.startswith("gfx") else ""
        if not self.gfx and target.isalnum():
            self.gfx, self.key = target, ""  # OpenCL and HIP name AMD devices so
        if name_kind == "dt" and name:
            from probe_chipdb.dt_text import compatibles_in

            self.dt, self.key = (*compatibles_in(name), *dt), ""
        self.generic = is_generic(self.key)


def _told(name: str | None) -> tuple[int | None, str]:
    """Units and id register that the name itself holds, for the few kinds of name that do."""
    if not name or name[:5].lower() not in ("mali-", "immor", "apple"):
        return None, ""
    from probe_chipdb.told import register_in, units_in

    return units_in(name), register_in(name)


def _hex(text: str | None) -> str:
    return text.strip().lower().replace("0x", "") if text else ""
