"""A real Ray cluster on this computer: a head and four raylets, each of another sort of node.

Run by a Python that has ray: it prints the address, then "ready", waits for a line on its standard
input, and ends all that it started. No node has probe-core; one has a `probe` that hangs, in the
folder that is argument 1.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile

from ray.cluster_utils import Cluster

PATH = "/usr/bin:/bin"

ONE = {"num_cpus": 1, "object_store_memory": 80_000_000}


def main(slow: str) -> None:
    """Start the nodes, break two of them, and wait."""
    # Short: a socket of Ray is below it, and 107 bytes are the most.
    folder = tempfile.mkdtemp(prefix="ray-")
    os.environ["RAY_TMPDIR"] = folder
    # On a computer that is busy with other tests; 30 by default.
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
    os.mkdir(f"{folder}/ray")
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            **ONE,
            "node_name": "head",
            "num_gpus": 2,
            "include_dashboard": False,
            "temp_dir": folder,
            "env_vars": {"PATH": PATH},
        },
    )
    cluster.add_node(**ONE, node_name="bare", env_vars={"PATH": PATH})
    cluster.add_node(**ONE, node_name="slow", env_vars={"PATH": f"{slow}:{PATH}"})
    killed = cluster.add_node(**ONE, node_name="killed", env_vars={"PATH": PATH})
    stopped = cluster.add_node(**ONE, node_name="stopped", env_vars={"PATH": PATH})
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    stopped_pid = stopped.all_processes["raylet"][0].process.pid
    killed_pid = killed.all_processes["raylet"][0].process.pid
    for line in sys.stdin:
        if line == "break\n":
            os.kill(stopped_pid, signal.SIGSTOP)
            os.kill(killed_pid, signal.SIGKILL)
            print("broken", flush=True)
        else:
            break
    os.kill(stopped_pid, signal.SIGKILL)
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
