"""Reads what a device's name holds: ids, counts and a vendor, beside the product."""

from probe_chipdb.pci_text import NONE, Ids, ids_in, is_hex, revision_in
from probe_chipdb.spelling import MAX_LENGTH, claimed_vendor, is_generic, normalise, with_die

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
    ids = ids_in(name, kind == "pci") if may_hold_ids else NONE
    _add_ids(query, name, ids)
    # "Intel GeForce" is no product of NVIDIA: what a name claims rules out as a vendor does.
    query.vendor = query.vendor or claimed_vendor(name)
    if name[:5].lower() in ("mali-", "immor", "apple"):
        query.units = query.units or units_in(name)
        query.gpu_id = query.gpu_id or register_in(name)
    if kind == "dt":
        _add_compatibles(query, name)
    elif not ids[0] or "[" in name or "(0x" in name:
        _add_keys(query, name, kind)  # otherwise the text is an id, and no name


def _add_ids(query: "Query", name: str, ids: Ids) -> None:
    pci, subsystem, revision = ids
    query.pci = query.pci or pci
    query.subsystem = query.subsystem or subsystem
    # A line of lspci gives the revision also where it gives no ids.
    query.revision = query.revision or revision or revision_in(name)


def _add_compatibles(query: "Query", text: str) -> None:
    query.dt = (*compatibles_in(text), *query.dt)


def _add_keys(query: "Query", name: str, kind: str) -> None:
    query.name_key = normalise(name, kind)
    query.die_key = with_die(name, kind) if query.name_key else ""
    target = query.name_key.partition(":")[0]
    # OpenCL and HIP print an AMD device's compiler target in the place of its name.
    if target.startswith("gfx") and target.isalnum():
        query.gfx, query.name_key = query.gfx or target, ""
    query.generic_name = is_generic(query.name_key)


def units_in(name: str | None) -> int | None:
    """The GPU cores that a Mali driver or a Mac program counts in the name, or None.

    Mesa prints `MC4`, Arm's own driver `4 cores`. `MP4` is a word of marketing and is not read:
    it counts engines in some products and cores in others.

    >>> units_in("Mali-G610 MC4 (Panfrost)"), units_in("Mali-G610 4 cores r0p0 0xA867")
    (4, 4)
    >>> units_in("Apple M1 Max (GPU - 32 cores)"), units_in("NVIDIA GeForce RTX 4090")
    (32, None)
    """
    tokens = _tokens(name)
    if tokens[:1] == ["apple"]:
        inside = " ".join(tokens).partition("(")[2]
        tokens = inside.replace("-", " ").replace(")", " ").split()
    for at, token in enumerate(tokens):
        if token.startswith("mc") and token[2:].isdecimal():
            return int(token[2:11]) or None
        if token in ("cores", "core"):
            before = [word for word in tokens[:at] if word != "gpu"]  # "7 GPU cores"
            if before and before[-1].isdecimal():
                return int(before[-1][:9]) or None
    return None


def register_in(name: str | None) -> str:
    """The id register that Arm's driver prints after the name, or the empty text.

    >>> register_in("Mali-G610 4 cores r0p0 0xA867")
    'arm:0xa867'
    """
    for token in _tokens(name):
        digits = token.removeprefix("0x")
        if token != digits and 3 <= len(digits) <= 8 and is_hex(digits):
            return f"arm:{token}"
    return ""


def _tokens(name: str | None) -> list[str]:
    """The words of a Mali or Apple name; none of any other."""
    lower = (name or "").lower()
    if len(lower) > MAX_LENGTH or not lower.startswith(("mali", "immortalis", "apple ")):
        return []
    return lower.split()
