"""Names of what is no whole chip: shares of a card, hosted cards, renderers, plain displays."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.rules import Rules

# Reads names of shares of a card: MIG slices, vGPU types, time-sliced labels; and of hosted cards.
#
# Such a device bears the name of its card and is less than it. The card is worth naming all the
# same.

_SHARED = ("-shared", " shared")  # the label of NVIDIA's device plugin for time-sliced cards


class Share:
    """A share of a card. parent: the card's name, or empty. profile: "1g.10gb", "8Q", "shared".

    description: what kind of share it is, as a clause.
    board: the card as NVIDIA's vGPU types abbreviate it ("a100dx"), or empty.
    """

    __slots__ = ("board", "description", "parent", "profile")

    def __init__(self, parent: str, profile: str, description: str, board: str = "") -> None:
        self.parent = parent
        self.profile = profile
        self.description = description
        self.board = board


def share_in(name: str) -> Share | None:
    """The share that a name is of, or None.

    >>> share = share_in("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb")
    >>> share.parent, share.profile
    ('nvidia-h100-80gb-hbm3', '1g.10gb')
    >>> share_in("GRID A100DX-7-80C").board, share_in("NVIDIA L40S") is None
    ('a100dx', True)
    """
    text = " ".join(name.lower().split())
    if "mig" in text or "g." in text:
        return _mig(text)
    if "-" not in text and not text.endswith(_SHARED) and not text.startswith("shard:"):
        return None  # most names: nothing more to look for
    return _virtual(text) or _time_sliced(text)


def _time_sliced(text: str) -> Share | None:
    if text.startswith("shard:"):  # Slurm's gres of a shared card
        description = "it is a shard: a share of a card, not the card"
        return Share(text.replace("shard:", "gpu:", 1), "shared", description)
    for suffix in _SHARED:
        if text.endswith(suffix):
            description = "it is a time slice: a share of a card, not the card"
            return Share(text.removesuffix(suffix), "shared", description)
    return None


def _mig(text: str) -> Share | None:
    for suffix in _SHARED:
        text = text.removesuffix(suffix)
    text = _of_scheduler(text)
    spaced = f" {text.replace('-', ' ')} "
    at = spaced.find(" mig ")
    tail = spaced[at + 5 :].strip() if at >= 0 else text
    profile = tail.partition(" ")[0]
    if at < 0 and not _is_slice(profile):
        return None
    parent, board = text[:at].rstrip("- ") if at > 0 else "", ""
    if "-" in parent and (shared := _virtual(parent)):
        parent, board = shared.parent, shared.board  # "GRID A100-1-5C MIG 1g.5gb"
    shown = profile if _is_slice(profile) else ""
    return Share(parent, shown, "it is a MIG slice: a share of a card, not the card", board)


def _of_scheduler(text: str) -> str:
    """Slurm's `gpu:nvidia_a100_80gb_pcie_1g.10gb:1` and Kubernetes' `nvidia.com/mig-1g.10gb`."""
    text = text.partition("(s:")[0].partition("(idx:")[0].removeprefix("gpu:")
    if text.startswith("nvidia.com/mig-"):
        text = text.removeprefix("nvidia.com/")
    head, colon, count = text.rpartition(":")
    text = head if colon and count.isdecimal() else text
    model, _, profile = text.rpartition("_")
    return f"{model.replace('_', ' ')} mig {profile}" if model and _is_slice(profile) else text


def _is_slice(word: str) -> bool:
    """`1g.10gb`, `1c.3g.40gb`, `1g.10gb+me`."""
    slices, dot, memory = word.partition("+")[0].rpartition(".")
    units = slices.rpartition(".")[2]
    digits = memory.removesuffix("gb")
    counted = units.endswith("g") and units[:-1].isdecimal()
    return bool(dot) and counted and digits != memory and digits.isdecimal()


def _virtual(text: str) -> Share | None:
    """`8Q` of "GRID V100D-8Q": digits and one of Q, C, B, A after the last hyphen (or `2B4`)."""
    model, hyphen, profile = text.rpartition("-")
    profile = profile.removesuffix("me") if profile.endswith("cme") else profile
    digits = len(profile) - len(profile.lstrip("0123456789"))
    letter, version = profile[digits : digits + 1], profile[digits + 1 :]
    well_formed = hyphen and digits and letter in ("q", "c", "b", "a")
    if not well_formed or not (version.isdecimal() or not version) or not _is_nvidia(model):
        return None
    shown = profile.upper()
    description = f"it is a virtual GPU (profile {shown}): a share of a card, not the card"
    board = _board(model)
    return Share(f"nvidia {board}", shown, description, board)


def _is_nvidia(name: str) -> bool:
    """Habana's HL-225B ends like a profile: only an NVIDIA name or model may ("A40", "A100-7")."""
    brands = ("grid", "nvidia", "tesla", "quadro", "rtx")
    model = name.rpartition(" ")[2]
    return any(brand in name for brand in brands) or model[1:2].isdecimal()


def _board(model: str) -> str:
    """The host's card: "GRID A100-7" is a share of an A100; "Blackwell DC" is a server's."""
    for maker in ("nvidia ", "grid "):
        model = model.removeprefix(maker)
    head, _, slices = model.rpartition("-")
    if head and len(slices) == 1 and slices.isdecimal():
        model = head
    if model.endswith(" blackwell dc"):
        model = model.removesuffix("dc") + "server edition"
    return model


def hosted_in(name: str, rules: "Rules | None" = None) -> str:
    """The host's device in a virtual machine's, or the empty text.

    >>> hosted_in("Virtio-GPU Venus (NVIDIA GeForce RTX 4060)")
    'NVIDIA GeForce RTX 4060'
    >>> hosted_in("virgl (Mesa Intel(R) UHD Graphics 620 (KBL GT2))"), hosted_in("virtio_gpu")
    ('Mesa Intel(R) UHD Graphics 620 (KBL GT2)', '')
    """
    from probe_chipdb.rules import built

    lower = name[:MOST_LETTERS].lower()
    host = next(iter((rules or built()).every(lower, "host")), "")
    if not host:
        return ""
    at = lower.find(host)
    return name[at : at + len(host)] if at >= 0 and name.isascii() else host


MOST_LETTERS = 256
"""As much of a name as is read of any other."""


# Names what is no whole chip: slices, virtual GPUs, software renderers, plain displays.
#
# These must never be matched to the product whose name or id they borrow. Seen in other tools: a
# server's ASPEED display counted as its ninth GPU, and llvmpipe listed as a GPU.

DISPLAY_VENDORS = {
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
    if pci and (display := DISPLAY_VENDORS.get(pci[:4])):
        return f"PCI vendor {pci[:4]} is {display}: a display, not an accelerator"
    if not name:
        return None
    from probe_chipdb.rules import built

    # With another vendor's PCI id the word is a board's brand: Matrox sells cards by NVIDIA.
    if reason := (rules or built()).none(name.lower(), but="display" if pci else ""):
        return reason
    share = share_in(name)
    return share.description if share else None
