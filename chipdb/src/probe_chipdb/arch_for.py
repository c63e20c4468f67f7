"""Finds the architecture of a chip that is not in the table, from what its driver reports."""

from probe_chipdb.spelling import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_chipdb.arch import Arch
    from probe_chipdb.database import Database


class DriverFacts:
    """What a driver reports that fixes an architecture; None where it reports nothing."""

    __slots__ = ("compute_capability", "dt", "gfx", "gpu_id", "metal_family", "pci")

    def __init__(
        self,
        *,
        compute_capability: str | None,
        gfx: str | None,
        metal_family: str | None,
        gpu_id: str | None,
        dt: tuple[str, ...],
        pci: str | None,
    ) -> None:
        self.compute_capability = compute_capability
        self.gfx = gfx
        self.metal_family = metal_family
        self.gpu_id = gpu_id
        self.dt = dt
        self.pci = pci

    def keys(self, db: "Database") -> "Iterator[tuple[str, str]]":
        """Every (index key, its description), the ones that say most first."""
        if self.compute_capability:
            yield f"c:{self.compute_capability}", f"compute capability {self.compute_capability}"
        # ROCm appends features of the target: "gfx90a:sramecc+:xnack-".
        if self.gfx and (target := self.gfx.partition(":")[0]):
            yield f"x:{target}", f"gfx target {self.gfx}"
        if self.metal_family:
            yield f"m:{self.metal_family}", f"Metal family {self.metal_family}"
        if self.pci:
            yield f"ap:{self.pci.lower()}", f"PCI id {self.pci}"
        if self.gpu_id:
            from probe_chipdb.candidates import register_keys

            for key in register_keys(db, self.gpu_id.lower(), "agm"):
                yield f"ag:{key}", f"id {self.gpu_id}"
        for compatible in self.dt:
            yield f"ad:{compatible}", f"compatible {compatible}"


def arch_for(db: "Database", facts: DriverFacts, name: str | None) -> "tuple[Arch | None, str]":
    """The architecture and why; several sets of rates give what they share."""
    for key, description in facts.keys(db):
        archs = [arch for id_ in db.ids(key) if (arch := db.arch(id_))]
        if archs:
            return _choose(db, archs, normalise(name or ""), description)
    return None, "no architecture of the table matches what the driver reports"


def _choose(
    db: "Database", archs: "list[Arch]", name: str, description: str
) -> "tuple[Arch | None, str]":
    if len(archs) == 1:
        return archs[0], description
    fitting = [arch for arch in archs if name and _fits(arch, name)]
    if len(fitting) == 1:
        return fitting[0], f"{description}, and the product class of {name!r}"
    joint = db.arch("+".join(arch.id for arch in archs))
    ids = ", ".join(arch.id for arch in archs)
    reason = f"{description} covers {ids}, and the name does not decide: only shared rates count"
    return joint, reason


def _fits(arch: "Arch", name: str) -> bool:
    """Whether a normalised name is in the architecture's product class."""
    exact, prefix, suffix = (
        tuple(filter(None, arch.column(column).split("|")))
        for column in ("exact", "prefix", "suffix")
    )
    return name in exact or name.startswith(prefix) or name.endswith(suffix)
