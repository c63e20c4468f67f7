"""The table of chips: its columns, and a search by halving that has nothing to warm up."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


# The lines of the built table: which columns they have, and how values are packed into one line.
#
# A text that people can diff and code reads fast. Three levels: tab between columns, `|` between
# the items of a list, `;` between the parts of an item. A fourth, for the few lists inside an item,
# is `,` (their members never hold one).

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
    "form_factor",
    "shown",
    "reads",
    "sustained",
    "power_limits",
    "interconnect",
    "sram",
    "ecc",
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
    "reads",
)

SOURCE = ("key", "title", "publisher", "ref", "status", "url", "date")

CLOCK = ("base", "boost", "matrix", "boost_low", "game", "set_by")  # MHz; set_by: who sets it
MEMORY = ("gib", "type", "bus", "gbs", "gbs_low")
OF_SOCS = ("low", "high", "confidence", "source")  # MHz of the SoCs that hold a licensed design
PUBLISHED = ("rate", "sparsity", "tflops", "source", "clock", "low", "confidence")
OVERRIDE = ("rate", "sparsity", "tflops", "reason", "source", "confidence", "low")
SUSTAINED = ("rate", "tflops", "low", "watts", "runs", "software", "source")
LIMITS = ("least", "most", "default", "board", "driver", "source")  # W
INTERCONNECT = ("kind", "gbs", "source")
SRAM = ("mib", "source")
ECC = ("share", "source")
READS = ("rate", "sparsity", "source", "at", "quote")  # no rate: counts, clocks and memory
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
    if "\\" not in text:  # as in nearly all
        return text.split("|") if text else []
    return [unescape(item) for item in text.split("|")]


def parts(text: str) -> list[list[str]]:
    """The items of a list column, each split into its unescaped parts."""
    if "\\" not in text:
        return [item.split(";") for item in text.split("|")] if text else []
    return [[unescape(part) for part in item.split(";")] for item in text.split("|")]


# Finds one line in a sorted text by halving: no parsing, no index to build, nothing to warm up.
#
# Measured at 20,000 chips: reading the bytes is most of the cold cost, a lookup takes some 10 µs. A
# process that asks little reads by position instead: some 30 µs a lookup, and no megabytes to keep.

FILES = ("index.txt", "chips.txt", "archs.txt", "sources.txt")
RULES = "rules.txt"
EDGE, ONE_OF, ALL_OF, INDEX = "\x01", "\x02", "\x03", "\x04"
"""In the rules: before and behind a name in a text that a row needs; between such texts, of which a
name holds one; between groups of them, of each of which it does; in an index. No name has them."""
FORMATS = "formats.txt"
_OFTEN = 100  # lookups; a dictionary costs more to make than these take
_SMALL = 2 * 2**20  # bytes; the dictionary of a larger text would cost more memory than it saves
_FEW = 8  # lookups in a file; more by position cost what reading 1 MiB does
_PIECE = 4096  # bytes: a page, and longer than any line of the built table
FORMAT = 2  # of the table's text; a reader refuses a newer one
FOLDER = __file__.rpartition("table.py")[0] + "table/"


class NotBuilt(OSError):
    """The package has no table: a checkout in which nothing was installed or built."""


class SortedText:
    """Lines `key TAB rest`, sorted by their bytes, each ended by a newline, from byte `start` on.

    A text that is searched often (by a collector of a whole fleet) becomes a dictionary, which
    costs more than the first hundred lookups; eight GPUs never pay for it.
    """

    __slots__ = ("_lines", "_lookups", "_start", "data")

    def __init__(self, data: bytes, start: int = 0) -> None:
        self.data = data
        self._start = start
        self._lookups = 0
        self._lines: dict[str, str] | None = None

    def find(self, key: str) -> str | None:
        """What follows `key` and its tab, or None."""
        if self._lines is not None:
            return self._lines.get(key)
        self._lookups += 1
        if self._lookups > _OFTEN and len(self.data) < _SMALL:
            self._lines = dict(self)
        return _search(self.data, self._start, key)

    def __iter__(self) -> "Iterator[tuple[str, str]]":
        for line in filter(None, self.data[self._start :].decode().split("\n")):
            key, _, columns = line.partition("\t")
            yield key, columns


def _search(data: bytes, low: int, key: str) -> str | None:
    """What follows `key` and its tab in the sorted lines from byte `low` on, or None."""
    # A name from a driver may hold bytes that are no UTF-8; such a key is simply not there.
    target, high = key.encode("utf-8", "surrogatepass"), len(data)
    while low < high:
        start = data.rfind(b"\n", low, (low + high) >> 1) + 1 or low
        tab = data.find(b"\t", start)
        end = data.find(b"\n", start)
        if tab < 0 or end < 0:
            return None
        line_key = data[start:tab]
        if line_key == target:
            return data[tab + 1 : end].decode()
        if line_key < target:
            low = end + 1
        else:
            high = start
    return None


class SortedFile:
    """The same lines in a file, from byte `start` on: searched there, and after some lookups read.

    No descriptor stays open. Raises OSError once the file is not what it was: another release may
    have other columns. The lines that were read last are kept: the ids of one product stand beside
    each other.
    """

    __slots__ = ("_identity", "_last", "_lookups", "_path", "_start", "_text")

    def __init__(self, path: str, start: int = 0) -> None:
        self._path = path
        self._start = start
        self._identity = _identity(os.stat(path))
        self._last = b""
        self._lookups = 0
        self._text: SortedText | None = None

    def find(self, key: str) -> str | None:
        """What follows `key` and its tab, or None."""
        if self._text is None:
            target = key.encode("utf-8", "surrogatepass")
            if not _spans(self._last, target):
                self._lookups += 1
                self._last = self._read(target if self._lookups <= _FEW else None)
                if self._lookups > _FEW:
                    self._text, self._last = SortedText(self._last), b""
        return _search(self._last, 0, key) if self._text is None else self._text.find(key)

    def __iter__(self) -> "Iterator[tuple[str, str]]":
        return iter(SortedText(self._read(None)))

    def _read(self, target: "bytes | None") -> bytes:
        """The lines among which `target` must be, all of them for None."""
        fd = os.open(self._path, os.O_RDONLY)
        try:
            if _identity(os.fstat(fd)) != self._identity:
                raise OSError(f"{self._path} was replaced while it was in use")
            low, high = self._start, self._identity[0]
            if target is not None:
                low, high = _narrowed(fd, low, high, target)
            return os.pread(fd, high - low, low)
        finally:
            os.close(fd)


def _spans(lines: bytes, target: bytes) -> bool:
    """Whether `target` is among whole lines if it is in their file at all."""
    last = lines.rfind(b"\n", 0, -1) + 1
    first_key, last_key = lines[: lines.find(b"\t")], lines[last : lines.find(b"\t", last)]
    return bool(lines) and first_key <= target <= last_key


def _narrowed(fd: int, low: int, high: int, target: bytes) -> tuple[int, int]:
    """Where in a file, from line to line, `target` must be if it is there: about two pieces."""
    while high - low > _PIECE:
        middle = (low + high) >> 1
        piece = os.pread(fd, _PIECE, middle)
        start = piece.find(b"\n") + 1
        tab = piece.find(b"\t", start)
        if not start or tab < 0 or middle + start >= high:  # one line is most of what remains
            break
        if piece[start:tab] <= target:
            low = middle + start
        else:
            high = middle + start
    return low, high


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    """What tells a file from one in its place; its size in bytes comes first."""
    return status.st_size, status.st_dev, status.st_ino, status.st_mtime_ns


class Table:
    """The four texts of one origin: the built table, one vendor package, or one site file.

    rules: of names, which a package or site adds to the built ones; formats: number formats of
    its own architectures. Both are empty of the built table, which has files of them.
    """

    __slots__ = ("archs", "chips", "formats", "index", "origin", "rules", "sources", "version")

    def __init__(
        self, origin: str, version: str, texts: "Mapping[str, bytes | SortedText | SortedFile]"
    ) -> None:
        self.origin = origin
        self.version = version
        lines = [texts.get(name, b"") for name in FILES]
        self.index, self.chips, self.archs, self.sources = (
            SortedText(text) if isinstance(text, bytes) else text for text in lines
        )
        self.rules, self.formats = (
            text.decode() if isinstance(text, bytes) else ""
            for text in (texts.get(RULES), texts.get(FORMATS))
        )

    def ids(self, key: str) -> tuple[str, ...]:
        """The chip (or arch) ids filed under an index key, in the order of the data."""
        ids = self.index.find(key)
        return tuple(ids.split(" ")) if ids else ()


def built() -> Table:
    """The table that ships in this package. Raises NotBuilt when it is not there."""
    return _table(_read)


def built_text(name: str) -> str:
    """One of the compiled texts of this package, RULES or FORMATS. Raises NotBuilt without it."""
    return _read(name).decode()


def built_by_position() -> Table:
    """The same table, read as far as it is asked; whole where that cannot be.

    That is inside a zip or a frozen app, and on Windows, which has no pread(2).
    """
    if not hasattr(os, "pread"):
        return built()
    try:
        with open(FOLDER + FILES[0], "rb", buffering=0) as file:
            head = file.read(_PIECE).partition(b"\n")[0]
        version = _version(head)
        starts = {FILES[0]: len(head) + 1}
        files = {name: SortedFile(FOLDER + name, starts.get(name, 0)) for name in FILES}
    except OSError:
        return built()
    return Table("probe-chipdb", version, files)


def from_folder(path: str) -> Table:
    """A built table somewhere else, for instance of another release. Raises OSError."""

    def read(name: str) -> bytes:
        with open(f"{path}/{name}", "rb") as file:
            return file.read()

    return _table(read)


def _table(read: "Callable[[str], bytes]") -> Table:
    texts = {name: SortedText(read(name)) for name in FILES}
    # The first line stays before the rest: a copy without it would take as long as the reading.
    data = texts[FILES[0]].data
    start = data.find(b"\n") + 1 or len(data)
    texts[FILES[0]] = SortedText(data, start)
    return Table("probe-chipdb", _version(data[:start].removesuffix(b"\n")), texts)


def _version(head: bytes) -> str:
    """The version of a table whose first line is `head`. Raises OSError for none of ours."""
    mark, form, version = [*head.decode("utf-8", "replace").split(" "), "", ""][:3]
    readable = map(str, range(1, FORMAT + 1))
    if mark != "#probe-chipdb" or form not in readable or not version:
        raise OSError(f"probe_chipdb: {head[:40]!r} is no table that this release can read")
    return version


def _read(name: str) -> bytes:
    path = FOLDER + name
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return _loaders(path)


def _loaders(path: str) -> bytes:
    """Inside a zip or a frozen app there is no such file, but the loader can hand it over."""
    get_data = getattr(globals().get("__loader__"), "get_data", None)
    try:
        data: bytes | None = get_data(path) if get_data else None
    except OSError:
        data = None
    if data is None:
        fault = f"probe_chipdb has no table ({path} is missing)"
        raise NotBuilt(f"{fault}; in a checkout `python -m probe_chipdb build` makes it")
    return data
