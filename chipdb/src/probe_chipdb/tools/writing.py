"""Replaces a file in one step: others may be reading it, and a disk may be full."""

import os


def replace_text(path: str, text: str) -> None:
    """Write `text` to `path`; raises `OSError`, and then what was there stays."""
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(beside, path)
    except BaseException:  # an interrupt, too, leaves nothing behind
        if os.path.exists(beside):
            os.unlink(beside)
        raise
