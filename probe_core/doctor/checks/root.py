"""The line that starts this command as root, which a check names where only root may look."""

from __future__ import annotations

import os
import sys

# Where sudo finds commands on any distribution (sudoers(5), secure_path): Debian's has
# /usr/local/bin, Fedora's has not. An environment's folder and ~/.local/bin are in none.
_OF_SUDO = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")


def as_root(*arguments: str) -> str:
    """Return the line to copy, with the whole path of a command that sudo would not find."""
    return " ".join(("sudo", _command(), *arguments))


def _command() -> str:
    folder = os.path.dirname(sys.executable)
    name = os.path.join(folder, "probe")
    if os.path.isfile(name):
        return "probe" if folder in _OF_SUDO else quoted(name)
    return f"{quoted(sys.executable)} -m probe_core"


def quoted(path: str) -> str:
    """Return a path as a shell takes it; shlex costs an import of re."""
    is_plain = all(char.isalnum() or char in "/._-+" for char in path)
    return path if is_plain else "'" + path.replace("'", "'\\''") + "'"
