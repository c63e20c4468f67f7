"""What does each format of `probe export` cost against `probe --json`, on a node with eight GPUs?

The same fake node as for NVIDIA's library under both; interleaved: a shared machine drifts.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from bench_nvidia import node, possible, under
from measure import Figure, costs
from place import Place

FORMATS = ("ansible", "dra", "env", "exo", "nfd", "otel", "prometheus", "ray", "slurm")


def run(place: Place) -> Iterator[Figure]:
    """Compare every format that is installed with the report itself."""
    compiler = possible(place)
    if compiler is None or not place.has("probe_export"):
        return
    eight = node(place, compiler, 8)
    commands = {"json": under(eight, [*place.probe, "--json"])}
    commands |= {
        name: under(eight, [*place.probe, "export", name])
        for name in FORMATS
        if _works(place, name)
    }
    taken = costs(commands, place.rounds(15), place.environ)
    for name in commands:
        if name != "json":
            wall, cpu = taken[name].against(taken["json"])
            note = f"{taken[name].wall * 1000:.1f} ms against {taken['json'].wall * 1000:.1f} ms"
            yield Figure(
                f"probe export {name} / probe --json", wall, "x", 1.1, f"{note}; CPU {cpu:.2f} x"
            )


def _works(place: Place, name: str) -> bool:
    listed = subprocess.run(
        [*place.probe, "export", "--list"],
        env=dict(place.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    return any(line.split(" ")[0] == name for line in listed.stdout.splitlines())
