"""What one layer has that may decide: files by their names, links, and what it removes below it.

Each layer is read alone, so several are read at a time; `tree` lays them over each other.
"""

from __future__ import annotations

from probe_wheels.distributions import TEXT_FILES
from probe_wheels.formats.executables import ELF_MAGIC, BadFile, read_elf
from probe_wheels.formats.library import read_code
from probe_wheels.images.archive import FILE, FOLDER, HARD, LINK, members
from probe_wheels.images.passing import CHUNK, kept_of
from probe_wheels.images.streams import BadImage, Part
from probe_wheels.records import is_library
from probe_wheels.rules import version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from probe_wheels.documents import LibraryDoc
    from probe_wheels.files import Budget, Readable
    from probe_wheels.images.archive import Member
    from probe_wheels.images.streams import Source

    Content: TypeAlias = "Part | Read | bytes | Disk | None"

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"

MAX_TEXT = 16 << 20
MAX_LINKS = 500_000
MAX_FILES = 500_000
MAX_CLOSED = 100_000
WHOLE = 8 << 20
"""A file of a compressed layer is read whole up to that size."""

_METADATA = ("RECORD", "METADATA", "top_level.txt")
_PLACES = (".dist-info/", ".egg-info/")
_TEXTS = {
    "etc/passwd", "etc/group", "etc/os-release", "usr/lib/os-release", "etc/ld.so.conf",
    "etc/shinit_v2", "usr/local/cuda/version.json", "opt/rocm/.info/version",
}  # fmt: skip
_BUILDS = tuple("/" + path for path in TEXT_FILES.values())
_PROGRAMS = ("/bin/", "/sbin/", "/app/", "/libexec/")
_KERNELS = ("rocblas/library/", "hipblaslt/library/")
SCRIPT = 256
"""Bytes of a script's first line (BINPRM_BUF_SIZE of Linux)."""


class Binary:
    """What the loader needs of an ELF file, and what it has for others.

    `glibc` is the highest version of GLIBC that it needs, `provides` the highest that it defines;
    () where it names none. `cxx` and `cxx_provides` are the same of GLIBCXX, libstdc++'s. `note` is
    NVIDIA's note of a compat library (JSON), "" elsewhere.
    """

    __slots__ = (
        "cxx", "cxx_provides", "folders", "glibc", "interpreter", "machine", "needed", "note",
        "provides",
    )  # fmt: skip

    def __init__(self) -> None:
        self.machine = ""
        self.interpreter = ""
        self.needed: tuple[str, ...] = ()
        self.folders: tuple[str, ...] = ()
        self.glibc: tuple[int, ...] = ()
        self.provides: tuple[int, ...] = ()
        self.cxx: tuple[int, ...] = ()
        self.cxx_provides: tuple[int, ...] = ()
        self.note = ""


class Read:
    """A file of a stream, after it passed: what it has code for, and what it needs to be loaded."""

    __slots__ = ("binary", "document", "head")

    def __init__(self, document: LibraryDoc, binary: Binary | None, head: bytes) -> None:
        self.document = document
        self.binary = binary
        self.head = head


class Disk:
    """A file of an unpacked root, to be opened when it is read."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class File:
    """A regular file of a layer."""

    __slots__ = ("content", "gid", "mode", "size", "uid")

    def __init__(self, size: int, mode: int, uid: int, gid: int, content: Content) -> None:
        self.size = size
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.content = content


class Layer:
    """One layer: files that may decide, links, whiteouts, and what stands in the way of others.

    `others` are the hashes of the paths of all that is no folder, `folders` those of folders:
    they hide what lower layers have at the same place. `closed` are folders that not everybody may
    search: mode, user and group. `problem` says why it could not be read.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.files: dict[str, File] = {}
        self.links: dict[str, str] = {}
        self.hard: dict[str, str] = {}
        self.whiteouts: set[str] = set()
        self.opaque: set[str] = set()
        self.others: set[int] = set()
        self.folders: set[int] = set()
        self.closed: dict[str, tuple[int, int, int]] = {}
        self.problem: str | None = None


def role_of(path: str, mode: int) -> str:
    """Return "text", "code", "program", "executable" or "name" for a file that may decide.

    "" for all others. Of a "name" the path alone is kept: rocBLAS's kernels have their processor in
    it. An "executable" lies where programs do not: it counts where its first bytes are a program's.
    """
    name = path.rpartition("/")[2]
    if path.endswith((".co", ".hsaco", ".cubin", ".dat")):
        return "name" if "gfx" in path or name.endswith(".cubin") else ""
    if is_library(path) or name.startswith(("ld-linux", "ld-musl")):
        return "code"
    if name in _METADATA and any(place in path for place in _PLACES):
        return "text"
    if path in _TEXTS or name in ("pyvenv.cfg", "conda-meta.json") or name.endswith(".pth"):
        return "text"
    if f"/{path}".endswith(_BUILDS) or ("conda-meta/" in path and name.endswith(".json")):
        return "text"
    if path.startswith(("etc/ld.so.conf.d/", ".singularity.d/")):
        return "text"
    if path.startswith(("usr/local/cuda", "opt/rocm")) and name in ("version.json", "version"):
        return "text"
    folder = f"/{path[: -len(name)]}"
    if not mode & 0o111:
        return ""
    is_usual = folder == "/" or folder.endswith(_PROGRAMS) or folder.startswith("/app/")
    return "program" if is_usual else "executable"


def scan(source: Source, label: str, budget: Budget) -> Layer:
    """Return what a layer has; its `problem` says what is wrong with it.

    Raises `Exhausted` when the time is over.
    """
    layer = Layer(label)
    try:
        _scan(source, layer, budget)
    except BadImage as error:
        layer.problem = f"{label}: {error}"
    except OSError as error:
        layer.problem = f"{label}: {error.strerror or 'it cannot be read'}"
    return layer


def _scan(source: Source, layer: Layer, budget: Budget) -> None:
    for member in members(source):
        budget.spend()
        path = member.path
        name = path.rpartition("/")[2]
        if name.startswith(WHITEOUT):
            _remove(layer, path, name)
            _pass(source, member.size)
            continue
        _forget(layer, path)
        if member.kind == FOLDER:
            layer.folders.add(hash(path))
            layer.closed.pop(path, None)
            if member.mode & 0o111 != 0o111 and len(layer.closed) < MAX_CLOSED:
                layer.closed[path] = (member.mode, member.uid, member.gid)
            continue
        if not path:
            raise BadImage("its root is no folder")
        layer.others.add(hash(path))
        if member.kind == LINK:
            layer.links[path] = member.target
        elif member.kind == HARD:
            layer.hard[path] = member.target
        elif member.kind == FILE and (role := role_of(path, member.mode)):
            content = _content(source, member, role, budget)
            if content is not None or role == "name":
                file = File(member.size, member.mode, member.uid, member.gid, content)
                layer.files[path] = file
            continue
        _pass(source, member.size)
        if len(layer.links) + len(layer.hard) > MAX_LINKS or len(layer.files) > MAX_FILES:
            raise BadImage("it has more links or libraries than an image needs")


def _pass(source: Source, size: int) -> None:
    if not source.skip(size):
        raise BadImage("its archive is cut off")


def _remove(layer: Layer, path: str, name: str) -> None:
    folder = path[: -len(name)].rstrip("/")
    if name == OPAQUE:
        layer.opaque.add(folder)
    elif name == WHITEOUT:
        raise BadImage("it has a whiteout without a name")
    elif not name.startswith(".wh..wh."):  # those are AUFS's own, and remove nothing
        layer.whiteouts.add(f"{folder}/{name[4:]}".lstrip("/"))


def _forget(layer: Layer, path: str) -> None:
    """Drop what the layer itself had at this path before: the last entry counts."""
    if hash(path) in layer.others:
        layer.others.discard(hash(path))
        layer.files.pop(path, None)
        layer.links.pop(path, None)
        layer.hard.pop(path, None)


def _content(source: Source, member: Member, role: str, budget: Budget) -> Content:
    """Return a file's content, and pass over its bytes."""
    if role == "name":
        _pass(source, member.size)
        return None
    if member.sparse:
        _pass(source, member.size)
        return Read({"problem": "it is a sparse file, whose holes no layer stores"}, None, b"")
    part = source.part(member.size)
    if part is None:
        return content_of(source, member.size, role, budget)
    return None if role == "executable" and not is_program(part.read(0, 4)) else part


def is_program(head: bytes) -> bool:
    """Return whether a file begins as what Linux executes."""
    return head.startswith((ELF_MAGIC, b"#!"))


def content_of(source: Source, size: int, role: str, budget: Budget) -> Content:
    """Return the content of the next `size` bytes of a stream; None for what cannot decide.

    Raises `BadImage` where the stream ends.
    """
    if role == "executable":
        first = source.read(min(SCRIPT, size))
        if not first.startswith(ELF_MAGIC):
            _pass(source, size - len(first))
            return Read({"format": "other"}, None, first) if is_program(first) else None
        if size <= WHOLE:
            return read_of(_Memory(first + _whole(source, size - len(first))))
        return read_of(kept_of(source, size, first))
    if role == "text":
        if size <= min(MAX_TEXT, budget.room):
            budget.room -= size
            return _whole(source, size)
        _pass(source, size)
        return Read({"problem": "it is longer than texts of packages are"}, None, b"")
    if size <= WHOLE:
        return read_of(_Memory(_whole(source, size)))
    head = source.read(min(CHUNK, size))
    if not head.startswith((ELF_MAGIC, b"MZ", b"KPAK")):
        _pass(source, size - len(head))
        return Read({"format": "other"}, None, head[:SCRIPT])
    return read_of(kept_of(source, size, head))


def _whole(source: Source, size: int) -> bytes:
    raw = source.read(size)
    if len(raw) < size:
        raise BadImage("its archive is cut off")
    return raw


class _Memory:
    __slots__ = ("_raw", "size")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.size = len(raw)

    def read(self, offset: int, count: int) -> bytes:
        return self._raw[offset : offset + count] if offset >= 0 and count > 0 else b""


def memory(raw: bytes) -> Part:
    """Return bytes as a file."""
    return Part(_Memory(raw), 0, len(raw))


def read_of(file: Readable) -> Read:
    """Return what a file has code for and what it needs, read now."""
    return Read(read_code(file), binary_of(file), file.read(0, SCRIPT))


def binary_of(file: Readable) -> Binary | None:
    """Return what the loader needs of an ELF file; None for anything else, and a damaged one."""
    try:
        if file.read(0, 4) != ELF_MAGIC:
            return None
        elf = read_elf(file)
        binary = Binary()
        binary.machine = elf.machine
        binary.interpreter = elf.interpreter()
        binary.needed = tuple(elf.needed())
        binary.folders = tuple(elf.search_path())
        needed, defined = elf.versions_needed(), elf.versions_defined()
        binary.glibc, binary.provides = _highest(needed), _highest(defined)
        binary.cxx, binary.cxx_provides = (_highest(v, "GLIBCXX_") for v in (needed, defined))
        binary.note = _note(elf.section(".note.cuda.fwd_compatibility"))
    except (BadFile, OSError, ValueError, OverflowError, MemoryError):
        return None
    return binary


def _highest(names: list[str], prefix: str = "GLIBC_") -> tuple[int, ...]:
    """Return (2, 34) of ``GLIBC_2.17`` and ``GLIBC_2.34``; private names have no number."""
    versions = [version_of(name[len(prefix) :]) for name in names if name.startswith(prefix)]
    return max(versions, default=())


def _note(raw: bytes) -> str:
    """Return the JSON of an ELF note: three 32-bit numbers, the owner's name, the description."""
    if len(raw) < 12:
        return ""
    name, size = (int.from_bytes(raw[at : at + 4], "little") for at in (0, 4))
    start = 12 + (name + 3) // 4 * 4
    return raw[start : start + size].rstrip(b"\0").decode("utf-8", "replace")
