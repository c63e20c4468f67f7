"""Names of what is no whole chip: shares of a card, hosted cards, renderers, plain displays.

These must never be matched to the product whose name or id they borrow. Seen in other tools: a
server's ASPEED display counted as its ninth GPU, and llvmpipe listed as a GPU.
"""

from probe_chipdb.rules import built

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.rules import Rules

_MOST_LETTERS = 256
"""As much of a name as is read of any other."""

# No row of data: a look-up by an id alone reads no rules, which is half of what a cold one costs.
_DISPLAY_VENDORS = {
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


def exclusion(name: str | None, pci: str | None, rules: "Rules | None" = None) -> str | None:
    """Why this can be no chip of the table, in a clause, or None.

    rules: those of the built table when None.

    >>> exclusion("GRID V100D-8Q", None)
    'it is a virtual GPU (profile 8Q): a share of a card, not the card'
    """
    if pci and (display := _DISPLAY_VENDORS.get(pci[:4])):
        return f"PCI vendor {pci[:4]} is {display}: a display, not an accelerator"
    if not name:
        return None
    rules = rules or built()
    # With another vendor's PCI id the word is a board's brand: Matrox sells cards by NVIDIA.
    if reason := next(rules.every(name.lower(), "none", but="display" if pci else ""), ""):
        return reason
    share = share_in(name, rules)
    return share.description if share else None


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


def share_in(name: str, rules: "Rules | None" = None) -> Share | None:
    """The share that a name is of, or None. rules: those of the built table when None.

    >>> share = share_in("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb")
    >>> share.parent, share.profile
    ('nvidia-h100-80gb-hbm3', '1g.10gb')
    >>> share_in("GRID A100DX-7-80C").board, share_in("NVIDIA L40S") is None
    ('a100dx', True)
    """
    rules = rules or built()
    found = next(rules.every(" ".join(name.lower().split()), "share"), "")
    if not found:
        return None
    kind, profile, board, parent = found.split("/", 3)
    if kind == "vgpu":
        profile = profile.upper()
    if board:
        board = rules.rewritten(board, "board")
        parent = f"nvidia {board}"
    kind = rules.words("share_kind").get(kind, "share").replace("{profile}", profile)
    return Share(parent, profile, f"it is a {kind}: a share of a card, not the card", board)


def hosted_in(name: str) -> str:
    """The host's device in a virtual machine's, or the empty text.

    >>> hosted_in("Virtio-GPU Venus (NVIDIA GeForce RTX 4060)")
    'NVIDIA GeForce RTX 4060'
    >>> hosted_in("virgl (Mesa Intel(R) UHD Graphics 620 (KBL GT2))"), hosted_in("virtio_gpu")
    ('Mesa Intel(R) UHD Graphics 620 (KBL GT2)', '')
    """
    lower = name[:_MOST_LETTERS].lower()
    host = next(built().every(lower, "host"), "")
    at = lower.find(host)
    return name[at : at + len(host)] if at >= 0 and name.isascii() else host
