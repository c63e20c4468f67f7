"""What does `probe --json` cost on a node without accelerators, and does it start or load anything?

All plugins are installed; none may run.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from measure import Figure, bare, imports, interleaved
from place import Place

VENDOR_LIBRARIES = ("pynvml", "pyudev", "tinygrad", "pyamdgpuinfo", "amdsmi", "psutil", "ctypes")
STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system")
# Audit events see what strace would, and need no rights.
WATCH = """
import sys
seen = {"starts": [], "dlopen": []}
def watch(event, arguments):
    if event in %(starts)r: seen["starts"].append(event)
    if event == "ctypes.dlopen": seen["dlopen"].append(str(arguments[0]))
sys.addaudithook(watch)
from probe_core.cli import main
status = main(["--json"])
seen["modules"] = [name for name in %(libraries)r if name in sys.modules]
seen["all"] = len(sys.modules)
import json
print(json.dumps(seen), file=sys.stderr)
sys.exit(status)
"""


def run(place: Place) -> Iterator[Figure]:
    """Compare with an interpreter that does nothing, then look at what happened inside."""
    commands = {"bare": [place.python, *bare()], "probe": [*place.probe, "--json"]}
    if len(place.probe) == 1:
        commands["module"] = [place.python, "-m", "probe_core", "--json"]
    taken = interleaved(commands, place.rounds(41), place.environ)
    note = f"{taken['probe'] * 1000:.1f} ms against {taken['bare'] * 1000:.1f} ms; aim for 3"
    yield Figure("probe --json / bare Python", taken["probe"] / taken["bare"], "x", 5.0, note)
    if "module" in taken:
        ratio = taken["module"] / taken["bare"]
        yield Figure("python -m probe_core --json / bare Python", ratio, "x")
    yield from _inside(place)


def _inside(place: Place) -> Iterator[Figure]:
    code = WATCH % {"starts": STARTS, "libraries": VENDOR_LIBRARIES}
    done = subprocess.run(
        [place.python, "-c", code],
        env=dict(place.environ), capture_output=True, text=True, check=True,
    )  # fmt: skip
    seen = json.loads(done.stderr.splitlines()[-1])
    report = json.loads(done.stdout)
    idle = all(device["kind"] in ("cpu", "display") for device in report["devices"])
    note = "" if idle else "this machine has an accelerator: no target"
    none = 0 if idle else None
    yield Figure("children started", len(seen["starts"]), "", none, note)
    loaded = [*seen["modules"], *seen["dlopen"]]
    yield Figure("vendor libraries loaded", len(loaded), "", none, ", ".join(loaded) or note)
    yield Figure("modules imported", seen["all"], "")


def profile(place: Place) -> Iterator[str]:
    """Yield the imports that cost most, a line each."""
    command = [place.python, "-m", "probe_core", "--json"]
    without = {name for name, _ in imports([place.python, *bare()], place.environ)}
    costs = [(own, name) for name, own in imports(command, place.environ) if name not in without]
    yield f"{len(costs)} modules, {sum(own for own, _ in costs) / 1000:.1f} ms under -X importtime"
    for own, name in sorted(costs, reverse=True)[:25]:
        yield f"{own / 1000:8.2f} ms  {name}"
