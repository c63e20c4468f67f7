"""How large a recording may be: far more than a machine needs, far less than would hurt a host."""

from __future__ import annotations

__all__ = [
    "MAX_ABOUT",
    "MAX_DEPTH",
    "MAX_DOCUMENT",
    "MAX_ENTRIES",
    "MAX_ENVIRON",
    "MAX_FILE",
    "MAX_HEADERS",
    "MAX_LINK_STEPS",
    "MAX_NAME",
    "MAX_NESTING",
    "MAX_PACKED",
    "MAX_PATH",
    "MAX_TABLES",
    "MAX_TAR",
    "MAX_TOTAL",
    "MAX_XZ_MEMORY",
]

MAX_ENTRIES = 20_000
"""Files and links together."""

MAX_FILE = 1 << 20
"""Bytes of one file: what `Machine` reads of one at most."""

MAX_TOTAL = 16 << 20
"""Bytes of all files together."""

MAX_PATH, MAX_NAME, MAX_DEPTH = 1024, 255, 64
"""Bytes of a path (and of a link's target), bytes of one name in it, names in it."""

MAX_LINK_STEPS = 500_000
"""Names walked over while all links are followed; a whole /sys needs a tenth."""

MAX_DOCUMENT, MAX_NESTING, MAX_TABLES = 8 << 20, 32, 100_000
"""Bytes of a recording in JSON, unpacked; levels and number of lists and tables in it."""

MAX_ABOUT, MAX_ENVIRON = 64 << 10, 256
"""Bytes of a machine.json; variables of an environment."""

MAX_PACKED, MAX_TAR, MAX_HEADERS = 64 << 20, 64 << 20, 80_000
"""Bytes of a file as it lies on the disk; of a tar archive, unpacked; members of one."""

MAX_XZ_MEMORY = 80 << 20
"""Bytes that an xz decoder may take: `xz -9` asks for 65 MiB, a hostile header for 4 GiB."""
