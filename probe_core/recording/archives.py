"""Files and archives of recordings, which somebody else wrote: read piece by piece, in bounds."""

from __future__ import annotations

import os
import stat

from probe_core.machine import is_kernels
from probe_core.recording.document import ABOUT_PATH, ANSWERS_PATH, Recording, load_table
from probe_core.recording.opening import is_root
from probe_core.recording.paths import (
    MAX_ABOUT,
    MAX_ANSWERS_FILE,
    MAX_DOCUMENT,
    MAX_ENTRIES,
    MAX_FILE,
    MAX_HEADERS,
    MAX_PACKED,
    MAX_TAR,
    MAX_TOTAL,
    MAX_XZ_MEMORY,
    BadRecording,
    check_path,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from typing import BinaryIO, Protocol

    from probe_core.model.document import Json

    class Decoder(Protocol):
        """What `zlib.decompressobj` and `lzma.LZMADecompressor` have in common."""

        @property
        def eof(self) -> bool: ...

        def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


# One header of a tar archive: 512 bytes of fields, and values of extensions in their place.

BLOCK = 512
MAGIC = b"ustar"
"""At byte 257 of every header since POSIX.1-1988; older archives are refused."""


class Header:
    """The fields that matter; raises `BadRecording` when the block is no header."""

    def __init__(self, block: bytes) -> None:
        # The sum is taken with its own field as spaces.
        summed = sum(block) - sum(block[148:156]) + 8 * ord(" ")
        if block[257:262] != MAGIC or _number(block[148:156]) != summed:
            raise BadRecording("it is a damaged tar archive: a header's sum is wrong")
        self.kind = block[156:157]
        self.size = _number(block[124:136])
        self._name = _text(block[:100])
        self._target = _text(block[157:257])
        prefix = _text(block[345:500])
        if block[257:263] == b"ustar\0" and prefix:  # GNU's own format keeps times there
            self._name = prefix + b"/" + self._name

    def extended(self, records: Mapping[str, bytes]) -> Header:
        """Take the values of the extensions before this header; returns itself."""
        if any(key.startswith("GNU.sparse.") for key in records):
            self.kind = b"S"
        self._name = records.get("path", self._name)
        self._target = records.get("linkpath", self._target)
        if "size" in records:
            if not records["size"].isdigit() or len(records["size"]) > 20:
                raise BadRecording("it is a damaged tar archive: a size is no number")
            self.size = int(records["size"])
        return self

    @property
    def is_folder(self) -> bool:
        """Whether the name ends with a slash, as tools marked a folder before POSIX."""
        return self._name.endswith(b"/")

    def path(self) -> str | None:
        """Return the member's path below the root, absolute; None for the root itself."""
        name = _decoded(self._name)
        if name.startswith("/"):
            raise BadRecording(f"the name {shown(name)} is absolute; pack the root from inside")
        name = name.removeprefix("./").removesuffix("/")
        return None if name in ("", ".") else f"/{name}"

    def target(self) -> str:
        """Return where a link leads."""
        return _decoded(self._target)


def _text(field: bytes) -> bytes:
    return field.split(b"\0", 1)[0]


def _decoded(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRecording(f"the name {shown(name.decode('latin'))} is not UTF-8") from None


def _number(field: bytes) -> int:
    """Return an octal number, or one of GNU's in base 256; negative ones are refused."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ") or b"0"
    if set(digits) - set(b"01234567"):
        raise BadRecording("it is a damaged tar archive: a field is no number")
    return int(digits, 8)


def pax_records(data: bytes) -> dict[str, bytes]:
    """Return the records of a pax header, each ``LENGTH KEY=VALUE`` and a line's end."""
    records: dict[str, bytes] = {}
    while data:
        digits, _, _ = data.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 8 else 0
        record, data = data[:length], data[length:]
        key, equals, value = record[len(digits) + 1 :].partition(b"=")
        if not (0 < length == len(record) and equals and value.endswith(b"\n")):
            raise BadRecording("it is a damaged tar archive: a pax header cannot be read")
        records[key.decode("utf-8", "replace")] = value[:-1]
    return records


# A tar archive of a machine's root, read member by member; nothing is extracted.
#
# Read here and not by the standard library's `tarfile`, which keeps headers of any length,
# recurses with their number, and in some versions never ends (CVE-2025-8194). Formats: ustar,
# GNU, pax.

_REFUSED = {
    b"1": "a hard link",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a FIFO",
    b"S": "a sparse file",
}
# "7" is a contiguous file of POSIX.1-1988, which tools write and read as a regular one.
_FILE, _FOLDER, _LINK = (b"0", b"\0", b"7"), b"5", b"2"
_OWN = {ABOUT_PATH: MAX_ABOUT, ANSWERS_PATH: MAX_ANSWERS_FILE}
"""What a recording says of itself, and the bytes that each may have."""

_MAX_EXTENSION = 64 << 10
"""Bytes of a header's extension, a long name or the records of pax: 64 of the longest paths."""


def read_tar(stream: Stream) -> Recording:
    """Return the recording that an archive holds; raises `BadRecording` and `OSError`."""
    archive = _Archive(stream)
    while archive.take_member():
        pass
    if not archive.own:
        _enter(archive)
    about = archive.own.get(ABOUT_PATH, {})
    answers = archive.own.get(ANSWERS_PATH, {})
    described = {**about, "answers": answers} if archive.own else None
    return Recording(archive.files, archive.links, described)


def _enter(archive: _Archive) -> None:
    """Take the only folder at the top for the root: ``tar c my-machine`` packs it with its name."""
    tops = {path.split("/", 2)[1] for path in (*archive.files, *archive.links)}
    if len(tops) != 1:
        return
    length = len(tops.pop()) + 1
    inner = {path[length:]: content for path, content in archive.files.items()}
    if not is_root(*inner, *(path[length:] for path in archive.links)):
        return
    for path in (ABOUT_PATH, ANSWERS_PATH):
        if (own := inner.pop(path, None)) is not None:
            archive.own[path] = load_table(own)
    archive.files = inner
    archive.links = {path[length:]: target for path, target in archive.links.items()}


class _Archive:
    """An archive that is read once from start to end, counting what it yields."""

    def __init__(self, stream: Stream) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.own: dict[str, dict[str, Json]] = {}
        self._folders: set[str] = set()
        self._stream = stream
        self._read = self._headers = self._total = 0

    def take_member(self) -> bool:
        """Take the next member; False at the archive's end."""
        header = self._next_header()
        if header is None:
            return False
        self._place(header)
        return True

    def _next_header(self) -> Header | None:
        """Return the next member's header with the values of the extensions before it."""
        records: dict[str, bytes] = {}
        while (block := self._bytes(BLOCK)).strip(b"\0"):
            self._headers += 1
            if self._headers > MAX_HEADERS:
                raise BadRecording(f"it has more than {MAX_HEADERS} members")
            header = Header(block)
            if header.kind not in (b"L", b"K", b"x", b"g"):
                return header.extended(records)
            if header.size > _MAX_EXTENSION:
                raise BadRecording(f"a header is longer than {_MAX_EXTENSION >> 10} KiB")
            data = self._content(header.size)
            if header.kind == b"x":
                records |= pax_records(data)
            elif header.kind != b"g":  # values for all members, such as a comment: none matters
                records["path" if header.kind == b"L" else "linkpath"] = data.rstrip(b"\0")
        if records:
            raise BadRecording("it ends after a long name without its member")
        return None

    def _place(self, header: Header) -> None:
        path = header.path()
        if path is None:  # the root itself
            return
        check_path(path)
        kind = _FOLDER if header.kind in _FILE and header.is_folder else header.kind
        if kind in _FILE:
            self._refuse_second(path, self.files, self.links, self._folders)
            self._take_file(path, header.size)
            return
        if kind in (_LINK, _FOLDER) and header.size:
            raise BadRecording(f"{shown(path)} is no regular file and has content")
        if kind == _LINK:
            self._refuse_second(path, self.files, self.links, self._folders)
            self.links[path] = header.target()
        elif kind == _FOLDER:
            self._refuse_second(path, self.files, self.links)
            self._folders.add(path)
        else:
            unknown = f"a member of the unknown kind {shown(kind.decode('latin'))}"
            raise BadRecording(
                f"{shown(path)} is {_REFUSED.get(kind, unknown)};"
                " a recording holds regular files and relative links alone"
            )
        self._check_count()

    def _take_file(self, path: str, size: int) -> None:
        limit = _OWN.get(path, MAX_FILE)
        if size > limit:
            raise BadRecording(f"{shown(path)} is longer than {limit >> 10} KiB")
        self._total += size
        if self._total > MAX_TOTAL:
            raise BadRecording(f"its files are longer than {MAX_TOTAL >> 20} MiB together")
        content = self._content(size)
        if path in _OWN:
            self._refuse_second(path, self.own)
            self.own[path] = load_table(content)
        else:
            self.files[path] = content
            self._check_count()

    def _refuse_second(self, path: str, *places: Container[str]) -> None:
        if any(path in place for place in places):
            raise BadRecording(f"{shown(path)} is there twice")

    def _check_count(self) -> None:
        if len(self.files) + len(self.links) > MAX_ENTRIES:
            raise BadRecording(f"more than {MAX_ENTRIES} files and links")

    def _content(self, size: int) -> bytes:
        """Return a member's bytes; what fills its last block is passed over."""
        return self._bytes(size + -size % BLOCK)[:size]

    def _bytes(self, size: int) -> bytes:
        self._read += size
        if self._read > MAX_TAR:
            raise BadRecording(f"it is longer than {MAX_TAR >> 20} MiB when unpacked")
        data = self._stream.up_to(size)
        if len(data) < size:
            raise BadRecording("it is cut short")
        return data


# The bytes of a recording's file, unpacked piece by piece and counted before they are stored.

PIECE = 64 << 10
"""Bytes read and unpacked at once, so that a bomb is noticed before it fills the memory."""

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


class Stream:
    """A file that may be packed with gzip or xz; a context manager.

    Raises `OSError` when the file cannot be read, `BadRecording` when it is no regular file, its
    packing is damaged, or it gives more bytes than asked for.
    """

    def __init__(self, path: str) -> None:
        status = os.stat(path)
        mode = status.st_mode
        # Some of the kernel's own block until they have something: /proc/kmsg.
        if status.st_size == 0 and is_kernels(os.path.realpath(path)):
            raise BadRecording("it is a file of the kernel")
        # Not opened: a FIFO would wait for a writer. Of a folder, `open` has its own error.
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise BadRecording("it is no regular file")
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed by `__exit__`
        self._ahead = b""
        try:
            start = self._file.read(len(_XZ))
            self._source = _unpacked(_Bounded(self._file, start), start)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def start(self, size: int) -> bytes:
        """Return the first bytes, fewer at the end, and give them again to the next reader."""
        self._ahead = self.up_to(size)
        return self._ahead

    def up_to(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer at the end alone."""
        pieces, self._ahead = [self._ahead[:size]], self._ahead[size:]
        remaining = size - len(pieces[0])
        while remaining > 0 and (piece := self._source.read(min(remaining, PIECE))):
            pieces.append(piece)
            remaining -= len(piece)
        return b"".join(pieces)

    def whole(self, limit: int) -> bytes:
        """Return all remaining bytes; raises `BadRecording` when they are more than `limit`."""
        raw = self.up_to(limit + 1)
        if len(raw) > limit:
            raise BadRecording(f"it is longer than {limit >> 20} MiB")
        return raw


class _Bounded:
    """The packed bytes, with what was read ahead; an endless file that unpacks to nothing ends."""

    def __init__(self, file: BinaryIO, start: bytes) -> None:
        self._file = file
        self._start = start
        self._remaining = MAX_PACKED

    def read(self, size: int) -> bytes:
        piece, self._start = self._start[:size], self._start[size:]
        piece = piece or self._file.read(size)
        self._remaining -= len(piece)
        if self._remaining < 0:
            raise BadRecording(f"it is longer than {MAX_PACKED >> 20} MiB on the disk")
        return piece


class _Unpacked:
    """What a decoder of zlib's or lzma's kind makes of the packed bytes, at most `size` at a call.

    The standard library's own readers bound neither xz's memory nor the time that a million empty
    gzip members take; so of a file that holds several, the first counts.
    """

    def __init__(self, packed: _Bounded, decoder: Decoder, error: type[Exception]) -> None:
        self._packed = packed
        self._decoder = decoder
        self._error = error

    def read(self, size: int) -> bytes:
        try:
            return self._read(size)
        except self._error as error:
            raise BadRecording(f"its packing is damaged: {error}") from None

    def _read(self, size: int) -> bytes:
        if self._decoder.eof:
            return b""
        # What zlib could not unpack for want of room it hands back; lzma keeps that itself.
        piece = self._decoder.decompress(getattr(self._decoder, "unconsumed_tail", b""), size)
        while not piece and not self._decoder.eof:
            data = self._packed.read(PIECE)
            if not data:
                raise BadRecording("its packing is damaged: it is cut short")
            piece = self._decoder.decompress(data, size)
        return piece


def _unpacked(packed: _Bounded, start: bytes) -> Readable:
    if start.startswith(_GZIP):
        import zlib

        return _Unpacked(packed, zlib.decompressobj(zlib.MAX_WBITS | 16), zlib.error)
    if start.startswith(_XZ):
        try:
            import lzma
        except ImportError:
            raise BadRecording("it is packed with xz, which this Python cannot read") from None
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)
        return _Unpacked(packed, decoder, lzma.LZMAError)
    return packed


# Reads a recorded machine from a file; what kind of file it is, its first bytes say.

# The first bytes of archives that are not read, as file(1) knows them.
_PACKED = (
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),  # an empty one
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"Rar!\x1a\x07", "RAR"),
    (b"LZIP", "lzip"),
    (b"\x5d\x00\x00", "LZMA"),
    (b"\x89LZO\x00", "lzop"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x1f\x9d", "compress"),
    (b"0707", "cpio"),
    (b"hsqs", "squashfs"),
)
_NEITHER = (
    "it is neither a recording in JSON nor a tar archive of a machine's root, plain or packed with"
    " gzip or xz"
)


def read(path: str) -> Recording:
    """Return the recording in a file: JSON, or a tar archive, plain or packed with gzip or xz.

    Raises `BadRecording` with the file's name and the reason, `OSError` when it cannot be read.
    """
    if "\0" in path:
        raise BadRecording(f"{shown(path)} is no path: it holds a NUL")
    try:
        with Stream(path) as stream:
            return _read(stream)
    except BadRecording as error:
        raise BadRecording(f"{shown(path)} is no recorded machine: {error}") from None


def _read(stream: Stream) -> Recording:
    # By content, not by name: a recording from an issue tracker may be called anything.
    start = stream.start(BLOCK)
    if start[257:262] == MAGIC:
        return read_tar(stream)
    if start.lstrip().startswith(b"{"):
        from probe_core.recording.document import parse

        return parse(stream.whole(MAX_DOCUMENT))
    form = next((name for magic, name in _PACKED if start.startswith(magic)), None)
    if form:
        unread = f"it is packed with {form}, which is not read; unpack it and name the folder"
        raise BadRecording(f"{_NEITHER}: {unread}")
    if not start.strip(b"\0"):
        form = "an empty archive" if start else "an empty file"
        raise BadRecording(f"{_NEITHER}: it is {form}; `probe record` writes one")
    raise BadRecording(f"{_NEITHER}; `probe record` writes one")


if TYPE_CHECKING:

    class Readable(Protocol):
        """What gives at most `size` bytes at a call, and nothing at its end."""

        def read(self, size: int, /) -> bytes: ...
