"""What does an installation without bytecode cost, as uv makes one unless told otherwise?

The same packages twice, compiled and not, where Python writes no bytecode by itself: a read-only
image, or a user who does not own the folder.
"""

from __future__ import annotations

import compileall
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from measure import Figure, costs
from place import Place

WHERE = "import probe_chipdb, probe_core; print(probe_core.__file__); print(probe_chipdb.__file__)"


def run(place: Place) -> Iterator[Figure]:
    """Compare `probe --json` of both."""
    done = subprocess.run(
        [place.python, "-c", WHERE],
        cwd=place.folder,
        env=dict(place.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    packages = [Path(line).parent for line in done.stdout.splitlines()]
    commands = {}
    for name in ("compiled", "plain"):
        folder = place.folder / f"bytecode-{name}"
        for package in packages:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(package, folder / package.name, ignore=ignored)
        if name == "compiled":
            compileall.compile_dir(folder, quiet=2)
        path = place.with_path(folder)["PYTHONPATH"]
        variables = [f"PYTHONPATH={path}", "PYTHONDONTWRITEBYTECODE=1", "PYTHONSAFEPATH=1"]
        commands[name] = ["env", *variables, place.python, "-m", "probe_core", "--json"]
    taken = costs(commands, place.rounds(15), place.environ)
    wall, cpu = taken["plain"].against(taken["compiled"])
    note = f"{taken['plain'].wall * 1000:.0f} ms against {taken['compiled'].wall * 1000:.0f} ms"
    name = "probe --json without bytecode"
    yield Figure(name, wall, "x", 6.0, f"{note}; CPU {cpu:.1f} x", goal=4.0)
