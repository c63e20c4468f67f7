"""Nodes of an MPI job, through mpirun with the user's options: one process on each."""

from __future__ import annotations

from probe_cluster.agent_start import agent_script
from probe_cluster.collectors.all_nodes import Launch, attend_all
from probe_cluster.errors import ClusterError
from probe_cluster.node_lines import node_script
from probe_cluster.node_process import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_cluster.gather_model import Limits, Sink, Target
    from probe_cluster.network_model import Start, Wire

__all__ = ["Mpi"]

_VERSION_S = 10.0


class Mpi:
    """The nodes that mpirun gets with `options`: Open MPI's, MPICH's or Intel's.

    mpirun names no node that it does not reach: it then ends with an error, which is the gather's
    `problem`.
    """

    name = "mpi"
    process_each = False

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._options = list(options)

    async def targets(self) -> list[Target]:
        """Return no node: mpirun names them when they start."""
        return []

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Run one mpirun."""
        task = ["sh", "-c", node_script(limits.command)]
        one_a_node, _ = await _own_options()
        await Launch(["mpirun", *one_a_node, *self._options, *task], limits, sink).run()

    async def agents(self, targets: Sequence[Target], start: Start, wire: Wire) -> None:
        """Run one mpirun whose input reaches all processes: by default the first alone has it."""
        one_a_node, to_all = await _own_options()
        task = ["sh", "-c", agent_script(start)]
        command = ["mpirun", *one_a_node, *to_all, *self._options, *task]
        await attend_all(command, targets, wire)


async def _own_options() -> tuple[list[str], list[str]]:
    """Return what starts one process a node, and what gives all the input; each MPI has its own."""
    ended, text = await output(["mpirun", "--version"], _VERSION_S, 1 << 16)
    if ended.unstarted is not None:
        raise ClusterError(f"{ended.unstarted}; install MPI on this computer, or load its module")
    version = text.decode("utf-8", "replace") + ended.stderr
    if "HYDRA" in version or "Intel(R) MPI" in version:
        return ["-ppn", "1"], ["-s", "all"]
    return ["--map-by", "ppr:1:node"], ["--stdin", "all"]
