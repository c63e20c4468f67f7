"""What does an ordinary user wait beside root, on the same computer?

root's processes are checked more closely: who owns what they load, and whether root may be trusted
to run it. A user has no such check, and no access to some of the files that root reads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

from measure import Figure, costs
from place import Place

NOBODY = "65534"


def run(place: Place) -> Iterator[Figure]:
    """Compare `probe --json` of nobody and of root; only root can be both."""
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        return
    # The same way for both, and a home that is neither's.
    environ = {**place.environ, "HOME": "/nonexistent"}
    users = {"root": "0", "user": NOBODY}
    switch = {
        name: [setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        for name, uid in users.items()
    }
    commands = {name: [*switch[name], *place.probe, "--json"] for name in users}
    first = [*switch["user"], place.python, "-c", "import probe_core"]
    if subprocess.run(first, env=environ, capture_output=True, check=False).returncode:
        return  # another user may not read the interpreter: its folders are root's alone
    taken = costs(commands, place.rounds(21), environ)
    wall, cpu = taken["root"].against(taken["user"])
    spent = f"{taken['root'].wall * 1000:.1f} ms against {taken['user'].wall * 1000:.1f} ms"
    note = f"{spent}; CPU {cpu:.2f} x"
    yield Figure("probe --json, root / an ordinary user", wall, "x", 1.15, note)
