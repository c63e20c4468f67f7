"""Parts a name, as people and clouds write it, into the product and the tokens beside it.

"RTX4090", "8x NVIDIA_L40S 48GB", "H100-SXM-80GB", "4090 Mobile" and "RTX PRO 6000 WK" name products
that drivers print otherwise. Both sides, an entry's names and a query, are brought to one form and
compared for equality: blanks do not count, some tokens have one spelling, and memory, its type and
the form factor are facts beside the product. No token that distinguishes two products is dropped.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


# Cuts a normalised name into tokens, and reads the sizes of memory among them.


def tokens_in(key: str) -> list[str]:
    """The tokens of a normalised name, without a count of devices; a number with its unit is one.

    >>> tokens_in("gpu_8x_h100_sxm5"), tokens_in("rtx 3060 12 gb"), tokens_in("m4 max 40 core gpu")
    (['h100', 'sxm5'], ['rtx', '3060', '12gb'], ['m4', 'max', 'core:40', 'gpu'])
    """
    if key.startswith("apple ") and key.endswith(")"):
        head, _, count = key[:-1].rpartition(" (")
        key = f"{head} {count} core" if count.isdecimal() else key  # fastfetch: "M4 Pro (20)"
    head, point, count = key.rpartition(".")
    if point and count[-1:] == "x" and count[:-1] in _COUNTS:
        key = head.removesuffix(" ib")  # Crusoe's types: "h100-80gb-sxm-ib.8x"
    for mark in "_,()":
        key = key.replace(mark, " ")
    key = key.replace("-", " ").replace("max q", "maxq").replace("tensor core", "tensor")
    key = key.replace(" gpu core", " core").replace("adreno gpu ", "adreno ")  # "10 GPU cores"
    # SkyPilot's and Slurm's count: "H100:8"
    head, colon, count = key.rpartition(":")
    key = head if colon and len(count) <= 2 and count.isdecimal() else key
    tokens = key.split()
    if tokens[:1] == ["gpu"]:
        del tokens[0]  # Lambda's types: gpu_8x_h100_sxm5
    if tokens[-2:] == ["ai", "accelerator"]:
        del tokens[-2:]  # "Intel Gaudi 3 AI Accelerator"
    if tokens[:1] == ["powervr"] and tokens[2:3] == ["series"]:
        del tokens[1:3]  # "PowerVR D-Series DXT-48-1536"
    tokens = _without_count(tokens)
    _name_cores(tokens)
    joined: list[str] = []
    for token in tokens:
        if token in ("gb", "gib", "mib", "g", "cores", "core") and joined and _is_count(joined[-1]):
            number = joined.pop()
            token = f"core:{number}" if token in ("core", "cores") else number + token
        # "(ID=0x2684)" of ANGLE, and the driver's release in a line of nvidia-smi's CSV
        if not token.startswith(("id=", "deviceid=")) and not _is_release(token):
            joined.append(token)
    return joined


def _name_cores(tokens: list[str]) -> None:
    """`M3 Max 30C`: Apple's chips alone, for an Adreno 7c is a product."""
    chip = tokens[1:2] if tokens[:1] == ["apple"] else tokens[:1]
    apples = chip and chip[0][:1] == "m" and chip[0][1:].isdecimal()
    for at, token in enumerate(tokens) if apples else ():
        if len(token) <= 3 and token[-1:] == "c" and token[:-1].isdecimal():
            tokens[at] = f"core:{token[:-1]}"


_COUNTS = ("1", "2", "4", "8", "16")


def _is_count(token: str) -> bool:
    whole, _, fraction = token.partition(".")
    return len(token) <= 8 and whole.isdecimal() and (not fraction or fraction.isdecimal())


def _is_release(token: str) -> bool:
    return token.count(".") == 2 and token.replace(".", "").isdecimal()


def _without_count(tokens: list[str]) -> list[str]:
    """`8x H100`, `8xh100`, `2 x H100`: how many there are is not what they are.

    "x2" behind is left: a FirePro S9300 x2 is one card with two chips.
    """
    if len(tokens) > 2 and len(tokens[0]) <= 2 and tokens[0].isdecimal() and tokens[1] == "x":
        return tokens[2:]
    sized = len(tokens) > 2 and tokens[-2] in _COUNTS and size_in(tokens[-1]) is not None
    # Scaleway's types: "L40S-1-48G", "H100-SXM-8-80G"; but a Gaudi 2 is no Gaudi
    if sized and (tokens[-3] == "sxm" or not tokens[-3].isalpha()):
        return [*tokens[:-2], tokens[-1]]
    if len(tokens) > 1 and tokens[-1] in _COUNTS and size_in(tokens[-2]) is not None:
        return tokens[:-1]  # the device types of Google's xpk: "h100-mega-80gb-8"
    if tokens:
        head, x, model = tokens[0].partition("x")
        if x and 1 <= len(head) <= 2 and head.isdecimal():
            return [model, *tokens[1:]] if model else tokens[1:]
        number = tokens[-1].removesuffix("x")  # DigitalOcean's "H100 GPU - 8X"
        counted = len(number) < len(tokens[-1]) <= 3 and number.isdecimal()
        # but "Gaudi 3X" would be another Gaudi 3
        if counted and len(tokens) > 1 and (tokens[-2] == "gpu" or not tokens[-2].isalpha()):
            return tokens[:-1]
    return tokens


def size_in(token: str) -> float | None:
    """The memory that a token states, in GB as printed, or None.

    >>> size_in("24gb"), size_in("144g"), size_in("24564mib"), size_in("1g.10gb")
    (24.0, 144.0, 23.98828125, None)
    """
    if not token[:1].isdecimal():
        return None  # most tokens
    for unit, divisor in (("gib", 1.0), ("mib", 1024.0), ("gb", 1.0), ("g", 1.0)):
        number = token.removesuffix(unit)
        if number != token and number.isascii() and _is_count(number):
            return float(number) / divisor or None
    return None


# As they begin a name, longest first; the vendor in the ids of the data.
_MAKERS = {
    "nvidia": "nvidia", "amd": "amd", "ati": "amd", "intel": "intel", "google": "google",
    "aws": "aws", "amazon": "aws", "apple": "apple", "qualcomm": "qualcomm", "arm": "arm",
    "huawei": "huawei", "habana": "intel", "tenstorrent": "tenstorrent", "broadcom": "broadcom",
    "samsung": "samsung", "hygon": "hygon", "rockchip": "rockchip", "cambricon": "cambricon",
    "metax": "metax", "iluvatar": "iluvatar", "biren": "biren",
}  # fmt: skip
BRANDS = (
    "radeon ai pro", "radeon instinct", "radeon pro", "data center gpu", "arc pro", "geforce",
    "instinct", "firepro", "radeon", "quadro", "jetson", "tesla", "arc", "cloud", "dcu",
)  # fmt: skip
# Makers of boards: the chip on their cards is the same. Their own names of cards are not read.
_BOARD_MAKERS = frozenset((
    "asus", "msi", "gigabyte", "zotac", "evga", "pny", "palit", "gainward", "sapphire", "xfx",
    "powercolor", "asrock", "inno3d", "galax", "colorful", "sparkle", "dell", "hp", "lenovo",
))  # fmt: skip
_GLUED_BRANDS = ("geforce", "instinct", "radeon", "quadro", "tesla", "arc")
_MACS = ("macbook pro ", "macbook air ", "mac studio ", "mac mini ", "mac pro ", "imac ")
_TYPES = frozenset((
    "hbm2", "hbm2e", "hbm3", "hbm3e", "hbm4", "gddr5", "gddr5x", "gddr6", "gddr6x", "gddr7", "ddr3",
    "ddr4", "lpddr5", "lpddr5x",
))  # fmt: skip
_FACTORS = ("sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "pci-e", "nvl", "oam", "nvlink")
# NVIDIA's long titles ("A100 Tensor Core GPU"), licences ("-vws") and remarks ("(integrated)").
_EMPTY = frozenset((
    "gpu", "gpus", "graphics", "card", "edition", "generation", "with", "design", "lovelace", "vws",
    "vram", "tensor", "integrated", "discrete", "igpu", "dgpu",
))  # fmt: skip
_EDITIONS = {
    "laptop": "laptop", "mobile": "laptop", "notebook": "laptop", "maxq": "maxq", "ada": "ada",
    "sff": "sff", "server": "server", "workstation": "workstation", "embedded": "embedded",
}  # fmt: skip
_GLUED = ("laptopgpu", "laptop", "mobile", "maxq", "ada", "sff")
# The editions of RTX PRO as RunPod, Vast.ai and Hugging Face abbreviate them.
_PRO_EDITIONS = {"ws": "workstation", "wk": "workstation", "s": "server", "se": "server"}
# With the names of their processors, as NVIDIA writes them behind.
_SUPERCHIPS = {
    "gb200": ("", "graceblackwell"), "gb300": ("", "graceblackwellultra"),
    "gh200": ("", "gracehopper"), "vr200": ("", "verarubin"),
}  # fmt: skip
_SERIES = ("rtx", "gtx", "gt", "rx")


class Form:
    """A name's parts.

    base: the product, without blanks. brand, vendor: as the name claims them, or empty.
    editions: of the product, sorted ("laptop", "ada" ...).
    size: memory in the unit that was printed (GB, GiB or the driver's rounding), or None.
    type: of the memory, in lower case, or empty. factor: "sxm4", "pcie" ... or empty.
    units: GPU cores that the name counts, or None.
    plain: the name without the facts, its tokens as they are.
    key: the product with its editions: what is compared for equality.
    facts: those beside the product, as one declared name may have them; empty without any.
    """

    __slots__ = (
        "base", "brand", "editions", "factor", "facts", "key", "plain", "size", "type", "units",
        "vendor",
    )  # fmt: skip

    def __init__(self, key: str) -> None:
        self.brand = self.vendor = self.factor = self.type = ""
        self.size: float | None = None
        self.units: int | None = None
        tokens = tokens_in(key)
        editions: set[str] = set()
        model = self._product(self._without_maker(tokens), editions)
        dropped = (self.type, self.factor)
        plain = (token for token in tokens if token not in dropped and size_in(token) is None)
        self.plain = " ".join(plain)
        self.base = self._unglued(model, editions)
        self._regular(editions)
        self.editions = tuple(sorted(editions))
        self.key = " ".join((self.base, *self.editions))
        memory = "" if self.size is None else f"{self.size:g}gb"
        beside = (memory, self.type, self.factor)
        self.facts = ",".join(filter(None, beside)) if any(beside) else ""

    def _without_maker(self, tokens: list[str]) -> list[str]:
        if len(tokens) > 1 and tokens[0] in _BOARD_MAKERS:
            tokens = tokens[1:]
        while tokens and tokens[0] in _MAKERS:
            self.vendor = _MAKERS[tokens[0]]
            tokens = tokens[1:]
        joined = " ".join(tokens) + " "
        for brand in BRANDS if joined.startswith(BRANDS) else ():
            if joined.startswith(brand + " ") and joined != brand + " ":
                self.brand = brand
                return tokens[brand.count(" ") + 1 :]
        for machine in _MACS if joined.startswith(_MACS) else ():
            if joined.startswith(machine):
                self.vendor = "apple"
                return tokens[machine.count(" ") :]
        return self._without_glued_brand(tokens)

    def _without_glued_brand(self, tokens: list[str]) -> list[str]:
        """`ArcA770`, `GeForceRTX4090`; and Vast.ai's `Q RTX 8000`."""
        if tokens[:2] == ["q", "rtx"]:
            self.brand = "quadro"
            return tokens[1:]
        if tokens[:1] == ["pro"] and len(tokens) > 1 and tokens[1][:1] == "w":
            self.brand = "radeon pro"  # "PRO W7900"
            return tokens[1:]
        if tokens[:2] == ["ai", "pro"]:
            self.brand = "radeon ai pro"
            return tokens[2:]
        for brand in _GLUED_BRANDS if tokens and tokens[0].startswith(_GLUED_BRANDS) else ():
            model = tokens[0].removeprefix(brand)
            if model != tokens[0] and model[-1:].isdecimal():
                self.brand = brand
                return [model, *tokens[1:]]
        return tokens

    def _product(self, tokens: list[str], editions: set[str]) -> str:
        """The tokens that are the product's, glued; `~` marks where another token stood between.

        "A100 80GB X" is no A100X, and a V100-SXM2-32GB-LS no V100LS.
        """
        base, gap = "", ""
        for token in tokens:
            if self._takes(token, editions):
                gap = gap if token == "graphics" else "~"  # "UHD Graphics 620" is also "UHD 620"
            else:
                base += gap + token if base else token
                gap = ""
        return base

    def _takes(self, token: str, editions: set[str]) -> bool:
        """Whether a token stands beside the product; its fact is kept."""
        if token in _EMPTY:
            return True
        if token in _EDITIONS:
            editions.add(_EDITIONS[token])
        elif token in _TYPES:
            self.type = token
        elif token in _FACTORS:
            # CoreWeave's "A100_NVLINK_80GB"; cards have no NVLink of their own
            self.factor = "sxm" if token == "nvlink" else token.replace("-", "")
        elif (size := size_in(token)) is not None:
            self.size = size
        elif token.startswith("core:") and token[5:].isdecimal():
            self.units = int(token[5:])
        else:
            return _is_power(token) or (token == "gen" and "ada" in editions)
        return True

    def _unglued(self, base: str, editions: set[str]) -> str:
        """`h100nvl`, `rtx6000ada`: the same tokens without a blank between."""
        for suffix in _GLUED if base.endswith(_GLUED) else ():
            if base.endswith(suffix) and base[: -len(suffix)][-1:].isdecimal():
                base = base.removesuffix(suffix)
                editions.add(_EDITIONS.get(suffix, "laptop"))
        for factor in _FACTORS if base.endswith(_FACTORS) else ():
            head = base.removesuffix(factor)
            if head != base and head[-1:].isdecimal() and not self.factor:
                self.factor = factor
                return head
        return base

    def _regular(self, editions: set[str]) -> None:
        """One spelling for what one line of products writes in several ways."""
        self.base = _reordered(self.base)
        if self.base.startswith("rtxpro"):
            self._regular_pro(editions)
        elif self.base in _SUPERCHIPS and self.factor in ("nvl", "sxm"):
            self.factor = ""  # the rack (GB200 NVL72), not another board; Vast.ai's "GH200 SXM"
        elif self.base == "h100mega":
            self.base, self.factor = "h100", "sxm5"  # Google's A3 Mega machines
        self.base = _with_super(self.base)

    def _regular_pro(self, editions: set[str]) -> None:
        base = self.base.replace("~blackwell", "").replace("blackwell", "", 1)
        digits = base.rstrip("abcdefghijklmnopqrstuvwxyz")
        if digits != base and (edition := _PRO_EDITIONS.get(base[len(digits) :])):
            base = digits
            editions.add(edition)
        if "maxq" in editions:
            editions.discard("workstation")  # there is no other Max-Q edition
        self.base = base

    def bases(self) -> "Iterator[str]":
        """The keys to look up, the closest first."""
        yield self.key
        if "workstation" in self.editions:  # the only RTX PRO 4500 is a workstation's
            yield " ".join(
                (self.base, *(token for token in self.editions if token != "workstation"))
            )
        if self.base.isdecimal() and not self.editions and self.size is None:
            yield from (f"{self.base}{suffix}" for suffix in ("d", " laptop", " maxq"))
        if self.base.startswith("rtxpro") and not self.editions:
            yield from (f"{self.base} {edition}" for edition in ("workstation", "server", "maxq"))


def without_series(base: str) -> str:
    """`4090` of `rtx4090`, `a6000` of `rtxa6000`: as people shorten it; empty where nobody does.

    Not of RX 5000 to 7000, whose bare numbers are also those of Radeon HD.

    >>> without_series("rtx4090"), without_series("rx7900xtx"), without_series("rx6800")
    ('4090', '7900xtx', '')
    """
    for series in _SERIES:
        model = base.removeprefix(series)
        if model != base and model[:3].isdecimal():
            return "" if series == "rx" and len(model) == 4 and model.isdecimal() else model
    if base.startswith("rxvega"):
        return base[2:]
    model = base.removeprefix("rtx")
    return model if model != base and model[:1] in ("a", "p") and model[-3:].isdecimal() else ""


def _is_power(token: str) -> bool:
    """`750w`: the board's power, as MLPerf's lists of systems have it behind the memory."""
    watts = token.removesuffix("w")
    return watts != token and 2 <= len(watts) <= 4 and watts.isascii() and watts.isdecimal()


def _reordered(base: str) -> str:
    """`rtx6000pro` is an RTX PRO 6000; a GB200 NVL72 is a rack of GB200."""
    if base.startswith("rtx"):
        pro = base[7:] in ("pro", "problackwell", "blackwell") and base[3:7].isdecimal()
        return f"rtxpro{base[3:7]}" if pro else base
    if base[:5] in _SUPERCHIPS and base != base[:5]:
        suffix = base[5:]
        rack = suffix.startswith("nvl") and suffix[3:].isdecimal()
        return (
            base[:5] if rack or suffix.removesuffix("superchip") in _SUPERCHIPS[base[:5]] else base
        )
    return base


def _with_super(base: str) -> str:
    """Vast.ai and shops write `rtx 4080s`, `rtx 4070s ti` and `rtx 4070 tis` for SUPER."""
    # Without its series only where a SUPER was sold: a "7600S" is a Radeon.
    bare = base[:4].isdecimal() and base.startswith(("16", "20", "40"))
    for series in ("rtx", "gtx", "") if bare else ("rtx", "gtx"):
        model = base.removeprefix(series)
        if (model == base and series) or not model[:4].isdecimal():
            continue
        if model[4:] == "s":
            return f"{series}{model[:4]}super"
        if model[4:] in ("tis", "sti"):
            return f"{series}{model[:4]}tisuper"
    return base
