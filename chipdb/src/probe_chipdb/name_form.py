"""Parts a name, as people and clouds write it, into the product and the tokens beside it.

"RTX4090", "8x NVIDIA_L40S 48GB", "H100-SXM-80GB", "4090 Mobile" and "RTX PRO 6000 WK" name products
that drivers print otherwise. Both sides, an entry's names and a query, are brought to one form and
compared for equality: rows of `data/rules/forms.toml` give one spelling to what is written in
several, blanks do not count, and memory, its type and the form factor are facts beside the product.
No token that distinguishes two products is dropped.
"""

from probe_chipdb.rules import built
from probe_chipdb.spelling import is_count, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.rules import Rules

_DIVISORS = {"gib": 1.0, "mib": 1024.0, "mb": 1024.0, "gb": 1.0, "g": 1.0}
_CORES = ("core", "cores")
_UNITS = frozenset((*_DIVISORS, *_CORES))


def size_in(token: str) -> float | None:
    """The memory that a token states, in GB as printed, or None.

    >>> size_in("24gb"), size_in("144g"), size_in("24564mib"), size_in("1g.10gb")
    (24.0, 144.0, 23.98828125, None)
    """
    number = token.rstrip("bgim")
    divisor = _DIVISORS.get(token[len(number) :])
    if divisor is None or not is_count(number):
        return None
    return float(number) / divisor or None


class Form:
    """A name's parts.

    text: the name in one spelling.
    base: the product, without blanks. brand, vendor: as the name claims them, or empty.
    editions: of the product, sorted ("laptop", "ada" ...).
    size: memory in the unit that was printed (GB, GiB or the driver's rounding), or None.
    type: of the memory, in lower case, or empty. factor: "sxm4", "pcie" ... or empty.
    units: GPU cores that the name counts, or None.
    key: the product with its editions: what is compared for equality.
    facts: those beside the product, as one declared name may have them; empty without any.
    """

    def __init__(self, key: str, rules: "Rules | None" = None) -> None:
        """Part a normalised name. rules: those of the built table when None."""
        rules = rules or built()
        self.vendor = self.factor = self.type = ""
        self.size: float | None = None
        self.units: int | None = None
        self.text = rules.rewritten(key.replace("_", " ").replace("-", " "), "form")
        makers = rules.words("maker")
        first, _, rest = self.text.partition(" ")
        while rest and first in makers:
            self.vendor, self.text = makers[first], rest
            first, _, rest = rest.partition(" ")
        apart = self.text.replace(",", " ").replace("(", " ").replace(")", " ")
        self._tokens = joined(apart, _UNITS)
        name, brands = " ".join(self._tokens), rules.set("brand")
        branded = brands if name.startswith(brands) else ()
        self.brand = next((brand for brand in branded if name.startswith(f"{brand} ")), "")
        editions: set[str] = set()
        base = self._product(name.removeprefix(self.brand).split(), rules, editions)
        # `h100nvl`, `rtx6000ada`: the same tokens without a blank between.
        base, edition = _split(base, "edition", rules)
        self.editions = tuple(sorted(editions | {edition} if edition else editions))
        self.base, factor = (base, "") if self.factor else _split(base, "factor", rules)
        self.factor = self.factor or factor
        self.key = " ".join((self.base, *self.editions))
        memory = "" if self.size is None else f"{self.size:g}gb"
        self.facts = ",".join(filter(None, (memory, self.type, self.factor)))

    def plain(self) -> str:
        """The text without the facts."""
        dropped = (self.type, self.factor)
        tokens = (token for token in self._tokens if token not in dropped)
        return " ".join(token for token in tokens if size_in(token) is None)

    def _product(self, tokens: list[str], rules: "Rules", editions: set[str]) -> str:
        """The tokens that are the product's, glued; `~` marks where another token stood between.

        "A100 80GB X" is no A100X, and a V100-SXM2-32GB-LS no V100LS.
        """
        roles = rules.roles()
        base, gap = "", ""
        for token in tokens:
            role, meaning = roles.get(token, ("", ""))
            if role == "silent":
                continue  # "UHD Graphics 620" is also "UHD 620"
            if role or self._is_count(token):
                gap = "~"
            else:
                base += gap + token if base else token
                gap = ""
            if role == "edition":
                editions.add(meaning)
            elif role == "memory":
                self.type = meaning
            elif role == "factor":
                self.factor = meaning
        return base

    def _is_count(self, token: str) -> bool:
        """Whether a token counts memory or cores; the form keeps the count."""
        if (size := size_in(token)) is not None:
            self.size = size
        elif token.endswith(_CORES) and (count := token.rstrip("cores")).isdecimal():
            self.units = int(count)
        else:
            return False
        return True


def _split(base: str, table: str, rules: "Rules") -> tuple[str, str]:
    """What stands before a word that ends the text behind a digit, and the word's meaning."""
    for word, meaning in rules.words(table).items() if base.endswith(rules.set(table)) else ():
        head = base.removesuffix(word)
        if head != base and head[-1:].isdecimal():
            return head, meaning
    return base, ""
