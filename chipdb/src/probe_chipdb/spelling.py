"""Brings the spellings of one product, by many drivers and tools, to one exact key.

It takes away decoration (trademarks, driver suffixes, a redundant vendor) and unifies case,
hyphens and `80 GB` against `80GB`. It never takes away a word that distinguishes two products:
sizes, `Laptop GPU`, `Max-Q`, `SUPER`, `Ti`, `D`, `SXM`, `PCIe`, `NVL` all stay. What is left is
compared for equality only.

Pure, and versioned: a change of any result is a new NORMALISE_VERSION.
"""

from probe_chipdb.rules import built

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from probe_chipdb.rules import Rules

NORMALISE_VERSION = 2

KINDS = (
    "name",  # a marketing name, origin unknown
    "nvml",
    "amdgpu",  # libdrm's amdgpu.ids
    "lspci",
    "pci",  # a name from pci.ids
    "vulkan",
    "opencl",
    "gl",
    "drm",
    "metal",
    "wmi",
    "windows",
    "cpuinfo",
    "dt",
)

_BRACKETED = ("name", "lspci", "pci")  # the kinds of pci.ids: the product is in a bracket
_MOST_LETTERS = 256  # the longest alias in the data has 86 letters; a longer text is no name
_MARKS = ("(r)", "(tm)", "(c)", "®", "™", "©")
_WIDE = str.maketrans({
    "（": " (", "）": ") ", "：": ": ", "，": ", ", "、": ", ", "；": "; ", "｜": "|", "×": "x",
    "‐": "-", "‑": "-", "–": "-",
})  # fmt: skip


def narrow(text: str) -> str:
    """The text with the marks of Chinese and Japanese as those of ASCII.

    >>> narrow("Ascend 910B4（1 卡，32GB HBM）")
    'Ascend 910B4 (1 卡, 32GB HBM) '
    """
    return text if text.isascii() else text.translate(_WIDE)


def normalise(text: str, kind: str = "name", rules: "Rules | None" = None) -> str:
    """The key under which a name is compared; the empty text when nothing is left.

    Idempotent: normalise(normalise(x, kind), kind) == normalise(x, kind).
    rules: those of the built table when None.

    >>> normalise("NVIDIA GeForce RTX 3080/PCIe/SSE2", "gl")
    'geforce rtx 3080'
    >>> normalise("Mesa Intel(R) UHD Graphics 620 (KBL GT2)", "gl")
    'uhd graphics 620'

    Raises ValueError for a kind that is not in KINDS, and OSError where the table was not built.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}: one of {', '.join(KINDS)}")
    if kind == "dt":  # exact already; a property read whole ends in NUL and may hold several
        return text.partition("\0")[0].strip().lower()
    return _key(text, kind, rules or built())


def with_die(text: str, kind: str = "name") -> str:
    """The key of a pci.ids name with its die, which says more than the bracket alone.

    Empty where the text has no such bracket. "Radeon Vega Series" is in the brackets of several
    dies; "Renoir [Radeon Vega Series ...]" is one.

    >>> with_die("AD102 [GeForce RTX 4090] (rev a1)", "lspci")
    'ad102 [geforce rtx 4090]'
    """
    if "[" not in text or kind not in _BRACKETED:
        return ""
    key = _key(text, kind, built(), but="product")
    return key if key.endswith("]") and not key.startswith("[") else ""


def _key(text: str, kind: str, rules: "Rules", but: str = "") -> str:
    key = _letters(text)
    if key.replace(" ", "").isalnum():  # all that most names need: they end the loop at once
        key = _drop_vendor(key, rules)
    # What the vendor's name hides can be another row's text, so this runs until nothing changes.
    # That makes a key its own key, too.
    while True:
        name = rules.rewritten(key, "line", kind, but)
        key = _join_sizes(_drop_vendor(name, rules))
        if key == name:
            return key


def is_generic(key: str) -> bool:
    """Whether a normalised name holds no word that could name a product.

    >>> is_generic("radeon graphics"), is_generic("radeon 780m graphics")
    (True, False)
    """
    empty, family = built().words("empty"), built().words("family")
    return all(token in empty or token in family for token in key.split())


def claimed_vendor(text: str) -> str:
    """The vendor's short name with which a name begins, or the empty text.

    >>> claimed_vendor("NVIDIA GeForce RTX 4090"), claimed_vendor("GeForce RTX 4090")
    ('nvidia', '')
    """
    rules, key = built(), _letters(text)
    prefixes, claims = rules.set("prefix"), rules.set("claim")
    for prefix in prefixes if key.startswith(prefixes) else ():
        key = key.removeprefix(prefix)
    claimed = (claim for claim in claims if key.startswith(claim))
    return rules.words("claim")[next(claimed)] if key.startswith(claims) else ""


def _letters(text: str) -> str:
    text = narrow(text[:_MOST_LETTERS].lower())
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else " " for letter in text)
    for mark in _MARKS if "(" in text or not text.isascii() else ():
        text = text.replace(mark, " ")
    return " ".join(text.split())[:_MOST_LETTERS]  # "İ" in lower case is two letters


def _join_sizes(text: str) -> str:
    """`80 gb` and `80gb`, `max-q` and `max q`, are one spelling each."""
    return " ".join(joined(text.replace("-", " ").replace(" / ", "/"), ("gb",)))


def joined(text: str, units: "Collection[str]") -> list[str]:
    """The words of a text; a number and the unit behind it are one.

    >>> joined("rtx 3060 12 gb", ("gb",))
    ['rtx', '3060', '12gb']
    """
    tokens: list[str] = []
    for token in text.split():
        if token in units and tokens and is_count(tokens[-1]):
            tokens[-1] += token
        else:
            tokens.append(token)
    return tokens


def is_count(token: str) -> bool:
    """Whether a text is a number of a few digits, with a fraction or without."""
    whole, _, fraction = token.partition(".")
    short = len(token) <= 8 and token.isascii()
    return short and whole.isdecimal() and (not fraction or fraction.isdecimal())


def _drop_vendor(text: str, rules: "Rules") -> str:
    vendors, empty = rules.set("vendor"), rules.words("empty")
    for vendor in filter(text.startswith, vendors) if text.startswith(vendors) else ():
        name = text.removeprefix(f"{vendor} ")
        if name != text and not all(token in empty for token in name.split()):
            return name
    return text
