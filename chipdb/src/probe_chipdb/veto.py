"""Names what is no whole chip: slices, virtual GPUs, software renderers, plain displays.

These must never be matched to the product whose name or id they borrow.
"""

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
_FUNCTIONS = (  # of the same card or board: they bear its name without being it
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


def why_no_chip(name: str | None, pci: str | None) -> str | None:
    """Why this can be no chip of the table, in a clause, or None.

    >>> why_no_chip("GRID V100D-8Q", None)
    'it is a virtual GPU (profile 8Q): a share of a card, not the card'
    """
    if pci and (display := DISPLAY_VENDORS.get(pci[:4])):
        return f"PCI vendor {pci[:4]} is {display}: a display, not an accelerator"
    # With another vendor's PCI id the word is a board's brand: Matrox sells cards by NVIDIA.
    return _why_by_name(name.lower(), () if pci else _DISPLAYS) if name else None


def _why_by_name(name: str, displays: tuple[str, ...]) -> str | None:
    for word in _SOFTWARE:
        if word in name:
            return f"{word!r} is a renderer in software or a remote one, not a chip"
    for word in displays:
        if word in name:
            return f"{word!r} is a plain or virtual display, not an accelerator"
    for word in _FUNCTIONS:
        if word in name:
            return f"{word!r} is another function of a card or board, not the chip"
    if " mig " in f" {name} ":
        return "it is a MIG slice: a share of a card, not the card"
    profile = _vgpu_profile(name)
    return (
        f"it is a virtual GPU (profile {profile}): a share of a card, not the card"
        if profile
        else None
    )


def _vgpu_profile(name: str) -> str | None:
    """`8Q` of "GRID V100D-8Q": digits and one of Q, C, B, A after the last hyphen (or `2B4`)."""
    head, hyphen, tail = name.rpartition("-")
    digits = len(tail) - len(tail.lstrip("0123456789"))
    letter, rest = tail[digits : digits + 1], tail[digits + 1 :]
    if not (
        hyphen and digits and letter in ("q", "c", "b", "a") and (not rest or rest.isdecimal())
    ):
        return None
    # Habana's HL-225B ends alike: only after an NVIDIA model ("A40", "RTX6000-Ada", "A100-7").
    model = head.rpartition(" ")[2]
    known = any(word in head for word in ("grid", "nvidia", "tesla", "quadro", "rtx"))
    return tail.upper() if known or model[1:2].isdecimal() else None
