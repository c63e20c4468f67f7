"""What does an ordinary user wait, and how much longer does root, on the same computer?

root's processes are checked more closely: who owns what they load, and whether root may be trusted
to run it. A user has no such check, and no access to some of the files that root reads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import bench_nvidia
from bench_first import FIRST
from bench_rivals import PLAIN
from measure import Figure, bare, costs
from place import Place

NOBODY = "65534"


def run(place: Place) -> Iterator[Figure]:
    """Compare what nobody waits with bare Python, the plain script and root; only root can."""
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        print("user: left out, it needs root and setpriv", file=sys.stderr)
        return
    # The same way for both, and a home that is neither's.
    environ = {**place.environ, "HOME": "/nonexistent"}
    root, user = (
        [setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] for uid in ("0", NOBODY)
    )
    os.chmod(place.folder, 0o755)  # the folder of the run is root's alone
    # Through `env`, as below: `setpriv` itself may start what the user may not.
    first = [*user, "env", place.python, "-c", "import probe_core"]
    if subprocess.run(first, env=environ, capture_output=True, check=False).returncode:
        print(f"user: left out, another user may not read {place.python}", file=sys.stderr)
        return
    commands = {
        "root": [*root, *place.probe, "--json"],
        "user": [*user, *place.probe, "--json"],
        "first": [*user, place.python, "-c", FIRST],
        "bare": [*user, place.python, *bare()],
    }
    compiler = bench_nvidia.possible(place)
    if compiler is not None:
        eight = bench_nvidia.node(place, compiler, 8)
        commands["8 GPUs"] = [*user, *bench_nvidia.under(eight, [*place.probe, "--json"])]
        commands["plain"] = [*user, *bench_nvidia.under(eight, [place.python, "-c", PLAIN])]
    taken = costs(commands, place.rounds(21), environ)

    def ratio(name: str, one: str, other: str, limit: float, goal: float) -> Figure:
        wall, cpu = taken[one].against(taken[other])
        note = f"{taken[one].wall * 1000:.1f} ms against {taken[other].wall * 1000:.1f} ms"
        return Figure(name, wall, "x", limit, f"{note}; CPU {cpu:.2f} x", goal=goal)

    yield ratio("probe --json, root / an ordinary user", "root", "user", 1.15, 1.05)
    yield ratio("a user's probe --json, no GPU / bare Python", "user", "bare", 2.5, 2.0)
    yield ratio("a user's first probe(), no GPU / bare Python", "first", "bare", 5.0, 3.0)
    if compiler is not None:
        yield ratio("a user's 8 GPUs / pynvml + psutil", "8 GPUs", "plain", 1.1, 0.9)
