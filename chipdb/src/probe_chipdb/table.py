"""Finds one line in a sorted text by halving: no parsing, no index to build, nothing to warm up.

Measured at 20,000 chips: reading the bytes is most of the cold cost, a lookup takes some 10 µs.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES = ("index.txt", "chips.txt", "archs.txt", "sources.txt")
_OFTEN = 100  # lookups; a dictionary costs more to make than these take
_SMALL = 2 * 2**20  # bytes; the dictionary of a larger text would cost more memory than it saves
FORMAT = 2  # of the table's text; a reader refuses a newer one


class SortedText:
    """Lines `key TAB rest`, sorted by their bytes, each ended by a newline.

    A text that is searched often (by a collector of a whole fleet) becomes a dictionary, which
    costs more than the first hundred lookups; eight GPUs never pay for it.
    """

    __slots__ = ("_lines", "_lookups", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._lookups = 0
        self._lines: dict[str, str] | None = None

    def find(self, key: str) -> str | None:
        """What follows `key` and its tab, or None."""
        if self._lines is not None:
            return self._lines.get(key)
        self._lookups += 1
        if self._lookups > _OFTEN and len(self.data) < _SMALL:
            self._lines = dict(self)
        return self._search(key)

    def _search(self, key: str) -> str | None:
        # A name from a driver may hold bytes that are no UTF-8; such a key is simply not there.
        data, target = self.data, key.encode("utf-8", "surrogatepass")
        low, high = 0, len(data)
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

    def __iter__(self) -> "Iterator[tuple[str, str]]":
        for line in self.data.decode().splitlines():
            key, _, columns = line.partition("\t")
            yield key, columns


class Table:
    """The four texts of one origin: the built table, one vendor package, or one site file."""

    __slots__ = ("archs", "chips", "index", "origin", "sources", "version")

    def __init__(self, origin: str, version: str, texts: "dict[str, bytes]") -> None:
        self.origin = origin
        self.version = version
        self.index, self.chips, self.archs, self.sources = (
            SortedText(texts.get(name, b"")) for name in FILES
        )

    def ids(self, key: str) -> tuple[str, ...]:
        """The chip (or arch) ids filed under an index key, in the order of the data."""
        ids = self.index.find(key)
        return tuple(ids.split(" ")) if ids else ()


def built() -> Table:
    """The table that ships in this package.

    Raises OSError when it is not there: a source tree that has not been built.
    """
    return _table(_read)


def from_folder(path: str) -> Table:
    """A built table somewhere else, for instance of another release. Raises OSError."""

    def read(name: str) -> bytes:
        with open(f"{path}/{name}", "rb") as file:
            return file.read()

    return _table(read)


def _table(read: "Callable[[str], bytes]") -> Table:
    texts = {name: read(name) for name in FILES}
    head, _, texts["index.txt"] = texts["index.txt"].partition(b"\n")
    mark, form, version = [*head.decode("utf-8", "replace").split(" "), "", ""][:3]
    readable = map(str, range(1, FORMAT + 1))
    if mark != "#probe-chipdb" or form not in readable or not version:
        raise OSError(f"probe_chipdb: {head[:40]!r} is no table that this release can read")
    return Table("probe-chipdb", version, texts)


def _read(name: str) -> bytes:
    path = __file__.rpartition("table.py")[0] + "table/" + name
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        # Inside a zip or a frozen app there is no such file, but the loader can hand it over.
        get_data = getattr(globals().get("__loader__"), "get_data", None)
        if get_data is None:
            raise
        data: bytes = get_data(path)
        return data
