"""Reads what a device's name holds: ids, counts and a vendor, beside the product."""

from probe_chipdb.pci_text import NONE, facts_in, ids_in, ids_of, revision_in
from probe_chipdb.spelling import claimed_vendor, is_generic, normalise, with_die

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.facts import Query


# Reads device-tree compatibles out of the forms in which people and tools write them.


def compatibles_in(text: str) -> tuple[str, ...]:
    r"""The compatibles of a text, most specific first, as the text has them.

    A property read whole (NUL between), source text, uevent lines, a modalias, or a plain list.

    >>> compatibles_in("rockchip,rk3588-mali\0arm,mali-valhall-csf\0")
    ('rockchip,rk3588-mali', 'arm,mali-valhall-csf')
    >>> compatibles_in('compatible = "amlogic,meson-g12a-mali", "arm,mali-bifrost";')
    ('amlogic,meson-g12a-mali', 'arm,mali-bifrost')
    >>> compatibles_in("of:NgpuT(null)Crockchip,rk3588-maliCarm,mali-valhall-csf")
    ('rockchip,rk3588-mali', 'arm,mali-valhall-csf')
    """
    text = text.replace("\\0", "\0").strip("\0 \t\r\n")
    if text.startswith("of:N"):
        return tuple(text.split("C")[1:])
    if '"' in text:
        return tuple(part.strip() for part in text.split('"')[1::2] if part.strip())
    tokens = [token.rpartition("=")[2].strip(",;'") for token in text.replace("\0", " ").split()]
    names = (token for token in tokens if token not in ("", "compatible", "compatible:"))
    return tuple(compatible for name in names for compatible in _pairs(name))


def _pairs(name: str) -> list[str]:
    """The name itself; `a,b,c,d` may also be two compatibles that a comma separates."""
    parts = name.split(",")
    if len(parts) < 4 or len(parts) % 2:
        return [name]
    return [name, *(",".join(parts[at : at + 2]) for at in range(0, len(parts), 2))]


def add_name_facts(query: "Query", name: str, kind: str, *, may_hold_ids: bool) -> None:
    """Add to a query what its name holds and no other fact gives.

    may_hold_ids: whether PCI ids in the name count; not where the device's own are known.
    Raises ValueError for an unknown kind.
    """
    facts = facts_in(name)
    ids = NONE
    if may_hold_ids:
        ids = ids_in(name) if kind == "pci" else ids_of(facts.get("pci", ""), name)
    pci, subsystem, revision = ids
    query.pci = query.pci or pci
    query.subsystem = query.subsystem or subsystem
    # A line of lspci gives the revision also where it gives no ids.
    query.revision = query.revision or revision or revision_in(name)
    # "Intel GeForce" is no product of NVIDIA: what a name claims rules out as a vendor does.
    query.vendor = query.vendor or claimed_vendor(name)
    query.units = query.units or int(facts.get("units", 0)) or None
    query.gpu_id = query.gpu_id or facts.get("gpu_id", "")
    if kind == "dt":
        query.dt = (*compatibles_in(name), *query.dt)
    else:
        _add_keys(query, name, kind)


def _add_keys(query: "Query", name: str, kind: str) -> None:
    # The key with its die is short, and a step on the way of a line of lspci to its product.
    query.die_key = with_die(name, kind)
    query.name_key = normalise(query.die_key or name, kind)
    target = query.name_key.partition(":")[0]
    # OpenCL and HIP print an AMD device's compiler target in the place of its name.
    if target.startswith("gfx") and target.isalnum():
        query.gfx, query.name_key = query.gfx or target, ""
    query.generic_name = is_generic(query.name_key)
