"""How large a recording may be: far more than a machine needs, far less than would hurt a host."""

from __future__ import annotations

from probe_core.wording import clean_text

MAX_ENTRIES = 20_000
"""Files and links together."""

MAX_FOLDERS = 50_000
"""Folders that files lie in, and that links lead to."""

MAX_FILE = 1 << 20
"""Bytes of one file: `Machine` reads no more of one."""

MAX_TOTAL = 16 << 20
"""Bytes of all files together."""

MAX_PATH = 1024
"""Bytes of a path, and of a link's target."""

MAX_NAME = 255
"""Bytes of one name in a path."""

MAX_DEPTH = 64
"""Names in a path."""

MAX_LINK_STEPS = 500_000
"""Names walked over while all links are followed; a machine's own need a tenth."""

MAX_DOCUMENT = 8 << 20
"""Bytes of a recording in JSON, unpacked."""

MAX_NESTING = 32
"""Levels of lists and tables in a recording in JSON."""

MAX_TABLES = 100_000
"""Lists and tables in a recording in JSON."""

MAX_ABOUT = 64 << 10
"""Bytes of a machine.json, and of an environment."""

MAX_ANSWERS_FILE = 4 << 20
"""Bytes of an answers.json: what 64 GPUs of 8 kB each take, eight times."""

MAX_ENVIRON = 256
"""Variables of an environment."""

MAX_PACKED = 64 << 20
"""Bytes of the file as it lies on the disk."""

MAX_TAR = 64 << 20
"""Bytes of a tar archive, unpacked."""

MAX_HEADERS = 80_000
"""Members of a tar archive: files, links, folders and extensions."""

MAX_XZ_MEMORY = 80 << 20
"""Bytes of memory to unpack xz: `xz -9` asks for 65 MiB, a hostile file for 4 GiB."""

MAX_ANSWERS = 64
"""Probers of which a recording has answers."""

MAX_FRAMES = 1024
"""Parts of one prober's answer: a live prober has 256 devices and 64 findings at most."""

MAX_LIST = 64
"""Ids or vendors in one list of an answer."""

MAX_SENTENCE = 4096
"""Characters of a text of an answer that is no field of a device."""

MAX_ACCESS = 1024
"""Device nodes of which a recording says whether they may be opened."""


# The error of recordings, and how its messages show text of unknown origin.


class BadRecording(ValueError):
    """A file that is no recorded machine, or one that could do harm; the message says why."""


def shown(text: object) -> str:
    """Return text of unknown origin in quotes, fit for one line of a message."""
    return f"'{clean_text(str(text), 120)}'"
