"""The lines of the built table: which columns they have, and how values are packed into one line.

A text that people can diff and code reads fast. Three levels: tab between columns, `|` between the
items of a list, `;` between the parts of an item. A fourth, for the few lists inside an item, is
`,` (their members never hold one).
"""

CHIP = (
    "id",
    "name",
    "kind",
    "vendor",
    "arch",
    "family",
    "codename",
    "year",
    "units",
    "clock",
    "memory",
    "power",
    "boards",
    "pci",
    "dt",
    "gpu_id",
    "aliases",
    "published",
    "override",
    "explain",
    "source",
    "confidence",
    "note",
    "power_low",
    "unknown",
    "counts",
    "of_socs",
)

ARCH = (
    "id",
    "name",
    "family",
    "vendor",
    "unit",
    "cores_per_unit",
    "derive",
    "rates",
    "sparse",
    "isa",
    "at_least",
    "compute_capability",
    "gfx",
    "platform",
    "metal_family",
    "pci",
    "dt",
    "gpu_id",
    "product",
    "prefix",
    "suffix",
    "exact",
    "cpuid",
    "midr",
    "brand",
    "generic",
    "source",
    "confidence",
    "note",
)

SOURCE = ("key", "title", "publisher", "ref", "status")

CLOCK = ("base", "boost", "matrix", "boost_low", "game", "set_by")  # MHz; set_by: who sets it
MEMORY = ("gib", "type", "bus", "gbs", "gbs_low")
OF_SOCS = ("low", "high", "confidence", "source")  # MHz of the SoCs that hold a licensed design
PUBLISHED = ("rate", "sparsity", "tflops", "source", "clock", "low")
OVERRIDE = ("rate", "sparsity", "tflops", "reason", "source", "confidence", "low")
CPUID = ("name", "vendor", "family", "models", "brand", "efficient", "steppings", "flag")
MIDR = ("name", "implementer", "part", "efficient", "variant")
BRAND = ("name", "prefix", "efficient", "pattern")

_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("|", "\\p"), (";", "\\s"))
_PLAIN = {"\\": "\\", "t": "\t", "n": "\n", "p": "|", "s": ";"}


def escape(text: str) -> str:
    """The text with the separators written as two characters."""
    for plain, written in _ESCAPES:
        text = text.replace(plain, written)
    return text


def unescape(text: str) -> str:
    """The inverse of `escape`."""
    if "\\" not in text:
        return text
    pieces = []
    at = 0
    while (backslash := text.find("\\", at)) >= 0:
        pieces.append(text[at:backslash])
        pieces.append(_PLAIN.get(text[backslash + 1 : backslash + 2], ""))
        at = backslash + 2
    pieces.append(text[at:])
    return "".join(pieces)


def number(text: str) -> float | None:
    """A number as written by `scalar`; the empty text is an unknown."""
    return float(text) if text else None


def whole(text: str) -> int | None:
    """A whole number as written by `scalar`; the empty text is an unknown."""
    return int(text) if text else None


def scalar(value: object) -> str:
    """One value as escaped text; None is the empty text, whole floats lose their `.0`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return escape(str(value))


def items(text: str) -> list[str]:
    """The items of a list column, unescaped."""
    return [unescape(item) for item in text.split("|")] if text else []


def parts(text: str) -> list[list[str]]:
    """The items of a list column, each split into its unescaped parts."""
    if not text:
        return []
    return [[unescape(part) for part in item.split(";")] for item in text.split("|")]
