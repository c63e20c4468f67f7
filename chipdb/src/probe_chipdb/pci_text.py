"""Reads the PCI ids that tools print inside a text, so that a pasted line matches by hardware."""

Ids = tuple[str, str, str]  # "vvvv:dddd", "ssss:ssss" or "", "rr" or ""
NONE: Ids = ("", "", "")
_HEX = frozenset("0123456789abcdef")


def ids_in(text: str | None, only_ids: bool = False) -> Ids:
    """The device, subsystem and revision that a text names; empty where it names none.

    only_ids: the text is known to be an id, so that bare words ("10de 2684") count too.

    >>> ids_in("10de:2684"), ids_in("10DE:2684/1043:889A@a1")
    (('10de:2684', '', ''), ('10de:2684', '1043:889a', 'a1'))
    >>> ids_in("NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)")
    ('10de:2684', '', 'a1')
    >>> ids_in("PCI\\\\VEN_10DE&DEV_2684&SUBSYS_889A1043&REV_A1\\\\4&1A2B&0&0008")
    ('10de:2684', '1043:889a', 'a1')
    >>> ids_in("pci:v000010DEd00002684sv00001043sd0000889Abc03sc00i00")
    ('10de:2684', '1043:889a', '')
    >>> ids_in("Intel(R) Graphics [0x56a0]"), ids_in("0x268410DE")
    (('8086:56a0', '', ''), ('10de:2684', '', ''))
    """
    low = text.lower().strip() if text else ""
    if not low:
        return NONE
    if "ven_" in low and "dev_" in low:
        return _windows(low[low.index("ven_") :])
    if low.startswith("pci:v0000"):
        return _modalias(low)
    if low.startswith('"') or ' "' in low:
        return _machine_readable(low)
    if "[" in low and (found := _bracketed(low))[0]:
        return found
    if " device " in low or "(0x" in low:
        return _with_vendor(low)
    return _plain(low, only_ids)


def revision_in(text: str | None) -> str:
    """The revision of an lspci line, which has one with or without ids: `... (rev c8)`."""
    low = text.lower() if text else ""
    return _revision(low.rpartition("(rev ")[2].partition(")")[0]) if "(rev " in low else ""


def _bracketed(text: str) -> Ids:
    """lspci -nn: `... [10de:2684] (rev a1)`, then its Subsystem line; Intel's `... [0x56a0]`."""
    found: list[str] = []
    for part in text.split("[")[1:]:
        inside = part.partition("]")[0]
        pair = _pair(inside)
        if inside.startswith("0x") and "intel" in text:
            pair = _pair(f"8086:{inside[2:]}")
        if pair:
            found.append(pair)
    if not found:
        return NONE
    subsystem = found[1] if len(found) > 1 and "subsystem" in text else ""
    return found[0], subsystem, revision_in(text)


def _with_vendor(text: str) -> Ids:
    """`NVIDIA Corporation Device 2901`, an id that lspci cannot name; `... (0x2206)` of GL."""
    vendor = next((id_ for word, id_ in _VENDORS if word in text), "")
    device = text.partition(" device ")[2][:5].rstrip()
    if not vendor or "gfx" in text or text.startswith("device "):
        return NONE
    if "(0x" in text:
        inside = text.rpartition("(0x")[2].partition(")")[0]
        device = inside.removeprefix("0000") if len(inside) == 8 else inside
    pair = _pair(f"{vendor}:{device}")
    return (pair, "", revision_in(text)) if pair else NONE


_VENDORS = (
    ("nvidia", "10de"),
    ("amd", "1002"),
    ("advanced micro devices", "1002"),
    ("radeon", "1002"),
    ("intel", "8086"),
    ("habana labs", "1da3"),
    ("huawei technologies", "19e5"),
    ("hailo technologies", "1e60"),
    ("tenstorrent", "1e52"),
    ("moore threads", "1ed5"),
)


def _windows(text: str) -> Ids:
    """PNPDeviceID; SUBSYS has the device before the vendor."""
    fields = dict(part.split("_", 1) for part in text.split("\\")[0].split("&") if "_" in part)
    subsystem = fields.get("subsys", "")[:8]
    return (
        _pair(f"{fields.get('ven', '')}:{fields.get('dev', '')[:4]}"),
        _pair(f"{subsystem[4:]}:{subsystem[:4]}"),
        _revision(fields.get("rev", "")[:2]),
    )


def _modalias(text: str) -> Ids:
    """`pci:v000010DEd00002684sv00001043sd0000889A...`: eight digits each, the last four count."""
    device = _pair(f"{text[9:13]}:{text[18:22]}")
    return device, _pair(f"{text[28:32]}:{text[38:42]}"), ""


def _machine_readable(text: str) -> Ids:
    """lspci -nmm: `01:00.0 "0300" "10de" "2684" -ra1 "1043" "889a"`, or `"Name [2684]"`."""
    fields = [_last_bracket(part) for part in text.split('"')[1::2]]
    revision = _revision(text.partition('" -r')[2][:2])
    pairs = [_pair(":".join(fields[at : at + 2])) for at in (1, 3)]
    return (pairs[0], pairs[1], revision) if pairs[0] else NONE


def _last_bracket(field: str) -> str:
    return field.rpartition("[")[2].rstrip("]") if field.endswith("]") else field


def _plain(text: str, only_ids: bool) -> Ids:
    """Ids alone, in the spellings of lspci -n, uevent files, nvidia-smi and people."""
    revision = revision_in(text)
    head = text.partition("(rev ")[0].removeprefix("pci_id=")
    words = head.replace("/", " ").replace("@", " rev ").split()
    if len(words) > 2 and words[1].endswith(":") and "." in words[0]:
        words = words[2:]  # lspci -n: the slot and the class
    if "rev" in words[:-1]:
        at = words.index("rev")
        revision, words = words[at + 1].zfill(2), words[:at]
    if len(words) == 2 and (only_ids or words[0].startswith("0x")):
        pair = _pair(f"{_bare(words[0])}:{_bare(words[1])}")
        if pair:
            return pair, "", _revision(revision)
    first = _whole(words[0]) if words else ""
    second = _whole(words[-1]) if first and len(words) > 1 else ""
    return (first, second, _revision(revision)) if first else NONE


def _revision(text: str) -> str:
    return text if len(text) == 2 and _is_hex(text) else ""


def _whole(word: str) -> str:
    """`10de:2684`, `0x10de:0x2684`, or NVML's `0x268410de` with the device first."""
    if len(word) == 10 and word.startswith("0x") and _is_hex(word[2:]):
        return f"{word[6:]}:{word[2:6]}"
    vendor, _, device = word.partition(":")
    return _pair(f"{_bare(vendor)}:{_bare(device)}")


def _bare(word: str) -> str:
    return word.removeprefix("0x").rstrip(",")


def _pair(text: str) -> str:
    """The text itself when it is `vvvv:dddd` in hex, else nothing."""
    vendor, _, device = text.partition(":")
    return text if len(vendor) == len(device) == 4 and _is_hex(vendor + device) else ""


def _is_hex(text: str) -> bool:
    return _HEX.issuperset(text)
