"""Names what is no whole chip: slices, virtual GPUs, software renderers, plain displays.

These must never be matched to the product whose name or id they borrow. Seen in other tools: a
server's ASPEED display counted as its ninth GPU, and llvmpipe listed as a GPU.
"""

from probe_chipdb.shares import share_in

_SOFTWARE = (
    "llvmpipe", "lavapipe", "softpipe", "swiftshader", "swrast", "software rasterizer",
    "microsoft basic render", "gdi generic", "pocl", "virgl", "software adapter",
    "apple software renderer", "paravirtual",
)  # fmt: skip
_DISPLAYS = (
    "aspeed", "matrox", "mga g200", "qxl", "virtio", "bochs", "vmware", "svga3d", "svga ii",
    "hyper-v", "cirrus", "simpledrm", "simple framebuffer", "vgem", "vkms", "virtualbox",
    "microsoft basic display", "parallels", "remote display", "displaylink", "citrix",
    "microsoft remote", "usb mobile monitor", "meta virtual monitor", "rage xl", "efifb",
)  # fmt: skip
# PCI functions of the same card or board: they bear its name without being it.
_FUNCTIONS = (
    "hdmi audio", "audio controller", "audio device", "usb controller", "usb 3.", "ucsi",
    "nvswitch", "pci bridge", "host bridge", "isa bridge", "serial bus controller",
)  # fmt: skip
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


def exclusion(name: str | None, pci: str | None) -> str | None:
    """Why this can be no chip of the table, in a clause, or None.

    >>> exclusion("GRID V100D-8Q", None)
    'it is a virtual GPU (profile 8Q): a share of a card, not the card'
    """
    if pci and (display := DISPLAY_VENDORS.get(pci[:4])):
        return f"PCI vendor {pci[:4]} is {display}: a display, not an accelerator"
    if not name:
        return None
    # With another vendor's PCI id the word is a board's brand: Matrox sells cards by NVIDIA.
    if reason := _excluded_word(name.lower(), () if pci else _DISPLAYS):
        return reason
    share = share_in(name)
    return share.description if share else None


def _excluded_word(name: str, displays: tuple[str, ...]) -> str | None:
    # filter() searches in C: half the time of a loop, for fifty words of each name.
    holds = name.__contains__
    if renderer := next(filter(holds, _SOFTWARE), None):
        return f"{renderer!r} is a renderer in software or a remote one, not a chip"
    if display := next(filter(holds, displays), None):
        return f"{display!r} is a plain or virtual display, not an accelerator"
    if function := next(filter(holds, _FUNCTIONS), None):
        return f"{function!r} is another function of a card or board, not the chip"
    return None
