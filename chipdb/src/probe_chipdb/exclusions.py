"""Names of what is no whole chip: shares of a card, hosted cards, renderers, plain displays.

These must never be matched to the product whose name or id they borrow. Seen in other tools: a
server's ASPEED display counted as its ninth GPU, and llvmpipe listed as a GPU.
"""

from probe_chipdb.facts import DISPLAY_VENDORS
from probe_chipdb.rules import built


def exclusion(facts: "dict[str, str]", pci: str) -> str:
    """Why this can be no chip of the table, in a clause, or the empty text.

    facts: what the name tells, as `facts_in` reads it.

    >>> exclusion({"share": "vgpu/8q/grid v100d/"}, "")
    'it is a virtual GPU (profile 8Q): a share of a card, not the card'
    """
    if display := DISPLAY_VENDORS.get(pci[:4]):
        return f"PCI vendor {pci[:4]} is {display}: a display, not an accelerator"
    for kind, reason in facts.items():
        # With another vendor's PCI id the word is a board's brand: Matrox sells cards by NVIDIA.
        if kind.startswith("none/") and not (pci and kind == "none/display"):
            return reason
    share = share_in(facts)
    return share.description if share else ""


class Share:
    """A share of a card. parent: the card's name, or empty. profile: "1g.10gb", "8Q", "shared".

    description: what kind of share it is, as a clause.
    board: the card as NVIDIA's vGPU types abbreviate it ("a100dx"), or empty.
    """

    def __init__(self, parent: str, profile: str, description: str, board: str) -> None:
        self.parent = parent
        self.profile = profile
        self.description = description
        self.board = board


def share_in(facts: "dict[str, str]") -> Share | None:
    """The share that a name is of, by what it tells, or None.

    >>> share = share_in({"share": "mig/1g.10gb//nvidia-h100-80gb-hbm3"})
    >>> share.parent, share.profile
    ('nvidia-h100-80gb-hbm3', '1g.10gb')
    >>> share_in({"share": "vgpu/80c/grid a100dx-7/"}).board, share_in({}) is None
    ('a100dx', True)
    """
    if "share" not in facts:
        return None
    kind, profile, board, parent = facts["share"].split("/", 3)
    if kind == "vgpu":
        profile = profile.upper()
    if board:
        board = built().rewritten(board, "board")
        parent = f"nvidia {board}"
    kind = built().words("share_kind").get(kind, "share").replace("{profile}", profile)
    return Share(parent, profile, f"it is a {kind}: a share of a card, not the card", board)


def hosted_in(facts: "dict[str, str]", name: str) -> str:
    """The host's device in a virtual machine's, as the name writes it, or the empty text.

    >>> hosted_in({"host": "nvidia l4"}, "Virtio-GPU Venus (NVIDIA L4)")
    'NVIDIA L4'
    """
    host = facts.get("host", "")
    at = name.lower().find(host)
    return name[at : at + len(host)] if at >= 0 and name.isascii() else host
