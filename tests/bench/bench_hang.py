"""How long do six good probers take beside two that hang, with a deadline of one second?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from measure import Figure
from place import Place
from plugins_made import good_and_hanging

DEADLINE_S = 1.0


def run(place: Place) -> Iterator[Figure]:
    """Measure the wall time, and count the devices that still arrived."""
    site = good_and_hanging(place.folder / "hang", 6, 2, DEADLINE_S)
    environ = place.with_path(site)
    taken, complete = [], []
    for _ in range(place.rounds(5, 1)):
        start = perf_counter()
        done = subprocess.run(
            [*place.probe, "--json"], env=environ, capture_output=True, text=True, check=True
        )
        taken.append(perf_counter() - start)
        report = json.loads(done.stdout)
        complete.append(sum(one["kind"] == "npu" for one in report["devices"]))
        late = [one["prober"] for one in report["outcomes"] if one["status"] == "timeout"]
        if sorted(late) != ["hang0", "hang1"]:
            raise RuntimeError(f"expected two timeouts, found {report['outcomes']}")
    yield Figure("6 good and 2 hanging probers", median(taken), "s", 1.5, "deadline 1 s")
    yield Figure("devices of the good ones", min(complete), "of 6", 6, least=True)
