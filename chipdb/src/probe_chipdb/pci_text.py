"""Reads the PCI ids that tools print inside a text, so that a pasted line matches by hardware."""

Ids = tuple[str, str, str]  # "vvvv:dddd", "ssss:ssss" or "", "rr" or ""
NONE: Ids = ("", "", "")


def ids_in(text: str | None) -> Ids:
    """The device, subsystem and revision that a text names; empty where it names none.

    >>> ids_in("10de:2684")
    ('10de:2684', '', '')
    >>> ids_in("NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)")
    ('10de:2684', '', 'a1')
    >>> ids_in("PCI\\\\VEN_10DE&DEV_2684&SUBSYS_889A1043&REV_A1\\\\4&1A2B&0&0008")
    ('10de:2684', '1043:889a', 'a1')
    >>> ids_in("pci:v000010DEd00002684sv00001043sd0000889Abc03sc00i00")
    ('10de:2684', '1043:889a', '')
    >>> ids_in("Intel(R) Graphics [0x56a0]")
    ('8086:56a0', '', '')
    """
    low = text.lower() if text else ""
    if not low:
        return NONE
    if low.startswith("pci\\ven_"):
        return _windows(low)
    if low.startswith("pci:v0000"):
        return _modalias(low)
    if len(low) == 9 and (pair := _pair(low)):
        return pair, "", ""
    return _bracketed(low) if "[" in low else NONE


def _bracketed(text: str) -> Ids:
    """lspci -nn: `... [10de:2684] (rev a1)`; Intel's compute runtime: `... [0x56a0]`."""
    for part in text.split("[")[1:]:
        inside = part.partition("]")[0]
        pair = _pair(inside)
        if inside.startswith("0x") and "intel" in text:
            pair = _pair(f"8086:{inside[2:]}")
        if pair:
            revision = text.rpartition("(rev ")[2].partition(")")[0] if "(rev " in text else ""
            return pair, "", revision if len(revision) == 2 and _is_hex(revision) else ""
    return NONE


def _windows(text: str) -> Ids:
    """PNPDeviceID; SUBSYS has the device before the vendor."""
    fields = dict(part.split("_", 1) for part in text[4:].split("\\")[0].split("&") if "_" in part)
    subsystem = fields.get("subsys", "")
    revision = fields.get("rev", "")
    return (
        _pair(f"{fields.get('ven', '')}:{fields.get('dev', '')}"),
        _pair(f"{subsystem[4:]}:{subsystem[:4]}"),
        revision if len(revision) == 2 and _is_hex(revision) else "",
    )


def _modalias(text: str) -> Ids:
    """`pci:v000010DEd00002684sv00001043sd0000889A...`: eight digits each, the last four count."""
    device = _pair(f"{text[9:13]}:{text[18:22]}")
    return device, _pair(f"{text[28:32]}:{text[38:42]}"), ""


def _pair(text: str) -> str:
    """The text itself when it is `vvvv:dddd` in hex, else nothing."""
    vendor, _, device = text.partition(":")
    return text if len(vendor) == len(device) == 4 and _is_hex(vendor + device) else ""


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)
