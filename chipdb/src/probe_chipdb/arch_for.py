"""Finds the architecture of a chip that nobody has entered, from what its driver says of it."""

from probe_chipdb.arch import Arch
from probe_chipdb.spelling import normalise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.database import Database


def arch_for(
    db: "Database",
    *,
    compute_capability: str | None,
    gfx: str | None,
    name: str | None,
    metal_family: str | None,
    gpu_id: str | None,
    dt: tuple[str, ...],
    pci: str | None,
) -> tuple[Arch | None, str]:
    """The architecture and why; several sets of rates give what they share."""
    for key, said in _keys(db, compute_capability, gfx, metal_family, gpu_id, dt, pci):
        archs = [arch for id_ in db.ids(key) if (arch := db.arch(id_))]
        if archs:
            return _choose(db, archs, normalise(name or ""), said)
    return None, "no architecture of the table has what the driver says"


def _keys(
    db: "Database",
    compute_capability: str | None,
    gfx: str | None,
    metal_family: str | None,
    gpu_id: str | None,
    dt: tuple[str, ...],
    pci: str | None,
) -> list[tuple[str, str]]:
    keys = [
        (f"c:{compute_capability}", f"compute capability {compute_capability}"),
        (f"x:{(gfx or '').partition(':')[0]}", f"gfx target {gfx}"),
        (f"m:{metal_family}", f"Metal family {metal_family}"),
        (f"ap:{(pci or '').lower()}", f"PCI id {pci}"),
    ]
    if gpu_id:
        from probe_chipdb.matching import register_keys

        keys += [(f"ag:{key}", f"id {gpu_id}") for key in register_keys(db, gpu_id.lower(), "agm")]
    keys += [(f"ad:{compatible}", f"compatible {compatible}") for compatible in dt]
    return [
        (key, said) for key, said in keys if not key.endswith(":") and not key.endswith(":None")
    ]


def _choose(db: "Database", archs: list[Arch], name: str, said: str) -> tuple[Arch | None, str]:
    if len(archs) == 1:
        return archs[0], said
    fitting = [arch for arch in archs if name and _fits(arch, name)]
    if len(fitting) == 1:
        return fitting[0], f"{said}, and the product class of {name!r}"
    joint = db.arch("+".join(arch.id for arch in archs))
    names = ", ".join(arch.id for arch in archs)
    return (
        joint,
        f"{said} covers {names}, and the name does not tell which: only shared rates count",
    )


def _fits(arch: Arch, name: str) -> bool:
    """Whether a normalised name is in the architecture's product class."""
    exact, prefix, suffix = (
        [word for word in arch.column(column).split("|") if word]
        for column in ("exact", "prefix", "suffix")
    )
    return name in exact or name.startswith(tuple(prefix)) or name.endswith(tuple(suffix))
