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
    lower = text.lower().strip() if text else ""
    if not lower or not (only_ids or _is_marked(lower)):
        return NONE
    if "ven_" in lower and "dev_" in lower:
        return _windows(lower[lower.index("ven_") :])
    if lower.startswith("pci:v0000"):
        return _modalias(lower)
    if "kernel modesetting (" in lower:
        return _of_drm(lower.partition("kernel modesetting (")[2].split())
    if lower.startswith('"') or ' "' in lower:
        return _machine_readable(lower)
    if "[" in lower and (ids := _bracketed(lower))[0]:
        return ids
    return _unmarked(lower, only_ids)


def _is_marked(lower: str) -> bool:
    """Whether a text holds any of the marks without which it holds no id."""
    return (
        ":" in lower
        or "[" in lower
        or "0x" in lower
        or '"' in lower
        or "ven_" in lower
        or " device " in lower
    )


def _of_drm(tokens: list[str]) -> Ids:
    """amdgpu's line: `(IP DISCOVERY 0x1002:0x744C 0x1002:0x0E3B 0xC8).`"""
    for at, token in enumerate(tokens[:8]):
        if device := _whole(token):
            subsystem, revision = [*tokens[at + 1 : at + 3], "", ""][:2]
            return device, _whole(subsystem), _revision(revision.strip(").")[2:])
    return NONE


def revision_in(text: str | None) -> str:
    """The revision of an lspci line, which has one with or without ids: `... (rev c8)`."""
    if not text or "(" not in text:
        return ""
    lower = text.lower()
    if "(rev " not in lower:
        return ""
    return _revision(lower.rpartition("(rev ")[2].partition(")")[0])


def _bracketed(text: str) -> Ids:
    """lspci -nn: `... [10de:2684] (rev a1)`, then its Subsystem line; Intel's `... [0x56a0]`."""
    pairs: list[str] = []
    for part in text.split("[")[1:]:
        inside = part.partition("]")[0]
        if inside.startswith("0x") and "intel" in text:
            inside = f"8086:{inside[2:]}"
        if is_pci_id(inside):
            pairs.append(inside)
    if not pairs:
        return NONE
    subsystem = pairs[1] if len(pairs) > 1 and "subsystem" in text else ""
    return pairs[0], subsystem, revision_in(text)


def _unmarked(text: str, only_ids: bool) -> Ids:
    if " device " in text or "(0x" in text:
        return _with_vendor(text)
    return _plain(text, only_ids)


def _with_vendor(text: str) -> Ids:
    """`NVIDIA Corporation Device 2901`, an id that lspci cannot name; `... (0x2206)` of GL."""
    vendor = next((id_ for name, id_ in _VENDORS if name in text), "")
    device = text.partition(" device ")[2][:5].rstrip()
    if not vendor or "gfx" in text or text.startswith("device "):
        return NONE
    if "(0x" in text:
        inside = text.rpartition("(0x")[2].partition(")")[0]
        device = inside.removeprefix("0000") if len(inside) == 8 else inside
    pair = _pair(vendor, device)
    return (pair, "", revision_in(text)) if pair else NONE


# As pci.ids writes the vendors whose chips are in the data.
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
        _pair(fields.get("ven", ""), fields.get("dev", "")[:4]),
        _pair(subsystem[4:], subsystem[:4]),
        _revision(fields.get("rev", "")[:2]),
    )


def _modalias(text: str) -> Ids:
    """`pci:v000010DEd00002684sv00001043sd0000889A...`: eight digits each, the last four count."""
    return _pair(text[9:13], text[18:22]), _pair(text[28:32], text[38:42]), ""


def _machine_readable(text: str) -> Ids:
    """lspci -nmm: `01:00.0 "0300" "10de" "2684" -ra1 "1043" "889a"`, or `"Name [2684]"`."""
    fields = [_last_bracket(part) for part in text.split('"')[1::2]]
    device, subsystem = _pair(*fields[1:3]), _pair(*fields[3:5])
    revision = _revision(text.partition('" -r')[2][:2])
    return (device, subsystem, revision) if device else NONE


def _last_bracket(field: str) -> str:
    return field.rpartition("[")[2].rstrip("]") if field.endswith("]") else field


def _plain(text: str, only_ids: bool) -> Ids:
    """Ids alone, in the spellings of lspci -n, uevent files, nvidia-smi and people."""
    tokens, revision = _tokens(text)
    if not tokens:
        return NONE
    if len(tokens) == 2 and (only_ids or tokens[0].startswith("0x")):
        pair = _pair(_bare(tokens[0]), _bare(tokens[1]))
        if pair:
            return pair, "", _revision(revision)
    device = _whole(tokens[0])
    if not device:
        return NONE
    return device, _whole(tokens[-1]) if len(tokens) > 1 else "", _revision(revision)


def _tokens(text: str) -> tuple[list[str], str]:
    """The words that may be ids, and the revision: after `(rev `, `@` or `rev`."""
    head = text.partition("(rev ")[0].removeprefix("pci_id=")
    tokens = head.replace("/", " ").replace("@", " rev ").split()
    if len(tokens) > 2 and tokens[1].endswith(":") and "." in tokens[0]:
        tokens = tokens[2:]  # lspci -n: the slot and the class
    if "rev" not in tokens[:-1]:
        return tokens, revision_in(text)
    at = tokens.index("rev")
    return tokens[:at], tokens[at + 1].zfill(2)


def _revision(text: str) -> str:
    return text if len(text) == 2 and is_hex(text) else ""


def _whole(token: str) -> str:
    """`10de:2684`, `0x10de:0x2684`, or NVML's `0x268410de` with the device first."""
    if len(token) == 10 and token.startswith("0x") and is_hex(token[2:]):
        return f"{token[6:]}:{token[2:6]}"
    vendor, _, device = token.partition(":")
    return _pair(_bare(vendor), _bare(device))


def _bare(token: str) -> str:
    return token.removeprefix("0x").rstrip(",")


def _pair(vendor: str = "", device: str = "") -> str:
    """`vvvv:dddd` when both are four hexadecimal digits, else nothing."""
    pair = f"{vendor}:{device}"
    return pair if is_pci_id(pair) else ""


def is_pci_id(text: str) -> bool:
    """Whether a text in lower case is `vvvv:dddd`."""
    vendor, _, device = text.partition(":")
    return len(vendor) == len(device) == 4 and is_hex(vendor + device)


def is_hex(text: str) -> bool:
    """Whether a text in lower case holds hexadecimal digits alone, and at least one."""
    return bool(text) and _HEX.issuperset(text)
