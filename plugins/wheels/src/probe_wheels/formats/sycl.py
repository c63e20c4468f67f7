"""The chips that SYCL code for Intel's GPUs was built for: images of ocloc, plain or in zstd.

Measured on bitsandbytes 0.50.2: a section ``__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen`` is a row of
images. Each is an `ar` archive with a member for each chip (``64.12.55.8``: 64-bit, then the IP
version) and one of SPIR-V for all others (``generic_ir``). All images of a library name the same.
"""

from __future__ import annotations

from probe_wheels.formats.zstd import NoDecoder, unzstd_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.files import Opened

__all__ = ["built_for"]

ARCHIVE = b"!<arch>\n"
ZSTD = b"\x28\xb5\x2f\xfd"

MAX_INPUT = 4 << 20
"""Bytes that are read of an image; those of bitsandbytes have 36,736 at most."""
MAX_IMAGE = 8 << 20
"""Bytes of a decompressed image; bitsandbytes has 691,056."""
MAX_MEMBERS = 64
_HEADER = 60

GENERIC = "generic_ir"


def built_for(file: Opened, offset: int, size: int) -> tuple[list[str], bool]:
    """Return the IP versions in the first image of a section, and whether it has SPIR-V, too.

    No version where the image cannot be read: then nobody knows which chips it is for.
    """
    raw = file.read(offset, min(size, MAX_INPUT))
    if raw.startswith(ZSTD):
        try:
            raw = unzstd_head(raw, MAX_IMAGE)
        except NoDecoder:
            return [], False
    names = _members(raw)
    versions = [name.partition(".")[2] for name in names if name.startswith(("64.", "32."))]
    return [version for version in versions if version.count(".") == 2], GENERIC in names


def _members(raw: bytes) -> list[str]:
    """Return the names of an archive's members, as far as it goes."""
    if not raw.startswith(ARCHIVE):
        return []
    names = []
    at = len(ARCHIVE)
    for _ in range(MAX_MEMBERS):
        header = raw[at : at + _HEADER]
        size = header[48:58].strip()
        if len(header) < _HEADER or header[58:] != b"`\n" or not size.isdigit():
            break
        names.append(header[:16].decode("ascii", "replace").strip().rstrip("/"))
        at += _HEADER + int(size)
        at += at & 1  # members start at even offsets
    return names
