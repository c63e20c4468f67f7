"""TOML files and data folders, read within bounds: neither a huge nor a broken one does harm."""

import os
import stat
import tomllib
from collections.abc import Iterator

from probe_chipdb.entry.spec import MAX_DEPTH, Problem, depth
from probe_chipdb.entry.validate import Data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_chipdb.rules import Rules

# Reads one TOML file within bounds, so that neither a huge nor a broken one can hurt anybody.

MAX_BYTES = 2**19
"""Bytes of one chip file: 12 times the largest of ours, which take some 0.5 s to read."""

MAX_TOTAL = 4 * 2**20
"""Bytes that all files of sites and packages may have together: their readers wait for them."""

MAX_CHIPS = 20_000
"""Chips of one package: eight times ours. The lookup is measured up to that number."""

MAX_MARKS = {b"\n[": 10_000, b",": 100_000, b"\n": 100_000}
"""Tables, items and lines of one file: many small ones take tomllib seconds for each MiB."""

MAX_DOTS = 100
"""Dots in one line: tomllib takes memory by the square of a key's parts, 24 GB for 100,000."""


class _Refused(Exception):
    """A file that is not read: the fault, and the fix."""


class Budget:
    """What may still be read, of all files together."""

    __slots__ = ("remaining",)

    def __init__(self, remaining: int = MAX_TOTAL) -> None:
        self.remaining = remaining

    def refusal(self, path: str) -> str:
        """Why a file is not read, or the empty text; its size is taken from what remains."""
        try:
            size = os.stat(path).st_size
            self.remaining -= size if size <= MAX_BYTES else 0  # a larger file is not read at all
        except (OSError, ValueError):
            return ""  # reading it says why
        return "" if self.remaining >= 0 else f"is beyond the {MAX_TOTAL} bytes of all chip files"


def read(path: str, label: str = "") -> tuple[dict[str, object], list[Problem]]:
    """The file's tables, or nothing and the reason why. Raises nothing.

    label: how problems name the file; its path when empty.
    """
    try:
        return _tables(_bytes(path)), []
    except _Refused as refusal:
        fault, fix = refusal.args
        return {}, [Problem(label or path, "", "", fault, fix)]


def _bytes(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block whoever opens it
            raise _Refused("is no regular file", "write the chips to a file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            # One byte more than allowed shows a file that grows while it is read. What is called
            # empty is not read: a kernel's file may block until it has something (/proc/kmsg).
            data = file.read(MAX_BYTES + 1) if 0 < size <= MAX_BYTES else b""
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise _Refused(f"cannot be read: {reason}", "check the path and its rights") from None
    if max(size, len(data)) > MAX_BYTES:
        raise _Refused(f"is larger than {MAX_BYTES} bytes", "split it into families")
    if any(data.count(mark) > most for mark, most in MAX_MARKS.items()):
        raise _Refused("has too many tables, items or lines", "split it into families")
    return data


def _tables(data: bytes) -> dict[str, object]:
    tables = _parsed(data)
    if depth(tables, MAX_DEPTH + 1) > MAX_DEPTH:
        raise _Refused(f"nests deeper than {MAX_DEPTH}", "flatten it")
    if _has_huge_number(tables):
        raise _Refused("has a whole number of more than 64 bits", "TOML knows none of those")
    chips = tables.get("chip")
    if isinstance(chips, list) and len(chips) > MAX_CHIPS:
        raise _Refused(f"has {len(chips)} chips", f"write at most {MAX_CHIPS} a file")
    return tables


def _parsed(data: bytes) -> dict[str, object]:
    try:
        text = data.decode("utf-8")
        if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
            raise _Refused(f"has a line with more than {MAX_DOTS} dots", "write shorter keys")
        return tomllib.loads(text)
    # ValueError beside TOMLDecodeError: not UTF-8, or a number of thousands of digits
    except (ValueError, RecursionError) as error:
        fault = str(error) or "nested too deeply"
        raise _Refused(f"is no TOML: {fault}", "correct that line") from None


def _has_huge_number(value: object) -> bool:
    """Whether a whole number is beyond what TOML allows; Python cannot even print some."""
    if isinstance(value, int):
        return not -(2**63) <= value < 2**63
    if not isinstance(value, dict | list):
        return False
    return any(map(_has_huge_number, value.values() if isinstance(value, dict) else value))


# Reads a whole data folder: sources/*.toml, arch/*.toml, chips/<vendor>/<family>.toml.
#
# rules/*.toml says how names are read, names/<scheme>.toml what others call chips,
# publishers/*.toml which distributions may add to which vendors' namespaces, and formats/*.toml in
# which number formats architectures compute.

_KINDS = {"sources": "source", "arch": "arch"}


def read_folder(root: str, base: "Rules | None" = None) -> Data:
    """Every entry under `root`, in the order of the file names.

    base: the rules of names to which a package's add; None for the project's own data.
    """
    data = Data(base)
    for path in toml_files(root):
        label = root if path == root else os.path.relpath(path, root)
        tables, problems = read(path, label)
        data.problems += problems
        add(data, path, label, tables)
    data.check_rows()
    return data


def add(data: Data, path: str, label: str, tables: dict[str, object]) -> None:
    """Add a file's tables: its folder's name is what they are of, in a package as in ours."""
    folder = os.path.basename(os.path.dirname(path))
    if folder == "publishers":
        data.add_publishers(label, tables)
    elif folder == "rules":
        data.add_rules(label, tables)
    elif folder == "formats":
        data.add_formats(label, tables)
    elif folder == "names":
        data.add_names(label, os.path.basename(path).removesuffix(".toml"), tables)
    elif kind := _KINDS.get(folder):
        data.add_named(kind, label, tables)
    else:
        data.add_chips(label, tables)


def toml_files(root: str) -> Iterator[str]:
    """Every TOML file under a folder, sorted; or the one file itself.

    Without pyproject.toml: a package's own folder holds it beside the chips.
    """
    if os.path.isfile(root):
        yield root
    for folder, folders, names in os.walk(root):
        folders.sort()
        chosen = (name for name in sorted(names) if name.endswith(".toml"))
        yield from (os.path.join(folder, name) for name in chosen if name != "pyproject.toml")


# Reads a file that a user names, within bounds: no pipe, no device, nothing huge.


class Refused(ValueError):
    """A file that is not read: which, why, and what would do, in a sentence."""


def read_text(path: str, most: int) -> str:
    """The text of a regular file of at most `most` bytes; what is not UTF-8 is replaced.

    Raises Refused, and OSError.
    """
    if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
        raise Refused(f"{path} is no regular file; save it to one")
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Refused(f"{path} is larger than {most} bytes; name the list itself")
    return data.decode("utf-8", "replace")
