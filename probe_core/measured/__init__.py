"""Measured figures: where they are kept, when they still count, and how they compare with peaks.

`probe bench` writes them; a probe puts those of this node beside what it derives. Here is only what
each probe needs: where the file would be.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["state_file"]

_FOLDER = "probe-core"
_NAME = "measured.json"


def state_file(environ: Mapping[str, str]) -> str | None:
    """Return the file's path; None where the environment names no place for state.

    XDG_STATE_HOME, LOCALAPPDATA or HOME: the user database is not asked, as its server may be dead.
    """
    for name, below in (("XDG_STATE_HOME", ""), ("LOCALAPPDATA", ""), ("HOME", ".local/state")):
        base = environ.get(name, "")
        if os.path.isabs(base):
            return os.path.join(base, below, _FOLDER, _NAME)
    return None
