"""How much memory does the process that a host sees take at its peak?"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping

from measure import Figure
from place import Place
from plugins_made import many

# VmHWM begins anew with exec; ru_maxrss of a child begins with its parent's.
PEAK = """
import sys
{body}
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"): print(int(line.split()[1]) / 1024, file=sys.stderr)
"""
COMMAND = "from probe_core.cli import main; main(['--json'])"
CALL = "import probe_core; probe_core.probe()"


def run(place: Place) -> Iterator[Figure]:
    """Measure the command and the call, idle and with ten probers that run."""
    site = many(place.folder / "memory", 10, absent=False)
    cases = {
        "bare Python": ("pass", dict(place.environ), None),
        "probe --json": (COMMAND, dict(place.environ), 40.0),
        "probe --json, 10 probers run": (COMMAND, place.with_path(site), 40.0),
        "probe_core.probe(), 10 probers run": (CALL, place.with_path(site), 40.0),
    }
    for name, (body, environ, target) in cases.items():
        yield Figure(f"peak memory, {name}", peak_of(place, body, environ), "MiB", target)


def peak_of(place: Place, body: str, environ: Mapping[str, str]) -> float:
    """Return the peak in MiB of a process that runs `body`, without its children."""
    done = subprocess.run(
        [place.python, "-c", PEAK.format(body=body)],
        env=dict(environ), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stderr.splitlines()[-1])
