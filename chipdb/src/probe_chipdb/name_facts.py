"""Reads what a text tells of a device beside the product: ids, counts, registers, a vendor."""

from probe_chipdb.rules import built
from probe_chipdb.spelling import claimed_vendor, is_generic, normalise, with_die

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.facts import Query
    from probe_chipdb.rules import Rules

Ids = tuple[str, str, str]  # "vvvv:dddd", "ssss:ssss" or "", "rr" or ""


def facts_in(text: str, rules: "Rules | None" = None) -> dict[str, str]:
    """What a text tells, by kind: "pci", "rev", "units" (GPU cores) and "gpu_id".

    Also why it is no chip ("none/" and a group), which share of a card it is ("share"), and what a
    virtual machine calls its host's device ("host"). rules: those of the built table when None.

    >>> facts_in("Mali-G610 4 cores r0p0 0xA867")
    {'units': '4', 'gpu_id': 'arm:0xa867'}
    >>> facts_in("Apple M1 Max (GPU - 32 cores)"), facts_in("10DE:2684/1043:889A@a1")
    ({'units': '32'}, {'pci': '10de:2684/1043:889a@a1'})
    """
    facts: dict[str, str] = {}
    for fact in (rules or built()).every(" ".join(text.lower().split()), "fact"):
        kind, _, value = fact.partition("=")
        facts.setdefault(kind, value)
    return facts


def ids_of(facts: dict[str, str]) -> Ids:
    """The device, subsystem and revision among a text's facts.

    >>> ids_of({"pci": "10de:2684/1043:889a", "rev": "a1"})
    ('10de:2684', '1043:889a', 'a1')
    """
    ids, _, revision = facts.get("pci", "").partition("@")
    device, _, subsystem = ids.partition("/")
    own = revision.rjust(2, "0") if 0 < len(revision) <= 2 else ""
    return device, subsystem, own or facts.get("rev", "")


def ids_in(text: str) -> Ids:
    """The ids of a text that is known to be one, so that bare words ("10de 2684") count too.

    >>> ids_in("10de 2684"), ids_in("0x268410DE")
    (('10de:2684', '', ''), ('10de:2684', '', ''))
    """
    bare = next(built().every(text.lower().strip(), "bare"), "") if text else ""
    return ids_of({"pci": bare, **facts_in(text)}) if text else ("", "", "")


def compatibles_in(text: str) -> tuple[str, ...]:
    r"""The device-tree compatibles of a text, most specific first, as the text has them.

    A property read whole (NUL between), source text, uevent lines, a modalias, or a plain list.

    >>> compatibles_in("rockchip,rk3588-mali\0arm,mali-valhall-csf\0")
    ('rockchip,rk3588-mali', 'arm,mali-valhall-csf')
    >>> compatibles_in('compatible = "amlogic,meson-g12a-mali", "arm,mali-bifrost";')
    ('amlogic,meson-g12a-mali', 'arm,mali-bifrost')
    >>> compatibles_in("of:NgpuT(null)Crockchip,rk3588-maliCarm,mali-valhall-csf")
    ('rockchip,rk3588-mali', 'arm,mali-valhall-csf')
    """
    for mark in ("\\0", "\0", '"'):
        text = text.replace(mark, " ")
    if text.strip().startswith("of:N"):
        text = " ".join(text.split("C")[1:])
    tokens = (token.rpartition("=")[2].strip(",;:'") for token in text.split())
    names: list[str] = []
    for name in tokens:
        if name not in ("", "compatible"):
            parts = name.split(",")
            names.append(name)
            if len(parts) >= 4 and len(parts) % 2 == 0:  # may also be two, with a comma between
                names += [",".join(parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return tuple(names)


def add_name_facts(query: "Query", name: str, kind: str, *, may_hold_ids: bool) -> None:
    """Add to a query what its name holds and no other fact gives.

    may_hold_ids: whether PCI ids in the name count; not where the device's own are known.
    Raises ValueError for an unknown kind.
    """
    facts = query.name_facts = facts_in(name)
    if may_hold_ids:
        pci, subsystem, revision = ids_in(name) if kind == "pci" else ids_of(facts)
        query.pci = query.pci or pci
        query.subsystem = query.subsystem or subsystem
        query.revision = query.revision or revision
    # A line of lspci gives the revision also where it gives no ids.
    query.revision = query.revision or facts.get("rev", "")
    query.named_units = int(facts.get("units", 0))
    query.units = query.units or query.named_units or None
    query.gpu_id = query.gpu_id or facts.get("gpu_id", "")
    if kind == "dt":
        query.dt = (*compatibles_in(name), *query.dt)
        return
    # The key with its die is short, and a step on the way of a line of lspci to its product.
    query.die_key = with_die(name, kind)
    query.name_key = normalise(query.die_key or name, kind)
    # "Intel GeForce" is no product of NVIDIA: what a name claims rules out as a vendor does. A
    # processor's vendor says nothing of the card beside it: "AMD EPYC 9534 + H100".
    if not query.name_key.startswith(built().set("processor")):
        query.vendor = query.vendor or claimed_vendor(name)
    target = query.name_key.partition(":")[0]
    # OpenCL and HIP print an AMD device's compiler target in the place of its name.
    if target.startswith("gfx") and target.isalnum():
        query.gfx, query.name_key = query.gfx or target, ""
    query.generic_name = is_generic(query.name_key)
