"""Two simulated nodes on one machine: probe them, put them on one page, and plan a model on both.

    python plugins/exo/examples/two_nodes.py

The nodes are folders that stand for the / of a machine (see machines/README.md). With probe-amd
installed their GPUs tell their memory; without it their CPUs count, and the plan says so.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import probe_core
from probe_cluster import Links, Model, Topology, best, compare, fit, member
from probe_cluster.planning.links import KINDS

MACHINES = Path(__file__).parent / "machines"
NODES = ("desktop-7900xtx", "strix-halo")


def main() -> None:
    """Print topology, comparison and plan."""
    # Installed probers are found by themselves; naming one is for a checkout on the path.
    amd = {"amd": "probe_amd.prober"} if importlib.util.find_spec("probe_amd") else {}
    reports = {
        name: probe_core.probe(machine=probe_core.Machine(str(MACHINES / name)), probers=amd)
        for name in NODES
    }
    members = [member(name, report, bandwidth=60e9) for name, report in reports.items()]
    links = Links({NODES: KINDS["thunderbolt4"]})
    print(json.dumps(Topology.of(members, links).to_json(), indent=1))
    # A 70-billion model at 4.5 bits, with the KV cache of 16,384 tokens.
    model = Model(70_553_706_496, 80, 4.5, hidden=8192, kv_heads=8, head_dim=128, context=16_384)
    print(fit(members, model).sentence)
    for plan in compare(members, model, links=links).plans:
        print(f"{plan.strategy:12} {plan.tokens_per_second or 0:6.2f} tokens/s, fits: {plan.fits}")
    for stage in best(members, model, links=links).stages:
        print(f"{stage.node}: layers {stage.start_layer} to {stage.end_layer}")


if __name__ == "__main__":
    main()
