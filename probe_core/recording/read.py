"""Reads a recorded machine from a file; what kind of file it is, its first bytes say."""

from __future__ import annotations

from probe_core.recording.errors import BadRecording, shown
from probe_core.recording.limits import MAX_DOCUMENT
from probe_core.recording.stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.recording.recording import Recording

__all__ = ["read"]

# The first bytes of archives that are not read.
_PACKED = (
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\x1f\x9d", "compress"),
)
_UNKNOWN = (
    "it is neither a recording in JSON nor a tar archive of a machine's root, plain or packed with"
    " gzip or xz; `probe record` writes one"
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
        raise BadRecording(f"{_UNKNOWN}; it is packed with {form}, which is not read")
    raise BadRecording(_UNKNOWN)
