"""Reads what a text tells of a device beside the product: PCI ids, counts of units, registers."""

from probe_chipdb.rules import built

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.rules import Rules

Ids = tuple[str, str, str]  # "vvvv:dddd", "ssss:ssss" or "", "rr" or ""
NONE: Ids = ("", "", "")


def facts_in(text: str, rules: "Rules | None" = None) -> dict[str, str]:
    """What a text tells, by kind: "pci", "units" (GPU cores) and "gpu_id".

    rules: those of the built table when None.

    >>> facts_in("Mali-G610 4 cores r0p0 0xA867")
    {'units': '4', 'gpu_id': 'arm:0xa867'}
    >>> facts_in("Apple M1 Max (GPU - 32 cores)"), facts_in("10DE:2684/1043:889A@a1")
    ({'units': '32'}, {'pci': '10de:2684/1043:889a@a1'})
    """
    facts: dict[str, str] = {}
    for fact in (rules or built()).every(text.lower().strip(), "fact"):
        kind, _, value = fact.partition("=")
        facts.setdefault(kind, value)
    return facts


def ids_of(pci: str, text: str) -> Ids:
    """The device, subsystem and revision of a fact of a text.

    >>> ids_of("10de:2684/1043:889a", "... (rev a1)")
    ('10de:2684', '1043:889a', 'a1')
    """
    device, _, revision = pci.partition("@")
    device, _, subsystem = device.partition("/")
    revision = revision.rjust(2, "0") if 0 < len(revision) <= 2 else ""
    return (device, subsystem, revision or revision_in(text)) if device else NONE


def ids_in(text: str, rules: "Rules | None" = None) -> Ids:
    """The ids of a text that is known to be one, so that bare words ("10de 2684") count too.

    >>> ids_in("10de 2684"), ids_in("0x268410DE")
    (('10de:2684', '', ''), ('10de:2684', '', ''))
    """
    if not text:
        return NONE
    rules = rules or built()
    pci = facts_in(text, rules).get("pci") or next(rules.every(text.lower().strip(), "bare"), "")
    return ids_of(pci, text)


def revision_in(text: str) -> str:
    """The revision of an lspci line, which has one with or without ids: `... (rev c8)`."""
    revision = text.lower().rpartition("(rev ")[2].partition(")")[0] if "(" in text else ""
    return revision if len(revision) == 2 and set(revision) <= _HEX else ""


_HEX = frozenset("0123456789abcdef")
