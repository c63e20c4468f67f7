"""Reads a recorded machine from a file; what kind of file it is, its first bytes say."""

from __future__ import annotations

from probe_core.recording.errors import BadRecording, shown
from probe_core.recording.limits import MAX_DOCUMENT
from probe_core.recording.stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.recording.recording import Recording

__all__ = ["read"]

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
    from probe_core.recording.tarheader import BLOCK, MAGIC

    # By content, not by name: a recording from an issue tracker may be called anything.
    start = stream.start(BLOCK)
    if start[257:262] == MAGIC:
        from probe_core.recording.tar import read_tar

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
