"""One header of a tar archive: 512 bytes of fields, and values of extensions in their place."""

from __future__ import annotations

from probe_core.recording.errors import BadRecording, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BLOCK", "MAGIC", "Header", "pax_records"]

BLOCK = 512
MAGIC = b"ustar"
"""At byte 257 of every header since POSIX.1-1988; older archives are refused."""


class Header:
    """The fields that matter; raises `BadRecording` when the block is no header."""

    __slots__ = ("_name", "_target", "kind", "size")

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
        if not (length and equals and value.endswith(b"\n")):
            raise BadRecording("it is a damaged tar archive: a pax header cannot be read")
        records[key.decode("utf-8", "replace")] = value[:-1]
    return records
