"""The processes of a test's nodes, which are this computer, by a variable of their environment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def processes(marker: str) -> dict[int, str]:
    """Return the command lines of processes whose environment holds `marker`, by number."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command:  # a zombie has none
                    found[int(folder.name)] = command
        except OSError:
            continue
    return found


def folders_of(marker: str) -> set[str]:
    """Return the private folders that those processes run from."""
    return {
        word
        for line in processes(marker).values()
        for word in line.split()
        if "/.probe-cluster-" in word
    }


def is_probing(marker: str) -> bool:
    """Return whether the probe that was sent runs, and its prober, too."""
    found = processes(marker).values()
    return any(".probe-cluster-" in line and "--json" in line for line in found) and any(
        "probe_core.isolation.start" in line for line in found
    )


def nothing_left(marker: str, folders: set[str]) -> bool:
    """Return whether no such process and none of the folders is there."""
    return not processes(marker) and not any(map(os.path.lexists, folders))


def wait_for(what: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is true; fail when it is not in time."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)
