"""What the file of a kernel module says of itself: version, licence, and who signed it.

The signature stands behind the module: PKCS#7, a header of 12 bytes and a mark (the kernel's
include/linux/module_signature.h). It lies within the compression.
"""

from __future__ import annotations

from io import BytesIO
from struct import error as StructError
from struct import unpack, unpack_from

from probe_core.machine import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Protocol

    from probe_core.machine import Machine

    class BinaryFile(Protocol):
        """A file that is open for reading, whatever unpacks it."""

        def read(self, size: int = ..., /) -> bytes | None:
            """Return the next bytes."""

        def seek(self, offset: int, whence: int = ..., /) -> int:
            """Go to a place, and return it."""


MARK = b"~Module signature appended~\n"
_PKCS7 = 2
_HEADER = 12

MAX_UNPACKED = 192 << 20
"""Bytes of an unpacked module: NVIDIA's largest has about 100 MB."""

_MAX_INFO = 1 << 20
_MAX_SECTIONS = 4096
_MAX_SIGNATURE = 64 << 10


class ModuleFile:
    """A module's file. `problem` says why it was not read; then the other fields tell nothing.

    `signer` is who signed it (issuer and serial number of the certificate, or its key's id, in
    DER); b"" for a module without a signature.
    """

    def __init__(self) -> None:
        self.version = ""
        self.licence = ""
        self.signer = b""
        self.problem = ""

    @property
    def is_open(self) -> bool:
        """Whether it is NVIDIA's open module, whose licence is twofold."""
        return self.licence == "Dual MIT/GPL"


def read_module(machine: Machine, path: str) -> ModuleFile:
    """Return what a module's file says; never raises."""
    result = ModuleFile()
    try:
        with open_regular(machine.path(path)) as file:
            _read(_unpacked(file, path), result)
    except (OSError, ValueError, EOFError, StructError, ImportError) as error:
        result.problem = f"{path}: {str(error) or type(error).__name__}"
    return result


def _unpacked(file: FileIO, path: str) -> BinaryFile:
    """Return a file to seek in. Raises `ImportError` where this Python unpacks no zstd."""
    if path.endswith(".ko"):
        return file
    kind, packed = _packed(file, path)
    try:
        content = packed.read(MAX_UNPACKED + 1) or b""
    except (OSError, EOFError):
        raise
    except Exception as error:  # each library has an error of its own
        raise ValueError(f"no {kind}: {error}") from None
    if len(content) > MAX_UNPACKED:
        raise ValueError("it unpacks to more than a module has")
    return BytesIO(content)


def _packed(file: FileIO, path: str) -> tuple[str, BinaryFile]:
    """Return how a file is packed, and what unpacks it."""
    if path.endswith(".xz"):
        from lzma import LZMAFile

        return "xz", LZMAFile(file)
    if path.endswith(".gz"):
        from gzip import GzipFile

        return "gzip", GzipFile(fileobj=file)
    try:
        from compression.zstd import ZstdFile  # type: ignore[import-not-found]  # 3.14
    except ImportError:
        raise ImportError("zstd is unpacked from Python 3.14 on") from None
    return "zstd", ZstdFile(file)


def _read(file: BinaryFile, result: ModuleFile) -> None:
    info = _info(file)
    result.version = info.get(b"version", b"").decode("ascii", "replace")
    result.licence = info.get(b"license", b"").decode("ascii", "replace")
    end = file.seek(0, 2)
    tail = _at(file, max(0, end - len(MARK) - _HEADER), len(MARK) + _HEADER)
    if not tail.endswith(MARK):
        return
    header = tail[: -len(MARK)]
    kind, length = header[2], unpack(">I", header[8:])[0]
    if kind != _PKCS7 or not 0 < length <= _MAX_SIGNATURE:
        raise ValueError("its signature is of a kind that is not known")
    start = end - len(tail) - length
    result.signer = signer_of(_at(file, max(0, start), length)) if start > 0 else b""


def _at(file: BinaryFile, place: int, length: int) -> bytes:
    file.seek(place)
    return file.read(length) or b""


def _info(file: BinaryFile) -> dict[bytes, bytes]:
    """Return the pairs of the section .modinfo of an ELF file of 64 bits."""
    head = _at(file, 0, 64)
    if head[:5] != b"\x7fELF\x02":
        raise ValueError("it is no ELF file of 64 bits")
    order = "<" if head[5] == 1 else ">"
    table = unpack_from(f"{order}Q", head, 40)[0]
    size, count, names = unpack_from(f"{order}HHH", head, 58)
    if size != 64 or count > _MAX_SECTIONS:
        raise ValueError("its sections are damaged")
    headers = _at(file, table, size * count)
    sections = [unpack_from(f"{order}IIQQQQ", headers, size * i) for i in range(count)]
    if names >= count:
        return {}
    texts = _at(file, sections[names][4], min(sections[names][5], _MAX_INFO))
    for name, _, _, _, offset, length in sections:
        if texts[name : name + 9] == b".modinfo\0":
            fields = _at(file, offset, min(length, _MAX_INFO)).split(b"\0")
            return {key: value for key, _, value in (field.partition(b"=") for field in fields)}
    return {}


# DER, as far as it leads to the first signer of a PKCS#7 message.


def signer_of(message: bytes) -> bytes:
    """Return the identity of the first signer in DER; raises `ValueError` for another structure."""
    try:
        content = _inside(_items(_inside(message))[1])  # ContentInfo: type, [0] SignedData
        signed = _items(_inside(content))
        infos = _items(_inside(signed[-1]))
        return _items(_inside(infos[0]))[1]
    except IndexError:
        raise ValueError("its signature is damaged") from None


def _items(data: bytes) -> list[bytes]:
    """Return the elements of a constructed value, each whole."""
    items: list[bytes] = []
    place = 0
    while place < len(data) and len(items) < 64:
        start, length = _header(data, place)
        items.append(data[place : start + length])
        place = start + length
    return items


def _inside(element: bytes) -> bytes:
    start, length = _header(element, 0)
    return element[start : start + length]


def _header(data: bytes, place: int) -> tuple[int, int]:
    """Return where the content of an element begins, and its length."""
    if place + 2 > len(data):
        raise ValueError("its signature is damaged")
    length, start = data[place + 1], place + 2
    if length & 0x80:
        digits = length & 0x7F
        length = int.from_bytes(data[start : start + min(digits, 4)], "big")
        start += digits
    if start + length > len(data):
        raise ValueError("its signature is damaged")
    return start, length


def parts_of_signer(signer: bytes) -> list[bytes]:
    """Return what a certificate of the signer holds: issuer and serial number, or the key's id."""
    try:
        # IssuerAndSerialNumber is a sequence; [0] is a SubjectKeyIdentifier.
        return _items(_inside(signer)) if signer[:1] == b"\x30" else [_inside(signer)]
    except ValueError:
        return [signer]
