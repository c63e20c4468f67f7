"""Reads a file that a user names, within bounds: no pipe, no device, nothing huge."""

import os
import stat


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
