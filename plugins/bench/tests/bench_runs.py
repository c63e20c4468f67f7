"""The command in a process of its own, with folders of its own, and compilers that hang or kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from command import probe_here

PROBE = [sys.executable, "-m", "probe_core", "bench"]


def environment(place: Path, **changes: str) -> dict[str, str]:
    own = {"XDG_STATE_HOME": f"{place}/state", "XDG_CACHE_HOME": f"{place}/cache"}
    # Without the bus, which would show the GPUs of the computer itself.
    alone = {"PROBE_ONLY": "cpu", "PROBE_DISABLE": "bus"}
    return {**os.environ, **own, **alone, "PROBE_LEASES": f"{place}/leases", **changes}


def run(place: Path, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROBE, *words], env=environment(place, **changes), capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


def run_here(
    place: Path, *words: str, command: str = "bench", **changes: str
) -> subprocess.CompletedProcess[str]:
    """Return what `run` does, of a command in this process."""
    return probe_here(command, *words, env=environment(place, **changes))


def document(place: Path, *words: str, **changes: str) -> dict[str, Any]:
    done = run(place, "--json", *words, **changes)
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def probe_report(place: Path) -> dict[str, Any]:
    """Return what `probe --json` reports beside the figures that are kept in `place`."""
    done = subprocess.run(
        [*PROBE[:-1], "--json"],
        env=environment(place),
        capture_output=True,
        check=True,
        timeout=120,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def compiler(place: Path, script: str) -> dict[str, str]:
    """Return the variables that make a shell script the only C compiler."""
    path = place / "compiler"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"CC": str(path)}


def hanging(place: Path) -> dict[str, str]:
    """Return the variables of a compiler that writes its process number and then hangs."""
    mark = place / "mark"
    script = f"echo $$ >{mark}.part; mv {mark}.part {mark}; exec sleep 600"
    return compiler(place, script)


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def nothing_is_left(place: Path) -> bool:
    """Return whether the hanging compiler has ended and no folder of a run is there."""
    pid = int((place / "mark").read_text())
    folders = list((place / "cache" / "probe-core").glob("bench-*"))
    return not is_running(pid) and not folders
